"""Plan 2, `finalize`: raw rows -> normalise -> ensemble -> aggregate -> threshold -> scored rows. Needs no model."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.input.types import plain
from ragassay.jobs.output.partitions import BATCH_ROWS
from ragassay.jobs.output.passthrough import merged_passthrough, raw_schemas
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.jobs.output.snapshot import with_verdicts_id
from ragassay.jobs.storage.folder import writing
from ragassay.jobs.verdicts.input_order import in_input_order
from ragassay.jobs.verdicts.judged import NOBODY, Judged
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.cascade.decide import Decisions, with_judge
from ragassay.pipeline.members import NUMBERS, readable_scores
from ragassay.pipeline.stages.finalize import VerdictSettings, finalize_rows
from ragassay.pipeline.verdict.exact_quantile import Cells, add_cells, cells_of
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.pipeline.verdict.rule import apply_rule
from ragassay.schemas.columns import HALLUCINATED, Status, scored_schema
from ragassay.schemas.stats import Moments


@dataclass
class Finalized:
    """What `finalize_partition` wrote.

    Attributes:
        flagged: Number of an input file -> its rows with the verdict hallucinated.
        statuses: Number of an input file -> its rows by status, as `scored/` has them.
        sentences: Number of an input file -> sentences of its scored rows.
    """

    flagged: Counter[int] = field(default_factory=Counter)
    statuses: dict[int, Counter[str]] = field(default_factory=dict)
    sentences: Counter[int] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(map(Counter.total, self.statuses.values()))

    def add(self, scored: pa.RecordBatch) -> None:
        """Count rows of `scored/`."""
        numbers = pc.shift_right(scored["row_key"], 32)
        self.flagged.update(numbers.filter(pc.equal(scored["verdict"], HALLUCINATED)).to_pylist())
        sentences = pc.fill_null(pc.list_value_length(scored["sentences"]), 0)
        rows = zip(numbers.to_pylist(), scored["status"].to_pylist(), sentences.to_pylist(), strict=True)
        for number, status, length in rows:
            self.statuses.setdefault(number, Counter())[status] += 1
            self.sentences[number] += length if status == Status.OK else 0


def score_moments(rows: ScoredDataset, settings: VerdictSettings) -> Moments:
    """Moments of a partition's response scores."""
    return merge(moments_of(scores[~np.isnan(scores)]) for scores in response_scores(_numbers(rows), settings))


def score_cells(rows: ScoredDataset, settings: VerdictSettings, low: int, high: int) -> Cells:
    """A partition's response scores within a range of keys, for a threshold that is a quantile; see `exact_quantile`."""
    cells = cells_of(np.array([]), low, high)
    for scores in response_scores(_numbers(rows), settings):
        cells = add_cells([cells, cells_of(scores, low, high)])
    return cells


def _numbers(rows: ScoredDataset) -> Iterator[pa.RecordBatch]:
    return (part.batch for part in rows.batches(NUMBERS))


def response_scores(rows: Iterable[pa.RecordBatch], settings: VerdictSettings) -> Iterator[Floats]:
    """Response scores of rows of `raw/`, batch by batch; NaN where there is none.

    Args:
        rows: Batches with the columns NUMBERS.
        settings: How scores are made.
    """
    for batch in rows:
        for found in readable_scores(batch, settings.values):
            yield apply_rule(settings.rule, *found).response


def finalize_partition(raw: ScoredDataset, target: str, settings: VerdictSettings, judged: Judged = NOBODY) -> Finalized:
    """Write one partition of `scored/`, whole or not at all.

    Args:
        raw: Its scores.
        target: Path of the Parquet file to write.
        settings: How.
        judged: What the judge of a cascade has decided of its rows.

    Returns:
        How its rows ended.
    """
    passthrough = merged_passthrough(raw_schemas(raw).values())
    schema = scored_schema(passthrough)
    done, decisions = Finalized(), judged.read(raw.fs)
    named = with_verdicts_id(schema, settings.run_id)
    with writing(raw.fs, target) as stream, pq.ParquetWriter(stream, named, compression="zstd") as writer:
        rows = in_input_order(raw, partial(_with_columns, passthrough=passthrough))
        for table in _row_groups(_scored(rows, schema, settings, decisions), done):
            writer.write_table(table)
    return done


def _scored(
    raw: Iterable[pa.RecordBatch], schema: pa.Schema, settings: VerdictSettings, decisions: Decisions | None
) -> Iterator[pa.RecordBatch]:
    for batch in raw:
        scored = finalize_rows(batch, schema, settings)
        yield scored if decisions is None else with_judge(scored, decisions)


def _row_groups(scored: Iterable[pa.RecordBatch], done: Finalized) -> Iterator[pa.Table]:
    """Scored rows in groups of BATCH_ROWS or a little more: a raw file may hold but a few rows. All are counted in `done`."""
    ready: list[pa.RecordBatch] = []
    for batch in scored:
        ready.append(batch)
        done.add(batch)
        if sum(part.num_rows for part in ready) >= BATCH_ROWS:
            yield pa.Table.from_batches(ready)
            ready = []
    if ready:
        yield pa.Table.from_batches(ready)


def _with_columns(batch: pa.RecordBatch, passthrough: pa.Schema) -> pa.RecordBatch:
    """A batch with all columns that any raw file of its partition carries: other nights may have had more, or other types."""
    for wanted in passthrough:
        place = batch.schema.get_field_index(wanted.name)
        if place < 0:
            batch = batch.append_column(wanted, pa.nulls(batch.num_rows, wanted.type))
        elif batch.schema.field(place).type != wanted.type:
            batch = batch.set_column(place, wanted, plain(batch.column(place)).cast(wanted.type))
    return batch
