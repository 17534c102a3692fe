"""Put the judge's decisions into `scored/`, each file whole or not at all. Done again it changes nothing."""

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
from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.cascade.decide import JudgeDecisions, replace_verdicts
from ragassay.pipeline.verdict.threshold import decide_verdicts
from ragassay.schemas.columns import HALLUCINATED


@dataclass
class VerdictChanges:
    """What a judge's decisions came to.

    Attributes:
        changed: Responses, of those that count, with another verdict than the ensemble's.
        flagged: Responses with the verdict hallucinated now.
        rise: Number of an input file -> how many more of its responses have that verdict than before; may be negative.
    """

    changed: int = 0
    flagged: int = 0
    increase: Counter[int] = field(default_factory=Counter)


def rewrite_file(fs: pafs.FileSystem, file: DataFile, judged: JudgeFiles, keys: Ints, verdicts_id: str = "") -> VerdictChanges:
    """Write a file of `scored/` anew, with the judge's decisions.

    Args:
        fs: File system.
        file: The file.
        judged: What the judge has decided.
        keys: `row_key`s of the rows whose change is counted.
        verdicts_id: Id of the verdicts that are written.
    """
    done, decisions = VerdictChanges(), judged.read(fs)
    if decisions is None:
        return done
    named = add_verdicts_id(pq.read_schema(file.path, filesystem=fs), verdicts_id)
    with open_atomic(fs, file.path) as stream, pq.ParquetWriter(stream, named, compression="zstd") as writer:
        for part in read_file(fs, file):
            after = replace_verdicts(part.batch, decisions)
            _count(done, part.batch, after, decisions, keys)
            writer.write_batch(after)
    return done


def _count(
    done: VerdictChanges, before: pa.RecordBatch, after: pa.RecordBatch, decisions: JudgeDecisions, counted: Ints
) -> None:
    keys = after["row_key"].to_numpy()
    was, now = (
        pc.fill_null(pc.equal(b["verdict"], HALLUCINATED), False).to_numpy(zero_copy_only=False) for b in (before, after)
    )
    score, tau = (after[name].to_numpy(zero_copy_only=False) for name in ("score", "threshold"))
    of_ensemble = pc.equal(decide_verdicts(score, tau), HALLUCINATED)
    alone = pc.fill_null(of_ensemble, False).to_numpy(zero_copy_only=False)
    decided = (
        np.isin(keys, counted)
        & (decisions.find_indices(keys) >= 0)
        & after["verdict"].is_valid().to_numpy(zero_copy_only=False)
    )
    done.changed += int((decided & (alone != now)).sum())
    done.flagged += int(now.sum())
    for number in np.unique(keys >> 32).tolist():
        mine = keys >> 32 == number
        done.increase[number] += int(now[mine].sum()) - int(was[mine].sum())
