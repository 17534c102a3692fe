"""Load the labelled responses of a scored output: values, verdicts, labels, and what the baselines need."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.config.verdict import Normalize
from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.label_table import KEY, label_of_rows, load_labels, truth_of_sentences, weak_annotators
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import ScoredDataset, as_batch, as_text, open_scored
from ragassay.jobs.output.snapshot import check_rows
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.fit import fit_members, read_stats
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.baselines import share_in_context, words, words_of
from ragassay.pipeline.calibration.metrics import group_numbers
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.pipeline.members import ValueKind, convert_logprobs, read_logprobs, read_members, read_scores
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.columns import SUPPORTED, Status
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats

READ = (
    "row_key", "row_id", "status", "score", "threshold", "verdict", "judge_score", "question", "context", "response",
    "sentences", "members", "language",
)  # fmt: skip
UNEVEN = "drawn unevenly"  # said beside the labels' column where their rows had different chances to be labelled


@dataclass
class Labelled:
    """Labelled responses with a score, in the order of the output.

    Attributes:
        labels: A label a response.
        groups: Number of each response's item or context.
        grouped_by: What that is: a column, or "context".
        score: Stored response score.
        passed: Whether the stored verdict, a judge's where one decided, is supported.
        judge: The judge's number where it decided; else NaN.
        keys: `row_key`.
        thresholds: Stored tau.
        counts: Sentences a response.
        values: Member -> a value a sentence.
        shares: A response's mean P(yes) / (P(yes) + P(no)) over SLMs and sentences; NaN without an SLM.
        whole: SLM -> its value of the whole response; NaN where it was not asked.
        words: Words a response.
        overlap: Share of a response's words that its context has.
        sentence_words: Words a sentence.
        sentence_overlap: Share of a sentence's words that its context has.
        sentence_good: 1, 0, or NaN where a sentence has no label.
        slices: Column -> a value a response, as text.
        texts: Question, context and response, if they were asked for.
        unlabelled: Rows without a label.
        elsewhere: Rows that `where` leaves out.
        unscored: Labelled rows without a score.
        unmatched: Labels of a file that belong to no row of the output.
        weak: Which model said it, where no person did; else None.
        uneven: Whether the labelled rows were drawn with different inclusion probabilities, or some say none.
        languages: Labelled rows by language, those of an undecided one left out.
    """

    labels: list[Label]
    groups: Ints
    grouped_by: str
    score: Floats
    passed: Bools
    judge: Floats
    keys: Ints
    thresholds: Floats
    counts: Ints
    values: dict[str, Floats]
    shares: Floats
    whole: dict[str, Floats]
    words: Floats
    overlap: Floats
    sentence_words: Floats
    sentence_overlap: Floats
    sentence_good: Floats
    slices: dict[str, list[str]]
    texts: list[tuple[str | None, list[str], str]]
    unlabelled: int
    elsewhere: int
    unscored: int
    unmatched: int
    weak: str | None
    uneven: bool
    languages: Counter[str]

    def named(self, column: str) -> str:
        """The column of the labels, who said them if no person did, and whether they were drawn unevenly."""
        said = [*([UNEVEN] if self.uneven else []), *([f"weak labels, by {self.weak}"] if self.weak is not None else [])]
        return f"{column} ({'; '.join(said)})" if said else column

    @property
    def good(self) -> Bools:
        """Whether each response is correct; partial is not."""
        return np.array([label is Label.CORRECT for label in self.labels])


@dataclass
class _Parts:
    """What is gathered batch by batch."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    arrays: dict[str, list[Floats]] = field(default_factory=dict)
    unlabelled: int = 0
    elsewhere: int = 0
    unscored: int = 0

    def add(self, name: str, values: Sequence[Any]) -> None:
        self.columns.setdefault(name, []).extend(values)

    def add_array(self, name: str, values: npt.ArrayLike) -> None:
        self.arrays.setdefault(name, []).append(np.asarray(values, dtype=np.float64))

    def array(self, name: str) -> Floats:
        return np.concatenate(self.arrays.get(name, [np.array([])]))


def member_values_of(manifest: Manifest) -> dict[str, str]:
    """Member -> which of its numbers the output's last verdicts were made of.

    Raises:
        OutputError: It has no verdicts.
    """
    if manifest.last_fit:
        return {name: member.value for name, member in manifest.last_fit.members.items()}
    raise OutputError(errors.NO_SCORED_ROW)


