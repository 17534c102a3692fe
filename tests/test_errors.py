"""Each error has a stable code and the fields that its text names; see `pipeline/errors.py`."""

import ast
import importlib
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from types import ModuleType

import pytest

from ragassay.pipeline import errors
from ragassay.pipeline.errors import InputError, Message, RagassayError
from tests.raises import raises

REPO = Path(__file__).parent.parent
CODE = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
CLASSES = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, RagassayError)}


def list_files() -> list[Path]:
    return [path for folder in ("schemas", "pipeline", "jobs") for path in sorted((REPO / folder).rglob("*.py"))]


def import_module(path: Path) -> ModuleType:
    return importlib.import_module(".".join(("ragassay", *path.relative_to(REPO).with_suffix("").parts)))


def collect_messages() -> dict[tuple[str, str], Message]:
    """Map module and name to each message."""
    messages: dict[tuple[str, str], Message] = {}
    for path in list_files():
        if path.name == "errors.py":
            module = import_module(path)
            messages |= {(module.__name__, name): value for name, value in vars(module).items() if isinstance(value, Message)}
    return messages


def find_placeholders(text: str) -> set[str]:
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name is not None}


def find_raised_errors() -> Iterator[tuple[str, ast.Call, dict[str, str]]]:
    """Find each call that makes an error: its place, the call, and the imports of its file (name -> module)."""
    for path in list_files():
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES:
                yield f"{path.relative_to(REPO)}:{node.lineno}", node, imported


def resolve_message(call: ast.Call, imported: dict[str, str], known: dict[tuple[str, str], Message]) -> Message | None:
    """Return the message that a call names as `errors.NAME`, or None if it is a variable."""
    argument = call.args[0] if call.args else None
    if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name):
        return known.get((imported.get(argument.value.id, ""), argument.attr))
    return None


def test_codes_are_unique_and_well_formed() -> None:
    codes = Counter(message.code for message in collect_messages().values())
    assert [code for code, count in codes.items() if count > 1 or not CODE.fullmatch(code)] == []


def test_errors_give_the_fields_that_their_text_names() -> None:
    known, faults = collect_messages(), []
    for place, call, imported in find_raised_errors():
        message = resolve_message(call, imported, known)
        keywords = {word.arg for word in call.keywords}
        if message is not None and None not in keywords and find_placeholders(message.text) - keywords:
            faults.append(f"{place}: {message.code} lacks {sorted(find_placeholders(message.text) - keywords)}")
    assert faults == []


def test_each_message_is_used() -> None:
    names = {
        node.attr for path in list_files() for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
    }
    assert [message.code for (_, name), message in collect_messages().items() if name not in names] == []


def test_an_error_survives_pickling() -> None:
    message = Message("input.example", "{path} has no column {column!r}")
    error = pickle.loads(pickle.dumps(InputError(message, path="a.parquet", column="id", columns=("x", "y"))))
    assert (type(error), error.code) == (InputError, "input.example")
    assert error.fields == {"path": "a.parquet", "column": "id", "columns": ["x", "y"]}
    assert str(error) == "a.parquet has no column 'id'"


def test_raises_compares_code_and_fields() -> None:
    message = Message("input.example", "{path}")
    with raises("input.example", path="a"):
        raise InputError(message, path="a", row=1)
    with pytest.raises(AssertionError), raises("input.other"):
        raise InputError(message, path="a")
    with pytest.raises(AssertionError), raises("input.example", path="b"):
        raise InputError(message, path="a")


def test_tests_match_no_prose_of_errors() -> None:
    places = []
    for path in sorted((REPO / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises" and node.args:
                kinds = {name.id for name in ast.walk(node.args[0]) if isinstance(name, ast.Name)}
                if kinds & CLASSES and any(word.arg == "match" for word in node.keywords):
                    places.append(f"{path.relative_to(REPO)}:{node.lineno}")
    assert places == []
