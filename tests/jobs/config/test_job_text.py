from pathlib import Path

import pytest

from ragassay.jobs.config.job import load_job
from tests.jobs.config.texts import job_of
from tests.raises import raises, refuses


@pytest.mark.parametrize(
    ("text", "key", "close"),
    [
        ("verdict: {thresold: {value: 1}}", "verdict.thresold", "threshold"),
        ("verdict: {threshold: {qantile: 0.1}}", "verdict.threshold.qantile", "quantile"),
        ("members: {slms: [{name: a, replicas: {num_gpu: 1}}]}", "members.slms.0.replicas.num_gpu", "num_gpus"),
        (
            "members: {detectors: [{name: a, kind: novelty, in_ensembel: true}]}",
            "members.detectors.0.in_ensembel",
            "in_ensemble",
        ),
        ("evaluation: {reference: {name: a, base_url: 'http://a', modell: m}}", "evaluation.reference.modell", "model"),
        ("escalation: {judge: {name: j, replica: 1}, share: 0.1}", "escalation.judge.replica", "replicas"),
        ("escalation: {judge: {name: j}, shar: 0.1}", "escalation.shar", "share"),
        ("splitting: {column: lang}", "splitting.column", "language_column"),
        ("verdict: {drift: {zzz: 1}}", "verdict.drift.zzz", None),
        ("zzz: 1", "zzz", None),
    ],
)
def test_an_unknown_key_is_reported_with_the_similar_known_key(text: str, key: str, close: str | None) -> None:
    with refuses("config.unknown-key") as error:
        job_of(text)
    (fault,) = (item for item in error.value.fields["faults"] if item["code"] == "config.unknown-key")
    assert (fault["key"], fault["close"]) == (key, close) and {close} - {None} <= set(fault["known"])


@pytest.mark.parametrize(
    ("text", "key", "close"),
    [
        ("slms: []", "slms", "members.slms"),
        ("columns: {question: q}", "columns", "input.columns"),
        ("threshold: {value: 1}", "threshold", "verdict.threshold"),
        ("thresold: {value: 1}", "thresold", "verdict.threshold"),
        ("quantile: 0.1", "quantile", "verdict.threshold.quantile"),
        ("verdict: {quantile: 0.1}", "verdict.quantile", "verdict.threshold.quantile"),
        ("runtime: {on_bad_file: skip}", "runtime.on_bad_file", "input.on_bad_file"),
        ("members: {slms: [{name: a, language: de}]}", "members.slms.0.language", "splitting.language"),
        ("splitter: {language: de}", "splitter", "splitting"),
        ("judge: {name: a}", "judge", "escalation.judge"),
        ("explain: {model: m}", "explain", "escalation.explainer"),
    ],
)
def test_a_key_of_another_section_is_reported_with_its_path(text: str, key: str, close: str) -> None:
    with refuses("config.unknown-key") as error:
        job_of(text)
    (fault,) = (item for item in error.value.fields["faults"] if item["code"] == "config.unknown-key")
    assert (fault["key"], fault["close"]) == (key, close) and f"did you mean {close}?" in fault["text"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("verdict: {}\nmembers: {}\nverdict: {rule: both}", ("'verdict'", "line 1", "line 3")),
        ("members:\n  slms:\n  - name: a\n    model: b\n    name: c", ("'name'", "line 3", "line 5")),
        ("threshold: {value: 1, value: 2}", ("'value'", "line 1")),
        ("threshold: {value: !!int x}", ("line 1", "'x'", "int")),
        ("block_mib: !!float x", ("line 1", "'x'", "float")),
        ("threshold: {value: 0b_}", ("line 1", "'0b_'", "int")),
        ("\ncalibration: !!timestamp x", ("line 2", "'x'", "timestamp")),
        ("calibration: !!timestamp 2026-02-30", ("line 1", "'2026-02-30'", "timestamp")),
        ("calibration: !!bool perhaps", ("line 1", "'perhaps'", "bool")),
    ],
)
def test_a_fault_of_the_yaml_is_named_with_its_line(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with raises("config.no-yaml", path=str(path)) as error:
        load_job(str(path))
    assert all(name in error.value.fields["reason"] for name in names)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("input: {columns: {passage_roles: tool}}", "input.columns.passage_roles", "must be a list, not a text"),
        ("input: [columns]", "input", "must be a mapping, not a list"),
        ("members: {detectors: [entities]}", "members.detectors.0", "must be a mapping, not a text"),
        ("evaluation: {resamples: 1.5}", "evaluation.resamples", "must be a whole number, not the number 1.5"),
        ("runtime: {block_mib: null}", "runtime.block_mib", "must be a number, not null"),
        ("splitting: {pipeline: true}", "splitting.pipeline", "must be a text, not true"),
        ("members: {detectors: [{name: a, kind: a, in_ensemble: x}]}", "members.detectors.0.kind", "unknown kind: give one of"),
        ("members: {slms: [{model: a}]}", "members.slms.0.name", "is required"),
        (
            "verdict: {threshold: strict}",
            "verdict.threshold",
            "not a text: its keys are sentence, value, quantile, of, measured_on",
        ),
        ("runtime: {block_mib: lots}", "runtime.block_mib", "must be a number, not a text: above 0, the default is 0.5"),
        ("verdict: {threshold: {quantile: all}}", "verdict.threshold.quantile", "not a text: at least 0, at most 1"),
        ("escalation: {judge: gpt}", "escalation.judge", "its keys are name, "),
        ("members: {slms: [a]}", "members.slms.0", "must be a mapping, not a text"),
    ],
)
def test_a_wrong_type_is_named_in_the_words_of_yaml(text: str, key: str, expected: str) -> None:
    with raises("config.invalid") as error:
        job_of(text)
    (fault,) = error.value.fields["faults"]
    assert fault["key"] == key and expected in fault["text"]


def test_yes_and_no_are_text_not_booleans() -> None:
    text = "members: {slms: [{name: granite, supported: [No], unsupported: [Yes, yes], chat: false}]}"
    (slm,) = job_of(text).members.slms
    assert (slm.supported, slm.unsupported, slm.chat) == (("No",), ("Yes", "yes"), False)


@pytest.mark.parametrize("text", ["2026-02-20", "2026-02-30", "2026-02-20 10:00:00", "Tuesday"])
def test_a_date_is_text(text: str) -> None:
    job = job_of(f"verdict:\n  threshold:\n    value: 1\n    measured_on: {text}")
    assert job.verdict.threshold.measured_on == text


def test_a_merged_mapping_may_repeat_a_key() -> None:
    detectors = "  - &n {name: n, kind: novelty}\n  - &m {<<: *n, name: m}\n  - {<<: *m, name: e, kind: entities}\n"
    assert [(d.name, d.kind) for d in job_of(f"members:\n  detectors:\n{detectors}").members.detectors] == [
        ("n", "novelty"), ("m", "novelty"), ("e", "entities"),
    ]  # fmt: skip
