import pytest

from ragassay.jobs.config.job import Job
from ragassay.pipeline.cascade.config import EscalationPolicy
from tests.jobs.config.texts import assert_refused, job_of


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("judge: {name: j}", "config.share-and-threshold"),
        ("judge: {name: j}, share: 0.1, threshold: dynamic, when: facts", "config.share-and-threshold"),
        ("judge: {name: j}, threshold: dynamic", "config.dynamic-without-when"),
        ("judge: {name: j}, share: 0.1, order: ts", "config.order-of-share"),
        ("judge: {name: j}, share: 0.1, price: {input: 1, output: 1}", "config.price-unserved"),
    ],
)
def test_faults_are_named(text: str, fault: str) -> None:
    assert_refused(f"escalation: {{{text}}}", fault)


@pytest.mark.parametrize(
    "text", ["share: 0.1", "when: facts", "threshold: dynamic", "order: ts", "price: {input: 1, output: 1}"]
)
def test_settings_of_a_judge_without_a_judge_are_refused(text: str) -> None:
    assert_refused(f"escalation: {{{text}, explainer: {{model: m}}}}", "config.escalation-without-judge")


def test_an_explainer_alone_escalates_nothing() -> None:
    escalation = job_of("escalation: {explainer: {model: m}}").escalation
    assert escalation.policy is None and escalation.explainer is not None
    assert Job().escalation.policy is None


def test_the_policy_has_the_settings_of_the_section() -> None:
    escalation = job_of("escalation: {judge: {name: j}, threshold: dynamic, when: facts, order: ts}").escalation
    assert escalation.judge is not None
    assert escalation.policy == EscalationPolicy(escalation.judge, "facts", None, "dynamic", "ts", None)


def test_a_judge_finds_no_evidence() -> None:
    assert_refused("escalation: {judge: {name: j, evidence: true}, share: 0.1}", "config.judge-evidence")
