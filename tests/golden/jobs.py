"""Job files, commands and steps that many cases share."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.golden.scene import Scene
from tests.golden.values import to_line, to_plain

DETECTORS: list[dict[str, Any]] = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
NOVELTY: list[dict[str, Any]] = [{"name": "novelty", "kind": "novelty"}]

RUN = "run {logs} {out} --config {job}"
FINALIZE = "finalize {out} --config {job}"
SUMMARY = ("row_key", "verdict", "decided_by", "score", "probability", "threshold", "flagged_sentences")

STATE_SIGNS = {"flagged": "x", "doubtful": "?", "supported": ".", None: "-"}


def write_detector_job(scene: Scene, name: str = "job.yaml", **settings: Any) -> Path:
    """Write a job file with the three detectors."""
    return scene.write_job(name, {"members": {"slms": [], "detectors": DETECTORS}}, **settings)


def write_novelty_job(scene: Scene, name: str = "job.yaml", **settings: Any) -> Path:
    """Write a job file with one detector, for cases that do not depend on members."""
    return scene.write_job(name, {"members": {"slms": [], "detectors": NOVELTY}}, **settings)


def write_served_job(scene: Scene, *models: str, **settings: Any) -> Path:
    """Write a job file with served members; their values depend on the prompt."""
    members = {"slms": [scene.servers.slm(model) for model in models], "detectors": []}
    return scene.write_job("job.yaml", {"members": members}, **settings)


def list_verdicts(scene: Scene) -> str:
    """List the verdicts."""
    lines = []
    for path in sorted((scene.out / "scored").rglob("*.parquet")):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            flags = "".join(STATE_SIGNS[sentence["state"]] for sentence in row["sentences"] or [])
            values = [to_plain(row[name], scene.masks.mask_value) for name in SUMMARY]
            lines.append((row["row_key"], f"{row['row_id']} {to_line(values[1:])} {flags}"))
    return "\n".join(line for _, line in sorted(lines))
