"""What the page shows: from `scored/` in one pass over its scores, and a second over the worst rows' texts and explanations."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.decide.report.explained import Explanation, Explanations, count_explanations, explanations_of, marked
from ragassay.jobs.output.partitions import hive_keys, hive_path, partitions
from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.pipeline.explain.categories import OF_DETECTORS
from ragassay.pipeline.overlap import words
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED, Status
from ragassay.schemas.stats import Moments

WORST = 50
EXAMPLES = 3
"""Failed rows shown a reason."""


@dataclass
class Share:
    """Responses of one day or one value of a column."""

    value: str
    scored: int = 0
    flagged: int = 0

    @property
    def flagged_share(self) -> float:
        """Share of the scored responses that are flagged; 0 of none."""
        return self.flagged / self.scored if self.scored else 0.0


@dataclass(frozen=True)
class Sentence:
    """A sentence of a response that is shown.

    Attributes:
        text: Its text.
        score: Ensemble score; null where the row has none.
        flagged: Whether it is flagged.
        passage: Number of its best passage, from 0, by a detector, or else the one that holds most of its words; null where
            there is none.
        missing: What it names and the context does not, by a detector: (category of an explanation, kind and text); the
            category is empty where none is of that kind.
        explanation: Why it is flagged, by a model; null where it is not, or nothing is to be shown.
    """

    text: str
    score: float | None
    flagged: bool
    passage: int | None
    missing: tuple[tuple[str, str], ...] = ()
    explanation: Explanation | None = None


@dataclass(frozen=True)
class Response:
    """A response that is shown.

    Attributes:
        row_id: The user's id.
        partition: Its hive path.
        score: Response score.
        probability: P(supported) by a calibration; null without one.
        verdict: supported or hallucinated.
        decided_by: Whose verdict it is; null in outputs of before there was a cascade.
        judge_score: The judge's number, where it decided; else null.
        label: What a label column says of it, as text; empty where nothing.
        question: The question; null where the logs have none.
        context: Passages, each in pieces: (text, whether an explanation quotes it); an empty passage has none.
        parts: The response from its start to its end: text between sentences (plain strings), and sentences.
    """

    row_id: str
    partition: str
    score: float
    probability: float | None
    verdict: str
    decided_by: str | None
    judge_score: float | None
    label: str
    question: str | None
    context: list[list[tuple[str, bool]]]
    parts: list[str | Sentence]

    @property
    def explained(self) -> bool:
        """Whether an explanation is shown of a sentence of it."""
        return any(isinstance(part, Sentence) and part.explanation is not None for part in self.parts)


@dataclass
class Gathered:
    """What stands in `scored/` and `explanations/`.

    Attributes:
        rows: Rows by status.
        sentences: Sentences of the scored rows.
        flagged: Flagged responses.
        judged: Judge of a cascade -> responses that it decided.
        scores: Moments and sketch of the response scores.
        thresholds: The different taus.
        days: Shares by the first hive key, ascending; empty without partitions.
        day_column: That key's name.
        slices: Column -> its values' shares, the largest first.
        failed: Status -> some of its rows: (row id, partition, error).
        worst: The responses with the lowest scores, the lowest first.
        explained: What a model says of flagged sentences; null where none are explained.
    """

    rows: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    flagged: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    scores: Moments = field(default_factory=Moments)
    thresholds: set[float] = field(default_factory=set)
    days: list[Share] = field(default_factory=list)
    day_column: str = ""
    slices: dict[str, list[Share]] = field(default_factory=dict)
    failed: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    worst: list[Response] = field(default_factory=list)
    explained: Explanations | None = None


@dataclass(frozen=True, order=True)
class _Place:
    """Where a low-scored row stands. The higher a place, the worse the row, so that a heap drops the best first."""

    badness: tuple[float, float]
    file: str
    group: int
    row: int


def gather(output: Folder, slices: Sequence[str] = (), label: str | None = None, all_explanations: bool = False) -> Gathered:
    """Gather what the page shows; memory does not grow with the number of rows, but see `count_explanations`.

    Args:
        output: A finalised output folder.
        slices: Columns whose values are counted apart; hive keys among them. A point in time counts by its day.
        label: Column to show beside the worst responses.
        all_explanations: Show also the explanations that disagree with the flag.

    Raises:
        InputError: No partition has such a column.
        OutputError: There are no verdicts.
    """
    files = partitions(output, "scored")
    if not files:
        raise OutputError(f"output {output.uri} has no verdicts yet: run `ragassay finalize {output.uri}` first")
    found = Gathered(slices={name: [] for name in slices})
    shares: dict[str, dict[str, Share]] = {name: {} for name in ("", *slices)}
    worst: list[_Place] = []
    seen: set[str] = set()
    place_of = {}
    for place, paths in files.items():
        keys = hive_keys(place)
        found.day_column = found.day_column or next(iter(keys), "")
        for path in paths:
            place_of[path] = place
            for group, table, names in _scores(output, path, [*slices, *([label] if label else [])]):
                seen |= names | set(keys)
                _count(found, table, hive_path(place))
                _add_shares(shares[""], pa.array([next(iter(keys.values()), "")] * len(table)), table)
                for name in slices:
                    values = pa.array([keys[name]] * len(table)) if name in keys else _values(table, name)
                    _add_shares(shares[name], values, table)
                _keep_worst(worst, table, path, group)
    for name in [*slices, *([label] if label else [])]:
        if name not in seen:
            raise InputError(f"output {output.uri} has no column {name!r}; it has {', '.join(sorted(seen))}")
    found.days = [share for _, share in sorted(shares[""].items())] if found.day_column else []
    found.slices = {name: sorted(shares[name].values(), key=lambda s: (-s.scored, s.value)) for name in slices}
    found.explained = count_explanations(output, files, all_explanations)
    found.worst = _responses(output, [(place, place_of[place.file]) for place in sorted(worst, reverse=True)], label, found)
    return found


def _scores(output: Folder, path: str, extra: Sequence[str]) -> Iterator[tuple[int, pa.Table, set[str]]]:
    """A file's scalar columns, a row group at a time."""
    columns = ["row_id", "status", "error", "score", "threshold", "verdict", "sentences.list.element.score"]
    with pq.ParquetFile(path, filesystem=output.fs) as parquet:
        names = set(parquet.schema_arrow.names)
        more = dict.fromkeys(["decided_by", *extra])  # outputs of older versions have no decided_by
        wanted = [*columns, *(name for name in more if name in names and name not in columns)]
        for group in range(parquet.num_row_groups):
            yield group, parquet.read_row_group(group, columns=wanted), names


