"""Writing a default into a job file changes nothing, for every setting in the schema."""

from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from ragassay.jobs.api.table_rows import make_table_logs
from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.members import default_members
from ragassay.jobs.forecast.estimate import find_flagged_share
from ragassay.jobs.input.check import check_logs
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.verdicts.resolve_parts import find_calibration
from ragassay.jobs.verdicts.settings import ResolvedSettings, resolve_settings
from ragassay.pipeline.detectors.config import DETECTOR_KINDS
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats
from tests.conftest import REPO
from tests.job_settings import merged
from tests.raises import refuses

SettingPath = tuple[str | int, ...]

SERVER = {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}
OWN: dict[str, Any] = {
    "members": {
        "slms": [
            {"name": "a"},
            {"name": "b", "engine": {"kind": "transformers"}},
            {"name": "s", "model": "m", "engine": SERVER},
        ],
        "uncertainty": [{"name": "u", "engine": {"kind": "transformers"}}],
        "detectors": [{"name": kind, "kind": kind} for kind in (kind.model_fields["kind"].default for kind in DETECTOR_KINDS)],
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


def leaves(value: Any, base: Any, path: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Yield every setting below a value. A list that is not in the job file is one setting."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from leaves(below, base.get(name) if isinstance(base, dict) else None, (*path, name))
    elif isinstance(value, list) and isinstance(base, list):
        for number, below in enumerate(value):
            yield from leaves(below, base[number], (*path, number))
    else:
        yield path, value


def settings_of(base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of every setting of a job, and the job file with the effective value of the setting added."""
    dumped = make_job(base).model_dump(mode="json")
    members = default_members().keys()
    if not members & base.get("members", {}).keys():  # a job file that names some members names all of them
        yield "members", {**base, "members": {name: dumped["members"].pop(name) for name in members}}
    for path, value in leaves(dumped, base):
        data = deepcopy(base)
        section: Any = data
        known: Any = dumped
        for part in path[:-1]:
            known = known[part]
            if isinstance(section, dict):
                section = section.setdefault(
                    part, {"kind": known["kind"]} if isinstance(known, dict) and "kind" in known else {}
                )
            else:
                section = section[part]
        section[path[-1]] = value
        yield ".".join(map(str, path)), data


@lru_cache
def manifest_of(name: str) -> Manifest:
    return Manifest(fingerprint={} if name == "own members" else make_fingerprint(make_job(BASES[name])))


def resolve(job: Job, manifest: Manifest) -> ResolvedSettings:
    """Resolve the verdict settings of a job for a partition."""
    rng = np.random.default_rng(1)
    members = {name: compute_moments(rng.normal(0, 1, 50)) for name in job.members.value_kinds}
    stats = {"": PartitionStats("", members, job.members.value_kinds, {}, {"ok": 20}, 50, [])}
    return resolve_settings(job, find_calibration(job, manifest.fingerprint), "run", stats, [""])


def find_passthrough(job: Job) -> str:
    """Check the columns of a log that has only the columns of a row, and return its pass-through columns."""
    names = ("question", "context", "response", "turns")
    logs = make_table_logs(pa.table({name: pa.array(["x"]) for name in names}))
    check_logs(logs, job.input.columns.model_copy(update={"messages": None}), needs_question=True)
    return str(logs.passthrough)


@pytest.mark.parametrize("name", BASES)
def test_attack_a_written_default_changes_nothing(name: str) -> None:
    base = make_job(BASES[name])
    before = resolve(base, manifest_of(name)), find_flagged_share(base), find_passthrough(base)
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
        assert (resolve(job, manifest_of(name)), find_flagged_share(job), find_passthrough(job)) == before, setting


def test_attack_the_documented_job_file_gives_the_verdicts_of_no_job_file() -> None:
    job = load_job(str(REPO / "docs" / "reference" / "job.yaml"))
    resolved = resolve(job, manifest_of("no job file"))
    assert resolved == resolve(Job(), manifest_of("no job file"))
    assert resolved.fit.source == "bundled calibration" and resolved.settings.probability is not None
    assert find_passthrough(job) == find_passthrough(Job()) and find_flagged_share(job) is None


def test_attack_the_documented_job_file_with_own_members_gives_the_verdicts_of_these_members() -> None:
    members = {"members": {"slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}}
    documented = yaml.safe_load((REPO / "docs" / "reference" / "job.yaml").read_text())
    job = make_job(merged(documented, members, {"members": {"weights": {}}}))
    manifest = Manifest(fingerprint=make_fingerprint(job))
    resolved = resolve(job, manifest)
    assert resolved == resolve(make_job(members), manifest) and resolved.origins is not None
    assert resolved.threshold is None and resolved.settings.probability is None
    assert (resolved.origins.moments, resolved.origins.aggregate, resolved.origins.threshold) == (
        "this run",
        "defaults",
        "this run",
    )


def test_no_code_depends_on_which_settings_the_file_contains() -> None:
    using = [
        path.relative_to(REPO)
        for folder in ("jobs", "pipeline", "schemas", "infra")
        for path in sorted((REPO / folder).rglob("*.py"))
        if "fields_set" in path.read_text(encoding="utf-8")
    ]
    assert using == []


def test_a_named_column_must_exist() -> None:
    with refuses("input.missing-column"):
        find_passthrough(make_job({"input": {"columns": {"row_id": "id"}}}))
