"""Plan 2, `finalize`: raw rows -> normalise -> ensemble -> aggregate -> threshold -> scored rows. Needs no model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.types import plain
from ragassay.jobs.output.partitions import READ_ROWS, batches
from ragassay.jobs.verdict.fit import Floats, merged_passthrough, raw_schemas, readable_scores, scores_of
from ragassay.pipeline.calibration.probability import probabilities
from ragassay.pipeline.contain import contain, fault_of
from ragassay.pipeline.verdict.exact_quantile import Cells, add_cells, cells_of
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.pipeline.verdict.threshold import verdicts
from ragassay.schemas.calibration import ProbabilityMap
from ragassay.schemas.columns import HALLUCINATED, SCORED_SENTENCE, Status, scored_schema
from ragassay.schemas.stats import Moments


@dataclass(frozen=True)
class Settings:
    """What turns raw scores into verdicts.

    Attributes:
        values: Member -> which of its numbers is used.
        rule: From values to response scores.
        threshold: tau; None while it is being found, and where no row has a score.
        run_id: Written into every row.
        probability: From response scores to P(supported); None without a calibration.
    """

    values: dict[str, str]
    rule: Rule
    threshold: float | None
    run_id: str
    probability: ProbabilityMap | None = None


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

    def add(self, row_keys: pa.Array, scored: pa.RecordBatch) -> None:
        """Count rows of `scored/`, whose `row_key` stood in `raw/`."""
        numbers = pc.shift_right(row_keys, 32)
        self.flagged.update(numbers.filter(pc.equal(scored["verdict"], HALLUCINATED)).to_pylist())
        sentences = pc.fill_null(pc.list_value_length(scored["sentences"]), 0)
        rows = zip(numbers.to_pylist(), scored["status"].to_pylist(), sentences.to_pylist(), strict=True)
        for number, status, length in rows:
            self.statuses.setdefault(number, Counter())[status] += 1
            self.sentences[number] += length if status == Status.OK else 0


def score_moments(fs: pafs.FileSystem, files: Sequence[str], settings: Settings) -> Moments:
    """Moments of a partition's response scores."""
    return merge(moments_of(scores[~np.isnan(scores)]) for scores in _responses(fs, files, settings))


def score_cells(fs: pafs.FileSystem, files: Sequence[str], settings: Settings, low: int, high: int) -> Cells:
    """A partition's response scores within a range of keys, for a threshold that is a quantile; see `exact_quantile`."""
    cells = cells_of(np.array([]), low, high)
    for scores in _responses(fs, files, settings):
        cells = add_cells([cells, cells_of(scores, low, high)])
    return cells


def _responses(fs: pafs.FileSystem, files: Sequence[str], settings: Settings) -> Iterator[Floats]:
    for batch in batches(fs, files, ["members", "status"]):
        for found in readable_scores(batch, settings.values):
            yield apply_rule(settings.rule, *found).response


def finalize_partition(fs: pafs.FileSystem, files: Sequence[str], target: str, settings: Settings) -> Finalized:
    """Write one partition of `scored/`, whole or not at all.

    Args:
        fs: File system.
        files: Its raw files.
        target: Path of the Parquet file to write.
        settings: How.

    Returns:
        How its rows ended.
    """
    passthrough = merged_passthrough(raw_schemas(fs, files))
    schema = scored_schema(passthrough)
    fs.create_dir(target.rpartition("/")[0], recursive=True)
    part = f"{target}.part"
    done = Finalized()
    try:
        with fs.open_output_stream(part) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
            for table in _row_groups(batches(fs, _in_input_order(fs, files)), schema, settings, passthrough, done):
                writer.write_table(table)
        fs.move(part, target)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell of
            fs.delete_file(part)
        raise
    return done


def _row_groups(
    raw: Iterable[pa.RecordBatch], schema: pa.Schema, settings: Settings, passthrough: pa.Schema, done: Finalized
) -> Iterator[pa.Table]:
    """Scored rows in groups of READ_ROWS or a little more: a raw file may hold but a few rows. All are counted in `done`."""
    ready: list[pa.RecordBatch] = []
    for batch in raw:
        ready.append(finalize_rows(_with_columns(batch, passthrough), schema, settings))
        done.add(batch["row_key"], ready[-1])
        if sum(part.num_rows for part in ready) >= READ_ROWS:
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


