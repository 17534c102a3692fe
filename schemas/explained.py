"""What a run of `explain` did, as the manifest has it."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD


@dataclass
class Explained:
    """One invocation of `explain`.

    Attributes:
        run_id: Its id, also a column of `explanations/`.
        started: UTC, ISO 8601.
        strategy: How the model could disagree: vanilla, fallback or categorized.
        model: Who explained.
        finished: UTC, ISO 8601.
        flagged: `responses` and `sentences` that are flagged in the whole output.
        chosen: Those of them that were to be explained, in this run or before.
        statuses: Of the chosen sentences, by outcome (`schemas.explanations.Outcome`).
        agreed: Of those with an answer: consistent, inconsistent (the model says it is no hallucination), or can't tell.
        categories: Of those with an answer, by category.
        with_evidence: Of those with an answer, whose evidence stands in the context.
        asked: Questions that this run, and what broke off before it, has had answered. Equal ones are asked once.
        prompt_tokens: Their tokens.
        completion_tokens: Tokens of the answers.
        dollars: What they cost, by the job file's price; None without one.
        seconds: Wall time.
    """

    __pydantic_config__ = RECORD

    run_id: str
    started: str
    strategy: str
    model: str
    finished: str | None = None
    flagged: dict[str, int] = field(default_factory=dict)
    chosen: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    agreed: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    with_evidence: int = 0
    asked: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = None
    seconds: float = 0.0
