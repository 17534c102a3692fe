"""The kinds of detectors that a job file may name."""

from typing import Annotated, get_args

from pydantic import Field

from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.hybrid import Hybrid
from ragassay.pipeline.detectors.novelty import Novelty

Detector = Annotated[Entities | Attribution | Novelty | Hybrid, Field(discriminator="kind")]
"""One detector of a job."""

KINDS: tuple[type[BaseDetector], ...] = get_args(get_args(Detector)[0])
