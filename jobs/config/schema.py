"""The JSON Schema of a job file, for editors and other tools that check it: `ragassay schema` prints it."""

import json
import re
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.config.job import Job
from ragassay.jobs.config.job_text import models_in
from ragassay.jobs.config.members import MembersConfig
from ragassay.jobs.config.output import DropText, OutputConfig
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.config import DETECTOR_KINDS
from ragassay.pipeline.engines.config import ENGINE_CLASSES
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.plugins import DETECTORS, ENGINES, TRACES, list_plugins, load_kind
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.uncertainty.config import Rerank, Uncertainty

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
"""An attribute in a docstring of this project without the indentation of its class."""

Schema = dict[str, Any]


def job_schema() -> Schema:
    """Return the JSON Schema of a job file: what `load_job` accepts, without the checks that involve several keys."""
    schema = Job.model_json_schema()
    plugins = _add_plugins(
        schema, schema["$defs"][MembersConfig.__name__]["properties"]["detectors"]["items"], DETECTORS, BaseDetector
    )
    _add_plugins(schema, schema["$defs"][Slm.__name__]["properties"]["engine"], ENGINES, EngineSettings)
    for model in _models():
        _describe(_definition(schema, model), model)
    for model in (Slm, Reasoner, Rerank, Uncertainty):
        _accept_names_of_engines(_definition(schema, model), schema)
    _accept_settings(_definition(schema, Slm), [_definition(schema, kind) for kind in ENGINE_CLASSES])
    detectors = [_definition(schema, kind) for kind in DETECTOR_KINDS]
    for detector in [*detectors, *plugins]:
        _accept_settings(detector, detectors)
    presets = _definition(schema, InputConfig)["properties"]["preset"]["anyOf"][0]["enum"]
    presets += list_plugins(TRACES)
    drop_text = _definition(schema, OutputConfig)["properties"]["drop_text"]
    drop_text["anyOf"] = [{"type": "boolean"}, {"$ref": f"#/$defs/{DropText.__name__}"}, {"type": "null"}]
    return {"$schema": DIALECT, **schema, "title": "RAGAssay job file"}


def _add_plugins(schema: Schema, union: Schema, group: str, base: type[BaseModel]) -> list[Schema]:
    """Add the kinds of installed plug-ins to a union of kinds, and return their definitions."""
    added = []
    for name in list_plugins(group):
        kind = load_kind(group, name, base)
        assert kind is not None
        definition = kind.model_json_schema()
        schema["$defs"] |= {**definition.pop("$defs", {}), kind.__name__: definition}
        reference = f"#/$defs/{kind.__name__}"
        union["oneOf"].append({"$ref": reference})
        union["discriminator"]["mapping"][name] = reference
        _describe(definition, kind)
        added.append(definition)
    return added


def schema_text() -> str:
    """Return the JSON Schema of a job file as the text of a file."""
    return json.dumps(job_schema(), indent=1, ensure_ascii=False) + "\n"


def _models() -> list[type[BaseModel]]:
    """Return all models of a job file."""
    models: list[type[BaseModel]] = []
    remaining: list[type[BaseModel]] = [Job]
    while remaining:
        model = remaining.pop()
        if model not in models:
            models.append(model)
            remaining += [below for field in model.model_fields.values() for below in models_in(field.annotation)]
    return models


def _definition(schema: Schema, model: type[BaseModel]) -> Schema:
    definition: Schema = schema if model is Job else schema["$defs"][model.__name__]
    return definition


def _describe(definition: Schema, model: type[BaseModel]) -> None:
    """Describe a model's keys by its docstring, and by those of the models that it extends."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        texts |= {name: " ".join(text.split()) for name, text in _ENTRY.findall(cleandoc(base.__doc__ or ""))}
    definition.pop("title", None)  # the name of a class
    definition["description"] = (model.__doc__ or "").partition("\n")[0]
    for name, setting in definition.get("properties", {}).items():
        setting.pop("title", None)
        if isinstance(setting.get("default"), dict | list):
            setting.pop("default")  # its own keys have defaults too
        if name in texts:
            setting["description"] = texts[name]


def _accept_names_of_engines(definition: Schema, schema: Schema) -> None:
    """Accept `engine: KIND`, and an engine's settings without their kind."""
    engine = definition["properties"]["engine"]
    references = engine.pop("oneOf", None) or [{"$ref": engine.pop("$ref")}]
    engine.pop("discriminator", None)
    kinds = [schema["$defs"][reference["$ref"].rpartition("/")[2]]["properties"]["kind"]["const"] for reference in references]
    engine["anyOf"] = [{"enum": kinds}, *references]


def _accept_settings(definition: Schema, additional: Sequence[Schema]) -> None:
    """Accept the settings of additional definitions too, except their kind."""
    for settings in additional:
        for name, setting in settings["properties"].items():
            if name != "kind":
                definition["properties"].setdefault(name, setting)
