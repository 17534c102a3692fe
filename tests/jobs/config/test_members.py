import pytest

from ragassay.jobs.config.job import Job, make_job
from tests.jobs.config.texts import assert_refused, job_of


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("slms: [{name: a}, {name: a}]", "config.member-names"),
        ("slms: []", "config.no-member"),
        ("slms: [], detectors: [{name: n, kind: novelty, in_ensemble: false}]", "config.no-member"),
        ("slms: [{name: a}, {name: b}], weights: {a: 1}", "config.weights-of-members"),
        ("slms: [{name: a}], weights: {a: 0}", "members.weights.a"),
        ("detectors: [{name: n, kind: magic}]", "members.detectors.0.kind"),
        ("slms: [{name: a, replicas: {num_cpus: .inf}}]", "members.slms.0.replicas.num_cpus"),
        ("slms: [{name: a, supported: [Yes], unsupported: [Yes]}]", "config.shared-words"),
        ("slms: [{name: a, replicas: {min: 3, max: 2}}]", "config.replicas-range"),
        ("slms: [{name: a, quantization: fp8_per_channel}]", "config.quantization"),
        ("slms: [{name: a, replicas: {num_gpus: 0.5}}]", "config.shared-gpu-cache"),
        ("slms: [{name: rerank}], rerank: {}", "config.rerank-name"),
        ("slms: [], detectors: [{name: n, kind: novelty}], rerank: {}", "config.rerank-unused"),
    ],
)
def test_faults_are_named(text: str, fault: str) -> None:
    assert_refused(f"members: {{{text}}}", fault)


def test_a_job_that_names_slms_or_detectors_has_no_others() -> None:
    assert Job().members.names == ["facts", "entities", "attribution", "novelty"]
    assert job_of("members: {slms: [{name: a}]}").members.names == ["a"]
    assert job_of("members: {detectors: [{name: n, kind: novelty}]}").members.names == ["n"]
    assert job_of("members: {uncertainty: [{name: u}]}").members.names == ["facts", "u", "entities", "attribution", "novelty"]


def test_weights_are_shares_of_the_ensemble() -> None:
    detectors = [{"name": "n", "kind": "novelty"}, {"name": "outside", "kind": "entities", "in_ensemble": False}]
    members = make_job({"members": {"slms": [{"name": "a"}], "detectors": detectors, "weights": {"a": 3, "n": 1}}}).members
    assert members.ensemble_weights == {"a": 0.75, "n": 0.25, "outside": 0.0}
    assert members.outside_ensemble == {"outside"} and set(members.ensemble_value_kinds) == {"a", "n"}
    assert make_job({"members": {"slms": [{"name": "a"}, {"name": "b"}]}}).members.ensemble_weights is None
