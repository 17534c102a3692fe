"""What explaining the flagged sentences will take, told before anything is flagged: tokens, and dollars if there is a price."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.config import NONE, Job
from ragassay.jobs.output.fingerprint import fingerprint
from ragassay.jobs.sections import DEFAULT_QUANTILE
from ragassay.jobs.verdict.bundled_calibration import bundled_calibration, is_fitted_for
from ragassay.pipeline.engines.text import Messages
from ragassay.pipeline.explain.config import Reasoner
from ragassay.pipeline.explain.prompt import chat_of
from ragassay.pipeline.explain.purse import about_tokens
from ragassay.pipeline.rows import good_rows

CHATS = 300
"""Sentences of the sample whose chats are made, at most: their mean needs no more."""

USUAL_ANSWER = 80
"""Tokens of a usual answer, a quote and a sentence or two: a rule of thumb, until `explain` has been run and printed them."""

SHARES = (0.05, 0.2, 0.5)
"""Shares of the sentences to price for a job whose threshold is a value: how many it flags shows only in the run."""

BATCH = 1_000
"""Flagged sentences of the line that depends on no share."""


@dataclass(frozen=True)
class ExplainCost:
    """What so many explanations take.

    Attributes:
        prompt_tokens: Tokens of the chats.
        answer_tokens: Tokens of usual answers.
        most_answer_tokens: Tokens of answers that are all as long as they may be.
        dollars: US dollars with usual answers; None without a price.
        most_dollars: US dollars with the longest answers; None without a price.
    """

    prompt_tokens: float
    answer_tokens: float
    most_answer_tokens: float
    dollars: float | None
    most_dollars: float | None


@dataclass(frozen=True)
class ExplainForecast:
    """What `explain` will take after the run.

    Attributes:
        reasoner: Who explains.
        sentences: Sentences of the log.
        quantile: Share of the responses that the threshold flags, where it is a quantile; else None.
        chats: Chats that were looked at.
        chat_tokens: Tokens of one, in the mean.
    """

    reasoner: Reasoner
    sentences: float
    quantile: float | None
    chats: int
    chat_tokens: float

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the sentences to price: the quantile's, as if it flagged as many of the sentences as of the responses."""
        return SHARES if self.quantile is None else (self.quantile,)

    @property
    def usual_answer(self) -> int:
        """Tokens of a usual answer."""
        return min(USUAL_ANSWER, self.reasoner.max_tokens)

    def cost(self, flagged: float) -> ExplainCost:
        """What so many flagged sentences take. One that comes again word for word counts again, though it is asked once."""
        prompt = flagged * self.chat_tokens
        usual, most = flagged * self.usual_answer, flagged * self.reasoner.max_tokens
        price = self.reasoner.price
        if price is None:
            return ExplainCost(prompt, usual, most, None, None)
        return ExplainCost(prompt, usual, most, price.of(prompt, usual), price.of(prompt, most))


def forecast_explain(job: Job, sentences: float, stretches: Sequence[pa.Table]) -> ExplainForecast | None:
    """Tell what explaining a log's flagged sentences will take.

    Args:
        job: The job.
        sentences: Sentences of the log.
        stretches: The sample, as the stage `split` leaves it.

    Returns:
        The forecast; None where the job explains nothing, or no row of the sample can be scored.

    Raises:
        ModelError: A model of the ensemble can't be found.
    """
    if job.explain is None:
        return None
    chats = _chats(job.explain, stretches)
    if not chats:
        return None
    return ExplainForecast(job.explain, sentences, _quantile(job), len(chats), about_tokens(chats) / len(chats))


def explain_lines(told: ExplainForecast) -> list[tuple[str, str]]:
    """Lines to print, each a name and a text."""
    lines = []
    for share in told.shares:
        flagged = share * told.sentences
        name = "explain" if told.quantile is not None else f"explain at {percent(share)}"
        why = "of the sentences, as of the responses" if told.quantile is not None else "of the sentences, if it is that many"
        lines.append((name, f"about {rough(flagged)} flagged sentences ({percent(share)} {why}), {_cost(told.cost(flagged))}"))
    lines.append((f"explain {BATCH:,}", f"flagged sentences, however many there are: {_cost(told.cost(BATCH))}"))
    counted = "" if told.reasoner.engine.SERVED else ", not counted by its own tokenizer"
    lines.append(
        (
            "rule of thumb",
            f"of explain: 4 bytes a token{counted}, {told.chat_tokens:,.0f} a chat over {told.chats:,} sentences looked at; "
            f"answers of {told.usual_answer:,} tokens, at most {told.reasoner.max_tokens:,}; `ragassay explain OUTPUT "
            "--sentences 100` measures both",
        )
    )
    return lines


def _quantile(job: Job) -> float | None:
    """Share of the responses that will be flagged; None where a value decides: the job's, or a calibration's."""
    if job.threshold.is_given:
        return job.threshold.quantile
    if job.calibration_file is not None:
        return None
    if job.calibration != NONE and is_fitted_for(bundled_calibration(), job, fingerprint(job)):
        return None
    return DEFAULT_QUANTILE


def _chats(reasoner: Reasoner, stretches: Sequence[pa.Table]) -> list[Messages]:
    """Chats about sentences that lie evenly over the sample; rows that can't be scored have none."""
    # Any sentence may turn out flagged, so the mean over all stands for them.
    counts = [pc.fill_null(pc.list_value_length(table["sentences"]), 0).to_numpy() for table in stretches]
    total = sum(int(count.sum()) for count in counts)
    picks = (np.arange(min(CHATS, total)) + 0.5) * total / max(1, min(CHATS, total))
    wanted = np.unique(picks.astype(np.int64))
    chats: list[Messages] = []
    begin = 0
    for table, count in zip(stretches, counts, strict=True):
        ends = np.cumsum(count)
        here = wanted[(wanted >= begin) & (wanted < begin + count.sum())] - begin
        begin += int(count.sum())
        places = np.searchsorted(ends, here, side="right")
        rows = good_rows(table.take(pa.array(places, pa.int64())))[1] if len(places) else []
        numbers = here - (ends[places] - count[places])
        for row, number in zip(rows, numbers.tolist(), strict=True):
            sentence = row.sentences[number]
            chats.append(chat_of(reasoner.strategy, reasoner.categories, row.context, row.question, row.response, sentence))
    return chats


def _cost(cost: ExplainCost) -> str:
    text = (
        f"{rough(cost.prompt_tokens)} + {rough(cost.answer_tokens)} tokens "
        f"(at most {rough(cost.most_answer_tokens)} of answers)"
    )
    if cost.dollars is None or cost.most_dollars is None:
        return text
    return f"{text}, about {money(cost.dollars)}, at most {money(cost.most_dollars)}"


def rough(number: float) -> str:
    """Three figures: an estimate has no more."""
    return f"{float(f'{number:.3g}'):,.0f}"


def money(dollars: float) -> str:
    """US dollars as a text."""
    return f"{dollars:,.2f} USD" if dollars >= 0.1 else f"{dollars:.4f} USD"


def percent(share: float) -> str:
    """A share as a text."""
    return f"{100 * share:g}%"
