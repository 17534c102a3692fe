"""Parts of job files and commands that many cases share."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.golden.scene import Scene
from tests.golden.values import compact, plain

DETECTORS: list[dict[str, Any]] = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
NOVELTY: list[dict[str, Any]] = [{"name": "novelty", "kind": "novelty"}]

RUN = "run {logs} {out} --config {job}"
FINALIZE = "finalize {out} --config {job}"
SUMMARY = ("row_key", "verdict", "decided_by", "score", "probability", "threshold", "flagged_sentences")


def detector_job(scene: Scene, name: str = "job.yaml", **settings: Any) -> Path:
    """Write a job file with the three detectors."""
    return scene.job(name, {"members": {"slms": [], "detectors": DETECTORS}}, **settings)


def novelty_job(scene: Scene, name: str = "job.yaml", **settings: Any) -> Path:
    """Write a job file with one detector, for cases in which members do not matter."""
    return scene.job(name, {"members": {"slms": [], "detectors": NOVELTY}}, **settings)


def served_job(scene: Scene, *models: str, **settings: Any) -> Path:
    """Write a job file with served members whose values depend on the prompt."""
    members = {"slms": [scene.servers.slm(model) for model in models], "detectors": []}
    return scene.job("job.yaml", {"members": members}, **settings)


def verdicts(scene: Scene) -> str:
    """Verdicts in short."""
    lines = []
    for path in sorted((scene.out / "scored").rglob("*.parquet")):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            flags = "".join("-" if s["flagged"] is None else "x" if s["flagged"] else "." for s in row["sentences"] or [])
            values = [plain(row[name], scene.masks.value) for name in SUMMARY]
            lines.append((row["row_key"], f"{row['row_id']} {compact(values[1:])} {flags}"))
    return "\n".join(line for _, line in sorted(lines))
