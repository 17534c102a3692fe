"""The section `evaluation` of a job file: how labels are read, and what verdicts are compared with."""

from typing import Annotated, Literal

from pydantic import Field

from ragassay.jobs.config.section import Section
from ragassay.pipeline.slm.reference_judge import ReferenceJudge


class EvaluationConfig(Section):
    """How labels are read, and what verdicts are compared with.

    Attributes:
        true_means: What true in the label column means, supported or hallucinated; null derives it from the column's name.
        ignore: Labels that count as no label.
        sentence_labels: Column of labeled sentences (start, end, supported) or unsupported spans (start, end); null takes
            sentence_labels or spans if such a column exists.
        group: Column of the item that a row belongs to; null takes item if it exists, otherwise the context.
        resamples: Bootstrap resamples per confidence interval; 0 computes none.
        reference: Served model that `evaluate` compares with, behind an OpenAI-compatible endpoint; it gives no verdicts.
    """

    true_means: Literal["supported", "hallucinated"] | None = None
    ignore: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    sentence_labels: str | None = None
    group: str | None = None
    resamples: int = Field(1000, ge=0)
    reference: ReferenceJudge | None = None
