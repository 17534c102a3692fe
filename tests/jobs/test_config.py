from pathlib import Path

import pytest

from ragassay.jobs.config import Job, load_job, make_job
from tests.conftest import REPO
from tests.raises import raises, refuses


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
        ("slms: [{name: a}, {name: a}]", "job"),
        ("slms: []", "job"),
        ("{slms: [], detectors: [{name: n, kind: novelty, in_ensemble: false}]}", "job"),
        (
            "{slms: [{name: a}, {name: b}], weights: {a: 1}}",
            "job",
        ),
        ("{slms: [{name: a}], weights: {a: 0}}", "weights.a"),
        ("detectors: [{name: n, kind: magic}]", "detectors.0.kind"),
        ("thresold: {value: 1}", "thresold"),
        ("threshold: {qantile: 0.1}", "threshold.qantile"),
        ("slms: [{name: a, replicas: {num_gpu: 1}}]", "slms.0.replicas.num_gpu"),
        ("detectors: [{name: a, kind: novelty, in_ensembel: true}]", "detectors.0.in_ensembel"),
        ("judge: {name: a, base_url: 'http://a', modell: m}", "judge.model"),
        ("drift: {zzz: 1}", "drift.zzz"),
        ("aggregate: {epsilon: .inf}", "aggregate.epsilon"),
        ("aggregate: {epsilon: .nan}", "aggregate.epsilon"),
        ("drift: {psi: .inf}", "drift.psi"),
        ("block_mib: .inf", "block_mib"),
        ("slms: [{name: a, replicas: {num_cpus: .inf}}]", "slms.0.replicas.num_cpus"),
        ("threshold: {value: 1}\nslms: []\nthreshold: {value: 2}", "config.no-yaml"),
        ("slms:\n  - name: a\n    model: b\n    name: c", "config.no-yaml"),
        ("threshold: {value: 1, value: 2}", "config.no-yaml"),
        ("threshold: {value: !!int x}", "config.no-yaml"),
        ("block_mib: !!float x", "config.no-yaml"),
        ("threshold: {value: 0b_}", "config.no-yaml"),
        ("\ncalibration: !!timestamp x", "config.no-yaml"),
        ("calibration: !!timestamp 2026-02-30", "config.no-yaml"),
        ("calibration: !!bool perhaps", "config.no-yaml"),
        ("threshold: {value: 1, quantile: 0.5}", "threshold"),
        ("threshold: {quantile: 7}", "threshold.quantile"),
        ("aggregate: {positive: none}", "aggregate"),
        ("aggregate: {mean: median}", "aggregate.mean"),
        ("normalize: {source: frozen}", "normalize"),
        ("columns: {question: a, response: a}", "columns"),
        ("slms: [{name: a, supported: [Yes], unsupported: [Yes]}]", "slms.0"),
        ("slms: [{name: a, replicas: {min: 3, max: 2}}]", "slms.0.replicas"),
        ("slms: [{name: a, quantization: fp8_per_channel}]", "slms.0"),
        ("slms: [{name: a, replicas: {num_gpus: 0.5}}]", "slms.0"),
        ("slms: [{name: a, prompt: 'no field'}]", "prompt.judged-once"),
        ("{slms: [{name: a}], escalate: {to: {name: j}}}", "escalate"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, threshold: dynamic, when: a}}", "escalate"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, threshold: dynamic}}", "escalate"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, when: b}}",
            "job",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: a}, share: 0.1}}", "job"),
        ("{slms: [{name: a}], escalate: {to: {name: ensemble}, share: 0.1}}", "job"),
        ("{slms: [{name: uncertainty}], escalate: {to: {name: j}, share: 0.1}}", "job"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, order: ts}}", "escalate"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, price: {input: 1, output: 1}}}",
            "escalate",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: j, prompt: x}, share: 0.1}}", "prompt.judged-once"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j, replica: 1}, share: 0.1}}",
            "escalate.to.replica",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: j}, shar: 0.1}}", "escalate.shar"),
        ("- a\n- b", "config.no-mapping"),
        ("a: [", "config.no-yaml"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with refuses(says):
        load_job(str(path))


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with raises("config.invalid", count=2):
        make_job({"on_bad_file": "pray", "block_mib": 0})


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
