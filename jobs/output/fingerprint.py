"""What scores depend on. An output folder holds scores of one fingerprint only."""

from typing import Any

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job
from ragassay.jobs.config.splitting import ANY, SplittingConfig
from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.output import errors
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.text.redact import identity
from ragassay.pipeline.text.spacy_import import import_spacy
from ragassay.pipeline.uncertainty.config import ReadingModel
from ragassay.schemas.columns import METHOD_VERSION, SCHEMA_VERSION


def fingerprint(job: Job) -> dict[str, Any]:
    """Everything that a score in `raw/` depends on, part by part: models, prompts, splitter, columns, schema version.

    Raises:
        ModelError: A model can't be found.
    """
    spacy = import_spacy()
    members, splitting, drop_text, redact = job.members, job.splitting, job.output.drop_text, job.input.redact
    return {
        "schema": SCHEMA_VERSION,
        "method": METHOD_VERSION,
        "columns": _columns(job.input.columns),
        "splitter": _splitter(splitting, spacy),
        "order": [slm.name for slm in members.slms],
        "slms": {slm.name: _model(slm) for slm in members.slms},
        "detectors": {detector.name: detector.identity() for detector in members.detectors},
        "uncertainty": {member.name: _model(member) for member in members.uncertainty},
        "rerank": _model(members.rerank) if members.rerank else None,
        "redact": identity(redact) if redact else None,
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


def _columns(columns: Columns) -> dict[str, Any]:
    """Names of the columns that are read."""
    left_out = {"messages", "passage_roles"} if columns.messages is None else {"question", "context", "response"}
    return columns.model_dump(mode="json", exclude=left_out)


def _model(model: Slm | ReadingModel) -> dict[str, Any]:
    return {**model.engine.identify_weights(model), **model.identity()}


def check_fingerprint(then: dict[str, Any], now: dict[str, Any], output: str) -> None:
    """Refuse to add scores of another fingerprint to an output folder.

    Raises:
        OutputError: They differ; each part that does is named, but for another version's folder, where no setting helps.
    """
    method = then.get("method")
    if method != now["method"]:
        raise OutputError(errors.OTHER_VERSION, output=output, part="method", version=method, wanted=now["method"])
    found = differences(then, now)
    if found:
        settings = [setting_of(part) for part, _, _ in found]
        lines = [f"  {setting}: was {short(a)}, is {short(b)}" for setting, (_, a, b) in zip(settings, found, strict=True)]
        text = "\n".join([*lines, *_dtype_advice(found)])
        raise OutputError(errors.OTHER_SETTINGS, output=output, settings=settings, lines=text)


def _dtype_advice(found: list[tuple[str, Any, Any]]) -> list[str]:
    """`dtype: auto` may mean another type on another machine, though no setting changed: then nothing else differs."""
    if not all(where.endswith(".dtype") for where, _, _ in found):
        return []
    then = {was for _, was, _ in found if isinstance(was, str)}
    advice = "this machine takes another dtype than the one that the folder was begun on: set dtype: {} to go on in it"
    return [advice.format(" or ".join(sorted(then)))] if then else []


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
"""Part of a fingerprint -> its setting in a job file; the more particular ones come first."""


def setting_of(part: str) -> str:
    """Return the setting in a job file that a part of a fingerprint comes from."""
    for prefix, setting in _SETTINGS.items():
        if part == prefix or part.startswith(f"{prefix}."):
            return setting + part[len(prefix) :]
    return part


def differences(then: Any, now: Any, where: str = "") -> list[tuple[str, Any, Any]]:
    """The parts in which two fingerprints differ: name, value then, value now."""
    if isinstance(then, dict) and isinstance(now, dict):
        found = []
        for key in sorted(then.keys() | now.keys()):
            found += differences(then.get(key), now.get(key), f"{where}.{key}" if where else key)
        return found
    return [] if then == now else [(where, then, now)]


def short(value: Any) -> str:
    """A part of a fingerprint as a message shows it."""
    text = hide_secrets(repr(value))
    return text if len(text) <= 80 else text[:77] + "…"
