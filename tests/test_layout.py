import ast
import re
from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
ALLOWED = {
    "schemas": {"schemas"},
    "pipeline": {"schemas", "pipeline"},
    "jobs": {"schemas", "pipeline", "jobs"},
    "infra": {"infra"},
}
LONGEST_FILE = 800
LONGEST_FUNCTION = 70
HEAVY = {"vllm", "torch", "transformers", "spacy", "ray"}


def list_modules() -> list[Path]:
    return [path for folder in ALLOWED for path in sorted((REPO / folder).rglob("*.py"))]


def find_imports(body: list[ast.stmt]) -> set[str]:
    packages: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            packages.add((node.module or "").split(".")[0])
    return packages


def find_our_imports(body: list[ast.stmt]) -> set[str]:
    """Find the product's folders that are imported; each import must start with the package name."""
    plain = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in plain if name.startswith("ragassay")], "import the product as `from ragassay.… import …`"
    names = [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module]
    assert "ragassay" not in names, "import from the file that defines the name"
    return {name.split(".")[1] for name in names if name.startswith("ragassay.")}


@pytest.mark.parametrize("path", list_modules(), ids=lambda p: str(p.relative_to(REPO)))
def test_imports_go_one_way(path: Path) -> None:
    folder = path.relative_to(REPO).parts[0]
    tree = ast.parse(path.read_text())
    everywhere = find_imports([n for n in ast.walk(tree) if isinstance(n, ast.stmt)])
    assert not everywhere & (set(ALLOWED) | {"tests"}), "import the product's folders as ragassay.…"
    assert not find_our_imports([n for n in ast.walk(tree) if isinstance(n, ast.stmt)]) - ALLOWED[folder]
    assert not find_imports(tree.body) & HEAVY, "import heavy packages inside the actor"
    if folder == "schemas":
        outside = everywhere - {"ragassay", "pyarrow", "pydantic"}
        assert outside <= {"collections", "json", "dataclasses", "enum", "typing"}, outside
    if folder == "pipeline":
        assert "ray" not in everywhere


def test_the_package_is_links_to_the_folders() -> None:
    links = {path.name: path.readlink() for path in (REPO / "ragassay").iterdir() if path.is_symlink()}
    assert links == {folder: Path("..", folder) for folder in ALLOWED}


def get_room(parts: Sequence[str]) -> str:
    """Return the room of a file or module: its folder below the top folder, or the file itself."""
    return parts[0] if parts[0] == "schemas" else "/".join(parts[:2])


def find_room_imports() -> dict[str, set[str]]:
    """Map each room to the rooms that it imports from."""
    targets: dict[str, set[str]] = {}
    for path in list_modules():
        room = get_room(path.relative_to(REPO).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragassay."):
                parts = (node.module or "").split(".")[1:]
                targets.setdefault(room, set()).update(get_room([*parts, alias.name]) for alias in node.names)
    return {room: rooms - {room} for room, rooms in targets.items()}


def test_rooms_have_no_circular_imports() -> None:
    TopologicalSorter(find_room_imports()).prepare()  # a CycleError names the circle


INPUT_READERS = ("jobs/input/", "jobs/integrations/traces/", "jobs/init/", "jobs/forecast/")


def test_rows_of_an_output_are_read_in_one_place() -> None:
    """Only ScoredDataset loops over row groups, except in the rooms that read logs."""
    loops = re.compile(r"read_row_group|iter_batches")
    paths = {
        str(path.relative_to(REPO)) for path in (REPO / "jobs").rglob("*.py") if loops.search(path.read_text(encoding="utf-8"))
    }
    assert {path for path in paths if not path.startswith(INPUT_READERS)} == {"jobs/output/scored_dataset.py"}


def test_files_of_tests_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (REPO / "tests").rglob("*.py")}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


@pytest.mark.parametrize("path", list_modules(), ids=lambda p: str(p.relative_to(REPO)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = [
                inner for inner in node.body if not isinstance(inner, ast.Expr) or not isinstance(inner.value, ast.Constant)
            ]
            lines = node.end_lineno - body[0].lineno + 1 if body and node.end_lineno else 0
            assert lines <= LONGEST_FUNCTION, f"{node.name}: {lines} lines"


def test_steps_of_a_run_take_few_arguments() -> None:
    for path in sorted((REPO / "jobs" / "run").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                assert len(names) <= 5, f"{path.name}: {node.name}({', '.join(names)})"


def test_every_soak_test_is_run_by_make_soak() -> None:
    files = sorted((REPO / "tests" / "soak").glob("test_*.py"))
    assert [path.name for path in files if "pytest.mark.soak" not in path.read_text(encoding="utf-8")] == []
