"""Compare two runs or two outputs row by row (`ragassay compare`): rows that changed sides, and the difference of the rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from ragassay.jobs.evaluation import errors
from ragassay.jobs.output.manifest import has_text
from ragassay.jobs.output.partitions import hive_keys, natural_key
from ragassay.jobs.output.scored_dataset import Rows, format_conditions, open_scored, value_to_text
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.calibration.proportions import difference_interval, mcnemar_p, paired_difference_interval
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, Status
from ragassay.schemas.comparison import ChangedRow, ComparedSide, PairedRate, RunComparison, ShareDifference
from ragassay.schemas.manifest import Manifest

READ_COLUMNS = ("row_id", "status", "verdict", "score", "probability", "run_id")
TEXT_COLUMNS = ("question", "context", "response")
QUESTION_CHARS = 200
ROW_ID = "row_id"
TEXT = "text"
NO_STATUS = "no verdict"
FRAME_SCHEMA = {
    "row_id": pl.String,
    "partition": pl.String,
    "run_id": pl.String,
    "status": pl.String,
    "flagged": pl.Boolean,
    "score": pl.Float64,
    "probability": pl.Float64,
    "question": pl.String,
    "question_hash": pl.UInt64,
    "text_hash": pl.UInt64,
}


@dataclass(frozen=True)
class SideRows:
    """The rows of one side.

    Attributes:
        output: The output folder, as the user named it.
        where: Column -> value that selects the rows of this side.
        frame: A row per response, with FRAME_SCHEMA and a column `by COLUMN` per requested column; `flagged` is null if the row
            is unscorable.
        runs: Ids of the output's runs, the oldest first.
        excluded: Rows that the conditions for both sides exclude.
    """

    output: str
    where: dict[str, str]
    frame: pl.DataFrame
    runs: tuple[str, ...] = ()
    excluded: int = 0

    def select(self, where: Mapping[str, str]) -> "SideRows":
        """Select the rows of this side by the values of requested columns, run_id or partition."""
        conditions = [pl.col(_column(name)) == value for name, value in where.items()]
        return replace(self, where=dict(where), frame=self.frame.filter(conditions) if conditions else self.frame)


def read_side(output: Folder, manifest: Manifest, where: Mapping[str, str], columns: Sequence[str], name: str) -> SideRows:
    """Read the rows of one output.

    Args:
        output: The output folder.
        manifest: Its manifest.
        where: Column -> value that a row must have.
        columns: Columns to compare by, to match by or to select by.
        name: The output folder, as the user named it.

    Raises:
        InputError: A column is missing.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    scored.require_columns([*where, *columns])
    texts = TEXT_COLUMNS if has_text(manifest) else ()
    frames, excluded = [pl.DataFrame(schema=FRAME_SCHEMA)], 0
    for rows in scored.read_batches([*dict.fromkeys([*READ_COLUMNS, *texts, *where, *columns])]):
        is_match = rows.matches(where)
        excluded += int((~is_match).sum())
        frames.append(_make_frame(rows, columns, bool(texts)).filter(pl.Series(is_match)))
    frame = pl.concat(frames, how="diagonal")
    return SideRows(name, {}, frame, tuple(run.run_id for run in manifest.runs), excluded)


def _make_frame(rows: Rows, columns: Sequence[str], has_texts: bool) -> pl.DataFrame:
    table = rows.table
    read = pl.DataFrame({name: pl.Series(table[name].cast(_string_or_float(name))) for name in READ_COLUMNS})
    is_scored = (pl.col("status") == Status.OK.value) & pl.col("score").is_not_null() & pl.col("verdict").is_not_null()
    frame = read.select(
        "row_id",
        pl.lit(rows.file.partition_name).alias("partition"),
        "run_id",
        pl.when(is_scored | (pl.col("status") != Status.OK.value)).then("status").otherwise(pl.lit(NO_STATUS)).alias("status"),
        pl.when(is_scored).then(pl.col("verdict") == HALLUCINATED).alias("flagged"),
        "score",
        "probability",
    )
    if has_texts:
        texts = pl.DataFrame(
            {
                "question": pl.Series(table["question"].cast(pa.string())).fill_null(""),
                "context": _join_passages(table["context"]),
                "response": pl.Series(table["response"].cast(pa.string())).fill_null(""),
            },
            schema=dict.fromkeys(TEXT_COLUMNS, pl.String),
        )
        frame = frame.with_columns(
            texts["question"].str.slice(0, QUESTION_CHARS).alias("question"),
            texts["question"].hash().alias("question_hash"),
            texts.select(pl.concat_str(TEXT_COLUMNS, separator="\x1e")).to_series().hash().alias("text_hash"),
        )
    by = [pl.Series(_column(name), [value_to_text(v) for v in table[name].to_pylist()], pl.String) for name in columns]
    return frame.with_columns([series for series in by if series.name not in FRAME_SCHEMA])


