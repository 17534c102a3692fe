"""Parse the text of a job file to plain data, and describe the faults of that data."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ragassay.jobs.config.section import Section


class _Loader(yaml.SafeLoader):
    """YAML in which only true and false are booleans: Yes and No (usually labels) and dates are text. Each key occurs once."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:  # before merges (<<), which may add the same keys
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is in line {lines[key.value]} and again in line {line}"
                )
            lines[key.value] = line
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:  # PyYAML raises these if a tag does not fit the text
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(
                problem=f"line {node.start_mark.line + 1}: {node.value!r} is not a {kind}; put a text in quotes"
            ) from error


_TYPE = re.compile(r"(literal|tuple|function-\w+)\[")
"""Name of a union's type in the location of a pydantic error."""

_WORDS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _WORDS or (tag == _WORDS[0] and first in "tTfF")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str) -> Any:
    """Parse a YAML text to plain data.

    Raises:
        yaml.YAMLError: The text is not YAML, has a key twice, or has a tag that does not fit its value (`!!int x`).
    """
    return yaml.load(text, _Loader)


def list_faults(error: ValidationError, model: type[BaseModel]) -> list[dict[str, Any]]:
    """List the faults of data for a model.

    Returns:
        For each fault: `key` (its path in the file), `code`, `text`, and further fields if the code is RAGAssay's. An unknown
        key has `close`, the known key that it resembles; a key of another section has its full path.
    """
    result = []
    for fault in error.errors():
        location, text, code = fault["loc"], fault["msg"], fault["type"]
        fields = fault["ctx"] if code.startswith("config.") and "ctx" in fault else {}
        if code == "extra_forbidden":
            known = _list_keys(model, location[:-1])
            close = _find_similar_key(str(location[-1]), known, model)
            code, fields = "config.unknown-key", {"close": close, "known": known}
            text = "unknown key; " + (f"did you mean {close}?" if close else f"known keys: {', '.join(known)}")
        if code.startswith("union_tag"):
            location = (*location, fault["ctx"]["discriminator"].strip("'"))
            expected = fault["ctx"].get("expected_tags")
            text = f"unknown kind: give one of {expected}" if expected else "is required"
        if code == "missing":
            text = "is required"
        elif type_fault := _describe_type_fault(code, fault["input"]):
            text = type_fault + _describe_allowed(model, location)
        text = re.sub(r"^\w+ should ", "must ", text)
        key = ".".join(map(str, _key_path(model, location))) or "job"
        result.append({**fields, "key": key, "code": code, "text": text})
    return result


_EXPECTED = {
    "tuple": "a list", "list": "a list", "set": "a list", "frozen_set": "a list", "dict": "a mapping", "model": "a mapping",
    "string": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "none_required": "null",
}  # fmt: skip
"""Beginning of a pydantic code -> the expected type in YAML's words."""

_LIMITS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_SHOWN_KEYS = 8


def _describe_type_fault(code: str, value: Any) -> str | None:
    """Describe a value of a wrong type in YAML's words; None for other faults."""
    kind, _, fault = code.partition("_")
    kind, fault = ("none_required", "type") if code == "none_required" else (kind, fault)
    if code == "int_from_float":
        fault = "type"
    if kind not in _EXPECTED or fault not in ("type", "parsing", "attributes_type"):
        return None
    return f"must be {_EXPECTED[kind]}, not {describe_value(value)}"


def _describe_allowed(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Describe what a setting may be besides its type: the keys of a mapping, or the limits and the default of a value."""
    parents = [models for _, models, _ in _walk(model, location[:-1])][-1] if location[:-1] else {model}
    fields = [known[name] for known in (m.model_fields for m in parents) if (name := str(location[-1])) in known]
    if len(fields) != 1:
        return ""
    sections = models_in(fields[0].annotation)
    if sections:
        keys = list(sections.pop().model_fields) if len(sections) == 1 else []
        more = ", …" if len(keys) > _SHOWN_KEYS else ""
        return f": its keys are {', '.join(keys[:_SHOWN_KEYS])}{more}" if keys else ""
    limits = [
        f"{word} {limit:g}"
        for constraint in fields[0].metadata
        for name, word in _LIMITS.items()
        if (limit := getattr(constraint, name, None)) is not None
    ]
    default = fields[0].default
    if isinstance(default, str | float | int):
        limits.append(f"the default is {yaml.safe_dump(default).split(chr(10))[0]}")
    return f": {', '.join(limits)}" if limits else ""


def describe_value(value: Any) -> str:
    """Name the type of a value in YAML's words. A text is not shown: it may be a secret."""
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the number {value}" if isinstance(value, int | float) else "a text"


def _find_similar_key(key: str, known: list[str], model: type[BaseModel]) -> str | None:
    """Return the key that is probably meant: the same key of any section, else a similar key of this section, else of any."""
    paths = {path.rpartition(".")[2]: path for path in reversed(list(_section_keys(model)))}  # the first path counts
    paths.pop("name", None)  # nearly everything has a name
    if key in paths:
        return paths[key]
    if similar := get_close_matches(key, known, 1) or [name for name in known if key in name.split("_")]:
        return similar[0]
    return next((paths[name] for name in get_close_matches(key, paths, 1, 0.75)), None)


def _section_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the paths of all keys of a section and its subsections, without those of models, detectors and engines."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        for section in models_in(field.annotation):
            if issubclass(section, Section):
                yield from _section_keys(section, f"{prefix}{name}.")


def _key_path(model: type[BaseModel], location: tuple[int | str, ...]) -> list[int | str]:
    """Return a location as a path in the file: without the kinds and types of unions, which pydantic adds."""
    return [part for part, _, is_kind in _walk(model, location) if not is_kind and not _TYPE.match(str(part))]


def _list_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """List the keys of the models at a location."""
    models = [models for _, models, _ in _walk(model, location)][-1] if location else {model}
    return sorted({name for m in models for name in (*m.model_fields, *getattr(m, "ENGINE_SETTINGS", ()))})


def _walk(model: type[BaseModel], location: tuple[int | str, ...]) -> Iterator[tuple[int | str, set[type[BaseModel]], bool]]:
    """Yield the parts of a location, each with its possible models and whether it only names the kind of a union."""
    models = {model}
    for part in location:
        below = [m.model_fields[part].annotation for m in models if isinstance(part, str) and part in m.model_fields]
        of_kind = {m for m in models if "kind" in m.model_fields and m.model_fields["kind"].default == part}
        is_kind = not below and bool(of_kind) and len(models) > 1
        models = set().union(*map(models_in, below)) if below else of_kind or models
        yield part, models, is_kind


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return the models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*map(models_in, get_args(annotation)))
