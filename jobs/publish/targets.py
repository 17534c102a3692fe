"""The tools that verdicts can be sent to."""

from enum import StrEnum

from ragassay.jobs.publish.langfuse import LANGFUSE
from ragassay.jobs.publish.mlflow import MLFLOW
from ragassay.jobs.publish.otel import OTEL
from ragassay.jobs.publish.phoenix import PHOENIX
from ragassay.jobs.publish.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (LANGFUSE, PHOENIX, MLFLOW, OTEL)}

Tool = StrEnum("Tool", {name.upper(): name for name in TARGETS})  # type: ignore[misc]
"""Names of the tools, for --to."""
