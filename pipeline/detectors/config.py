"""The kinds of detectors that a job file can name."""

from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, WrapValidator

from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.hybrid import Hybrid
from ragassay.pipeline.detectors.novelty import Novelty
from ragassay.pipeline.plugins import DETECTORS, read_kind

_Kinds = Entities | Attribution | Novelty | Hybrid
"""Add a new detector here, or in another package as a plug-in."""

DETECTOR_KINDS: tuple[type[BaseDetector], ...] = get_args(_Kinds)


def _drop_settings_of_other_kinds(settings: Any) -> Any:
    """Ignore settings that only other kinds have, so that changing `kind` alone in a job file is enough."""
    if not isinstance(settings, dict):
        return settings
    keys_by_kind = {kind.model_fields["kind"].default: set(kind.model_fields) for kind in DETECTOR_KINDS}
    all_keys = set().union(*keys_by_kind.values())
    ignored = all_keys - keys_by_kind.get(settings.get("kind"), all_keys)
    return {key: value for key, value in settings.items() if key not in ignored}


Detector = Annotated[
    _Kinds,
    Field(discriminator="kind"),
    BeforeValidator(_drop_settings_of_other_kinds),
    WrapValidator(read_kind(DETECTORS, BaseDetector, DETECTOR_KINDS)),
]
"""A detector of a job."""
