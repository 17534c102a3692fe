"""Read and check a YAML file of settings: a job file, or the settings of `tune`."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from ragassay.jobs import errors
from ragassay.jobs.config.job_text import describe_value, list_faults, parse_yaml
from ragassay.pipeline.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


def read_settings(path: str, kind: str) -> dict[str, Any]:
    """Read a YAML file of settings.

    Args:
        path: The file.
        kind: What the file is, for messages, such as `job file`.

    Returns:
        Plain data; empty for an empty file.

    Raises:
        ConfigError: The file can't be read, or is not a YAML mapping.
    """
    try:
        data: Any = parse_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(errors.UNREADABLE, kind=kind, path=path, reason=error.strerror or error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(errors.NO_YAML, kind=kind, path=path, reason=error) from error
    if not isinstance(data, dict | None):
        raise ConfigError(errors.NO_MAPPING, kind=kind, path=path, type=describe_value(data))
    return data or {}


def check_settings(model: type[Model], data: dict[str, Any], where: str) -> Model:
    """Check plain data against a model of settings.

    Args:
        model: The model.
        data: The settings.
        where: Their source, for messages.

    Raises:
        ConfigError: A setting is unknown or wrong; every fault is named.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        listed = list_faults(error, model)
        lines = "\n".join(f"  {fault['key']}: {fault['text']}" for fault in listed)
        raise ConfigError(errors.INVALID, file=where, count=len(listed), lines=lines, faults=listed) from error
