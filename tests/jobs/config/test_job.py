from collections import Counter
from pathlib import Path

import pytest

from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.section import Section
from tests.conftest import REPO
from tests.error_codes import collect_faults
from tests.jobs.config.texts import assert_refused, job_of
from tests.raises import raises, refuses
from tests.test_errors import CODE, collect_messages

SECTIONS = ["input", "splitting", "members", "verdict", "escalation", "evaluation", "output", "runtime", "integrations"]


def test_codes_of_faults_are_unique_and_well_formed() -> None:
    codes = Counter([*(fault.code for fault in collect_faults()), *(message.code for message in collect_messages().values())])
    assert [code for code, count in codes.items() if count > 1 or not CODE.fullmatch(code)] == []


def test_every_default_is_legal() -> None:
    assert load_job(None) == Job() == make_job({})


def test_a_job_has_nine_sections_in_the_order_of_the_flow() -> None:
    assert list(Job.model_fields) == SECTIONS
    assert all(isinstance(getattr(Job(), name), Section) for name in SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_an_empty_section_has_every_default(section: str) -> None:
    assert make_job({section: {}}) == Job()


@pytest.mark.parametrize(
    "path", sorted([*(REPO / "infra").glob("job_*.yaml"), REPO / "jobs" / "demo.yaml"]), ids=lambda p: p.name
)
def test_shipped_job_files_are_legal(path: Path) -> None:
    assert load_job(str(path)).members.slms


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{output: {drop_text: true}, escalation: {judge: {name: j}, share: 0.1}}", "config.judge-without-text"),
        ("{input: {preset: otel, redact: 'm:f'}}", "config.preset-keeps-text"),
        ("{input: {preset: otel}, output: {drop_text: true}}", "config.preset-keeps-text"),
        ("{members: {slms: [{name: a}]}, escalation: {judge: {name: j}, share: 0.1, when: b}}", "config.when-no-member"),
        ("{members: {slms: [{name: a}]}, escalation: {judge: {name: a}, share: 0.1}}", "config.judge-name"),
        ("{members: {slms: [{name: a}]}, escalation: {judge: {name: ensemble}, share: 0.1}}", "config.judge-name"),
        ("{members: {slms: [{name: uncertainty}]}, escalation: {judge: {name: j}, share: 0.1}}", "config.when-ambiguous"),
        (
            "{members: {slms: [{name: a}, {name: b}], weights: {a: 1, b: 2}}, verdict: {calibration: c.json}}",
            "config.weights-of-calibration",
        ),
        ("{members: {slms: [{name: a, prompt: 'no field'}]}}", "prompt.judged-once"),
        ("{members: {slms: [{name: a}]}, escalation: {judge: {name: j, prompt: x}, share: 0.1}}", "prompt.judged-once"),
    ],
)
def test_sections_that_contradict_one_another_are_refused(text: str, fault: str) -> None:
    assert_refused(text, fault)


def test_the_default_weights_go_with_a_calibration_file() -> None:
    assert make_job({"verdict": {"calibration": "c.json"}}).verdict.calibration_file == "c.json"


@pytest.mark.parametrize(("text", "fault"), [("- a\n- b", "config.no-mapping"), ("a: [", "config.no-yaml")])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with refuses(fault):
        load_job(str(path))


def test_missing_file_is_named() -> None:
    with raises("config.unreadable", path="nowhere.yaml"):
        load_job("nowhere.yaml")


def test_all_faults_are_named_at_once() -> None:
    with raises("config.invalid", count=2) as error:
        make_job({"input": {"on_bad_file": "pray"}, "runtime": {"block_mib": 0}})
    assert [fault["key"] for fault in error.value.fields["faults"]] == ["input.on_bad_file", "runtime.block_mib"]


def test_a_calibration_of_the_command_line_replaces_that_of_the_file() -> None:
    job = job_of("verdict: {calibration: none, threshold: {value: 1}}")
    assert job.with_calibration(None) == job
    assert job.with_calibration("bundled").verdict.threshold.value == 1
    assert job.with_calibration("c.json").verdict.calibration_file == "c.json"
    assert not job.with_calibration("c.json").verdict.threshold.is_set
