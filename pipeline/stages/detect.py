"""The stage `detect`: the detectors' members and evidence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.attach import Addition, attach, not_scored
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.detect import Detected, detect
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.rows import Row
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.as_judged import as_judged
from ragassay.pipeline.text.language import by_language, row_languages
from ragassay.schemas.columns import Status, raw_columns

COLUMNS = raw_columns("members", "evidence", "status", "error")
TEXTS = ("question", "context", "passage_ids", "response", "sentences")


@dataclass
class Detect(Stage):
    """Adds the detectors' members and evidence to the rows whose status is ok.

    A row without an SLM that no detector of the ensemble can say anything of gets the status not_judged, and says why.

    Attributes:
        detectors: Which.
        language: ISO 639-1 code.
        frequencies: Gives the document frequencies; called at each batch, so that they may be counted meanwhile. None for a
            stage that only declares what it needs.
        threads: CPU threads for embeddings.
        language_column: Column with each row's language, in the place of `language`; None where there is none.
    """

    detectors: Sequence[Detector]
    language: str
    frequencies: Callable[[], Frequencies] | None
    threads: int
    language_column: str | None = None

    name = "detect"
    columns_out = COLUMNS
    unit = "sentences"
    fault_prefix = "detectors"

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.columns_in = (*TEXTS, *COLUMNS.names, *filter(None, [self.language_column]))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Detect."""
        assert self.frequencies is not None
        frequencies = self.frequencies()
        additions: dict[int, Addition] = {}
        ok = {i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK}
        for code, all_places in by_language(row_languages(table, self.language, self.language_column)).items():
            places = [int(place) for place in all_places if place in ok]
            if places:
                taken = table.take(pa.array(places, pa.int64()))
                rows = _rows_of(taken)
                found = detect(rows, self.detectors, code, frequencies, self.threads)
                additions |= zip(places, _additions(taken, self.detectors, rows, found), strict=True)
        return attach(table, COLUMNS, additions) if additions else table


def _rows_of(table: pa.Table) -> list[Row]:
    picked = table.select(["question", "context", "response", "sentences"]).to_pylist()
    return [
        Row(r["question"] or "", [p or "" for p in r["context"]], r["response"], [as_judged(s["text"]) for s in r["sentences"]])
        for r in picked
    ]


def _additions(table: pa.Table, detectors: Sequence[Detector], rows: Sequence[Row], found: Detected) -> Iterator[Addition]:
    """What was detected of each row.

    Args:
        table: Those rows, for their members so far and the ids of their passages.
        detectors: The detectors.
        rows: The rows as they were judged.
        found: What the detectors say.
    """
    members_so_far = pc.list_value_length(table["members"]).to_pylist()
    ids = table["passage_ids"].to_pylist() if "passage_ids" in table.column_names else [None] * table.num_rows
    start = 0
    for k, row in enumerate(rows):
        end = start + len(row.sentences)
        members, judged = [], bool(members_so_far[k])
        for detector in detectors:
            values = found.values[detector.name][start:end]
            judged |= detector.in_ensemble and not np.isnan(values).all()
            members.append(
                {
                    "name": detector.name,
                    "sentence_scores": [_or_null(v) for v in values],
                    "response_score": _or_null(found.responses[detector.name][k]),
                }
            )
        of_row = found.evidence[start:end]
        evidence = [
            {
                "passage": at.passage, "passage_id": _id_of(ids[k], at.passage),
                "start": at.start, "end": at.end, "notes": at.notes,
                "missing": [{"kind": kind, "text": text} for kind, text in at.missing],
            }
            for at in of_row
        ]  # fmt: skip
        if judged:
            yield {"members": members, "evidence": evidence}
        else:
            why = "; ".join(dict.fromkeys(note for at in of_row for note in at.notes))
            error = f"no detector has anything to go by ({why})"
            yield {**not_scored(Status.NOT_JUDGED, error), "evidence": evidence}
        start = end


def _id_of(ids: Sequence[str | None] | None, passage: int | None) -> str | None:
    """The id of a passage; None where it has none, or there is none."""
    return None if ids is None or passage is None else ids[passage]


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
