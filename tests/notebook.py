"""The notebook docs/start/first-audit.ipynb: `python -m tests.notebook` runs its cells and stores what they show.

It needs no Jupyter: a cell shows its last expression, as HTML and as text. What a cell prints is not stored.
"""

import ast
import json
import os
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from tests.without_ray import without_ray

NOTEBOOK = Path(__file__).parent.parent / "docs" / "start" / "first-audit.ipynb"


def read_notebook() -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return notebook


def run_cells(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run the cells in a new folder, without Ray, and return the notebook with their outputs."""
    cells, names, count = [], dict[str, Any](), 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder), without_ray():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                shown = _run_cell("".join(cell["source"]), names)
                cells.append({**cell, "execution_count": count, "outputs": _make_outputs(shown, count)})
            else:
                cells.append(cell)
    return {**notebook, "cells": cells}


def _run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last expression; None without one."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(source, names)
        return None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def _make_outputs(shown: Any, count: int) -> list[dict[str, Any]]:
    if shown is None:
        return []
    html = {"text/html": shown._repr_html_().splitlines(keepends=True)} if hasattr(shown, "_repr_html_") else {}
    data = {**html, "text/plain": repr(shown).splitlines(keepends=True)}
    return [{"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}]


if __name__ == "__main__":
    os.environ["COLUMNS"] = "120"
    text = json.dumps(run_cells(read_notebook()), ensure_ascii=False, indent=1)
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}: {len(text):,} bytes\n")
