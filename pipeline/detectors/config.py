"""The kinds of detectors that a job file may name."""

from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field

from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.hybrid import Hybrid
from ragassay.pipeline.detectors.novelty import Novelty

_Kinds = Entities | Attribution | Novelty | Hybrid
"""A new one is a name here."""

KINDS: tuple[type[BaseDetector], ...] = get_args(_Kinds)


def _of_its_kind(given: Any) -> Any:
    """Settings of other kinds are passed over, so that one word of a job file changes the kind."""
    if not isinstance(given, dict):
        return given
    known = {kind.model_fields["kind"].default: set(kind.model_fields) for kind in KINDS}
    others = set().union(*known.values()) - known.get(given.get("kind"), set().union(*known.values()))
    return {key: value for key, value in given.items() if key not in others}


Detector = Annotated[_Kinds, Field(discriminator="kind"), BeforeValidator(_of_its_kind)]
"""One detector of a job."""
