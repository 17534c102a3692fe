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
        ("slms: [{name: a, evidence: true}, {name: b, evidence: true}]", "config.evidence-twice"),
        (
            "slms: [{name: a, model: m, evidence: true, engine: {kind: server, base_url: http://h/v1}}]",
            "config.served-evidence",
        ),
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


def test_a_check_takes_the_evidence_of_the_first_local_slm_unless_the_job_sets_it() -> None:
    def list_with_evidence(text: str) -> list[str]:
        members = job_of(f"members: {{{text}}}").members
        assert members.with_evidence().value_kinds == members.value_kinds
        return [slm.name for slm in members.with_evidence().slms if slm.evidence]

    served = "{name: s, model: m, engine: {kind: server, base_url: http://h/v1}}"
    assert [slm.name for slm in Job().members.with_evidence().slms if slm.evidence] == ["facts"]
    assert list_with_evidence(f"slms: [{served}, {{name: a}}, {{name: b}}]") == ["a"]
    assert list_with_evidence("slms: [{name: a}, {name: b, evidence: true}]") == ["b"]
    assert list_with_evidence("slms: [{name: a, evidence: false}]") == []
    assert list_with_evidence(f"slms: [{served}]") == []
    assert list_with_evidence("slms: [], detectors: [{name: n, kind: novelty}]") == []


def test_evidence_is_not_in_the_identity_of_an_slm() -> None:
    plain, with_evidence = (
        job_of(f"members: {{slms: [{{name: a, evidence: {value}}}]}}").members for value in ("false", "true")
    )
    assert plain.slms[0].identity() == with_evidence.slms[0].identity()