def _in_input_order(fs: pafs.FileSystem, files: Sequence[str]) -> list[str]:
    """Raw files by their first `row_key`: blocks are runs of input rows, but they were committed as they got ready."""
    first = {}
    for path in files:
        with pq.ParquetFile(path, filesystem=fs) as parquet:
            place = parquet.schema_arrow.names.index("row_key")
            first[path] = parquet.metadata.row_group(0).column(place).statistics.min
    return sorted(files, key=lambda path: first[path])


def finalize_rows(batch: pa.RecordBatch, schema: pa.Schema, settings: Settings) -> pa.RecordBatch:
    """`finalize_batch`, but a row for which it raises gets the status `error`, and all others come out as without it."""
    return pa.concat_batches(
        contain(
            batch.num_rows,
            lambda some: finalize_batch(batch[some], schema, settings),
            lambda i, error: _failed(batch.slice(i, 1), schema, settings, f"finalize: {fault_of(error)}"),
        )
    )


def _failed(row: pa.RecordBatch, schema: pa.Schema, settings: Settings, error: str) -> pa.RecordBatch:
    known = {"threshold": settings.threshold, "status": Status.ERROR.value, "error": error, "run_id": settings.run_id}
    kept = set(row.schema.names) - {"sentences", *known}
    columns = [row[f.name] if f.name in kept else pa.array([known.get(f.name)], f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def finalize_batch(batch: pa.RecordBatch, schema: pa.Schema, settings: Settings) -> pa.RecordBatch:
    """Rows of `scored/` from rows of `raw/`.

    A sentence is flagged if a response of that sentence alone would be hallucinated: its positive score <= tau. Its `score`
    is the ensemble's (eq. 5), which keeps the order that a positivity policy may lose. A row of which no member that counts
    says anything has no score, and a status that says so: the job may have fewer members than the one that scored it.
    """
    values, counts = scores_of(batch, settings.values)
    scores = apply_rule(settings.rule, values, counts)
    ok = pc.equal(batch["status"], Status.OK.value).to_numpy(zero_copy_only=False)
    size = batch.num_rows
    score = np.full(size, np.nan)
    score[ok] = scores.response
    unjudged = ok & np.isnan(score)

    spans = batch["sentences"]
    lengths = pc.fill_null(pc.list_value_length(spans), 0).to_numpy().astype(np.int64)
    of_ok_row = np.repeat(ok, lengths)
    sentence_score = np.full(len(of_ok_row), np.nan)
    sentence_score[of_ok_row] = scores.sentence
    flags = np.zeros(len(of_ok_row), dtype=bool)
    unknown = np.isnan(sentence_score)
    tau = settings.threshold
    flags[of_ok_row] = scores.positive <= (np.nan if tau is None else tau)
    flat = spans.flatten()
    structs = pa.StructArray.from_arrays(
        [
            flat.field("text"),
            flat.field("start"),
            flat.field("end"),
            pa.array(sentence_score, mask=unknown),
            pa.array(flags, mask=unknown),
        ],
        fields=list(SCORED_SENTENCE),
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flagged = np.zeros(size, dtype=np.int32)
    flagged[ok] = np.add.reduceat(flags[of_ok_row].astype(np.int32), np.cumsum(counts) - counts) if len(counts) else 0

    columns = {
        "score": pa.array(score, mask=np.isnan(score)),
        "probability": _probability(settings.probability, score),
        "verdict": verdicts(score, np.nan if tau is None else tau),
        "threshold": pa.array([tau] * size, type=pa.float64()),
        "sentences": pa.ListArray.from_arrays(pa.array(offsets), structs, mask=pc.is_null(spans)),
        "flagged_sentences": pa.array(flagged, mask=np.isnan(score)),
        "status": pc.if_else(unjudged, Status.NOT_JUDGED.value, batch["status"]),
        "error": pc.if_else(unjudged, _nobody(settings), batch["error"]),
        "run_id": pa.array([settings.run_id] * size),
    }
    return pa.RecordBatch.from_arrays([columns[f.name] if f.name in columns else batch[f.name] for f in schema], schema=schema)


def _nobody(settings: Settings) -> str:
    weights = settings.rule.weights
    counted = [name for name in settings.values if weights is None or weights[name]]
    return f"none of {', '.join(counted)} has a value for any of its sentences"


def _probability(fitted: ProbabilityMap | None, score: Floats) -> pa.Array:
    if fitted is None:
        return pa.nulls(len(score), pa.float64())
    return pa.array(probabilities(fitted, score), mask=np.isnan(score))
