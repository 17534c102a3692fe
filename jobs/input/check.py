"""Check partitions, columns and types of all files of an input by their footers, all at once."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from ragassay.jobs.input.files import Logs, by_schema
from ragassay.jobs.input.messages import can_be_messages
from ragassay.jobs.input.passages import can_be_context
from ragassay.jobs.input.text import can_be_ids
from ragassay.jobs.input.types import always_fits, is_text, merge_schemas
from ragassay.jobs.sections import Columns
from ragassay.jobs.storage import is_hidden
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import OUR_NAMES, passthrough_name

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
    faults: list[str] = []
    keys = {tuple(key for key, _ in f.partition) for f in logs.files}
    if len(keys) > 1:
        faults.append(f"files lie under different partition keys: {sorted(map(list, keys))}")
    logs.partition_keys = list(min(keys, default=()))
    for key, count in Counter(logs.partition_keys).items():
        if key in OUR_NAMES:
            faults.append(f"the partition key {key!r} is the name of a column of ours: rename it")
        if is_hidden(key):
            faults.append(f"the partition key {key!r} begins with _ or a dot, and such folders are passed over: rename it")
        if count > 1:
            faults.append(f"the partition key {key!r} occurs twice in a path: rename one of them")
    wanted = _wanted(columns)
    shown: Counter[str] = Counter()
    for schema, files in by_schema(logs.files).items():
        faults_of_schema = _column_faults(schema, wanted, question_needed)
        if columns.row_id is not None:
            faults_of_schema += _id_faults(schema, columns.row_id, columns.row_id != Columns().row_id)
        for fault in faults_of_schema:
            if fault not in shown:
                faults.append(f"{files[0].path}: {fault}")
            shown[fault] += len(files)
    if faults:
        more = sum(shown.values()) - len(shown)
        tail = [f"({more} more of the same in other files)"] if more else []
        if any("(columns." in fault for fault in faults):
            tail.append(f"`ragassay init {logs.uri}` looks for your columns, and writes a job file that names them")
        raise InputError("\n  ".join([f"input {logs.uri}: {len(faults)} fault(s)", *faults, *tail]))
    logs.passthrough = _passthrough(logs, columns)


def _wanted(columns: Columns) -> dict[str, str]:
    """Setting -> the column that it names."""
    if columns.messages is not None:
        return {"messages": columns.messages}
    return {"question": columns.question, "context": columns.context, "response": columns.response}


def _column_faults(schema: pa.Schema, wanted: Mapping[str, str], question_needed: bool) -> list[str]:
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        return [f"more than one column is called {', '.join(map(repr, twice))}: rename all but one"]
    faults = []
    missing = [
        f"{name!r} (columns.{ours})"
        for ours, name in wanted.items()
        if name not in schema.names and (ours != "question" or question_needed)
    ]
    if missing:
        faults.append(f"no column {', '.join(missing)}; it has {', '.join(schema.names)}")
    for ours, name in wanted.items():
        if name not in schema.names:
            continue
        kind = schema.field(name).type
        fits, expected = _SHAPES.get(ours, (is_text, "a string"))
        if not fits(kind):
            faults.append(f"column {name!r} (columns.{ours}) must be {expected}, and is {kind}")
    return faults


def _id_faults(schema: pa.Schema, name: str, asked_for: bool) -> list[str]:
    if name not in schema.names:
        return [f"no column {name!r} (columns.row_id); it has {', '.join(schema.names)}"] if asked_for else []
    kind = schema.field(name).type
    if schema.names.count(name) == 1 and not can_be_ids(kind):
        return [f"column {name!r} (columns.row_id) must be a string or a number, and is {kind}"]
    return []


def _passthrough(logs: Logs, columns: Columns) -> pa.Schema:
    ours = {*columns.read, columns.row_id, *logs.partition_keys}
    schemas: dict[pa.Schema, str] = {}  # and a file that has it
    for schema, files in by_schema(logs.files).items():
        carried = [field for field in schema if field.name not in ours]
        for field in carried:
            if (name := passthrough_name(field.name)) in logs.partition_keys:
                raise InputError(
                    f"input {logs.uri}: the partition key {name!r} is the name under which column {field.name!r} is carried "
                    "along: rename one of them"
                )
        renamed = pa.schema([field.with_name(passthrough_name(field.name)) for field in carried])
        clash = [name for name, count in Counter(renamed.names).items() if count > 1]
        if clash:
            raise InputError(f"input {logs.uri}: {files[0].path}: two columns would both be called {clash}: rename one of each")
        schemas.setdefault(renamed, files[0].path)
    try:
        found = merge_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"input {logs.uri}: a column has types that don't fit together in different files: {error}") from error
    for schema, path in schemas.items():
        for field in schema:
            kind = found.field(field.name).type
            if always_fits(field.type, kind) is False:
                raise InputError(
                    f"input {logs.uri}: column {field.name!r} has types that don't fit together in different files: "
                    f"{field.type} in {path}, which {kind} can't hold. Give it one type in all files"
                )
    return pa.schema([*found, *(pa.field(key, pa.string()) for key in logs.partition_keys)])
