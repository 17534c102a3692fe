"""A finalised output without a run: rows of `scored/`, and a manifest that knows of their verdicts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ragassay.jobs.output.partitions import hive_path
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, scored_schema
from ragassay.schemas.manifest import Manifest, PartitionVerdicts, Run

RUN = "20261120T020000Z-aaaaaa"
LATER = "20261122T020000Z-bbbbbb"
EXTRA = pa.schema([("tenant", pa.string())])
IDS = pa.schema([("trace_id", pa.string()), ("span_id", pa.string())])


def row(row_id: str, verdict: str | None = SUPPORTED, **more: Any) -> dict[str, Any]:
    """A row of two sentences; the second is flagged where the verdict is hallucinated."""
    bad = verdict == HALLUCINATED
    first, second = f"Rule {row_id} holds.", "It has 42 parts."
    sentences = [
        {"text": first, "start": 0, "end": len(first), "score": 0.9, "flagged": False},
        {
            "text": second,
            "start": len(first) + 1,
            "end": len(first) + 1 + len(second),
            "score": 0.1 if bad else 0.8,
            "flagged": bad,
        },
    ]
    missing = [{"kind": "number", "text": "42"}] if bad else []
    evidence = [{"missing": [], "notes": []}, {"passage": 0, "missing": missing, "notes": []}]
    return {
        "row_key": 0, "row_id": row_id, "question": "?", "context": ["c"], "response": f"{first} {second}",
        "score": None if verdict is None else 0.2 if bad else 0.8, "probability": None, "verdict": verdict, "threshold": 0.5,
        "sentences": None if verdict is None else sentences, "flagged_sentences": None if verdict is None else int(bad),
        "evidence": None if verdict is None else evidence, "members": None, "run_id": RUN,
        "status": "no_context" if verdict is None else "ok", **more,
    }  # fmt: skip


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Rows r0, r1 …: every third is hallucinated, every tenth has no verdict."""
    verdicts = [None if i % 10 == 9 else HALLUCINATED if i % 3 == 0 else SUPPORTED for i in range(first, first + count)]
    return [row(f"r{i}", verdict) for i, verdict in enumerate(verdicts, first)]


def write_output(root: Path, parts: dict[str, list[dict[str, Any]]], run_id: str = RUN, extra: pa.Schema = EXTRA) -> Path:
    """Write partitions, or write them anew; the manifest says that this run gave their verdicts."""
    output = root / "audit"
    manifest = Manifest()
    if (output / "manifest.json").exists():
        manifest = Manifest.from_json((output / "manifest.json").read_text())
    schema = scored_schema(extra)
    for place, mine in parts.items():
        path = output / "scored" / place / "part-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        keyed = [{**one, "row_key": i, "run_id": run_id} for i, one in enumerate(mine)]
        pq.write_table(pa.Table.from_pylist(keyed, schema=schema), path, row_group_size=500)
        flagged = sum(one["verdict"] == HALLUCINATED for one in mine)
        scored = sum(one["verdict"] is not None for one in mine)
        manifest.finalized[hive_path(place)] = PartitionVerdicts(run_id, scored, flagged)
    moment = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T02:00:00+00:00"
    manifest.runs.append(Run(run_id, moment, moment, partitions=sorted(parts)))
    (output / "manifest.json").write_text(manifest.to_json())
    return output
