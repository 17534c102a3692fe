"""Separate environments below out/venvs for packages that conflict with ours, made on first use."""

import subprocess
import sys
from pathlib import Path

VENVS = Path(__file__).parents[2] / "out" / "venvs"


def make_venv(name: str, *packages: str) -> Path:
    """Make an environment with these packages, unless it exists, and return its folder of commands.

    Args:
        name: Name of the environment.
        packages: Requirements for pip.
    """
    folder = VENVS / name
    marker = folder / "made"
    if not marker.exists() or marker.read_text().split() != list(packages):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", *packages], check=True, stderr=subprocess.DEVNULL)
        marker.write_text(" ".join(packages))
    return folder / "bin"
