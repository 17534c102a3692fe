"""What the cascade will take, told before anything is scored: responses, sentences and tokens of the judge, time or dollars."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.forecast.explain import money, percent, rough
from ragassay.jobs.forecast.tokens import count_stretches
from ragassay.jobs.forecast.trial import Trial, try_engines
from ragassay.pipeline.engines.text import Messages
from ragassay.pipeline.escalate.config import Escalate
from ragassay.pipeline.explain.purse import about_tokens
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.served import prompt_of

DYNAMIC_SHARE = 0.5
"""Share that a dynamic threshold takes where values lie alike above and below their mean; it shows only in the run."""

PROMPTS = 300
"""Prompts of the sample of which a served judge's tokens are taken, at most."""


@dataclass(frozen=True)
class EscalateForecast:
    """What the cascade will take, if the responses that it asks about are as long as the others.

    Attributes:
        escalate: The cascade.
        responses: Responses of the log that can be scored.
        sentences: Their sentences.
        prompts: Prompts that all of them would be.
        tokens: Tokens of these; of a local judge those that it has to compute.
        trial: How a local judge's engine did here; None where it was not tried.
    """

    escalate: Escalate
    responses: float
    sentences: float
    prompts: float
    tokens: float
    trial: Trial | None

    @property
    def share(self) -> float:
        """Share of the responses that it asks about."""
        return DYNAMIC_SHARE if self.escalate.share is None else self.escalate.share

    @property
    def seconds(self) -> float | None:
        """Seconds here, with the engine's start; None where it was not tried."""
        if self.trial is None or not self.trial.tokens_per_second:
            return None
        replicas = self.escalate.to.replicas.max
        return self.trial.start_up + self.share * self.tokens / self.trial.tokens_per_second / replicas

    @property
    def dollars(self) -> float | None:
        """US dollars of a served judge; None without a price. An answer is one token."""
        price = self.escalate.price
        return None if price is None else price.of(self.share * self.tokens, self.share * self.prompts)


def forecast_escalate(job: Job, rows: int, stretches: Sequence[pa.Table], seconds: float) -> EscalateForecast | None:
    """Tell what the cascade will take.

    Args:
        job: The job.
        rows: Rows of the log.
        stretches: The sample, as the stage `split` leaves it.
        seconds: How long to try a local judge's engine; 0 leaves times out.

    Returns:
        The forecast; None where the job does not escalate, or no row of the sample can be scored.

    Raises:
        ModelError: The judge can't be found or loaded.
    """
    if job.escalate is None:
        return None
    judge = job.escalate.to
    alone = job.model_copy(update={"slms": (judge,), "uncertainty": (), "rerank": None, "detectors": (), "escalate": None})
    counted = count_stretches(alone, stretches)
    sampled = sum(part.rows for part in counted)
    good = [good_rows(table)[1] for table in stretches]
    if not any(good):
        return None
    factor = rows / sampled
    asked = [part.asked[judge.name] for part in counted]
    prompts = sum(one.prompts for one in asked)
    if judge.engine.SERVED:
        texts = [prompt_of(judge, row, text) for part in good for row in part for text in judge.texts(row)]
        chats: list[Messages] = [[{"role": "user", "content": text}] for text in texts[:: -(-len(texts) // PROMPTS)]]
        tokens = prompts * about_tokens(chats) / len(chats)
    else:
        tokens = float(sum(one.computed for one in asked))
    trial = None
    if seconds and not judge.engine.SERVED:
        trial = try_engines(alone, stretches, seconds)[1][judge.name]
    return EscalateForecast(
        escalate=job.escalate,
        responses=factor * sum(map(len, good)),
        sentences=factor * sum(len(row.sentences) for part in good for row in part),
        prompts=factor * prompts,
        tokens=factor * tokens,
        trial=trial,
    )


def escalate_lines(told: EscalateForecast, seconds: str | None) -> list[tuple[str, str]]:
    """Lines to print, each a name and a text.

    Args:
        told: The forecast.
        seconds: Its seconds, as a text.
    """
    judge, share = told.escalate.to, told.share
    if told.escalate.share is None:
        why = f"{percent(share)}, if the values of {told.escalate.when} lie alike above and below their mean"
    else:
        why = f"{percent(share)} of those that can be scored"
    responses, sentences = rough(share * told.responses), rough(share * told.sentences)
    lines = [("escalate", f"about {responses} responses ({why}) with {sentences} sentences, to {judge.name}")]
    prompts = rough(share * told.prompts)
    if judge.engine.SERVED:
        cost = f", about {money(told.dollars)}" if told.dollars is not None else ""
        lines.append(
            (
                f"tokens {judge.name}",
                f"{rough(share * told.tokens)} + {prompts} tokens of {prompts} requests, by 4 bytes a token{cost}",
            )
        )
    else:
        time = f"; {seconds} here, start-up included" if seconds else ""
        lines.append((f"tokens {judge.name}", f"{rough(share * told.tokens)} to compute of {prompts} prompts{time}"))
    return lines
