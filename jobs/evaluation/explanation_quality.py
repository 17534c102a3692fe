"""`evaluate --explanations`: the paper's three tables (arXiv 2408.12748, tables 2 and 3, figure 2), and theirs beside ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from ragassay.jobs.evaluation.label_table import SPANS, label_of_rows, load_labels, truth_of_sentences
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.scored_dataset import ScoredDataset, as_text, open_scored
from ragassay.jobs.output.sidecar import explanations
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.second_pass.explain.written import explained_rows
from ragassay.jobs.storage.folder import Folder, read_named
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanations import AnswerStatus

EVALUATION = "evaluation_explanations.json"

Key = tuple[str | None, str]
"""Partition and id of a row; None is any partition."""

PAPER = {
    ("fever", "categorized"): 0.872, ("nhnet", "categorized"): 0.813,
    ("halueval_qa", "categorized"): 0.727, ("halueval_summarization", "categorized"): 0.713,
    ("fever", "fallback"): 0.268, ("nhnet", "fallback"): 0.181,
    ("halueval_qa", "fallback"): 0.333, ("halueval_summarization", "fallback"): 0.026,
}  # fmt: skip
"""F1 of feedback with GPT-4-turbo, by data set and strategy: table 3 of the paper."""

REVIEW = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("strategy", pa.string()),
        ("sentence", pa.int32()),
        ("text", pa.string()),
        ("context", pa.list_(pa.string())),
        ("category", pa.string()),
        ("reason", pa.string()),
        ("inconsistent", pa.bool_()),
    ]
)
"""An explanation for a person to judge: `inconsistent` is theirs, true where the reason does not explain why the sentence is a
hallucination but justifies that it is none."""


@dataclass(frozen=True)
class Told:
    """Precision, recall and F1 of a flag, against what is known.

    Attributes:
        rows: Sentences of which it is known.
        positives: Those of them of which it is true.
        precision: Null where nothing was flagged.
        recall: Null where nothing is true.
        f1: Null where precision and recall are.
    """

    rows: int
    positives: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Measured:
    """A strategy on a data set.

    Attributes:
        data: The data set: a value of the slice, or `all`.
        strategy: The strategy.
        sentences: Sentences that were asked about.
        read: Those of them whose answer could be read.
        identification: The model's signal that it disagrees, against people's judgement of the reason; null without judgements,
            and under vanilla, which has no signal.
        inconsistent_before: Share of the judged reasons that are inconsistent; null without judgements.
        inconsistent_after: The same of those that are left when what the model signals is left out.
        feedback: The model's signal, as "this is no hallucination", against the truth; null without labels, and under vanilla.
    """

    data: str
    strategy: str
    sentences: int
    read: int
    identification: Told | None
    inconsistent_before: float | None
    inconsistent_after: float | None
    feedback: Told | None


@dataclass(frozen=True)
class _Sentence:
    """An explained sentence; None stands for what is not known."""

    data: str
    read: bool
    consistent: bool | None
    supported: bool | None
    judged_inconsistent: bool | None


@dataclass(frozen=True)
class _Row:
    """A row of the output; `truth` says of which sentences it is known whether they are supported."""

    partition: str
    row_id: str
    data: str
    truth: dict[int, bool]


def measure_explanations(
    output: Folder, source: LabelSource | None, column: str | None = None, judgements: str | None = None
) -> list[Measured]:
    """Measure every strategy that `explanations/` holds, and write what was found to EVALUATION.

    Args:
        output: The output folder.
        source: Where the truth is; None leaves feedback out.
        column: Column whose values are data sets; None takes all rows together.
        judgements: File that `explain --review` wrote and people filled in; None leaves out what needs it.

    Raises:
        InputError: A column or file is missing or wrong.
        OutputError: There are no explanations.
    """
    strategies = [s.value for s in Strategy if explanations(output, s).files()]
    if not strategies:
        raise OutputError(errors.NO_EXPLANATIONS, output=output.uri)
    judged = _judgements(judgements) if judgements else {}
    rows = _read_rows(open_scored(output), source, column)
    found = []
    for strategy in strategies:
        sentences = list(_sentences(output, strategy, rows, judged))
        for data in sorted({sentence.data for sentence in sentences}):
            found.append(_measure(data, strategy, [s for s in sentences if s.data == data]))
    output.write(EVALUATION, json.dumps([asdict(one) for one in found], indent=1))
    return found


def _measure(data: str, strategy: str, sentences: list[_Sentence]) -> Measured:
    read = [s for s in sentences if s.read]
    signals = strategy != Strategy.VANILLA
    judged = [s for s in read if s.judged_inconsistent is not None]
    left = [s for s in judged if s.consistent is not False]
    true = [s for s in read if s.supported is not None]
    return Measured(
        data=data,
        strategy=strategy,
        sentences=len(sentences),
        read=len(read),
        identification=_told([(not s.consistent, bool(s.judged_inconsistent)) for s in judged]) if signals and judged else None,
        inconsistent_before=_share([bool(s.judged_inconsistent) for s in judged]),
        inconsistent_after=_share([bool(s.judged_inconsistent) for s in left]),
        feedback=_told([(not s.consistent, bool(s.supported)) for s in true]) if signals and true else None,
    )


def _told(pairs: list[tuple[bool, bool]]) -> Told:
    """Of pairs (signalled, true)."""
    both = sum(signal and truth for signal, truth in pairs)
    signals, truths = sum(signal for signal, _ in pairs), sum(truth for _, truth in pairs)
    f1 = 2 * both / (signals + truths) if signals + truths else None
    return Told(len(pairs), truths, both / signals if signals else None, both / truths if truths else None, f1)


def _share(flags: list[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _sentences(
    output: Folder, strategy: str, rows: Mapping[int, _Row], judged: Mapping[tuple[Key, str, int], bool]
) -> Iterator[_Sentence]:
    explained = explained_rows(output, strategy)
    for row_key, row in rows.items():
        for entry in explained.get(row_key, []):
            keys: list[tuple[Key, str, int]] = [
                ((place, row.row_id), strategy, entry["sentence"]) for place in (row.partition, None)
            ]
            yield _Sentence(
                data=row.data,
                read=entry["status"] == AnswerStatus.OK,
                consistent=entry["consistent"],
                supported=row.truth.get(entry["sentence"]),
                judged_inconsistent=next((judged[key] for key in keys if key in judged), None),
            )


def _read_rows(scored: ScoredDataset, source: LabelSource | None, column: str | None) -> dict[int, _Row]:
    """`row_key` -> row, of those that are looked at."""
    where = source.where if source else {}
    scored.require_columns([column] if column else [])
    truth: dict[int, dict[int, bool]] = {}
    label_of: dict[int, Label] = {}
    if source:
        labels = load_labels(scored, source)
        label_of = label_of_rows(labels)
        for row_key, sentence, is_good in truth_of_sentences(labels).iter_rows():
            truth.setdefault(row_key, {})[sentence] = is_good
    found = {}
    for rows in scored.batches(["row_key", "row_id", *SPANS, *([column] if column else []), *where]):
        for row, keep in zip(rows.table.to_pylist(), rows.matches(where), strict=True):
            if keep:
                key = row["row_key"]
                known = truth.get(key) or _by_response(label_of.get(key), len(row["sentences"] or []))
                data = as_text(row[column]) if column else "all"
                found[key] = _Row(rows.file.partition_name, row["row_id"], data, known)
    return found


def _by_response(label: Label | None, sentences: int) -> dict[int, bool]:
    """What a response's label says of its sentences: all of a correct one are supported, the only one of a wrong one is not."""
    if label is Label.CORRECT:
        return dict.fromkeys(range(sentences), True)
    return {0: False} if label is Label.WRONG and sentences == 1 else {}


def _judgements(uri: str) -> dict[tuple[Key, str, int], bool]:
    """(row, strategy, sentence) -> whether a person finds the reason inconsistent."""
    required = ["row_id", "strategy", "sentence", "inconsistent"]
    table = read_named(uri, required, " (fill in a file of `explain --review`)")
    return {
        ((row.get("partition"), row["row_id"]), row["strategy"], row["sentence"]): row["inconsistent"]
        for row in table.to_pylist()
        if row["inconsistent"] is not None
    }