def _join_passages(contexts: pa.ChunkedArray) -> pl.Series:
    passages = pl.Series(contexts).cast(pl.List(pl.String)).list.eval(pl.element().filter(pl.element() != ""))
    return passages.list.join("\x1f").fill_null("")


def _string_or_float(name: str) -> pa.DataType:
    return pa.float64() if name in ("score", "probability") else pa.string()


def _column(name: str) -> str:
    """Return the name of a requested column in the frame."""
    return name if name in ("run_id", "row_id") else f"by {name}"


def select_sides(
    first: SideRows,
    second: SideRows | None,
    where: Mapping[str, str],
    first_where: Mapping[str, str],
    second_where: Mapping[str, str],
) -> tuple[SideRows, SideRows]:
    """Select the rows of both sides.

    Args:
        first: The rows of the first output.
        second: The rows of the second output; None if both sides are in the first.
        where: Conditions that both sides meet, for the message.
        first_where: Column -> value of the rows of side A.
        second_where: Column -> value of the rows of side B.

    Raises:
        ConfigError: A side has no row, or no condition separates the sides.
    """
    if second is None and not first_where and not second_where:
        return split_runs(first)
    sides = first.select(first_where), (second or first).select(second_where)
    for side in sides:
        if not len(side.frame):
            conditions = format_conditions({**where, **side.where})
            raise ConfigError(errors.NO_ROW_OF_SIDE, output=side.output, conditions=conditions)
    return sides


def split_runs(rows: SideRows) -> tuple[SideRows, SideRows]:
    """Split one output into its last two runs, or if all verdicts are of one run, into its last two partitions.

    Partitions with one value of the first hive key, such as the day, are one side.

    Raises:
        ConfigError: There is only one run and one partition.
    """
    run_ids = [run for run in rows.runs if run in set(rows.frame["run_id"].unique())]
    if len(run_ids) > 1:
        return rows.select({"run_id": run_ids[-2]}), rows.select({"run_id": run_ids[-1]})
    partitions = sorted(rows.frame["partition"].unique(), key=natural_key)
    keys = [next(iter(hive_keys(partition).items()), None) for partition in partitions]
    values = list(dict.fromkeys(key for key in keys if key))
    if len(values) < 2:
        raise ConfigError(errors.ONE_RUN, output=rows.output)

    def select(key: tuple[str, str]) -> SideRows:
        of_key = [partition for partition, first in zip(partitions, keys, strict=True) if first == key]
        return replace(rows, where=dict([key]), frame=rows.frame.filter(pl.col("partition").is_in(of_key)))

    return select(values[-2]), select(values[-1])


def compare_runs(
    first: SideRows, second: SideRows, *, where: Mapping[str, str], by: Sequence[str] = (), match: str | None = None
) -> RunComparison:
    """Compare the verdicts of two sides.

    Rows are matched by row_id, within equal partitions first, then by equal question, context and response. A key that several
    rows of a side have matches none.

    Args:
        first: Side A.
        second: Side B.
        where: Conditions that both sides meet, for the record.
        by: Columns with figures for each of their values on side B.
        match: Column to match by instead.
    """
    pairs, matched, other_question = _match_rows(first.frame, second.frame, match)
    is_scored = pl.col("flagged").is_not_null() & pl.col("flagged_b").is_not_null()
    compared = pairs.filter(is_scored)
    has_texts = not compared["text_hash"].is_null().all() and not compared["text_hash_b"].is_null().all()
    changed, changed_by = _list_changed(compared)
    sides = [_describe_side(side, len(pairs)) for side in (first, second)]
    return RunComparison(
        first=sides[0],
        second=sides[1],
        where=dict(where),
        excluded=first.excluded + (0 if first.output == second.output else second.excluded),
        matched=matched,
        other_question=other_question,
        unscorable_pairs=len(pairs) - len(compared),
        same_texts=int((compared["text_hash"] == compared["text_hash_b"]).sum()) if has_texts else None,
        overall=_measure_pairs("all", compared) if len(compared) else None,
        slices={column: _measure_slices(compared, f"{_column(column)}_b") for column in by},
        all_rows=_measure_all_rows(sides[0], sides[1]),
        changed_by=changed_by,
        changed=changed,
    )


