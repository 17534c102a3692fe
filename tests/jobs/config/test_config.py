from collections import Counter
from pathlib import Path

import pytest

from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.job_text import parse
from tests.conftest import REPO
from tests.error_codes import faults
from tests.raises import raises, refuses
from tests.test_errors import CODE, messages


def test_codes_of_faults_are_unique_and_well_formed() -> None:
    codes = Counter([*(fault.code for fault in faults()), *(message.code for message in messages().values())])
    assert [code for code, count in codes.items() if count > 1 or not CODE.fullmatch(code)] == []


def test_every_default_is_legal() -> None:
    assert load_job(None) == Job() == make_job({})


@pytest.mark.parametrize(
    "path", sorted([*(REPO / "infra").glob("job_*.yaml"), REPO / "jobs" / "demo.yaml"]), ids=lambda p: p.name
)
def test_shipped_job_files_are_legal(path: Path) -> None:
    assert load_job(str(path)).slms


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slms: [{name: a}, {name: a}]", "config.member-names"),
        ("slms: []", "config.no-member"),
        ("{slms: [], detectors: [{name: n, kind: novelty, in_ensemble: false}]}", "config.no-member"),
        ("{slms: [{name: a}, {name: b}], weights: {a: 1}}", "config.weights-of-members"),
        ("{slms: [{name: a}], weights: {a: 0}}", "weights.a"),
        ("detectors: [{name: n, kind: magic}]", "detectors.0.kind"),
        ("aggregate: {epsilon: .inf}", "aggregate.epsilon"),
        ("aggregate: {epsilon: .nan}", "aggregate.epsilon"),
        ("drift: {psi: .inf}", "drift.psi"),
        ("block_mib: .inf", "block_mib"),
        ("slms: [{name: a, replicas: {num_cpus: .inf}}]", "slms.0.replicas.num_cpus"),
        ("threshold: {value: 1, quantile: 0.5}", "config.value-and-quantile"),
        ("threshold: {quantile: 7}", "threshold.quantile"),
        ("aggregate: {positive: none}", "config.positive-scores"),
        ("aggregate: {mean: median}", "aggregate.mean"),
        ("normalize: {source: frozen}", "config.frozen-file"),
        ("columns: {question: a, response: a}", "config.column-twice"),
        ("slms: [{name: a, supported: [Yes], unsupported: [Yes]}]", "config.shared-words"),
        ("slms: [{name: a, replicas: {min: 3, max: 2}}]", "config.replicas-range"),
        ("slms: [{name: a, quantization: fp8_per_channel}]", "config.quantization"),
        ("slms: [{name: a, replicas: {num_gpus: 0.5}}]", "config.shared-gpu-cache"),
        ("slms: [{name: a, prompt: 'no field'}]", "prompt.judged-once"),
        ("{slms: [{name: a}], escalate: {to: {name: j}}}", "config.share-and-threshold"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, threshold: dynamic, when: a}}",
            "config.share-and-threshold",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: j}, threshold: dynamic}}", "config.dynamic-without-when"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, when: b}}", "config.when-no-member"),
        ("{slms: [{name: a}], escalate: {to: {name: a}, share: 0.1}}", "config.judge-name"),
        ("{slms: [{name: a}], escalate: {to: {name: ensemble}, share: 0.1}}", "config.judge-name"),
        ("{slms: [{name: uncertainty}], escalate: {to: {name: j}, share: 0.1}}", "config.when-ambiguous"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, order: ts}}", "config.order-of-share"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, price: {input: 1, output: 1}}}", "config.price-unserved"),
        ("{slms: [{name: a}], escalate: {to: {name: j, prompt: x}, share: 0.1}}", "prompt.judged-once"),
        ("- a\n- b", "config.no-mapping"),
        ("a: [", "config.no-yaml"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with refuses(says):
        load_job(str(path))


@pytest.mark.parametrize(
    ("text", "place", "close"),
    [
        ("thresold: {value: 1}", "thresold", "threshold"),
        ("threshold: {qantile: 0.1}", "threshold.qantile", "quantile"),
        ("slms: [{name: a, replicas: {num_gpu: 1}}]", "slms.0.replicas.num_gpu", "num_gpus"),
        ("detectors: [{name: a, kind: novelty, in_ensembel: true}]", "detectors.0.in_ensembel", "in_ensemble"),
        ("judge: {name: a, base_url: 'http://a', modell: m}", "judge.modell", "model"),
        ("{slms: [{name: a}], escalate: {to: {name: j, replica: 1}, share: 0.1}}", "escalate.to.replica", "replicas"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, shar: 0.1}}", "escalate.shar", "share"),
        ("drift: {zzz: 1}", "drift.zzz", None),
    ],
)
def test_an_unknown_key_is_named_beside_the_one_that_is_meant(text: str, place: str, close: str | None) -> None:
    with refuses("config.unknown-key") as error:
        make_job(parse(text))
    (fault,) = (one for one in error.value.fields["faults"] if one["code"] == "config.unknown-key")
    assert (fault["place"], fault["close"]) == (place, close) and {close} - {None} <= set(fault["known"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("threshold: {value: 1}\nslms: []\nthreshold: {value: 2}", ("'threshold'", "line 1", "line 3")),
        ("slms:\n  - name: a\n    model: b\n    name: c", ("'name'", "line 2", "line 4")),
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


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with raises("config.invalid", count=2) as error:
        make_job({"on_bad_file": "pray", "block_mib": 0})
    assert [fault["place"] for fault in error.value.fields["faults"]] == ["on_bad_file", "block_mib"]


def test_yes_and_no_are_words_not_booleans(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("slms: [{name: granite, supported: [No], unsupported: [Yes, yes], chat: false}]")
    (slm,) = load_job(str(path)).slms
    assert (slm.supported, slm.unsupported, slm.chat) == (("No",), ("Yes", "yes"), False)


@pytest.mark.parametrize("text", ["2026-02-20", "2026-02-30", "2026-02-20 10:00:00", "Tuesday"])
def test_a_date_is_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(f"threshold:\n  value: 1\n  measured_on: {text}")
    assert load_job(str(path)).threshold.measured_on == text


def test_a_mapping_that_is_merged_may_say_a_key_anew(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "detectors:\n  - &n {name: n, kind: novelty}\n  - &m {<<: *n, name: m}\n  - {<<: *m, name: e, kind: entities}\n"
    )
    assert [(d.name, d.kind) for d in load_job(str(path)).detectors] == [
        ("n", "novelty"), ("m", "novelty"), ("e", "entities"),
    ]  # fmt: skip


def test_missing_file_is_named() -> None:
    with raises("config.unreadable", path="nowhere.yaml"):
        load_job("nowhere.yaml")


def test_weights_are_shares_of_the_ensemble() -> None:
    detectors = [{"name": "n", "kind": "novelty"}, {"name": "beside", "kind": "entities", "in_ensemble": False}]
    job = make_job({"slms": [{"name": "a"}], "detectors": detectors, "weights": {"a": 3, "n": 1}})
    assert job.ensemble_weights == {"a": 0.75, "n": 0.25, "beside": 0.0}
    assert make_job({"slms": [{"name": "a"}, {"name": "b"}]}).ensemble_weights is None
