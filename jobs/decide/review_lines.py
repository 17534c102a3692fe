"""Reviewers' files: JSON Lines, a line a thing said of a sentence or a response; or what Label Studio exports."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ragassay.jobs.decide import errors
from ragassay.jobs.decide.label_studio import EXPORT_SUFFIX, lines_of_export
from ragassay.jobs.quoted import MOST_OF_ID, quoted
from ragassay.jobs.storage import open_file
from ragassay.pipeline.errors import InputError
from ragassay.schemas.review import ReviewLine, Said

SUFFIX = ".jsonl"

SUFFIXES = (SUFFIX, EXPORT_SUFFIX)
"""By its name a file of labels is one of these; else it is Parquet."""

Item = tuple[str | None, str, int | None, int | None]
"""What a line speaks of: partition, row id, and the characters [start, end) of a sentence; both None for the response."""

NEVER = datetime.min.replace(tzinfo=UTC)


def item_of(line: ReviewLine) -> Item:
    """What a line speaks of."""
    return line.partition, line.row_id, line.start, line.end


def item_name(item: Item) -> str:
    """What was spoken of, as a message names it."""
    partition, row_id, start, end = item
    row = f"row {quoted(row_id, MOST_OF_ID)}" + (f" of partition {partition}" if partition else "")
    return row if start is None else f"the sentence {start} to {end} of {row}"


def read_lines(uri: str) -> list[ReviewLine]:
    """Every line of a reviewers' file, in its order.

    Raises:
        InputError: The file can't be read, or a line of it.
    """
    where, name = open_file(uri)
    try:
        text = where.read(name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(errors.NO_JSON_LINES, file=uri, reason=error) from error
    if text is None:
        raise InputError(errors.NO_FILE, file=uri)
    if name.lower().endswith(EXPORT_SUFFIX):
        try:
            return lines_of_export(text.removeprefix("\ufeff"))
        except ValueError as error:
            raise InputError(errors.UNREADABLE, file=uri, reason=error) from error
    found = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):  # a text may hold other line breaks
        if line.strip():
            try:
                found.append(ReviewLine.from_json(line))
            except ValueError as error:
                raise InputError(errors.WRONG_LINE, file=uri, line=number, reason=error) from error
    return found


def last_words(lines: Iterable[ReviewLine]) -> dict[str | None, dict[Item, ReviewLine]]:
    """Reviewer -> what they say last of each thing: the latest by `at`, of the same time the last line."""
    found: dict[str | None, dict[Item, ReviewLine]] = {}
    for line in lines:
        mine = found.setdefault(line.reviewer, {})
        before = mine.get(item_of(line))
        if before is None or (line.at or NEVER) >= (before.at or NEVER):
            mine[item_of(line)] = line
    return found


def settled(uri: str, lines: Sequence[ReviewLine]) -> dict[Item, ReviewLine]:
    """The one line that holds of each thing; one that knows goes before one that is unsure.

    Raises:
        InputError: Two reviewers differ.
    """
    found: dict[Item, ReviewLine] = {}
    differ: list[tuple[ReviewLine, ReviewLine]] = []
    for mine in last_words(lines).values():
        for item, line in mine.items():
            other = found.get(item)
            if other is None or other.label is Said.UNSURE:
                found[item] = line
            elif line.label not in (other.label, Said.UNSURE):
                differ.append((other, line))
    if differ:
        one, other = differ[0]
        more = f" (and differ on {len(differ) - 1} more)" if len(differ) > 1 else ""
        raise InputError(
            errors.REVIEWERS_DISAGREE,
            file=uri,
            reviewer=_who(one),
            label=one.label,
            other=_who(other),
            other_label=other.label,
            item=item_name(item_of(one)),
            more=more,
        )
    return found


def _who(line: ReviewLine) -> str:
    return line.reviewer or "somebody"
