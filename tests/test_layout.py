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


def modules() -> list[Path]:
    return [path for folder in ALLOWED for path in sorted((REPO / folder).rglob("*.py"))]


def imports(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add((node.module or "").split(".")[0])
    return found


def ours(body: list[ast.stmt]) -> set[str]:
    """Which of our folders are imported; all are imported by the name of the package."""
    plain = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in plain if name.startswith("ragassay")], "ours are imported as `from ragassay.… import …`"
    names = [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module]
    assert "ragassay" not in names, "import from the file where it stands"
    return {name.split(".")[1] for name in names if name.startswith("ragassay.")}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(REPO)))
def test_imports_go_one_way(path: Path) -> None:
    folder = path.relative_to(REPO).parts[0]
    tree = ast.parse(path.read_text())
    everywhere = imports([n for n in ast.walk(tree) if isinstance(n, ast.stmt)])
    assert not everywhere & (set(ALLOWED) | {"tests"}), "our folders are imported as ragassay.…"
    assert not ours([n for n in ast.walk(tree) if isinstance(n, ast.stmt)]) - ALLOWED[folder]
    assert not imports(tree.body) & HEAVY, "heavy packages are imported inside the actor"
    if folder == "schemas":
        outside = everywhere - {"ragassay", "pyarrow", "pydantic"}
        assert outside <= {"collections", "json", "dataclasses", "enum", "typing"}, outside
    if folder == "pipeline":
        assert "ray" not in everywhere


def test_the_package_is_links_to_the_folders() -> None:
    links = {path.name: path.readlink() for path in (REPO / "ragassay").iterdir() if path.is_symlink()}
    assert links == {folder: Path("..", folder) for folder in ALLOWED}


def room(parts: Sequence[str]) -> str:
    """Room of a file or module: its folder below the four; a file right below them is one by itself."""
    return parts[0] if parts[0] == "schemas" else "/".join(parts[:2])


def arrows() -> dict[str, set[str]]:
    """Room -> rooms that it imports from."""
    found: dict[str, set[str]] = {}
    for path in modules():
        mine = room(path.relative_to(REPO).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragassay."):
                parts = (node.module or "").split(".")[1:]
                found.setdefault(mine, set()).update(room([*parts, alias.name]) for alias in node.names)
    return {mine: others - {mine} for mine, others in found.items()}


def test_no_rooms_import_each_other_in_a_circle() -> None:
    TopologicalSorter(arrows()).prepare()  # a CycleError names the circle


INPUT_READERS = ("jobs/input/", "jobs/integrations/traces/", "jobs/init/", "jobs/forecast/")


def test_rows_of_an_output_are_read_in_one_place() -> None:
    """Only ScoredDataset loops over row groups; the rooms that read logs have loops of their own."""
    loops = re.compile(r"read_row_group|iter_batches")
    found = {
        str(path.relative_to(REPO)) for path in (REPO / "jobs").rglob("*.py") if loops.search(path.read_text(encoding="utf-8"))
    }
    assert {path for path in found if not path.startswith(INPUT_READERS)} == {"jobs/output/scored_dataset.py"}


def test_files_of_tests_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (REPO / "tests").rglob("*.py")}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(REPO)))
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
