"""The notebook of the docs runs, and its outputs are those of the code."""

from tests.notebook import read_notebook, run_cells


def test_the_notebook_shows_what_its_cells_return() -> None:
    notebook = read_notebook()
    assert run_cells(notebook)["cells"] == notebook["cells"], "run `make docs`"
    outputs = str([cell.get("outputs") for cell in notebook["cells"]])
    assert "hallucinated" in outputs and "dt=2026-11-07" in outputs and "more flagged responses" in outputs
    assert "/tmp" not in outputs and "Error" not in outputs
