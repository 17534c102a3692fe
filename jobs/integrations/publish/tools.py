"""The tools that verdicts can be sent to."""

from typing import Any

from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.langfuse import LANGFUSE
from ragassay.jobs.integrations.publish.mlflow import MLFLOW
from ragassay.jobs.integrations.publish.otel import OTEL
from ragassay.jobs.integrations.publish.phoenix import PHOENIX
from ragassay.jobs.integrations.publish.target import PublishTarget
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.plugins import PUBLISHERS, list_plugins, load_plugin

TARGETS: dict[str, PublishTarget] = {target.name: target for target in (LANGFUSE, PHOENIX, MLFLOW, OTEL)}
"""To add a tool, add it here, or in another package as a plug-in."""


def find_target(name: str) -> PublishTarget:
    """Find the tool with this name.

    Raises:
        ConfigError: There is none, or it is a plug-in that can't be loaded.
    """

    def is_target(plugin: Any) -> bool:
        return isinstance(plugin, PublishTarget) and plugin.name == name

    target: PublishTarget | None = TARGETS.get(name) or load_plugin(
        PUBLISHERS, name, is_target, f"a PublishTarget with name: {name!r}"
    )
    if target is None:
        raise ConfigError(errors.UNKNOWN_TOOL, tool=name, tools=", ".join(dict.fromkeys([*TARGETS, *list_plugins(PUBLISHERS)])))
    return target
