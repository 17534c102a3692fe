"""The stage `detect`: members and evidence of the detectors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.attach import RowUpdate, attach, mark_unscored, null_if_nan
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.detect import DetectionResult, run_detectors
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.rows import Row
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.claim import extract_claim
from ragassay.pipeline.text.language_codes import group_by_language, read_row_languages
from ragassay.schemas.columns import Status, raw_columns

OUTPUT_COLUMNS = raw_columns("members", "evidence", "status", "error")
PLACE = ("passage", "passage_id", "start", "end")
"""Fields of evidence that an SLM sets."""

TEXT_COLUMNS = ("question", "context", "passage_ids", "response", "sentences")


@dataclass
class DetectStage(Stage):
    """Adds the detectors' members and evidence to rows with status ok. Where an SLM found a passage, that passage stays.

    A row without an SLM for which no detector of the ensemble has a value gets the status not_judged and the reason.

    Attributes:
        detectors: Configurations of the detectors.
        language: ISO 639-1 code.
        frequencies: Returns the document frequencies; called for each batch, so that they can be counted meanwhile. None for a
            stage that only declares its columns.
        threads: CPU threads for embeddings.
        language_column: Column with each row's language, which overrides `language`; None without one.
    """

    detectors: Sequence[Detector]
    language: str
    frequencies: Callable[[], DocumentFrequencies] | None
    threads: int
    language_column: str | None = None

    name = "detect"
    columns_out = OUTPUT_COLUMNS
    unit = "sentences"
    fault_prefix = "detectors"

    def __post_init__(self) -> None:
        """Set the columns that depend on the settings."""
        self.columns_in = (*TEXT_COLUMNS, *OUTPUT_COLUMNS.names, *filter(None, [self.language_column]))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Run the detectors."""
        assert self.frequencies is not None
        frequencies = self.frequencies()
        additions: dict[int, RowUpdate] = {}
        ok_rows = {i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK}
        for code, rows_of_language in group_by_language(read_row_languages(table, self.language, self.language_column)).items():
            indices = [int(index) for index in rows_of_language if index in ok_rows]
            if indices:
                selected = table.take(pa.array(indices, pa.int64()))
                rows = _make_rows(selected)
                detected = run_detectors(rows, self.detectors, code, frequencies, self.threads)
                additions |= zip(indices, _make_updates(selected, self.detectors, rows, detected), strict=True)
        return attach(table, OUTPUT_COLUMNS, additions) if additions else table


def _make_rows(table: pa.Table) -> list[Row]:
    selected = table.select(["question", "context", "response", "sentences"]).to_pylist()
    return [
        Row(
            row["question"] or "",
            [passage or "" for passage in row["context"]],
            row["response"],
            [extract_claim(sentence["text"]) for sentence in row["sentences"]],
        )
        for row in selected
    ]


def _make_updates(
    table: pa.Table, detectors: Sequence[Detector], rows: Sequence[Row], detected: DetectionResult
) -> Iterator[RowUpdate]:
    """Yield the result for each row.

    Args:
        table: The rows, for their earlier members and evidence, and passage ids.
        detectors: The detectors.
        rows: The rows as they were judged.
        detected: Output of the detectors.
    """
    earlier_members = pc.list_value_length(table["members"]).to_pylist()
    ids = table["passage_ids"].to_pylist() if "passage_ids" in table.column_names else [None] * table.num_rows
    earlier_evidence = table["evidence"].to_pylist()
    start = 0
    for i, row in enumerate(rows):
        end = start + len(row.sentences)
        members, judged = [], bool(earlier_members[i])
        for detector in detectors:
            values = detected.sentence_values[detector.name][start:end]
            judged |= detector.in_ensemble and not np.isnan(values).all()
            members.append(
                {
                    "name": detector.name,
                    "sentence_scores": [null_if_nan(value) for value in values],
                    "response_score": null_if_nan(detected.response_values[detector.name][i]),
                }
            )
        row_evidence = detected.evidence[start:end]
        evidence = [
            {
                "passage": item.passage, "passage_id": _passage_id(ids[i], item.passage),
                "start": item.start, "end": item.end, "notes": item.notes,
                "missing": [{"kind": kind, "text": text} for kind, text in item.missing],
            }
            for item in row_evidence
        ]  # fmt: skip
        for earlier, entry in zip(earlier_evidence[i] or [], evidence, strict=False):
            if earlier["passage"] is not None:
                entry.update({name: earlier[name] for name in PLACE})
        if judged:
            yield {"members": members, "evidence": evidence}
        else:
            reasons = "; ".join(dict.fromkeys(note for item in row_evidence for note in item.notes))
            error = f"no detector has evidence ({reasons})"
            yield {**mark_unscored(Status.NOT_JUDGED, error), "evidence": evidence}
        start = end


def _passage_id(ids: Sequence[str | None] | None, passage: int | None) -> str | None:
    """Return the id of a passage; None without an id or a passage."""
    return None if ids is None or passage is None else ids[passage]
