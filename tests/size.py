"""Count lines, lines of code, classes and functions by folder: `python -m tests.size [CHECKOUT]`."""

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


def count_code(path: Path) -> Counter[str]:
    """Count one file; docstrings, comments and blank lines are not code."""
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


def count_run_imports(root: Path) -> dict[str, int]:
    """Count the imports from `ragassay` in each file of jobs/run."""
    files = sorted((root / "jobs" / "run").glob("*.py")) or [root / "jobs" / "run.py"]
    counts = {}
    for path in files:
        nodes = ast.walk(ast.parse(path.read_text()))
        counts[path.name] = sum(
            isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragassay") for node in nodes
        )
    return counts


def main(root: Path) -> None:
    """Print the table."""
    sizes: dict[str, Counter[str]] = {}
    for top in (*PRODUCT, "tests"):
        for path in (root / top).rglob("*.py"):
            parts = path.relative_to(root).parts
            folder_parts = (
                parts[:2] if parts[:2] in {("tests", "benchmarks"), ("tests", "soak"), ("tests", "golden")} else parts[:1]
            )
            name = "/".join(folder_parts)
            sizes[name] = sizes.get(name, Counter()) + count_code(path)
    sizes["product"] = sum((sizes[top] for top in PRODUCT), Counter())
    names = ("files", "lines", "code", "classes", "functions")
    print("".join(f"{name:>11}" for name in names))
    for name, size in sizes.items():
        print("".join(f"{size[column]:>11,}" for column in names), name)
    print("imports from ragassay in jobs/run:", ", ".join(f"{name} {count}" for name, count in count_run_imports(root).items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
