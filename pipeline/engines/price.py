"""Settings of the price of a served model."""

from pydantic import BaseModel, Field

from ragassay.pipeline.engines.model import MODEL_CONFIG


class Price(BaseModel):
    """The price of a served model.

    Attributes:
        input: US dollars per million prompt tokens.
        output: US dollars per million completion tokens.
    """

    model_config = MODEL_CONFIG

    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def compute_cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the cost of tokens in US dollars."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1_000_000
