import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.schemas.calibration import CalibratedMember, Calibration, Certificate, ProbabilityMap
from ragassay.schemas.columns import RESERVED_NAMES, passthrough_name
from ragassay.schemas.manifest import Escalation, InputFile, JudgeRecord, Manifest, PartitionVerdicts, Run
from ragassay.schemas.stats import Moments, PartitionStats
from ragassay.schemas.versioned import InvalidRecordError, RecordVersionError

floats = st.floats(allow_nan=False, allow_infinity=False)
moments = st.builds(
    Moments,
    count=st.integers(0, 10**12),
    mean=floats,
    m2=st.floats(0, 1e300),
    low=st.none() | floats,
    high=st.none() | floats,
    buckets=st.dictionaries(st.integers(-(10**7), 10**7), st.integers(1, 10**9)),
)


@given(st.dictionaries(st.text(min_size=1), moments), st.dictionaries(st.text(), st.integers(0, 10**12)))
def test_stats_are_read_back_bit_for_bit(members: dict[str, Moments], rows: dict[str, int]) -> None:
    stats = PartitionStats("dt=2026-11-20", members, dict.fromkeys(members, "log_odds"), members, rows, 3, ["a.parquet"])
    assert PartitionStats.from_json(stats.to_json()) == stats


def test_stats_of_another_version_are_refused() -> None:
    text = PartitionStats("", {}, {}, {}, {}, 0, []).to_json().replace('"version": 1', '"version": 99')
    with pytest.raises(RecordVersionError):
        PartitionStats.from_json(text)


def test_a_manifest_is_read_back() -> None:
    file = InputFile("dt=1/a.parquet", "/logs/dt=1/a.parquet", 12, 3, "dt=1")
    run = Run("r1", "2026-11-20T00:00:00+00:00", rows={"in": 3}, usage={"m": {"prompts": 2.0}}, flagged=1)
    files = {0: file, 1: replace(file, rows=None, state="unreadable", error="x")}
    manifest = Manifest({"schema": 1}, files, {"dt=1": PartitionVerdicts("r1", 2, 1)}, [run])
    assert Manifest.from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize("files", ["[1]", '{"a": {}}', '["a"]', "[[]]", "[{}]"])
def test_a_manifest_with_invalid_files_is_refused(files: str) -> None:
    with pytest.raises(InvalidRecordError):
        Manifest.from_json(f'{{"version": {Manifest.VERSION}, "files": {files}}}')


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "runs": 7}', '{"version": 1, "unknown": "field"}'])
def test_text_that_is_not_a_manifest_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError):
        Manifest.from_json(text)


def test_a_manifest_of_another_version_is_refused() -> None:
    with pytest.raises(RecordVersionError):
        Manifest.from_json('{"version": 99}')


probability_maps = st.builds(
    ProbabilityMap, st.sampled_from(["platt", "isotonic"]), floats, floats, st.tuples(floats, floats), st.tuples(floats, floats)
)


@given(st.none() | probability_maps, st.none() | st.just(Certificate(0.9, 0.1, 50, 49, 0.91)), floats)
def test_a_calibration_is_read_back_bit_for_bit(
    probability: ProbabilityMap | None, certificate: Certificate | None, threshold: float
) -> None:
    members = {"a": CalibratedMember("log_odds", 0.1, 2.0, 10, -3.0, 1.0)}
    calibration = Calibration(
        "id", "2026-11-20T00:00:00+00:00", "f1", "supported", "label", {"correct": 2}, members, "harmonic", "clip", 0.01,
        threshold, 0.5, probability, probability, certificate, {"ece_before": None, "ece_after": 0.1}, {"schema": 1},
        ("de", "en"),
    )  # fmt: skip
    assert Calibration.from_json(calibration.to_json()) == calibration
    with pytest.raises(RecordVersionError):
        Calibration.from_json('{"version": 99}')


def test_reserved_names_are_never_passed_through() -> None:
    assert passthrough_name("tenant") == "tenant"
    assert all(passthrough_name(name) == f"input_{name}" for name in RESERVED_NAMES)


def test_missing_steps_are_null_in_the_record_of_a_run() -> None:
    (run,) = json.loads(Manifest(runs=[Run("r1", "x")]).to_json())["runs"]
    assert [run[name] for name in ("fit", "threshold", "origins", "drift", "escalation")] == [None] * 5


def test_a_manifest_with_a_cascade_is_read_back() -> None:
    judge = JudgeRecord("judge", "log_odds", 0.0, {"model": "m", "prompt": "p"})
    escalation = Escalation(
        "judge", "uncertainty", 0.2, judge.identity, ["dt=1"], 10, 2, 1, 1, {"error": 1}, 2, {"prompts": 4}, 0.5, 1.5
    )
    manifest = Manifest(runs=[Run("r1", "x", escalation=escalation)], judge=judge, escalated={"dt=1": "r1"})
    assert Manifest.from_json(manifest.to_json()) == manifest
