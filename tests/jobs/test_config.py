from pathlib import Path

import pytest

from ragassay.jobs.config import Job, load_job, make_job
from ragassay.pipeline.errors import ConfigError
from tests.conftest import REPO


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
        ("slms: [{name: a}, {name: a}]", "names of members must differ"),
        ("slms: []", "an ensemble needs a member"),
        ("{slms: [], detectors: [{name: n, kind: novelty, in_ensemble: false}]}", "an ensemble needs a member"),
        (
            "{slms: [{name: a}, {name: b}], weights: {a: 1}}",
            "weights must name every member of the ensemble and nothing else: a, b",
        ),
        ("{slms: [{name: a}], weights: {a: 0}}", "weights.a"),
        ("detectors: [{name: n, kind: magic}]", "detectors.0.kind"),
        ("thresold: {value: 1}", "thresold: unknown key; did you mean threshold?"),
        ("threshold: {qantile: 0.1}", "threshold.qantile: unknown key; did you mean quantile?"),
        ("slms: [{name: a, replicas: {num_gpu: 1}}]", "slms.0.replicas.num_gpu: unknown key; did you mean num_gpus?"),
        ("detectors: [{name: a, kind: novelty, in_ensembel: true}]", "in_ensembel: unknown key; did you mean in_ensemble?"),
        ("judge: {name: a, base_url: 'http://a', modell: m}", "judge.modell: unknown key; did you mean model?"),
        ("drift: {zzz: 1}", "drift.zzz: unknown key; known are error_rate, flagged, "),
        ("aggregate: {epsilon: .inf}", "aggregate.epsilon: Input should be a finite number"),
        ("aggregate: {epsilon: .nan}", "aggregate.epsilon"),
        ("drift: {psi: .inf}", "drift.psi: Input should be a finite number"),
        ("block_mib: .inf", "block_mib: Input should be a finite number"),
        ("slms: [{name: a, replicas: {num_cpus: .inf}}]", "num_cpus: Input should be a finite number"),
        ("threshold: {value: 1}\nslms: []\nthreshold: {value: 2}", "'threshold' stands in line 1 and again in line 3"),
        ("slms:\n  - name: a\n    model: b\n    name: c", "'name' stands in line 2 and again in line 4"),
        ("threshold: {value: 1, value: 2}", "'value' stands in line 1 and again in line 1"),
        ("threshold: {value: !!int x}", "line 1: 'x' is no int"),
        ("block_mib: !!float x", "line 1: 'x' is no float"),
        ("threshold: {value: 0b_}", "line 1: '0b_' is no int"),
        ("\ncalibration: !!timestamp x", "line 2: 'x' is no timestamp"),
        ("calibration: !!timestamp 2026-02-30", "line 1: '2026-02-30' is no timestamp"),
        ("calibration: !!bool perhaps", "line 1: 'perhaps' is no bool"),
        ("threshold: {value: 1, quantile: 0.5}", "either value or quantile"),
        ("threshold: {quantile: 7}", "threshold.quantile"),
        ("aggregate: {positive: none}", "harmonic mean needs positive"),
        ("aggregate: {mean: median}", "aggregate.mean"),
        ("normalize: {source: frozen}", "frozen needs it"),
        ("columns: {question: a, response: a}", "named twice"),
        ("slms: [{name: a, supported: [Yes], unsupported: [Yes]}]", "share the words"),
        ("slms: [{name: a, replicas: {min: 3, max: 2}}]", "below min"),
        ("slms: [{name: a, quantization: fp8_per_channel}]", "is for vllm on GPUs"),
        ("slms: [{name: a, replicas: {num_gpus: 0.5}}]", "need kv_cache_gib"),
        ("slms: [{name: a, prompt: 'no field'}]", "exactly once"),
        ("{slms: [{name: a}], escalate: {to: {name: j}}}", "give either share"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, threshold: dynamic, when: a}}", "give either share"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, threshold: dynamic}}", "name the member in when"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, when: b}}",
            "escalate.when names no member, 'b': .* one of a",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: a}, share: 0.1}}", "escalate.to needs a name of its own"),
        ("{slms: [{name: a}], escalate: {to: {name: ensemble}, share: 0.1}}", "escalate.to needs a name of its own"),
        ("{slms: [{name: uncertainty}], escalate: {to: {name: j}, share: 0.1}}", "call the member otherwise"),
        ("{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, order: ts}}", "order goes with threshold: dynamic"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j}, share: 0.1, price: {input: 1, output: 1}}}",
            "what a served judge costs",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: j, prompt: x}, share: 0.1}}", "exactly once"),
        (
            "{slms: [{name: a}], escalate: {to: {name: j, replica: 1}, share: 0.1}}",
            "escalate.to.replica: unknown key; did you mean",
        ),
        ("{slms: [{name: a}], escalate: {to: {name: j}, shar: 0.1}}", "escalate.shar: unknown key; did you mean share?"),
        ("- a\n- b", "must be a mapping"),
        ("a: [", "no legal YAML"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_job(str(path))


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)2 fault.*on_bad_file.*block_mib"):
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
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_job("nowhere.yaml")


def test_weights_are_shares_of_the_ensemble() -> None:
    detectors = [{"name": "n", "kind": "novelty"}, {"name": "beside", "kind": "entities", "in_ensemble": False}]
    job = make_job({"slms": [{"name": "a"}], "detectors": detectors, "weights": {"a": 3, "n": 1}})
    assert job.ensemble_weights == {"a": 0.75, "n": 0.25, "beside": 0.0}
    assert make_job({"slms": [{"name": "a"}, {"name": "b"}]}).ensemble_weights is None
