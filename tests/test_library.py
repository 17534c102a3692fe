"""The library's front door: light to import, and as its page says."""

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


def executed(block: str) -> str:
    """What a block prints, in a process of its own."""
    alone = {**os.environ, "RAY_ADDRESS": "local"}  # else Ray joins what another test has running, and waits when that ends
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, env=alone, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_is_light() -> None:
    code = f"import ragassay, sys; print(sorted({HEAVY!r} & sys.modules.keys()), sorted(ragassay.__all__))"
    assert executed(code) == "[] ['__version__', 'check', 'judge', 'run', 'show', 'stages']\n"


def test_the_page_has_its_examples() -> None:
    assert len(BLOCKS) == 3 and len(NEEDS_RAY) == 1


def test_an_answer() -> None:
    said = executed(BLOCKS[0]).splitlines()
    assert said[0] == "hallucinated [False, True]"
    assert "('number', '24 hours')" in said[1] and said[2].startswith("hallucinated  score ")


def test_a_table() -> None:
    said = executed(BLOCKS[1])
    assert "no_context" in said and "✗" in said and "not in the context: 9 p.m." in said


@pytest.mark.slow
def test_a_pipeline() -> None:
    (block,) = NEEDS_RAY
    said = executed(f"{block}\nassert ['The shop opens at 7 a.m.'] in [row['context'] for row in rows], rows")
    assert "'It opens at 7 a.m.', 'supported'" in said and "on Fridays.', 'hallucinated'" in said
