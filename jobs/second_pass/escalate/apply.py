"""Write the judge's decisions into files of `scored/`. Each file is replaced atomically; a repetition changes nothing."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.output.scored_dataset import DataFile, read_file
from ragassay.jobs.output.snapshot import add_verdicts_id
from ragassay.jobs.storage.folder import open_atomic
from ragassay.jobs.verdicts.judge_files import JudgeFiles
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.pipeline.cascade.decide import JudgeDecisions, replace_verdicts
from ragassay.pipeline.verdict.rule import decide_verdicts
from ragassay.schemas.columns import HALLUCINATED


@dataclass
class VerdictChanges:
    """The effect of a judge's decisions.

    Attributes:
        changed: Number of counted responses with a verdict that differs from the ensemble's.
        flagged: Number of hallucinated responses after the decisions.
        increase: Number of an input file -> increase in its hallucinated responses; may be negative.
    """

    changed: int = 0
    flagged: int = 0
    increase: Counter[int] = field(default_factory=Counter)


def rewrite_file(
    fs: pafs.FileSystem, file: DataFile, judge_files: JudgeFiles, keys: Ints, verdicts_id: str = ""
) -> VerdictChanges:
    """Rewrite a file of `scored/` with the judge's decisions.

    Args:
        fs: File system.
        file: The file.
        judge_files: Files with the decisions.
        keys: `row_key`s of the rows that `VerdictChanges.changed` counts.
        verdicts_id: Id of the new verdicts.
    """
    changes, decisions = VerdictChanges(), judge_files.read(fs)
    if decisions is None:
        return changes
    schema = add_verdicts_id(pq.read_schema(file.path, filesystem=fs), verdicts_id)
    with open_atomic(fs, file.path) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for part in read_file(fs, file):
            after = replace_verdicts(part.batch, decisions)
            _count_changes(changes, part.batch, after, decisions, keys)
            writer.write_batch(after)
    return changes


def _count_changes(
    changes: VerdictChanges, before: pa.RecordBatch, after: pa.RecordBatch, decisions: JudgeDecisions, counted_keys: Ints
) -> None:
    keys = after["row_key"].to_numpy()
    flagged_before, flagged = (_is_hallucinated(batch["verdict"]) for batch in (before, after))
    score, threshold = (after[name].to_numpy(zero_copy_only=False) for name in ("score", "threshold"))
    flagged_by_ensemble = _is_hallucinated(decide_verdicts(score, threshold))
    has_verdict = after["verdict"].is_valid().to_numpy(zero_copy_only=False)
    is_counted = np.isin(keys, counted_keys) & (decisions.find_indices(keys) >= 0) & has_verdict
    changes.changed += int((is_counted & (flagged_by_ensemble != flagged)).sum())
    changes.flagged += int(flagged.sum())
    file_numbers = keys >> 32
    for number in np.unique(file_numbers).tolist():
        in_file = file_numbers == number
        changes.increase[number] += int(flagged[in_file].sum()) - int(flagged_before[in_file].sum())


def _is_hallucinated(verdicts: pa.Array) -> Bools:
    hallucinated: Bools = pc.fill_null(pc.equal(verdicts, HALLUCINATED), False).to_numpy(zero_copy_only=False)
    return hallucinated
