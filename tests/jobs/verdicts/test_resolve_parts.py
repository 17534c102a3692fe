"""Each part of the verdict settings comes from the calibration or the job file, and its origin is recorded."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.run import finalize_job, run_job
from ragassay.jobs.verdicts.bundled_calibration import load_bundled_calibration
from ragassay.jobs.verdicts.resolve_parts import find_calibration
from ragassay.jobs.verdicts.settings import ResolvedSettings, resolve_settings
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.schemas.columns import raw_schema
from ragassay.schemas.manifest import SCORED, InputFile, Manifest, Run
from ragassay.schemas.stats import PartitionStats
from tests.conftest import REPO, example_rows, write_logs
from tests.job_settings import merged
from tests.raises import raises, refuses
from tests.without_ray import without_ray

BUNDLED = load_bundled_calibration()
NOVELTY: dict[str, Any] = {"members": {"slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}}


@lru_cache
def default_fingerprint() -> dict[str, Any]:
    return make_fingerprint(Job())


def resolve(job: Job) -> ResolvedSettings:
    rng = np.random.default_rng(1)
    members = {name: compute_moments(rng.normal(0, 1, 50)) for name in job.members.value_kinds}
    stats = {"": PartitionStats("", members, job.members.value_kinds, {}, {"ok": 20}, 50, [])}
    return resolve_settings(job, find_calibration(job, default_fingerprint()), "run", stats, [""])


def origins(resolved: ResolvedSettings) -> tuple[str, str, str, str | None]:
    assert resolved.origins is not None
    return resolved.origins.moments, resolved.origins.aggregate, resolved.origins.threshold, resolved.origins.probability


ALL = ("bundled calibration",) * 4


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ALL),
        ({"verdict": {"threshold": {"quantile": 0.1}}}, (*ALL[:2], "this run", ALL[3])),
        ({"verdict": {"threshold": {"quantile": 0.1, "of": "history"}}}, (*ALL[:2], "this run and its history", ALL[3])),
        ({"verdict": {"threshold": {"value": 0.5}}}, (*ALL[:2], "job file", ALL[3])),
        ({"verdict": {"normalize": {"source": "run"}}}, ("this run", *ALL[1:3], None)),
        ({"verdict": {"aggregate": {"mean": "harmonic", "positive": "cdf", "epsilon": 0.01}}}, ALL),
        (
            {"verdict": {"aggregate": {"mean": "min"}, "threshold": {"quantile": 0.1}}},
            (ALL[0], "job file (mean)", "this run", None),
        ),
        ({"verdict": {"calibration": "none"}}, ("this run", "defaults", "this run", None)),
        ({"verdict": {"calibration": "none", "aggregate": {"mean": "min"}}}, ("this run", "job file (mean)", "this run", None)),
    ],
)
def test_each_part_is_replaced_alone_and_its_origin_is_recorded(
    settings: dict[str, Any], expected: tuple[str, str, str, str | None]
) -> None:
    resolved = resolve(make_job(settings))
    assert origins(resolved) == expected
    moments, _, threshold, probability = expected
    members = {name: (member.mu, member.sigma) for name, member in BUNDLED.members.items()}
    assert ({name: (fit.mu, fit.sigma) for name, fit in resolved.settings.rule.fits.items()} == members) == (moments == ALL[0])
    assert (resolved.settings.threshold == BUNDLED.threshold) == (threshold == ALL[0])
    assert resolved.settings.probability == (BUNDLED.probability if probability else None)
    assert resolved.settings.rule.mean == settings.get("verdict", {}).get("aggregate", {}).get("mean", "harmonic")
    assert (resolved.threshold is None) == threshold.startswith("this run")


@pytest.mark.parametrize("aggregate", [{"mean": "min"}, {"positive": "clip"}, {"epsilon": 0.1}])
def test_attack_a_threshold_of_another_scale_is_refused(aggregate: dict[str, Any]) -> None:
    with raises("config.threshold-of-other-scores", none="none"):
        resolve(make_job({"verdict": {"aggregate": aggregate}}))
    resolve(make_job({"verdict": {"aggregate": aggregate, "threshold": {"value": 0.5}}}))
    resolve(make_job({**NOVELTY, "verdict": {"aggregate": aggregate}}))  # these members have no calibration


def test_a_missing_calibration_is_an_error_before_anything_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise AssertionError("work started")

    monkeypatch.setattr("ragassay.jobs.run.commands.open_session", start)
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(4))
    job = make_job(merged(NOVELTY, {"verdict": {"calibration": str(tmp_path / "none.json")}}))
    with raises("calibration.missing"):
        run_job(job, str(tmp_path / "logs"), str(tmp_path / "out"), Console(quiet=True))
    with pytest.raises(AssertionError, match="work started"):
        run_job(make_job(NOVELTY), str(tmp_path / "logs"), str(tmp_path / "out"), Console(quiet=True))


def test_other_members_get_no_calibration_and_the_record_contains_the_reason() -> None:
    resolved = resolve(make_job(NOVELTY))
    assert origins(resolved) == ("this run", "defaults", "this run", None)
    assert resolved.origins and resolved.origins.calibration is None and "other members" in str(resolved.origins.note)
    other = resolve(make_job({"members": {"weights": dict.fromkeys(Job().members.value_kinds, 1)}}))
    assert origins(other) == origins(resolved)


def test_parts_of_a_calibration_file_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(replace(BUNDLED, calibration_id="own", fingerprint=default_fingerprint(), threshold=0.6).to_json())
    job = make_job({"verdict": {"calibration": str(path), "threshold": {"value": 0.5}}})
    own = ("calibration own",) * 2
    resolved = resolve(job)
    assert origins(resolved) == (*own, "job file", "calibration own") and resolved.settings.threshold == 0.5
    whole = resolve(job.with_calibration(str(path)))  # the option of `finalize` overrides the parts in the job file
    assert origins(whole) == ("calibration own",) * 4 and whole.settings.threshold == 0.6
    assert origins(resolve(job.with_calibration("none")))[0] == "this run"
    with refuses("config.weights-of-calibration"):
        make_job(merged({"verdict": {"calibration": str(path)}}, NOVELTY, {"members": {"weights": {"n": 1}}}))
    with raises("config.aggregate"):
        text = replace(BUNDLED, fingerprint=default_fingerprint(), mean="min", positive="none").to_json()
        path.write_text(text)
        resolve(
            make_job({"verdict": {"calibration": str(path), "aggregate": {"mean": "harmonic"}, "threshold": {"value": 0.5}}})
        )


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"verdict": {"calibration": None}}, "config.null-calibration"),
        ({"verdict": {"calibration": ""}}, "verdict.calibration"),
        ({"verdict": {"threshold": {"of": "history"}}}, "config.of-without-quantile"),
        ({"verdict": {"threshold": {"measured_on": "x"}}}, "config.measured-without-value"),
    ],
)
def test_contradicting_settings_are_refused(settings: dict[str, Any], code: str) -> None:
    with refuses(code):
        make_job(settings)


def write_scores_of_default_members(folder: Path) -> Path:
    """Write an output folder with raw rows of the default members. The values are invented, so no engine is needed."""
    rng = np.random.default_rng(2)
    rows = []
    for key in range(12):
        odds, texts = rng.normal(0, 2, 2), ["One.", "Two."]
        members = [
            {"name": name, "sentence_scores": odds.tolist(), "response_score": float(odds.min()),
             "log_p_yes": (-np.log1p(np.exp(-odds))).tolist() if name == "facts" else None,
             "log_p_no": (-np.log1p(np.exp(odds))).tolist() if name == "facts" else None}
            for name in Job().members.value_kinds
        ]  # fmt: skip
        rows.append(
            {"row_key": key, "row_id": str(key), "question": "Q?", "context": ["C."], "response": "One.Two.",
             "sentences": [{"text": text, "start": 4 * i, "end": 4 * i + 4} for i, text in enumerate(texts)],
             "members": members, "usage": [], "context_windows": 1, "status": "ok", "error": None}
        )  # fmt: skip
    (folder / "raw").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=raw_schema(pa.schema([]))), folder / "raw" / "part-0.parquet")
    files = {0: InputFile("in.parquet", "/logs/in.parquet", 1, len(rows), "", SCORED)}
    (folder / "manifest.json").write_text(Manifest(default_fingerprint(), files, {}, []).to_json())
    return folder


def finalize(folder: Path, job: Job) -> tuple[Run, bytes]:
    with without_ray():
        run = finalize_job(job, str(folder), Console(quiet=True))
    table = pq.read_table(folder / "scored" / "part-0.parquet").drop_columns(["run_id"]).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return run, sink.getvalue().to_pybytes()


def test_attack_the_documented_job_file_gives_the_bytes_of_no_job_file(tmp_path: Path) -> None:
    folder = write_scores_of_default_members(tmp_path / "out")
    run, without = finalize(folder, load_job(None))
    documented, verbatim = finalize(folder, load_job(str(REPO / "docs" / "reference" / "job.yaml")))
    assert verbatim == without
    assert (documented.fit, documented.threshold, documented.origins) == (run.fit, run.threshold, run.origins)
    assert run.origins and run.origins.calibration == "bundled" and run.origins.probability == "bundled calibration"
    assert Manifest.from_json((folder / "manifest.json").read_text()).runs[-1].origins == run.origins
    _, other = finalize(folder, make_job({"verdict": {"calibration": "none"}}))
    assert other != without
