"""Environments of their own, under out/venvs, for packages that can't live in ours; made on first use."""

import subprocess
import sys
from pathlib import Path

VENVS = Path(__file__).parents[2] / "out" / "venvs"


def own_venv(name: str, *packages: str) -> Path:
    """Folder of commands of an environment with these packages.

    Args:
        name: Of the environment; one that is there, of the same packages, is used as it is.
        packages: As pip takes them.
    """
    folder = VENVS / name
    made = folder / "made"
    if not made.exists() or made.read_text().split() != list(packages):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", *packages], check=True, stderr=subprocess.DEVNULL)
        made.write_text(" ".join(packages))
    return folder / "bin"
