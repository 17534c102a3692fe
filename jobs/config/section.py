"""The base class of everything in a job file that is not a model, a detector or an engine."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a job file. It accepts only known keys and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
