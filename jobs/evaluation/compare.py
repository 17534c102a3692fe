"""`compare`: what each member alone would flag among the last responses, and where they agree."""

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.evaluation.labelled import member_values_of
from ragassay.jobs.evaluation.labels import Label, LabelSource, to_labels
from ragassay.jobs.output.scored_dataset import Position, ScoredDataset, open_scored
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.members import ValueKind
from ragassay.schemas.columns import HALLUCINATED
from ragassay.schemas.manifest import Manifest

LAST = 50
READ = ("row_id", "question", "verdict", "score", "members", "evidence")


@dataclass(frozen=True)
class Suspicion:
    """One response.

    Attributes:
        row_id: The user's id.
        question: Its question.
        verdict: Supported or hallucinated, by the ensemble, or the judge that decided it.
        label: What a person says of it; null without labels.
        flags: Member -> whether it finds the response suspicious; null where it has nothing to go by.
        missing: What the response names and its context does not, as `kind: text`.
    """

    row_id: str
    question: str
    verdict: str | None
    label: Label | None
    flags: dict[str, bool | None]
    missing: list[str]


@dataclass(frozen=True)
class MemberFlags:
    """What one member flags.

    Attributes:
        name: The member; "verdict" is the ensemble's, or the judge's where one decided.
        below: Value below which it flags; null for the ensemble.
        flagged: Responses flagged.
        unknown: Responses of which it says nothing.
        right: Of the flagged ones with a label, those that are not correct; null without labels.
        labelled: Flagged ones with a label.
        caught: Share of the labelled responses that are not correct which it flags; null without such.
    """

    name: str
    below: float | None
    flagged: int
    unknown: int
    right: int | None
    labelled: int
    caught: float | None


@dataclass(frozen=True)
class Compared:
    """The last responses, by every member.

    Attributes:
        rows: The responses, the last first.
        members: What each member flags.
        agreement: Pair of members -> share of the responses, of which both say something, that they judge alike.
    """

    rows: list[Suspicion]
    members: list[MemberFlags]
    agreement: dict[tuple[str, str], float]


def compare(
    output: Folder,
    manifest: Manifest,
    *,
    last: int = LAST,
    order_by: str | None = None,
    source: LabelSource | None = None,
    below: Mapping[str, float] | None = None,
) -> Compared:
    """Compare what members flag among the last responses.

    A detector flags a response whose value as a whole is low, an SLM one with a sentence of which it says No.

    Args:
        output: A finalised output folder.
        manifest: Its manifest.
        last: How many responses.
        order_by: Column whose highest values are the last, such as a time; None takes the last rows of the last partitions.
        source: Labels in a column of the logs, if there are any.
        below: Member -> value below which it flags, in place of the defaults.

    Raises:
        InputError: There is no such column.
        OutputError: There are no verdicts.
    """
    values = member_values_of(manifest)
    found = _last_rows(output, last, order_by, source)
    limits = _means(found, values) | limits_of(manifest) | dict(below or {})
    rows = [_suspicion(row, values, limits) for row in found]
    names = [*values, "verdict"]
    pairs = {
        (a, b): share
        for a, b in itertools.combinations(names, 2)
        if (share := _agreement([(row.flags[a], row.flags[b]) for row in rows])) is not None
    }
    return Compared(rows, [_member(name, limits.get(name), rows) for name in names], pairs)


def limits_of(manifest: Manifest) -> dict[str, float]:
    """Value of a response below which each member alone finds it suspicious; those that have no such limit are left out.

    As the run that gave the last verdicts has them."""
    members = manifest.last_fit.members.items() if manifest.last_fit else ()
    return {name: member.suspicious_below for name, member in members if member.suspicious_below is not None}


def _means(rows: Sequence[Mapping[str, Any]], values: Mapping[str, str]) -> dict[str, float]:
    """Each member's mean value of these responses: the limit of one that has no other, as in "Invoke Interfaces Only When
    Needed"."""
    found = {}
    for name, value in values.items():
        said = (ValueKind(value).response_value(m) for row in rows for m in row["members"] or [] if m["name"] == name)
        if numbers := [number for number in said if number is not None]:
            found[name] = sum(numbers) / len(numbers)
    return found


def _last_rows(output: Folder, last: int, order_by: str | None, source: LabelSource | None) -> list[dict[str, Any]]:
    scored = open_scored(output).require_verdicts()
    extra = [*([source.column] if source else []), *([order_by] if order_by else [])]
    scored.require_columns(extra)
    positions = list(itertools.islice(_backwards(scored), last)) if order_by is None else _highest(scored, order_by, last)
    found = dict(scored.rows_at(positions, [*READ, *extra]))
    for row in found.values():
        row["label"] = to_labels(pa.array([row[source.column]]), source)[0] if source else None
    return [found[number] for number in range(len(positions))]


def _backwards(scored: ScoredDataset) -> Iterator[Position]:
    """The last row first."""
    return (rows.position(i) for rows in scored.batches(["row_id"], backwards=True) for i in reversed(range(len(rows))))


def _highest(scored: ScoredDataset, column: str, count: int) -> list[Position]:
    """The rows with the highest values of a column; of equal ones the last."""
    found = (
        (value is not None, value if isinstance(value, int | float | str) else str(value), rows.position(i))
        for rows in scored.batches([column])
        for i, value in enumerate(rows.table[column].to_pylist())
    )
    return [position for *_, position in heapq.nlargest(count, found)]


def _suspicion(row: dict[str, Any], values: Mapping[str, str], limits: Mapping[str, float]) -> Suspicion:
    members = {member["name"]: member for member in row["members"] or []}
    flags: dict[str, bool | None] = {}
    for name, value in values.items():
        number = ValueKind(value).response_value(members[name]) if name in members else None
        flags[name] = None if number is None else number < limits[name]  # whoever has a number has a mean
    flags["verdict"] = None if row["verdict"] is None else row["verdict"] == HALLUCINATED
    missing = [f"{m['kind']}: {m['text'] or '(no text)'}" for at in row["evidence"] or [] for m in at["missing"]]
    return Suspicion(row["row_id"], row["question"] or "", row["verdict"], row["label"], flags, list(dict.fromkeys(missing)))


def _member(name: str, below: float | None, rows: list[Suspicion]) -> MemberFlags:
    flags = [(row.flags[name], row.label) for row in rows]
    flagged = [label for flag, label in flags if flag]
    labelled = [label for label in flagged if label is not None]
    bad = [flag for flag, label in flags if label is not None and label is not Label.CORRECT]
    return MemberFlags(
        name=name,
        below=below,
        flagged=len(flagged),
        unknown=sum(flag is None for flag, _ in flags),
        right=sum(label is not Label.CORRECT for label in labelled) if any(row.label for row in rows) else None,
        labelled=len(labelled),
        caught=sum(bool(flag) for flag in bad) / len(bad) if bad else None,
    )


def _agreement(pairs: list[tuple[bool | None, bool | None]]) -> float | None:
    both = [a == b for a, b in pairs if a is not None and b is not None]
    return sum(both) / len(both) if both else None
