"""What members of uncertainty say of rows: each response read behind its question and context, in every window of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan

import numpy as np

from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.cost import Cost
from ragassay.pipeline.uncertainty.place import Placed, SentencesOf, place, place_in_windows
from ragassay.pipeline.uncertainty.prompt import uses_question
from ragassay.pipeline.uncertainty.reader import Prompt, Read, Reader
from ragassay.pipeline.uncertainty.samples import eigenscore, lexical_similarity
from ragassay.pipeline.uncertainty.scores import Score, score_text


@dataclass(frozen=True)
class Spoken:
    """A row to be read.

    Attributes:
        row: Its texts.
        spans: [start, end) of each sentence in the response.
        samples: Further answers to the question; None where the logs have no such column.
    """

    row: Row
    spans: Sequence[Span]
    samples: Sequence[str] | None = None


@dataclass
class RowRead(Cost):
    """What was read of one row.

    Attributes:
        sentences: Member -> its value of each sentence; NaN where it has none.
        response: Member -> its value of the whole response; NaN where it has none.
        windows: Windows of the context.
        note: What could not be read.
    """

    sentences: dict[str, list[float]] = field(default_factory=dict)
    response: dict[str, float] = field(default_factory=dict)
    windows: int = 0
    note: str | None = None


def read_rows(
    rows: Sequence[Spoken], members: Sequence[Uncertainty], encoder: PromptEncoder, reader: Reader, sentences_of: SentencesOf
) -> list[RowRead]:
    """Read rows.

    A context that is longer than the window is cut into windows; a text's value is its best window's.

    Args:
        rows: Rows with at least one sentence each.
        members: Which scores; all of one reading (`Uncertainty.reading`).
        encoder: Makes prompts.
        reader: The model.
        sentences_of: Splits a passage that is longer than the window.

    Returns:
        An entry a row.
    """
    own = members[0].text == "own"
    windows = [_windows(spoken.row, members[0], encoder, reader, sentences_of, own=own) for spoken in rows]
    results = [_nothing(spoken, mine, members, reader) for spoken, mine in zip(rows, windows, strict=True)]
    if any(not member.score.of_samples for member in members):
        flat = [window for mine in windows for window in mine]
        prompts = [window.prompt for window in flat]
        if own:
            answers = reader.write([head for head, _ in prompts], members[0].max_tokens)
            prompts = [(head, answer) for (head, _), (answer,) in zip(prompts, answers, strict=True)]
        reads = iter(zip(flat, reader.read(prompts), strict=True))
        for spoken, mine, result in zip(rows, windows, results, strict=True):
            _score(spoken, [next(reads) for _ in mine], members, result, own=own)
    if any(member.score.of_samples for member in members):
        _compare(rows, windows, members, encoder, reader, results)
    return results


def _nothing(spoken: Spoken, windows: Sequence[Placed], members: Sequence[Uncertainty], reader: Reader) -> RowRead:
    """A row of which nothing is known yet."""
    nothing = float("nan")
    result = RowRead(windows=len(windows))
    for member in members:
        result.sentences[member.name] = [nothing] * len(spoken.spans)
        result.response[member.name] = nothing
    if not windows:
        room = f"question and response leave no room for context in its window of {reader.max_model_len} tokens"
        none = "the question is null or empty, and its prompt uses it"
        result.note = f"{members[0].who}: {none if _lacks_question(spoken.row, members[0]) else room}"
    return result


def _lacks_question(row: Row, member: Uncertainty) -> bool:
    return not row.question.strip() and uses_question(member)


def _windows(
    row: Row, member: Uncertainty, encoder: PromptEncoder, reader: Reader, sentences_of: SentencesOf, *, own: bool
) -> list[Placed]:
    """A row's response, or the place for the model's own, behind every window of its context; none where there is no room."""
    if _lacks_question(row, member):
        return []
    limit = reader.max_model_len - (member.max_tokens if own else 0)
    return place_in_windows(row, "" if own else row.response, encoder, limit, sentences_of)


def _score(
    spoken: Spoken, reads: Sequence[tuple[Placed, Read]], members: Sequence[Uncertainty], result: RowRead, *, own: bool
) -> None:
    """Put the members' values of a row's sentences and of its whole response into its result."""
    result.spent([read for _, read in reads])
    for member in members:
        if member.score.of_samples or not reads:
            continue
        whole = [score_text(member.score, read.signs, member.window, member.attention) for _, read in reads]
        result.response[member.name] = _best(whole)
        if own:
            continue
        for i, (start, end) in enumerate(spoken.spans):
            of_windows = [
                score_text(
                    member.score,
                    read.signs.at(np.flatnonzero((window.ends > start) & (window.ends <= end))),
                    member.window,
                    member.attention,
                )
                for window, read in reads
            ]
            result.sentences[member.name][i] = _best(of_windows)


def _best(values: Sequence[float]) -> float:
    return max((value for value in values if not isnan(value)), default=float("nan"))


def _compare(
    rows: Sequence[Spoken],
    windows: Sequence[Sequence[Placed]],
    members: Sequence[Uncertainty],
    encoder: PromptEncoder,
    reader: Reader,
    results: Sequence[RowRead],
) -> None:
    """Put in how alike the logged answers of each row are; a context of several windows tells nothing of their states."""
    alike = {member.name for member in members if member.score is Score.LEXICAL_SIMILARITY}
    states = {member.name for member in members if member.score is Score.EIGENSCORE}
    answers = [[spoken.row.response, *(spoken.samples or ())] for spoken in rows]
    for texts, result in zip(answers, results, strict=True):
        result.response |= dict.fromkeys(alike, lexical_similarity(texts))
    if not states:
        return
    readable = [i for i, mine in enumerate(windows) if len(mine) == 1 and len(answers[i]) > 1]
    prompts = [list(_answers(rows[i].row, answers[i], encoder, reader.max_model_len)) for i in readable]
    reads = iter(reader.read([prompt for mine in prompts for prompt in mine], states=True))
    for i, mine in zip(readable, prompts, strict=True):
        read = [next(reads) for _ in mine]
        results[i].spent(read)
        found = np.array([one.signs.state for one in read]).reshape(len(read), -1)
        results[i].response |= dict.fromkeys(states, eigenscore(found))


def _answers(row: Row, texts: Sequence[str], encoder: PromptEncoder, limit: int) -> Iterator[Prompt]:
    """Prompts of the answers that have a token, and fit the window."""
    for text in texts:
        head, ids = place(row.question, row.context, text, encoder).prompt
        if ids and len(head) + len(ids) <= limit:
            yield head, ids
