"""Find plug-ins: entry points of other installed packages. A plug-in is imported when its name is used."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticKnownError

from ragassay.pipeline import errors
from ragassay.pipeline.errors import ConfigError

DETECTORS = "ragassay.detectors"
ENGINES = "ragassay.engines"
FORMATS = "ragassay.formats"
PUBLISHERS = "ragassay.publishers"
TRACES = "ragassay.traces"


@cache
def list_plugins(group: str) -> Mapping[str, EntryPoint]:
    """List the installed plug-ins of a group by name. Nothing is imported."""
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}


def load_plugin(group: str, name: str, is_valid: Callable[[Any], bool], expected: str) -> Any:
    """Load a plug-in; None if no installed package has it.

    Args:
        group: Group of entry points.
        name: Name of the entry point.
        is_valid: Returns whether an object is a plug-in of the group.
        expected: What it must be, for the message.

    Raises:
        ConfigError: It can't be imported, or is something else.
    """
    entry = list_plugins(group).get(name)
    if entry is None:
        return None
    package = entry.dist.name if entry.dist else entry.module
    try:
        plugin = entry.load()
    except Exception as error:  # the package may do anything at import
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(errors.BROKEN_PLUGIN, name=name, package=package, group=group, reason=reason) from error
    if not is_valid(plugin):
        raise ConfigError(errors.NO_PLUGIN, name=name, package=package, value=entry.value, expected=expected)
    return plugin


def load_kind(group: str, name: str, base: type[BaseModel]) -> type[BaseModel] | None:
    """Load a class of settings with this `kind`; see `load_plugin`."""

    def is_kind(plugin: Any) -> bool:
        return isinstance(plugin, type) and issubclass(plugin, base) and plugin.model_fields["kind"].default == name

    kind: type[BaseModel] | None = load_plugin(group, name, is_kind, f"a {base.__name__} with kind: {name!r}")
    return kind


def read_kind(group: str, base: type[BaseModel], built_in: Sequence[type[BaseModel]]) -> Callable[[Any, Any], Any]:
    """Make a pydantic wrap validator of settings with a `kind` that is built in or a plug-in.

    Args:
        group: Group of the plug-ins.
        base: Class of all settings.
        built_in: Classes of the built-in kinds.
    """
    kinds = [cls.model_fields["kind"].default for cls in built_in]

    def read(settings: Any, read_built_in: Callable[[Any], Any]) -> Any:
        if isinstance(settings, base) and not isinstance(settings, tuple(built_in)):
            return settings
        name = settings.get("kind") if isinstance(settings, Mapping) else None
        if not isinstance(name, str) or name in kinds:
            return read_built_in(settings)
        kind = load_kind(group, name, base)
        if kind is None:
            expected = ", ".join(map(repr, [*kinds, *list_plugins(group)]))
            raise PydanticKnownError("union_tag_invalid", {"discriminator": "'kind'", "tag": name, "expected_tags": expected})
        return kind.model_validate(settings)

    return read
