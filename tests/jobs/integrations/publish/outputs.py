"""Write an output with verdicts without a run: rows of `scored/`, and a manifest that lists them."""

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


def row(row_id: str, verdict: str | None = SUPPORTED, **columns: Any) -> dict[str, Any]:
    """Return a row of two sentences; the second is flagged if the verdict is hallucinated."""
    flagged = verdict == HALLUCINATED
    first, second = f"Rule {row_id} holds.", "It has 42 parts."
    sentences = [
        {"text": first, "start": 0, "end": len(first), "score": 0.9, "probability": 0.9, "state": "supported"},
        {
            "text": second,
            "start": len(first) + 1,
            "end": len(first) + 1 + len(second),
            "score": 0.1 if flagged else 0.8,
            "probability": 0.2,
            "state": "flagged" if flagged else "supported",
        },
    ]
    missing = [{"kind": "number", "text": "42"}] if flagged else []
    evidence = [{"missing": [], "notes": []}, {"passage": 0, "missing": missing, "notes": []}]
    return {
        "row_key": 0, "row_id": row_id, "question": "?", "context": ["c"], "response": f"{first} {second}",
        "score": None if verdict is None else 0.2 if flagged else 0.8, "probability": None, "verdict": verdict,
        "threshold": 0.5,
        "sentences": None if verdict is None else sentences, "flagged_sentences": None if verdict is None else int(flagged),
        "evidence": None if verdict is None else evidence, "members": None, "run_id": RUN,
        "status": "no_context" if verdict is None else "ok", **columns,
    }  # fmt: skip


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Return rows r0, r1 …: every third is hallucinated, every tenth has no verdict."""
    verdicts = [None if i % 10 == 9 else HALLUCINATED if i % 3 == 0 else SUPPORTED for i in range(first, first + count)]
    return [row(f"r{i}", verdict) for i, verdict in enumerate(verdicts, first)]


def write_output(root: Path, parts: dict[str, list[dict[str, Any]]], run_id: str = RUN, extra: pa.Schema = EXTRA) -> Path:
    """Write or replace partitions; the manifest lists them as results of this run."""
    output = root / "audit"
    manifest = Manifest()
    if (output / "manifest.json").exists():
        manifest = Manifest.from_json((output / "manifest.json").read_text())
    schema = scored_schema(extra)
    for path, partition_rows in parts.items():
        file = output / "scored" / path / "part-0.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        keyed = [{**item, "row_key": i, "run_id": run_id} for i, item in enumerate(partition_rows)]
        pq.write_table(pa.Table.from_pylist(keyed, schema=schema), file, row_group_size=500)
        flagged_count = sum(item["verdict"] == HALLUCINATED for item in partition_rows)
        scored = sum(item["verdict"] is not None for item in partition_rows)
        manifest.finalized[hive_path(path)] = PartitionVerdicts(run_id, scored, flagged_count)
    moment = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T02:00:00+00:00"
    manifest.runs.append(Run(run_id, moment, moment, partitions=sorted(parts)))
    (output / "manifest.json").write_text(manifest.to_json())
    return output
