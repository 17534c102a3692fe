"""A default that is written into a job file changes nothing, whatever the setting: the settings come from the schema."""

from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from ragassay.jobs.api.rows import table_logs
from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.members import default_members
from ragassay.jobs.forecast.estimate import flagged_share
from ragassay.jobs.input.check import check_logs
from ragassay.jobs.output.fingerprint import fingerprint
from ragassay.jobs.verdicts.parts import calibration_of
from ragassay.jobs.verdicts.verdicts import Decided, decide
from ragassay.pipeline.detectors.config import KINDS
from ragassay.pipeline.verdict.moments import moments_of
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats
from tests.conftest import REPO
from tests.job_settings import merged
from tests.raises import refuses

Place = tuple[str | int, ...]

SERVER = {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}
OWN: dict[str, Any] = {
    "members": {
        "slms": [
            {"name": "a"},
            {"name": "b", "engine": {"kind": "transformers"}},
            {"name": "s", "model": "m", "engine": SERVER},
        ],
        "uncertainty": [{"name": "u", "engine": {"kind": "transformers"}}],
        "detectors": [{"name": kind, "kind": kind} for kind in (kind.model_fields["kind"].default for kind in KINDS)],
        "rerank": {},
    },
    "evaluation": {"reference": {"name": "j", "base_url": "http://127.0.0.1:9/v1", "model": "m"}},
    "escalation": {"judge": {"name": "larger"}, "share": 0.1, "explainer": {"model": "m", "engine": SERVER}},
}
BASES: dict[str, dict[str, Any]] = {
    "no job file": {},
    "own members": OWN,
    "a threshold": {"verdict": {"threshold": {"quantile": 0.1}}},
    "a conversation": {"input": {"columns": {"messages": "turns"}}},
    "traces": {"input": {"preset": "otel"}},
    "no text": {"output": {"drop_text": {}}},
}


def leaves(value: Any, base: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every setting below a value, with what it is; a list that the job file does not have is one setting."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from leaves(below, base.get(name) if isinstance(base, dict) else None, (*place, name))
    elif isinstance(value, list) and isinstance(base, list):
        for number, below in enumerate(value):
            yield from leaves(below, base[number], (*place, number))
    else:
        yield place, value


def settings_of(base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """For every setting of a job: its name, and the job file with the value in force written down."""
    dumped = make_job(base).model_dump(mode="json")
    members = default_members().keys()
    if not members & base.get("members", {}).keys():  # they are one setting: who names some members names all of them
        yield "members", {**base, "members": {name: dumped["members"].pop(name) for name in members}}
    for place, value in leaves(dumped, base):
        data = deepcopy(base)
        here: Any = data
        known: Any = dumped
        for part in place[:-1]:
            known = known[part]
            if isinstance(here, dict):
                here = here.setdefault(part, {"kind": known["kind"]} if isinstance(known, dict) and "kind" in known else {})
            else:
                here = here[part]
        here[place[-1]] = value
        yield ".".join(map(str, place)), data


@lru_cache
def manifest_of(name: str) -> Manifest:
    return Manifest(fingerprint={} if name == "own members" else fingerprint(make_job(BASES[name])))


def judged(job: Job, manifest: Manifest) -> Decided:
    """How a job judges a partition."""
    rng = np.random.default_rng(1)
    members = {name: moments_of(rng.normal(0, 1, 50)) for name in job.members.values}
    stats = {"": PartitionStats("", members, job.members.values, {}, {"ok": 20}, 50, [])}
    return decide(job, calibration_of(job, manifest.fingerprint), "run", stats, [""])


def taken_from_logs(job: Job) -> str:
    """What the check of a log's columns says: the log has none but those for a row."""
    names = ("question", "context", "response", "turns")
    logs = table_logs(pa.table({name: pa.array(["x"]) for name in names}))
    check_logs(logs, job.input.columns.model_copy(update={"messages": None}), question_needed=True)
    return str(logs.passthrough)


@pytest.mark.parametrize("name", BASES)
def test_attack_a_default_that_is_written_down_changes_nothing(name: str) -> None:
    base = make_job(BASES[name])
    before = judged(base, manifest_of(name)), flagged_share(base), taken_from_logs(base)
    written = dict(settings_of(BASES[name]))
    assert {
        "verdict.calibration",
        "verdict.threshold.quantile",
        "verdict.aggregate.mean",
        "input.columns.row_id",
    } <= written.keys()
    assert {setting.split(".")[0] for setting in written} == Job.model_fields.keys()
    for setting, data in written.items():
        job = make_job(data, where=setting)
        assert job == base, setting
        assert (judged(job, manifest_of(name)), flagged_share(job), taken_from_logs(job)) == before, setting


def test_attack_the_documented_job_file_judges_as_none() -> None:
    job = load_job(str(REPO / "docs" / "job.yaml"))
    found = judged(job, manifest_of("no job file"))
    assert found == judged(Job(), manifest_of("no job file"))
    assert found.fit.source == "bundled calibration" and found.settings.probability is not None
    assert taken_from_logs(job) == taken_from_logs(Job()) and flagged_share(job) is None


def test_attack_the_documented_job_file_with_members_of_ones_own_judges_as_those_alone() -> None:
    members = {"members": {"slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}}
    documented = yaml.safe_load((REPO / "docs" / "job.yaml").read_text())
    job = make_job(merged(documented, members, {"members": {"weights": {}}}))
    manifest = Manifest(fingerprint=fingerprint(job))
    found = judged(job, manifest)
    assert found == judged(make_job(members), manifest) and found.origins is not None
    assert found.threshold is None and found.settings.probability is None
    assert (found.origins.moments, found.origins.aggregate, found.origins.threshold) == ("this run", "defaults", "this run")


def test_no_decision_depends_on_what_stands_in_the_file() -> None:
    using = [
        path.relative_to(REPO)
        for folder in ("jobs", "pipeline", "schemas", "infra")
        for path in sorted((REPO / folder).rglob("*.py"))
        if "fields_set" in path.read_text(encoding="utf-8")
    ]
    assert using == []


def test_a_column_that_is_named_must_be_there() -> None:
    with refuses("input.missing-column"):
        taken_from_logs(make_job({"input": {"columns": {"row_id": "id"}}}))