def _count(found: Gathered, table: pa.Table, partition: str) -> None:
    found.rows.update(table["status"].to_pylist())
    found.flagged += pc.sum(pc.equal(table["verdict"], HALLUCINATED)).as_py() or 0
    if "decided_by" in table.column_names:
        found.judged.update(filter(None, table["decided_by"].to_pylist()))
        del found.judged[ENSEMBLE]
    scored = table.filter(pc.is_valid(table["score"]))
    found.sentences += pc.sum(pc.list_value_length(scored["sentences"])).as_py() or 0
    found.scores = merge([found.scores, moments_of(scored["score"].to_numpy())])
    found.thresholds |= set(pc.unique(scored["threshold"]).to_pylist())
    failed = table.filter(pc.not_equal(table["status"], Status.OK.value)).select(["status", "row_id", "error"])
    for status in pc.unique(failed["status"]).to_pylist():
        examples = found.failed.setdefault(status, [])
        if len(examples) < EXAMPLES:
            rows = failed.filter(pc.equal(failed["status"], status)).slice(0, EXAMPLES - len(examples)).to_pylist()
            examples.extend((row["row_id"], partition, row["error"] or "") for row in rows)


def _values(table: pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    """A column's values as text; a point in time as its day."""
    if name not in table.column_names:
        return pa.nulls(len(table), pa.string())
    column = table[name]
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError(f"column {name!r} holds {column.type}: slices are of plain values")
    return pc.strftime(column, format="%Y-%m-%d") if pa.types.is_timestamp(column.type) else column.cast(pa.string())


def _add_shares(shares: dict[str, Share], values: pa.Array | pa.ChunkedArray, table: pa.Table) -> None:
    frame = pl.DataFrame(
        {
            "value": pl.Series(values.to_pylist(), dtype=pl.String),
            "scored": pc.is_valid(table["verdict"]).to_numpy(),
            "flagged": pc.fill_null(pc.equal(table["verdict"], HALLUCINATED), False).to_numpy(),
        }
    )
    for value, scored, flagged in frame.group_by("value").agg(pl.col("scored", "flagged").sum()).iter_rows():
        name = "(none)" if value is None else value
        share = shares.setdefault(name, Share(name))
        share.scored += scored
        share.flagged += flagged


def _keep_worst(worst: list[_Place], table: pa.Table, path: str, group: int) -> None:
    """Keep the lowest scores; among equal ones (clip makes many) those with the lowest sentence."""
    scores = table["score"].to_numpy()
    rows = np.flatnonzero(~np.isnan(scores))
    if not len(rows):
        return
    sentences = pc.take(table["sentences"], pa.array(rows)).combine_chunks()
    starts = np.cumsum([0, *pc.list_value_length(sentences).to_pylist()])[:-1]
    lowest = np.fmin.reduceat(sentences.flatten().field("score").to_numpy(zero_copy_only=False), starts)
    order = np.lexsort((lowest, scores[rows]))[:WORST]
    for i in order:
        place = _Place((-float(scores[rows[i]]), -float(lowest[i])), path, group, int(rows[i]))
        if len(worst) < WORST:
            heapq.heappush(worst, place)
        elif not worst[0] < place:
            break
        else:
            heapq.heapreplace(worst, place)


def _responses(output: Folder, places: Sequence[tuple[_Place, str]], label: str | None, found: Gathered) -> list[Response]:
    rows = [_row(output, place, label) for place, _ in places]
    explanations: dict[int, dict[int, Explanation]] = {}
    if found.explained:
        keys = [(partition, row["row_key"]) for (_, partition), row in zip(places, rows, strict=True) if "row_key" in row]
        explanations = explanations_of(output, found.explained, keys)
    return [
        _response(row, partition, label, explanations.get(row.get("row_key", -1), {}))
        for (_, partition), row in zip(places, rows, strict=True)
    ]


def _row(output: Folder, place: _Place, label: str | None) -> dict[str, Any]:
    columns = ["row_id", "question", "context", "response", "score", "probability", "verdict", "sentences", "evidence"]
    with pq.ParquetFile(place.file, filesystem=output.fs) as parquet:
        # Outputs of older versions have no row_key, and hive keys are no columns.
        there = [name for name in ("row_key", "decided_by", "judge_score", label) if name in parquet.schema_arrow.names]
        row: dict[str, Any] = parquet.read_row_group(place.group, columns=[*columns, *there]).slice(place.row, 1).to_pylist()[0]
    return row


def _response(row: Mapping[str, Any], partition: str, label: str | None, explanations: Mapping[int, Explanation]) -> Response:
    context = [passage or "" for passage in row["context"]]
    said = {**hive_keys(partition), **row}.get(label or "")
    parts = _parts(row["response"], row["sentences"], context, row["evidence"], explanations)
    shown = [part.explanation for part in parts if isinstance(part, Sentence) and part.explanation]
    return Response(
        row_id=row["row_id"],
        partition=hive_path(partition),
        score=row["score"],
        probability=row["probability"],
        verdict=row["verdict"],
        decided_by=row.get("decided_by"),
        judge_score=row.get("judge_score"),
        label="" if said is None else str(said),
        question=row["question"],
        context=marked(context, shown),
        parts=parts,
    )


def _parts(
    response: str,
    sentences: Sequence[dict[str, Any]],
    context: Sequence[str],
    evidence: Sequence[dict[str, Any]] | None,
    explanations: Mapping[int, Explanation] | None = None,
) -> list[str | Sentence]:
    """The response, cut at its sentences, nothing left out."""
    passages = [set(words(passage)) for passage in context]
    parts: list[str | Sentence] = []
    end = 0
    for i, sentence in enumerate(sentences):
        at = evidence[i] if evidence else {"passage": None, "missing": []}
        if sentence["start"] > end:
            parts.append(response[end : sentence["start"]])
        best = at["passage"] if at["passage"] is not None else _most_words(sentence["text"], passages)
        missing = tuple((OF_DETECTORS.get(m["kind"], ""), f"{m['kind']} {m['text']}") for m in at["missing"])
        flagged = bool(sentence["flagged"])
        # A sentence that was explained under another threshold may not be flagged now.
        explanation = (explanations or {}).get(i) if flagged else None
        parts.append(Sentence(sentence["text"], sentence["score"], flagged, best, missing, explanation))
        end = sentence["end"]
    if end < len(response):
        parts.append(response[end:])
    return parts


def _most_words(text: str, passages: Sequence[set[str]]) -> int | None:
    """The passage that holds most of a text's words."""
    mine = set(words(text))
    best = max(range(len(passages)), key=lambda i: len(mine & passages[i]), default=None)
    return best if best is not None and mine & passages[best] else None
