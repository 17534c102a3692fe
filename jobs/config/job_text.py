"""From the text of a job file to plain data, and from what is wrong with that to a message."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ragassay.jobs.config.section import Section


class _Loader(yaml.SafeLoader):
    """YAML in which only true and false are booleans: Yes and No are words here, labels above all; and so are dates. A key
    stands once."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:  # here, before merges (<<) bring keys that may stand again
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in lines:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} stands in line {lines[key.value]} and again in line {line}")
            lines[key.value] = line
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:  # PyYAML lets them out where a tag doesn't fit the text
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(
                problem=f"line {node.start_mark.line + 1}: {node.value!r} is no {kind}; quotes make it a text"
            ) from error


_TYPE = re.compile(r"(literal|tuple|function-\w+)\[")
"""How pydantic names a type of a union in a fault's place."""

_WORDS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _WORDS or (tag == _WORDS[0] and first in "tTfF")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(text: str) -> Any:
    """Plain data of a YAML text.

    Raises:
        yaml.YAMLError: It is no YAML, names a key twice, or calls a text what it is not (`!!int x`).
    """
    return yaml.load(text, _Loader)


def faults(error: ValidationError, model: type[BaseModel]) -> list[dict[str, Any]]:
    """List the faults of data for a model.

    Returns:
        For each fault: its place in the file, a code, the text, and fields if the code is ours. An unknown key has `close`, the
        known key that it resembles, with its place if it belongs elsewhere.
    """
    found = []
    for fault in error.errors():
        place, text, code = fault["loc"], fault["msg"], fault["type"]
        fields = fault["ctx"] if code.startswith("config.") and "ctx" in fault else {}
        if code == "extra_forbidden":
            known = _keys_at(model, place[:-1])
            close = _similar_key(str(place[-1]), known, model)
            code, fields = "config.unknown-key", {"close": close, "known": known}
            text = "unknown key; " + (f"did you mean {close}?" if close else f"known keys: {', '.join(known)}")
        if code.startswith("union_tag"):
            place = (*place, fault["ctx"]["discriminator"].strip("'"))
            text = text if code == "union_tag_invalid" else "Field required"
        where = ".".join(map(str, _written(model, place))) or "job"
        found.append({**fields, "place": where, "code": code, "text": text})
    return found


def _similar_key(key: str, known: list[str], model: type[BaseModel]) -> str | None:
    """Return the known key that is probably meant: the same one elsewhere, a similar one here, or a similar one elsewhere."""
    elsewhere = {path.rpartition(".")[2]: path for path in reversed(list(_section_keys(model)))}  # the first place counts
    elsewhere.pop("name", None)  # nearly everything has a name
    if key in elsewhere:
        return elsewhere[key]
    if here := get_close_matches(key, known, 1) or [name for name in known if key in name.split("_")]:
        return here[0]
    return next((elsewhere[name] for name in get_close_matches(key, elsewhere, 1, 0.75)), None)


def _section_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Paths of all keys of a section and the sections in it; models, detectors and engines are left out."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        for section in models_in(field.annotation):
            if issubclass(section, Section):
                yield from _section_keys(section, f"{prefix}{name}.")


def _written(model: type[BaseModel], place: tuple[int | str, ...]) -> list[int | str]:
    """Return a place as it stands in the file: without the kinds that tell a union's models and types apart."""
    return [part for part, _, is_kind in _walk(model, place) if not is_kind and not _TYPE.match(str(part))]


def _keys_at(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """Keys of the models that stand at a place; where a union names its kinds, or a list its numbers, those are passed over."""
    models = [found for _, found, _ in _walk(model, place)][-1] if place else {model}
    return sorted({name for m in models for name in (*m.model_fields, *getattr(m, "ENGINE_SETTINGS", ()))})


def _walk(model: type[BaseModel], place: tuple[int | str, ...]) -> Iterator[tuple[int | str, set[type[BaseModel]], bool]]:
    """The parts of a place, each with the models that may stand there, and whether it is but the name of a union's kind."""
    models = {model}
    for part in place:
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
