"""The tools that verdicts can be sent to."""

from enum import StrEnum

from ragassay.jobs.integrations.publish.langfuse import LANGFUSE
from ragassay.jobs.integrations.publish.mlflow import MLFLOW
from ragassay.jobs.integrations.publish.otel import OTEL
from ragassay.jobs.integrations.publish.phoenix import PHOENIX
from ragassay.jobs.integrations.publish.target import PublishTarget

TARGETS: dict[str, PublishTarget] = {target.name: target for target in (LANGFUSE, PHOENIX, MLFLOW, OTEL)}

TargetName = StrEnum("TargetName", {name.upper(): name for name in TARGETS})  # type: ignore[misc]
"""Names of the tools for --tool."""