def _match_rows(first: pl.DataFrame, second: pl.DataFrame, match: str | None) -> tuple[pl.DataFrame, dict[str, int], int]:
    """Match rows: pairs, with the columns of side B as `…_b`; key -> pairs; and the pairs of one id with other questions."""
    first = first.with_row_index("number")
    second = second.rename({name: f"{name}_b" for name in second.columns}).with_row_index("number_b")
    steps = [(ROW_ID, ["partition", "row_id"]), (ROW_ID, ["row_id"]), (TEXT, ["text_hash"])]
    parts, matched, other_question = [], dict[str, int](), 0
    for name, keys in [(match, [_column(match)])] if match else steps:
        pairs = _join_unique(first, second, keys)
        if name == ROW_ID:
            differs = (pl.col("question_hash") != pl.col("question_hash_b")).fill_null(value=False)
            other_question += int(pairs.select(differs.sum()).item()) if keys == ["row_id"] else 0
            pairs = pairs.filter(~differs)
        parts.append(pairs)
        matched[name] = matched.get(name, 0) + len(pairs)
        first = first.join(pairs.select("number"), on="number", how="anti")
        second = second.join(pairs.select("number_b"), on="number_b", how="anti")
    return pl.concat(parts), matched, other_question


def _join_unique(first: pl.DataFrame, second: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Join rows by keys that one row of each side has."""
    sides = []
    for frame, names in ((first, keys), (second, [f"{key}_b" for key in keys])):
        is_known = pl.all_horizontal(pl.col(name).is_not_null() for name in names)
        sides.append(frame.filter(is_known).filter(pl.struct(names).is_unique()))
    return sides[0].join(sides[1], left_on=keys, right_on=[f"{key}_b" for key in keys], how="inner", coalesce=False)


def _measure_pairs(subset: str, pairs: pl.DataFrame) -> PairedRate:
    before, after = pairs["flagged"].to_numpy(), pairs["flagged_b"].to_numpy()
    both, to_supported = int((before & after).sum()), int((before & ~after).sum())
    to_flagged, neither = int((~before & after).sum()), int((~before & ~after).sum())
    low, high = paired_difference_interval(both, to_supported, to_flagged, neither)
    difference = ShareDifference((to_flagged - to_supported) / len(pairs), low, high)
    p_value = mcnemar_p(to_supported, to_flagged)
    return PairedRate(subset, len(pairs), both, to_flagged, to_supported, neither, difference, p_value)


def _measure_slices(pairs: pl.DataFrame, column: str) -> list[PairedRate]:
    values = sorted(pairs[column].unique(), key=natural_key)
    return [_measure_pairs(value, pairs.filter(pl.col(column) == value)) for value in values]


def _describe_side(side: SideRows, pairs: int) -> ComparedSide:
    is_scored = side.frame["flagged"].is_not_null()
    counts = side.frame.filter(~is_scored)["status"].value_counts().iter_rows()
    return ComparedSide(
        output=side.output,
        where=side.where,
        rows=len(side.frame),
        unscorable=dict(sorted(counts)),
        scored=int(is_scored.sum()),
        flagged=int(side.frame["flagged"].sum() or 0),
        unmatched=len(side.frame) - pairs,
    )


def _measure_all_rows(first: ComparedSide, second: ComparedSide) -> ShareDifference | None:
    if not (first.scored and second.scored):
        return None
    low, high = difference_interval(first.flagged, first.scored, second.flagged, second.scored)
    return ShareDifference(second.flagged / second.scored - first.flagged / first.scored, low, high)


def _list_changed(pairs: pl.DataFrame) -> tuple[list[ChangedRow], str]:
    """List the rows that changed sides, the largest change first, and what they are sorted by."""
    changed = pairs.filter(pl.col("flagged") != pl.col("flagged_b"))
    has_probability = changed.select(pl.col("probability").is_not_null() & pl.col("probability_b").is_not_null()).to_series()
    changed_by = "probability" if len(changed) and has_probability.all() else "score"
    changed = changed.sort((pl.col(changed_by) - pl.col(f"{changed_by}_b")).abs(), descending=True, maintain_order=True)
    names = {True: HALLUCINATED, False: SUPPORTED}
    rows = [
        ChangedRow(
            row_id=row["row_id_b"],
            partition=row["partition_b"],
            first_row_id=row["row_id"],
            first_partition=row["partition"],
            first_verdict=names[row["flagged"]],
            second_verdict=names[row["flagged_b"]],
            first_score=row["score"],
            second_score=row["score_b"],
            first_probability=row["probability"],
            second_probability=row["probability_b"],
            question=row["question_b"],
        )
        for row in changed.iter_rows(named=True)
    ]
    return rows, changed_by
