"""Measure explanations against labels and judgments: the paper's three tables (arXiv 2408.12748, tables 2 and 3, figure 2)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from ragassay.jobs.evaluation.label_table import SPAN_COLUMNS, list_sentence_truth, load_labels, map_response_labels
from ragassay.jobs.evaluation.labels import Label, LabelSource, parse_truth
from ragassay.jobs.input.user_table import read_user_table
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored, value_to_text
from ragassay.jobs.output.sidecar_dataset import open_explanations
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.second_pass.explain.stored_explanations import read_explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanation_columns import AnswerStatus

EXPLANATION_FILE = "evaluation_explanations.json"

RowName = tuple[str | None, str]
"""Partition and id of a row; a partition of None matches any."""

PAPER_F1 = {
    ("fever", "categorized"): 0.872, ("nhnet", "categorized"): 0.813,
    ("halueval_qa", "categorized"): 0.727, ("halueval_summarization", "categorized"): 0.713,
    ("fever", "fallback"): 0.268, ("nhnet", "fallback"): 0.181,
    ("halueval_qa", "fallback"): 0.333, ("halueval_summarization", "fallback"): 0.026,
}  # fmt: skip
"""Data set and strategy -> F1 of feedback with GPT-4-turbo: table 3 of the paper."""

JUDGMENT_SCHEMA = pa.schema(
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
"""An explanation for a person to judge. `sentence` counts from 1. `inconsistent` is the person's answer: true if the reason
does not explain why the sentence is a hallucination but argues that it is none.
"""


@dataclass(frozen=True)
class FlagQuality:
    """Precision, recall and F1 of a signal against the truth.

    Attributes:
        rows: Sentences with a known truth.
        positives: Sentences for which the truth is positive.
        precision: Null if no sentence has the signal.
        recall: Null if there are no positives.
        f1: Null if precision and recall are.
    """

    rows: int
    positives: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class StrategyQuality:
    """Quality of a strategy on a data set.

    Attributes:
        dataset: The data set: a value of the slice column, or `all`.
        strategy: The strategy.
        sentences: Sentences that the model was asked about.
        readable: Sentences with a readable answer.
        identification: The model's disagreement signal against people's judgment of the reason; null without judgments, and
            under vanilla, which has no signal.
        inconsistent_before: Share of the judged reasons that are inconsistent; null without judgments.
        inconsistent_after: The same share without the sentences that the model signals.
        feedback: The model's signal, as "this is no hallucination", against the truth; null without labels, and under vanilla.
    """

    dataset: str
    strategy: str
    sentences: int
    readable: int
    identification: FlagQuality | None
    inconsistent_before: float | None
    inconsistent_after: float | None
    feedback: FlagQuality | None


@dataclass(frozen=True)
class _ExplainedSentence:
    """An explained sentence; None means unknown."""

    dataset: str
    is_readable: bool
    consistent: bool | None
    supported: bool | None
    judged_inconsistent: bool | None


@dataclass(frozen=True)
class _OutputRow:
    """A row of the output; `truth` maps a sentence to whether it is supported, if known."""

    partition: str
    row_id: str
    dataset: str
    truth: dict[int, bool]


def measure_explanations(
    output: Folder, source: LabelSource | None, dataset_column: str | None = None, judgments: str | None = None
) -> list[StrategyQuality]:
    """Measure every strategy in `explanations/`, and write the result to EXPLANATION_FILE.

    Args:
        output: The output folder.
        source: The labels; None measures no feedback.
        dataset_column: Column whose values are data sets; None takes all rows together.
        judgments: A file of `explain --review` that people filled in; None measures nothing that needs judgments.

    Raises:
        InputError: A column or file is missing or invalid.
        OutputError: There are no explanations.
    """
    strategies = [s.value for s in Strategy if open_explanations(output, s).list_files()]
    if not strategies:
        raise OutputError(errors.NO_EXPLANATIONS, output=output.uri)
    judgments_by_sentence = _read_judgments(judgments) if judgments else {}
    rows = _read_rows(open_scored(output), source, dataset_column)
    results = []
    for strategy in strategies:
        sentences = list(_read_sentences(output, strategy, rows, judgments_by_sentence))
        for dataset in sorted({sentence.dataset for sentence in sentences}):
            results.append(_measure_strategy(dataset, strategy, [s for s in sentences if s.dataset == dataset]))
    output.write(EXPLANATION_FILE, json.dumps([asdict(result) for result in results], indent=1))
    return results


def _measure_strategy(dataset: str, strategy: str, sentences: list[_ExplainedSentence]) -> StrategyQuality:
    readable = [s for s in sentences if s.is_readable]
    has_signal = strategy != Strategy.VANILLA
    judged = [s for s in readable if s.judged_inconsistent is not None]
    unsignaled = [s for s in judged if s.consistent is not False]
    with_truth = [s for s in readable if s.supported is not None]
    return StrategyQuality(
        dataset=dataset,
        strategy=strategy,
        sentences=len(sentences),
        readable=len(readable),
        identification=_measure_flags([(not s.consistent, bool(s.judged_inconsistent)) for s in judged])
        if has_signal and judged
        else None,
        inconsistent_before=_share([bool(s.judged_inconsistent) for s in judged]),
        inconsistent_after=_share([bool(s.judged_inconsistent) for s in unsignaled]),
        feedback=_measure_flags([(not s.consistent, bool(s.supported)) for s in with_truth])
        if has_signal and with_truth
        else None,
    )


def _measure_flags(pairs: list[tuple[bool, bool]]) -> FlagQuality:
    """Measure a signal, from pairs (signaled, true)."""
    true_positives = sum(signal and truth for signal, truth in pairs)
    signaled, positives = sum(signal for signal, _ in pairs), sum(truth for _, truth in pairs)
    f1 = 2 * true_positives / (signaled + positives) if signaled + positives else None
    return FlagQuality(
        len(pairs),
        positives,
        true_positives / signaled if signaled else None,
        true_positives / positives if positives else None,
        f1,
    )


def _share(flags: list[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _read_sentences(
    output: Folder, strategy: str, rows: Mapping[int, _OutputRow], judgments: Mapping[tuple[RowName, str, int], bool]
) -> Iterator[_ExplainedSentence]:
    explained = read_explanations(output, strategy)
    for row_key, row in rows.items():
        for entry in explained.get(row_key, []):
            names: list[tuple[RowName, str, int]] = [
                ((partition, row.row_id), strategy, entry["sentence"]) for partition in (row.partition, None)
            ]
            yield _ExplainedSentence(
                dataset=row.dataset,
                is_readable=entry["status"] == AnswerStatus.OK,
                consistent=entry["consistent"],
                supported=row.truth.get(entry["sentence"]),
                judged_inconsistent=next((judgments[key] for key in names if key in judgments), None),
            )


def _read_rows(scored: ScoredDataset, source: LabelSource | None, dataset_column: str | None) -> dict[int, _OutputRow]:
    """Return `row_key` -> row, of the selected rows."""
    where = source.where if source else {}
    scored.require_columns([dataset_column] if dataset_column else [])
    truth: dict[int, dict[int, bool]] = {}
    response_labels: dict[int, Label] = {}
    if source:
        labels = load_labels(scored, source)
        response_labels = map_response_labels(labels)
        for row_key, sentence, is_supported in list_sentence_truth(labels).iter_rows():
            truth.setdefault(row_key, {})[sentence] = is_supported
    selected = {}
    for rows in scored.read_batches(
        ["row_key", "row_id", *SPAN_COLUMNS, *([dataset_column] if dataset_column else []), *where]
    ):
        for row, is_selected in zip(rows.table.to_pylist(), rows.matches(where), strict=True):
            if is_selected:
                row_key = row["row_key"]
                known_truth = truth.get(row_key) or _truth_from_response(
                    response_labels.get(row_key), len(row["sentences"] or [])
                )
                dataset = value_to_text(row[dataset_column]) if dataset_column else "all"
                selected[row_key] = _OutputRow(rows.file.partition_name, row["row_id"], dataset, known_truth)
    return selected


def _truth_from_response(label: Label | None, sentence_count: int) -> dict[int, bool]:
    """Derive the truth of sentences from the response's label: all sentences of a correct response, the only sentence of a
    wrong one.
    """
    if label is Label.CORRECT:
        return dict.fromkeys(range(sentence_count), True)
    return {0: False} if label is Label.WRONG and sentence_count == 1 else {}


def _read_judgments(uri: str) -> dict[tuple[RowName, str, int], bool]:
    """Return (row, strategy, sentence from 0) -> whether a person judged the reason inconsistent."""
    required = ["row_id", "strategy", "sentence", "inconsistent"]
    table = read_user_table(uri, required, " (a file that `explain --review` wrote)")
    judged = ((row, parse_truth(row["inconsistent"])) for row in table.to_pylist())
    return {
        ((row.get("partition"), str(row["row_id"])), row["strategy"], int(row["sentence"]) - 1): inconsistent
        for row, inconsistent in judged
        if inconsistent is not None
    }