def stats_of(output: Folder, values: dict[str, str]) -> dict[str, PartitionStats]:
    """Statistics of every partition with verdicts, as `finalize` left them.

    Raises:
        OutputError: Those of a partition are missing or old, or a run is writing new ones.
    """
    found: dict[str, PartitionStats] = {}
    for place in open_scored(output).partitions:
        stats = read_stats(output, place)
        if stats is None or stats.values != values:
            raise OutputError(errors.OLD_STATISTICS, partition=hive_path(place))
        check_rows(output, place, sum(stats.rows.values()))
        found[place] = stats
    return found


def fits_of_all(output: Folder, values: dict[str, str]) -> dict[str, Fit]:
    """mu and sigma of every member over the whole output folder."""
    stats = stats_of(output, values)
    return fit_members(Normalize(), values, stats, list(stats), 1)


def load_labelled(
    output: Folder,
    values: dict[str, str],
    source: LabelSource,
    *,
    group: str | None = None,
    slices: Sequence[str] = (),
    texts: bool = False,
) -> Labelled:
    """Load every labelled response that has a score.

    Args:
        output: The output folder, finalised.
        values: Member -> which of its numbers is wanted.
        source: Where the labels are.
        group: Column whose equal values stand for one item; None takes `item` if it is there, else equal contexts.
        slices: Further columns to load, hive keys among them.
        texts: Keep question, context and response too.

    Raises:
        InputError: There is no such column, no label, an unknown one, or only one class.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    scored.require_columns([*slices, *source.where, *([group] if group else [])])
    said = load_labels(scored, source)
    if group is None and "item" in scored.columns:
        group = "item"
    parts = _Parts()
    wanted = [*READ, *slices, *([group] if group else [])]
    for table in _labelled_tables(scored, wanted, label_of_rows(said), source, parts):
        _gather(parts, table, values, group, slices, texts)
    labels: list[Label] = parts.columns.get("label", [])
    _check_classes(source, labels, parts)
    keys, counts = np.array(parts.columns["key"], dtype=np.int64), parts.array("count").astype(np.int64)
    used = said.filter(pl.col("row_key").is_in(pl.Series(keys).implode()))
    return Labelled(
        labels=labels,
        groups=group_numbers(parts.columns["group"]),
        grouped_by=group or "context",
        score=parts.array("score"),
        passed=parts.array("passed") == 1,
        judge=parts.array("judge"),
        keys=keys,
        thresholds=parts.array("threshold"),
        counts=counts,
        values={name: parts.array(f"value {name}") for name in values},
        shares=parts.array("share"),
        whole={name: parts.array(f"whole {name}") for name in values},
        words=parts.array("words"),
        overlap=parts.array("overlap"),
        sentence_words=parts.array("sentence words"),
        sentence_overlap=parts.array("sentence overlap"),
        sentence_good=_good_sentences(used, keys, counts),
        slices={name: parts.columns.get(f"slice {name}", []) for name in slices},
        texts=parts.columns.get("texts", []),
        unlabelled=parts.unlabelled,
        elsewhere=parts.elsewhere,
        unscored=parts.unscored,
        unmatched=said.filter(pl.col("row_key").is_null()).drop_nulls("label").n_unique(KEY),
        weak=weak_annotators(said),
        uneven=used["inclusion_probability"].n_unique() > 1,
        languages=Counter(filter(None, parts.columns["language"])),
    )


def _labelled_tables(
    scored: ScoredDataset, wanted: Sequence[str], label_of: Mapping[int, Label], source: LabelSource, parts: _Parts
) -> Iterator[pa.Table]:
    """The rows that have both a label and a score, few at a time."""
    for rows in scored.batches(["row_key", "status", "score", *source.where]):
        labels = [label_of.get(key) for key in rows.table["row_key"].to_pylist()]
        looked_at = rows.matches(source.where)
        is_scored = pc.and_(pc.equal(rows.table["status"], Status.OK.value), pc.is_valid(rows.table["score"])).to_numpy()
        labelled = np.array([label is not None for label in labels], dtype=bool) & looked_at
        parts.elsewhere += int((~looked_at).sum())
        parts.unlabelled += int((looked_at & ~labelled).sum())
        parts.unscored += int((labelled & ~is_scored).sum())
        chosen = np.flatnonzero(labelled & is_scored)
        parts.add("label", [labels[i] for i in chosen])
        yield from rows.take(wanted, chosen)


def _good_sentences(said: pl.DataFrame, keys: Ints, counts: Ints) -> Floats:
    """1 or 0 a sentence, NaN where it has no label; the sentences of all responses in their order."""
    numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    sentences = pl.DataFrame({"row_key": np.repeat(keys, counts), "sentence": numbers})
    found = sentences.join(truth_of_sentences(said), on=["row_key", "sentence"], how="left", maintain_order="left")
    good: Floats = found["good"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return good


def _gather(
    parts: _Parts, table: pa.Table, values: dict[str, str], group: str | None, slices: Sequence[str], texts: bool
) -> None:
    batch = as_batch(table)
    found, counts = read_scores(batch, values)
    for name, array in found.items():
        parts.add_array(f"value {name}", array)
    parts.add_array("count", counts)
    _gather_members(parts, batch, values, counts)
    parts.add("language", table["language"].to_pylist())
    parts.add_array("score", table["score"].to_numpy())
    parts.add_array("threshold", table["threshold"].to_numpy())
    parts.add_array("passed", pc.equal(table["verdict"], SUPPORTED).to_numpy().astype(np.float64))
    parts.add_array("judge", table["judge_score"].to_numpy())
    parts.add("key", table["row_key"].to_pylist())
    contexts, responses = table["context"].to_pylist(), table["response"].to_pylist()
    parts.add("group", _groups(table, group, contexts))
    for name in slices:
        parts.add(f"slice {name}", [as_text(v) for v in table[name].to_pylist()])
    if texts:
        parts.add("texts", list(zip(table["question"].to_pylist(), contexts, responses, strict=True)))
    for context, response, sentences in zip(contexts, responses, table["sentences"].to_pylist(), strict=True):
        there, texts_of = words_of(context or []), [s["text"] or "" for s in sentences]  # an output may hold no text
        parts.add_array("words", np.array([len(words(response or ""))]))
        parts.add_array("overlap", np.array([share_in_context(response or "", there)]))
        parts.add_array("sentence words", np.array([len(words(text)) for text in texts_of]))
        parts.add_array("sentence overlap", np.array([share_in_context(text, there) for text in texts_of]))


def _groups(table: pa.Table, group: str | None, contexts: Sequence[Sequence[str | None]]) -> list[str]:
    """Item of each row; a row without one is an item of its own."""
    if group is None:
        ids = table["row_id"].to_pylist()
        pairs = zip(contexts, ids, strict=True)
        return [f"row {row_id}" if context is None else "\x1f".join(filter(None, context)) for context, row_id in pairs]
    rows = zip(table[group].to_pylist(), table["row_id"].to_pylist(), strict=True)
    return [f"row {row_id}" if item is None else f"item {item}" for item, row_id in rows]


def _gather_members(parts: _Parts, batch: pa.RecordBatch, values: dict[str, str], counts: Ints) -> None:
    """Values of whole responses, and the SLMs' own P(supported)."""
    shares = []
    for name, member in read_members(batch, list(values)).items():
        parts.add_array(f"whole {name}", member.field("response_score").to_numpy(zero_copy_only=False))
        if ValueKind(values[name]).is_from_logprobs:
            share = convert_logprobs(ValueKind.P_YES_SHARE, *read_logprobs(member))
            shares.append(np.add.reduceat(share, np.cumsum(counts) - counts) / counts)
    parts.add_array("share", np.mean(shares, axis=0) if shares else np.full(len(counts), np.nan))


def _check_classes(source: LabelSource, labels: Sequence[Label], parts: _Parts) -> None:
    where = f"labels {source.file}" if source.file else f"label column {source.column!r}"
    if not labels:
        more = f"; {parts.unscored} rows have a label but no score" if parts.unscored else ""
        raise InputError(errors.NONE, where=where, unlabelled=parts.unlabelled, more=more)
    found = Counter(labels)
    if Label.CORRECT not in found or len(found) == 1:
        raise InputError(errors.ONE_KIND, where=where, rows=len(labels), labels=", ".join(found))
