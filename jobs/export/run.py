"""`export`: choose the format, check what is asked for, write, and account for every row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain

from ragassay.jobs.evaluation import errors
from ragassay.jobs.export.examples import EXAMPLES, examples, messages
from ragassay.jobs.export.flagged import REVIEW, flagged
from ragassay.jobs.export.pairs import pairs
from ragassay.jobs.export.reviewers import argilla, label_studio
from ragassay.jobs.export.rows import Options, Read, Row, Tally, rows
from ragassay.jobs.export.write import write_json, write_jsonl, write_parquet
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.output.snapshot import unchanged
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.storage.writable import new_file
from ragassay.pipeline.errors import ConfigError, OutputError


class Format(StrEnum):
    """What an export is for."""

    MESSAGES = "messages"
    PARQUET = "parquet"
    DPO = "dpo"
    FLAGGED = "flagged"
    LABEL_STUDIO = "label-studio"
    ARGILLA = "argilla"


FOR_REVIEWERS = {Format.FLAGGED, Format.LABEL_STUDIO, Format.ARGILLA}


@dataclass(frozen=True)
class Exported:
    """What was written, and of which rows: `rows` = `used` + the sum of `left_out`.

    Attributes:
        written: Examples, pairs or sentences written.
        passed: Rows whose verdict is supported, written or not.
        left_out: Reason -> rows of which nothing was written.
        used: Rows of which something was written.
    """

    written: int
    passed: int
    left_out: dict[str, int]
    used: int

    @property
    def rows(self) -> int:
        """Rows of `scored/`."""
        return self.used + sum(self.left_out.values())


def export(
    output: Folder,
    dest: str,
    fmt: Format,
    *,
    system: str | None = None,
    context_in_prompt: bool = True,
    only_clean: bool = False,
    near_duplicates: float | None = None,
) -> Exported:
    """Write the rows of `scored/` that a format asks for into one file, whole or not at all.

    `messages` and `parquet` hold the supported responses. `dpo` holds a pair for each hallucinated response: it is rejected,
    and chosen is the best-scored supported response to the same question over the same context, which the scores trust
    most. `flagged` holds every flagged sentence, for people to fill in `supported`; `label-studio` and `argilla` the responses
    with a flagged sentence, all their sentences as spans with our opinion.

    Args:
        output: The output folder, finalised.
        dest: File to write, a path or an object-store URI; JSON lines are compressed if it ends in `.gz`.
        fmt: What to write.
        system: System message to put first.
        context_in_prompt: Put the passages before the question.
        only_clean: Leave out supported responses that have a flagged sentence.
        near_duplicates: Jaccard similarity of word 3-shingles, above 0 and up to 1, from which two questions count as the
            same; of those the highest-scored response stays. Up to 1,024 words it is exact, from there an estimate.

    Raises:
        ConfigError: An option is out of range, or has no meaning for this format.
        OutputError: There are no verdicts, nothing to write, or the file exists or can't be written.
    """
    options = Options(system, context_in_prompt, only_clean, near_duplicates)
    _check_options(fmt, options)
    target = new_file(dest, output)
    read, tally = partial(rows, open_scored(output).require_verdicts()), Tally()
    made = _MAKERS[fmt](read, options, tally)
    first = next(made, None)
    if first is None:
        raise _nothing(output, fmt, tally)
    written = _WRITERS[fmt](target, chain([first], made, unchanged(output)))
    return Exported(written, tally.passed, dict(tally.left_out), tally.used)


def _check_options(fmt: Format, options: Options) -> None:
    similarity = options.near_duplicates
    if similarity is not None and not 0 < similarity <= 1:
        raise ConfigError(errors.SIMILARITY_OUT_OF_RANGE, similarity=similarity)
    if similarity is not None and fmt not in (Format.MESSAGES, Format.PARQUET):
        raise ConfigError(errors.NO_NEAR_DUPLICATES, format=fmt)
    if fmt in FOR_REVIEWERS and (options.system is not None or not options.context_in_prompt or options.only_clean):
        raise ConfigError(errors.OPTIONS_OF_FLAGGED)


def _nothing(output: Folder, fmt: Format, tally: Tally) -> OutputError:
    size = sum(tally.left_out.values())
    if not size:
        return OutputError(errors.NO_ROWS, output=output.uri)
    why = ", ".join(f"{count:,} {reason}" for reason, count in tally.left_out.most_common())
    what = {
        Format.DPO: "no pair: that is a supported and a hallucinated response, of different text, to the same question over "
        "the same context",
        **dict.fromkeys(FOR_REVIEWERS, "no sentence is flagged"),
    }.get(fmt, "no row passes")
    return OutputError(errors.NOTHING_PASSES, output=output.uri, format=fmt, what=what, rows=size, why=why)


_MAKERS: dict[Format, Callable[[Read, Options, Tally], Iterator[Row]]] = {
    Format.MESSAGES: messages,
    Format.PARQUET: examples,
    Format.DPO: pairs,
    Format.FLAGGED: flagged,
    Format.LABEL_STUDIO: label_studio,
    Format.ARGILLA: argilla,
}
_WRITERS: dict[Format, Callable[[Folder, Iterator[Row]], int]] = {
    Format.MESSAGES: write_jsonl,
    Format.PARQUET: partial(write_parquet, schema=EXAMPLES),
    Format.DPO: write_jsonl,
    Format.FLAGGED: partial(write_parquet, schema=REVIEW),
    Format.LABEL_STUDIO: write_json,
    Format.ARGILLA: write_json,
}
