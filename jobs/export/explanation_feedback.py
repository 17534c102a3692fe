"""What the reasoner's disagreement is good for: weak labels, and how often each member's flags are rejected."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from ragassay.jobs.evaluation.compare import limits_of
from ragassay.jobs.evaluation.explanation_quality import REVIEW
from ragassay.jobs.evaluation.labelled import member_values_of
from ragassay.jobs.evaluation.labels import Label
from ragassay.jobs.export.rows import rows
from ragassay.jobs.export.write import write_parquet
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.output.snapshot import unchanged
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.second_pass.explain.written import explained_rows
from ragassay.jobs.storage.folder import Folder, open_folder, refuse_inside
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.members import ValueKind, convert_logprobs
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanations import AnswerStatus
from ragassay.schemas.manifest import Manifest

FEEDBACK = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("question", pa.string()),
        ("context", pa.list_(pa.string())),
        ("response", pa.string()),
        ("label", pa.string()),
        (
            "sentence_labels",
            pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("supported", pa.bool_())])),
        ),
        ("weak", pa.bool_()),
        ("labelled_by", pa.string()),
    ]
)
"""Opinions of a model as labels, a row a response, as `calibrate --labels`, `evaluate --labels` and `tune` read them.
`sentence_labels` are of the flagged sentences of which it has an opinion. `label` is wrong if one of them is, correct if it
finds all that was flagged supported, else null. `weak` is true: no person has said it."""


@dataclass(frozen=True)
class Rejected:
    """Flags of a member, or of the ensemble, of which the reasoner has an opinion.

    Attributes:
        name: The member; or `verdict`.
        flags: Sentences that it flags, of those that were explained.
        rejected: Those of them that the reasoner finds supported.
    """

    name: str
    flags: int
    rejected: int


def rejected_flags(output: Folder, manifest: Manifest, strategy: str) -> list[Rejected]:
    """How many of each member's flags the reasoner rejects, among the explained sentences; empty if it can't disagree.

    A member flags a sentence whose value lies below what it finds suspicious of a whole response.
    """
    if strategy == Strategy.VANILLA or not manifest.last_fit:
        return []
    values, limits = member_values_of(manifest), limits_of(manifest)
    flags = dict.fromkeys([*values, "verdict"], 0)
    rejected = dict.fromkeys(flags, 0)
    for row, entries in _explained(output, strategy, ["members"]):
        numbers = {m["name"]: _numbers(ValueKind(values[m["name"]]), m) for m in row["members"] if m["name"] in values}
        for entry in entries:
            if entry["consistent"] is None:
                continue
            for name in flags:
                number = numbers[name][entry["sentence"]] if name in numbers else None
                if name == "verdict" or (number is not None and name in limits and number < limits[name]):
                    flags[name] += 1
                    rejected[name] += not entry["consistent"]
    return [Rejected(name, flags[name], rejected[name]) for name in flags]


def check_files(output: Folder, strategy: str, feedback: str | None, review: str | None) -> None:
    """Check what is to be written, before anything is asked.

    Raises:
        ConfigError: The strategy has no opinions.
        OutputError: A file would lie among the output's own data, or can't be written.
    """
    if feedback is not None and strategy == Strategy.VANILLA:
        raise ConfigError(errors.NO_OPINIONS)
    for dest in filter(None, [feedback, review]):
        refuse_inside(output, open_folder(dest), dest)
        check_writable(open_folder(dest), dest)


def write_feedback(output: Folder, manifest: Manifest, strategy: str, dest: str) -> int:
    """Write the reasoner's opinions as weak labels, see `FEEDBACK`.

    Returns:
        Responses written.

    Raises:
        OutputError: The file can't be written.
    """
    model = next((run.model for run in reversed(manifest.explained) if run.strategy == strategy), "")

    def labels() -> Iterator[dict[str, Any]]:
        for row, entries in _explained(output, strategy, ["sentences", "question", "context", "response"]):
            said = [
                {**{key: row["sentences"][e["sentence"]][key] for key in ("start", "end")}, "supported": not e["consistent"]}
                for e in entries
                if e["consistent"] is not None
            ]
            if said:
                yield {**row, "label": _label(said, len(entries)), "sentence_labels": said, "weak": True, "labelled_by": model}

    return write_parquet(open_folder(dest), chain(labels(), unchanged(output)), FEEDBACK)


def write_review(output: Folder, strategy: str, dest: str) -> int:
    """Write explanations for people to judge, see `jobs.evaluation.explanation_quality.REVIEW`.

    Returns:
        Explanations written.

    Raises:
        OutputError: The file can't be written.
    """

    def explanations() -> Iterator[dict[str, Any]]:
        for row, entries in _explained(output, strategy, ["sentences", "context"]):
            for entry in entries:
                if entry["status"] == AnswerStatus.OK:
                    text = row["sentences"][entry["sentence"]]["text"]
                    yield {**row, **entry, "strategy": strategy, "text": text, "inconsistent": None}

    return write_parquet(open_folder(dest), chain(explanations(), unchanged(output)), REVIEW)


def _label(said: list[dict[str, Any]], flagged: int) -> str | None:
    if any(not one["supported"] for one in said):
        return Label.WRONG.value
    return Label.CORRECT.value if len(said) == flagged else None


def _explained(output: Folder, strategy: str, columns: list[str]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Rows of `scored/` that are explained, with the explanations of what is flagged now."""
    found = explained_rows(output, strategy)
    for row in rows(open_scored(output).require_verdicts(), ["row_key", "row_id", *dict.fromkeys(["sentences", *columns])]):
        entries = [entry for entry in found.get(row["row_key"], []) if row["sentences"][entry["sentence"]]["flagged"]]
        if entries:
            yield row, entries


def _numbers(value: ValueKind, member: dict[str, Any]) -> list[float | None]:
    if value.is_from_logprobs:
        numbers: list[float | None] = convert_logprobs(value, member["log_p_yes"], member["log_p_no"]).tolist()
        return numbers
    return list(member["sentence_scores"])
