"""The Python API imports fast, and the examples of its page work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NEEDS_RAY = [block for block in BLOCKS if "import ray\n" in block]
HEAVY = {"torch", "ray", "vllm", "transformers", "spacy", "polars", "pandas", "pyarrow", "numpy", "pydantic", "scipy", "rich"}


def run_block(block: str) -> str:
    """Run a block in a new process and return its output."""
    env = {**os.environ, "RAY_ADDRESS": "local"}  # otherwise Ray joins another test's Ray and waits when that ends
    result = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, env=env, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_import_loads_no_heavy_package() -> None:
    code = f"import ragassay, sys; print(sorted({HEAVY!r} & sys.modules.keys()), sorted(ragassay.__all__))"
    assert run_block(code) == "[] ['__version__', 'check', 'judge', 'run', 'show', 'stages']\n"


def test_the_page_has_its_examples() -> None:
    assert len(BLOCKS) == 3 and len(NEEDS_RAY) == 1


def test_the_example_of_an_answer() -> None:
    output = run_block(BLOCKS[0]).splitlines()
    assert output[0] == "hallucinated [False, True]"
    assert "('number', '24 hours')" in output[1] and output[2].startswith("hallucinated  score ")


def test_the_example_of_a_table() -> None:
    output = run_block(BLOCKS[1])
    assert "no_context" in output and "✗" in output and "not in the context: 9 p.m." in output


@pytest.mark.slow
def test_the_example_of_a_pipeline() -> None:
    (block,) = NEEDS_RAY
    output = run_block(f"{block}\nassert ['The shop opens at 7 a.m.'] in [row['context'] for row in rows], rows")
    assert "'It opens at 7 a.m.', 'supported'" in output and "on Fridays.', 'hallucinated'" in output
