"""The Python API: it imports nothing heavy, and the examples of its page work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
RAY_EXAMPLES = [code for code in EXAMPLES if "import ray\n" in code]
HEAVY = {"torch", "ray", "vllm", "transformers", "spacy", "polars", "pandas", "pyarrow", "numpy", "pydantic", "scipy", "rich"}


def run_code(code: str, folder: Path | None = None) -> str:
    """Run code in a new process, in a folder, and return what it prints."""
    # Without "local", Ray joins the cluster of another test and waits for its end.
    env = {**os.environ, "RAY_ADDRESS": "local"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_is_light() -> None:
    code = f"import ragassay, sys; print(sorted({HEAVY!r} & sys.modules.keys()), sorted(ragassay.__all__))"
    assert run_code(code) == "[] ['__version__', 'check', 'judge', 'open', 'run', 'show', 'stages']\n"


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"], ["run"], ["nonsense"]])
def test_help_and_usage_errors_import_no_data_library(arguments: list[str]) -> None:
    heavy = HEAVY - {"rich", "pydantic"} | {"jinja2"}  # typer uses these two
    code = f"""
import sys
from ragassay.jobs.cli.main import app
try:
    app({arguments!r})
except SystemExit:
    print(sorted({heavy!r} & sys.modules.keys()))
"""
    assert run_code(code).splitlines()[-1] == "[]"


def test_the_page_has_four_examples() -> None:
    assert len(EXAMPLES) == 4 and len(RAY_EXAMPLES) == 1


def test_the_example_of_an_answer_works() -> None:
    lines = run_code(EXAMPLES[0]).splitlines()
    assert lines[0] == "hallucinated ['supported', 'flagged']"
    assert "('number', '24 hours')" in lines[1] and lines[2].startswith("hallucinated  P(supported) ")


def test_the_example_of_a_table_works() -> None:
    output = run_code(EXAMPLES[1])
    assert "('a', 'supported', " in output and "no_context" in output and "not in the context: 9 p.m." in output


@pytest.mark.slow
def test_the_example_of_a_pipeline_works() -> None:
    (code,) = RAY_EXAMPLES
    output = run_code(code)
    assert (
        "'It opens at 7 a.m.', 'supported', ['The shop opens at 7 a.m.']" in output and "on Fridays.', 'hallucinated'" in output
    )
