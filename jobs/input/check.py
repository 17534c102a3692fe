"""Check partitions, columns and types of all files of an input by their footers, all at once."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import errors
from ragassay.jobs.input.files import Logs, by_schema
from ragassay.jobs.input.messages import can_be_messages
from ragassay.jobs.input.passages import can_be_context
from ragassay.jobs.input.text import can_be_ids
from ragassay.jobs.input.types import always_fits, is_text, merge_schemas
from ragassay.jobs.storage.folder import is_hidden
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import RESERVED_NAMES, passthrough_name

_SHAPES = {
    "context": (can_be_context, "a string or a list of strings, or of structs with a text (text, page_content, content …)"),
    "messages": (can_be_messages, "a list of structs with role and content, or a string that holds JSON"),
}


def check_logs(logs: Logs, columns: Columns, question_needed: bool) -> None:
    """Check partitions and columns of all files, and settle the columns that are carried along.

    Args:
        logs: What `find_logs` gave; `passthrough` and `partition_keys` are filled in.
        columns: Our columns' names in the logs.
        question_needed: Whether any SLM's prompt uses the question.

    Raises:
        InputError: Every missing column and wrong type is named at once, with what was found.
    """
    faults: list[tuple[str, InputError]] = []
    keys = {tuple(key for key, _ in f.partition) for f in logs.files}
    if len(keys) > 1:
        faults.append(("", InputError(errors.SEVERAL_KEYS, keys=sorted(map(list, keys)))))
    logs.partition_keys = list(min(keys, default=()))
    for key, count in Counter(logs.partition_keys).items():
        if key in RESERVED_NAMES:
            faults.append(("", InputError(errors.KEY_IS_OURS, key=key)))
        if is_hidden(key):
            faults.append(("", InputError(errors.HIDDEN_KEY, key=key)))
        if count > 1:
            faults.append(("", InputError(errors.REPEATED_KEY, key=key)))
    wanted = _wanted(columns)
    shown: Counter[str] = Counter()
    for schema, files in by_schema(logs.files).items():
        faults_of_schema = _column_faults(schema, wanted, question_needed)
        if columns.row_id is not None:
            faults_of_schema += _id_faults(schema, columns.row_id, columns.row_id != Columns().row_id)
        for fault in faults_of_schema:
            if str(fault) not in shown:
                faults.append((files[0].path, fault))
            shown[str(fault)] += len(files)
    if faults:
        more = sum(shown.values()) - len(shown)
        tail = [f"({more} more of the same in other files)"] if more else []
        if any(fault.code in ("input.missing-column", "input.column-shape") for _, fault in faults):
            tail.append(f"`ragassay init {logs.uri}` looks for your columns, and writes a job file that names them")
        lines = "\n  ".join([*(f"{path}: {fault}" if path else str(fault) for path, fault in faults), *tail])
        found = [{"code": fault.code, "path": path, **fault.fields} for path, fault in faults]
        raise InputError(errors.FAULTS, uri=logs.uri, count=len(faults), lines=lines, faults=found)
    logs.passthrough = _passthrough(logs, columns)


def _wanted(columns: Columns) -> dict[str, str]:
    """Setting -> the column that it names."""
    if columns.messages is not None:
        return {"messages": columns.messages}
    return {"question": columns.question, "context": columns.context, "response": columns.response}


def _column_faults(schema: pa.Schema, wanted: Mapping[str, str], question_needed: bool) -> list[InputError]:
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        return [InputError(errors.SAME_NAME, columns=", ".join(map(repr, twice)))]
    faults = []
    missing = {
        ours: name for ours, name in wanted.items() if name not in schema.names and (ours != "question" or question_needed)
    }
    if missing:
        faults.append(_missing(missing, schema))
    for ours, name in wanted.items():
        if name not in schema.names:
            continue
        kind = schema.field(name).type
        fits, expected = _SHAPES.get(ours, (is_text, "a string"))
        if not fits(kind):
            faults.append(InputError(errors.COLUMN_SHAPE, column=name, setting=ours, wanted=expected, type=kind))
    return faults


def _missing(missing: Mapping[str, str], schema: pa.Schema) -> InputError:
    wanted = ", ".join(f"{name!r} (input.columns.{ours})" for ours, name in missing.items())
    known = ", ".join(schema.names)
    return InputError(errors.MISSING_COLUMN, wanted=wanted, columns=list(missing.values()), known=known)


def _id_faults(schema: pa.Schema, name: str, asked_for: bool) -> list[InputError]:
    if name not in schema.names:
        return [_missing({"row_id": name}, schema)] if asked_for else []
    kind = schema.field(name).type
    if schema.names.count(name) == 1 and not can_be_ids(kind):
        return [InputError(errors.COLUMN_SHAPE, column=name, setting="row_id", wanted="a string or a number", type=kind)]
    return []


def _passthrough(logs: Logs, columns: Columns) -> pa.Schema:
    ours = {*columns.read, columns.row_id, *logs.partition_keys}
    schemas: dict[pa.Schema, str] = {}  # and a file that has it
    for schema, files in by_schema(logs.files).items():
        carried = [field for field in schema if field.name not in ours]
        for field in carried:
            if (name := passthrough_name(field.name)) in logs.partition_keys:
                raise InputError(errors.KEY_IS_COLUMN, uri=logs.uri, key=name, column=field.name)
        renamed = pa.schema([field.with_name(passthrough_name(field.name)) for field in carried])
        clash = [name for name, count in Counter(renamed.names).items() if count > 1]
        if clash:
            raise InputError(errors.COLUMN_TWICE, uri=logs.uri, path=files[0].path, column=clash)
        schemas.setdefault(renamed, files[0].path)
    try:
        found = merge_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(errors.MIXED_TYPES, uri=logs.uri, reason=error) from error
    for schema, path in schemas.items():
        for field in schema:
            kind = found.field(field.name).type
            if always_fits(field.type, kind) is False:
                raise InputError(errors.COLUMN_TYPE, uri=logs.uri, column=field.name, type=field.type, path=path, wanted=kind)
    return pa.schema([*found, *(pa.field(key, pa.string()) for key in logs.partition_keys)])
