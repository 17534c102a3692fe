"""The detectors as a step of the plan: a batch of rows in, the same with more members and evidence out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ragassay.pipeline.as_judged import as_judged
from ragassay.pipeline.contain import contain, fault_of, with_status
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.detect import Detected, detect
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.language import by_language, row_languages
from ragassay.pipeline.rows import Row
from ragassay.schemas.columns import EVIDENCE, MEMBER, Status


def detect_batch(
    table: pa.Table,
    detectors: Sequence[Detector],
    language: str,
    frequencies: Frequencies,
    threads: int,
    language_column: str | None = None,
) -> pa.Table:
    """Add the detectors' members and evidence to the rows whose status is ok.

    A row without an SLM that no detector of the ensemble can say anything of gets the status not_judged, and says why.

    Args:
        table: Rows with `sentences`, `members`, `evidence`, `status`, `error`.
        detectors: Which.
        language: ISO 639-1 code.
        frequencies: Document frequencies.
        threads: CPU threads for embeddings.
        language_column: Column with each row's language, in the place of `language`; None where there is none.
    """
    parts = by_language(row_languages(table, language, language_column))
    if len(parts) < 2:
        return _contained(table, detectors, next(iter(parts), language), frequencies, threads)
    found = [_contained(table.take(pa.array(p)), detectors, code, frequencies, threads) for code, p in parts.items()]
    order = np.argsort(np.concatenate(list(parts.values())), kind="stable")
    return pa.concat_tables(found).take(pa.array(order))


def _contained(
    table: pa.Table, detectors: Sequence[Detector], language: str, frequencies: Frequencies, threads: int
) -> pa.Table:
    return pa.concat_tables(
        contain(
            table.num_rows,
            lambda some: _detect(table[some], detectors, language, frequencies, threads),
            lambda i, error: with_status(table.slice(i, 1), Status.ERROR, f"detectors: {fault_of(error)}"),
        )
    )


def _detect(table: pa.Table, detectors: Sequence[Detector], language: str, frequencies: Frequencies, threads: int) -> pa.Table:
    places = [i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK]
    if not places:
        return table
    picked = table.select(["question", "context", "response", "sentences"]).take(pa.array(places, pa.int64())).to_pylist()
    rows = [
        Row(r["question"] or "", [p or "" for p in r["context"]], r["response"], [as_judged(s["text"]) for s in r["sentences"]])
        for r in picked
    ]
    return attach(table, detectors, places, rows, detect(rows, detectors, language, frequencies, threads))


def attach(
    table: pa.Table, detectors: Sequence[Detector], places: Sequence[int], rows: Sequence[Row], found: Detected
) -> pa.Table:
    """Put what was detected into the rows' columns.

    Args:
        table: All rows.
        detectors: The detectors.
        places: Row number of each row that was sent to them.
        rows: Those rows.
        found: What they say.
    """
    names = ("members", "evidence", "status", "error")
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in names}
    ids = table["passage_ids"].to_pylist() if "passage_ids" in table.column_names else [None] * table.num_rows
    start = 0
    for k, (place, row) in enumerate(zip(places, rows, strict=True)):
        end = start + len(row.sentences)
        judged = bool(columns["members"][place])
        for detector in detectors:
            values = found.values[detector.name][start:end]
            judged |= detector.in_ensemble and not np.isnan(values).all()
            columns["members"][place].append(
                {
                    "name": detector.name,
                    "sentence_scores": [_or_null(v) for v in values],
                    "response_score": _or_null(found.responses[detector.name][k]),
                }
            )
        evidence = found.evidence[start:end]
        columns["evidence"][place] = [
            {
                "passage": at.passage, "passage_id": _id_of(ids[place], at.passage),
                "start": at.start, "end": at.end, "notes": at.notes,
                "missing": [{"kind": kind, "text": text} for kind, text in at.missing],
            }
            for at in evidence
        ]  # fmt: skip
        if not judged:
            why = "; ".join(dict.fromkeys(note for at in evidence for note in at.notes))
            columns["status"][place], columns["members"][place] = Status.NOT_JUDGED.value, None
            columns["error"][place] = f"no detector has anything to go by ({why})"
        start = end
    types = {"members": pa.list_(MEMBER), "evidence": pa.list_(EVIDENCE)}
    for name, values_of_rows in columns.items():
        column = pa.array(values_of_rows, type=types.get(name, pa.string()))
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table


def _id_of(ids: Sequence[str | None] | None, passage: int | None) -> str | None:
    """The id of a passage; None where it has none, or there is none."""
    return None if ids is None or passage is None else ids[passage]


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
