"""A model and the source of its weights."""

from pydantic import BaseModel, ConfigDict, Field

MODEL_CONFIG = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


class Model(BaseModel):
    """A model and its weights.

    Attributes:
        name: Its name in a job, for messages.
        model: `embedded`, a hub id, a local folder, or a GGUF file.
        adapter: LoRA adapter that is merged into it: the name of a bundled adapter, or a folder.
        revision: Commit or tag of a hub id.
        trust_remote_code: Run code that comes with the model; some hub models need it. Off by default.
    """

    model_config = MODEL_CONFIG

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    model: str = "embedded"
    adapter: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
