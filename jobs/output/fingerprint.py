"""Compute the fingerprint: everything that scores depend on. An output folder contains scores of one fingerprint only."""

from typing import Any

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job
from ragassay.jobs.config.splitting import ANY, SplittingConfig
from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.output import errors
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.text.redact import redaction_identity
from ragassay.pipeline.text.spacy_import import import_spacy
from ragassay.pipeline.uncertainty.config import UncertaintyModelConfig
from ragassay.schemas.columns import METHOD_VERSION, SCHEMA_VERSION


def make_fingerprint(job: Job) -> dict[str, Any]:
    """Collect everything that a score in `raw/` depends on: models, prompts, splitter, columns, schema version.

    Raises:
        ModelError: A model does not exist.
    """
    spacy = import_spacy()
    members, splitting, drop_text, redact = job.members, job.splitting, job.output.drop_text, job.input.redact
    return {
        "schema": SCHEMA_VERSION,
        "method": METHOD_VERSION,
        "columns": _column_identity(job.input.columns),
        "splitter": _splitter(splitting, spacy),
        "order": [slm.name for slm in members.slms],
        "slms": {slm.name: _model_identity(slm) for slm in members.slms},
        "detectors": {detector.name: detector.identity() for detector in members.detectors},
        "uncertainty": {member.name: _model_identity(member) for member in members.uncertainty},
        "rerank": _model_identity(members.rerank) if members.rerank else None,
        "redact": redaction_identity(redact) if redact else None,
        "drop_text": drop_text.model_dump(mode="json") if drop_text else None,
        "languages": _languages(splitting),
    }


def _splitter(splitting: SplittingConfig, spacy: Any) -> dict[str, Any]:
    pipeline = splitting.pipeline
    version = spacy.util.get_package_version(pipeline) if spacy.util.is_package(pipeline) else None
    settings = {"name": pipeline, "language": splitting.language, "column": splitting.language_column}
    return {**settings, "spacy": spacy.__version__, "pipeline": version}


def _languages(splitting: SplittingConfig) -> str | list[str] | None:
    languages = splitting.languages
    return languages if languages is None or languages == ANY else sorted(languages)


def _column_identity(columns: Columns) -> dict[str, Any]:
    """Return the names of the columns that are read."""
    unused = {"messages", "passage_roles"} if columns.messages is None else {"question", "context", "response"}
    identity: dict[str, Any] = columns.model_dump(mode="json", exclude=unused)
    return {name: value for name, value in identity.items() if name != "passage_separator" or value is not None}


def _model_identity(model: Slm | UncertaintyModelConfig) -> dict[str, Any]:
    return {**model.engine.identify_weights(model), **model.identity()}


def check_fingerprint(stored: dict[str, Any], current: dict[str, Any], output: str) -> None:
    """Refuse to add scores of another fingerprint to an output folder.

    Raises:
        OutputError: The fingerprints differ. The error lists the parts that differ, unless another version wrote the folder.
    """
    method = stored.get("method")
    if method != current["method"]:
        raise OutputError(errors.OTHER_VERSION, output=output, part="method", version=method, expected=current["method"])
    differences = find_differences(stored, current)
    if differences:
        settings = [find_setting(part) for part, _, _ in differences]
        lines = [
            f"  {setting}: was {format_value(old)}, is {format_value(new)}"
            for setting, (_, old, new) in zip(settings, differences, strict=True)
        ]
        text = "\n".join([*lines, *_dtype_advice(differences), *_row_id_advice(differences)])
        raise OutputError(errors.OTHER_SETTINGS, output=output, settings=settings, lines=text)


def _dtype_advice(differences: list[tuple[str, Any, Any]]) -> list[str]:
    """Return advice for `dtype: auto`, which may select another type on another machine; only if nothing else differs."""
    if not all(where.endswith(".dtype") for where, _, _ in differences):
        return []
    stored_dtypes = {value for _, value, _ in differences if isinstance(value, str)}
    advice = "this machine selects another dtype than the one that the output was started with: set dtype: {} to continue"
    return [advice.format(" or ".join(sorted(stored_dtypes)))] if stored_dtypes else []


def _row_id_advice(differences: list[tuple[str, Any, Any]]) -> list[str]:
    if not any(where == "columns.row_id" for where, _, _ in differences):
        return []
    return ["labels do not need row_id: any column of the logs that differs in every row matches them with their rows"]


_SETTINGS = {
    "columns": "input.columns",
    "redact": "input.redact",
    "splitter.name": "splitting.pipeline",
    "splitter.column": "splitting.language_column",
    "splitter.spacy": "splitting (version of spaCy)",
    "splitter.pipeline": "splitting.pipeline (its version)",
    "splitter": "splitting",
    "languages": "splitting.languages",
    "order": "members.slms (their order)",
    "slms": "members.slms",
    "uncertainty": "members.uncertainty",
    "detectors": "members.detectors",
    "rerank": "members.rerank",
    "drop_text": "output.drop_text",
}
"""Part of a fingerprint -> its setting in a job file; more specific parts come first."""


def find_setting(part: str) -> str:
    """Return the setting in a job file that a part of a fingerprint comes from."""
    for prefix, setting in _SETTINGS.items():
        if part == prefix or part.startswith(f"{prefix}."):
            return setting + part[len(prefix) :]
    return part


def find_differences(stored: Any, current: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Find the parts in which two fingerprints differ.

    Returns:
        Name, stored value and current value of each part.
    """
    if isinstance(stored, dict) and isinstance(current, dict):
        differences = []
        for key in sorted(stored.keys() | current.keys()):
            differences += find_differences(stored.get(key), current.get(key), f"{path}.{key}" if path else key)
        return differences
    return [] if stored == current else [(path, stored, current)]


def format_value(value: Any) -> str:
    """Format a value of a fingerprint for a message."""
    text = hide_secrets(repr(value))
    return text if len(text) <= 80 else text[:77] + "…"
