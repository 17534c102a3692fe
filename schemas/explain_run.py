"""The record of an `explain` run in the manifest."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD_CONFIG


@dataclass
class ExplainRun:
    """One run of `explain`.

    Attributes:
        run_id: Identifier, also a column of `explanations/`.
        started: UTC, ISO 8601.
        strategy: How the model may disagree: vanilla, fallback or categorized.
        model: Reasoner that explained.
        finished: UTC, ISO 8601; None until the run ends.
        flagged: Flagged `responses` and `sentences` of the whole output.
        chosen: Flagged `responses` and `sentences` selected for explanation, in this run or an earlier run.
        statuses: Selected sentences by status (`schemas.explanation_columns.AnswerStatus`).
        agreed: Answers by agreement: consistent, inconsistent (the model finds no hallucination), or neither.
        categories: Answers by category.
        with_evidence: Answers with evidence that occurs in the context.
        questions: Questions that this run, and the interrupted run that it resumed, got answered. Equal questions are sent
            once.
        prompt_tokens: Tokens of these questions.
        completion_tokens: Tokens of the answers.
        dollars: Cost at the job file's price; None without a price.
        seconds: Wall time.
    """

    __pydantic_config__ = RECORD_CONFIG

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
    questions: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = None
    seconds: float = 0.0
