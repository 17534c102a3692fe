"""Lines, lines of code, classes and functions of the program by folder: `python -m tests.size [CHECKOUT]`."""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PRODUCT = ("schemas", "pipeline", "jobs")
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def size_of(path: Path) -> Counter[str]:
    """Count one file; lines of docstrings, comments and blank lines are no code."""
    text = path.read_text()
    tree = ast.parse(text)
    kinds = Counter(type(node).__name__ for node in ast.walk(tree))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return Counter(
        files=1,
        lines=len(text.splitlines()),
        code=len(code),
        classes=kinds["ClassDef"],
        functions=kinds["FunctionDef"] + kinds["AsyncFunctionDef"],
    )


def run_imports(root: Path) -> dict[str, int]:
    """Imports of ours in each file of the run."""
    files = sorted((root / "jobs" / "run").glob("*.py")) or [root / "jobs" / "run.py"]
    found = {}
    for path in files:
        nodes = ast.walk(ast.parse(path.read_text()))
        found[path.name] = sum(
            isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragassay") for node in nodes
        )
    return found


def main(root: Path) -> None:
    """Print the table."""
    sizes: dict[str, Counter[str]] = {}
    for top in (*PRODUCT, "tests"):
        for path in (root / top).rglob("*.py"):
            parts = path.relative_to(root).parts
            apart = parts[:2] if parts[:2] in {("tests", "benchmarks"), ("tests", "soak"), ("tests", "golden")} else parts[:1]
            name = "/".join(apart)
            sizes[name] = sizes.get(name, Counter()) + size_of(path)
    sizes["product"] = sum((sizes[top] for top in PRODUCT), Counter())
    names = ("files", "lines", "code", "classes", "functions")
    print("".join(f"{name:>11}" for name in names))
    for name, size in sizes.items():
        print("".join(f"{size[column]:>11,}" for column in names), name)
    print("imports of ours in jobs/run:", ", ".join(f"{name} {count}" for name, count in run_imports(root).items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
