"""The base class of the sections of a job file. Members and engines have base classes in `pipeline`."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a job file. It accepts only known keys and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
