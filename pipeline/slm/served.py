"""Score sentences with an SLM behind a server: by text, one request a sentence."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragassay.pipeline.engines.server import Server
from ragassay.pipeline.engines.server_labels import Answer, Asker, ask
from ragassay.pipeline.members import Value, member_values
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.score import LOWEST, RowScore
from ragassay.pipeline.slm.template import render
from ragassay.schemas.columns import Status


def asker_of(slm: Slm) -> Asker:
    """Who asks the server of an SLM."""
    assert isinstance(slm.engine, Server)
    return Asker(f"SLM {slm.name!r}", slm.model, slm.engine, slm.supported, slm.unsupported, is_member=True)


def ask_rows(rows: Sequence[Row], slm: Slm) -> Iterator[RowScore]:
    """Ask about all sentences of rows; a prompt that several have is sent once.

    Where only yes or only no came back, the other has the most that what is not listed can have. A row of which a sentence has
    no answer has the status no_answer, and says why; where the server was in trouble, the status error, which is counted.

    Args:
        rows: Rows with at least one sentence each.
        slm: The SLM.

    Yields:
        One result a row, in order.

    Raises:
        ModelError: The server can't be used.
    """
    prompts = [[prompt_of(slm, row, text) for text in slm.texts(row)] for row in rows]
    owner: dict[str, int] = {}
    for i, mine in enumerate(prompts):
        for prompt in mine:
            owner.setdefault(prompt, i)
    started = time.perf_counter()
    answers = dict(zip(owner, ask(asker_of(slm), list(owner)), strict=True))
    seconds = time.perf_counter() - started
    for i, mine in enumerate(prompts):
        sent = [answers[prompt] for prompt in dict.fromkeys(mine) if owner[prompt] == i]
        yield _score(slm, [answers[prompt] for prompt in mine], sent, seconds / max(1, len(owner)))


def prompt_of(slm: Slm, row: Row, text: str) -> str:
    """What the server is asked about a sentence, or another text, of a row."""
    return render(f"SLM {slm.name!r}", slm.prompt, row.context, {"question": row.question, "sentence": text, "padding": ""})


def _score(slm: Slm, answers: Sequence[Answer], sent: Sequence[Answer], seconds: float) -> RowScore:
    cost = RowScore(
        prompts=len(sent), tokens_computed=sum(answer.tokens for answer in sent), engine_seconds=seconds * len(sent), windows=1
    )
    bad = sorted((answer for answer in answers if answer.error), key=lambda answer: not answer.trouble)
    if bad:
        return replace(cost, status=Status.ERROR if bad[0].trouble else Status.NO_ANSWER, error=bad[0].error)
    yes, no = (list(side) for side in zip(*map(_bounded, answers), strict=True))
    whole = None
    if slm.whole_response:
        whole = float(member_values(Value(slm.value), yes.pop(), no.pop()))
    return replace(cost, log_p_yes=yes, log_p_no=no, response_score=whole)


def _bounded(answer: Answer) -> tuple[float, float]:
    """log P(yes) and log P(no) of an answer without an error, neither below what is not listed can have."""
    assert answer.log_p_yes is not None and answer.log_p_no is not None
    lowest = max(answer.unlisted, LOWEST)
    return max(answer.log_p_yes, lowest), max(answer.log_p_no, lowest)
