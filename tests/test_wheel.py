"""The wheel that users and the GPU image install contains every file and works without a checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import write_job

REPO = Path(__file__).parent.parent
LINKED = ("schemas", "pipeline", "jobs", "infra")
"""Folders that the package `ragassay` links to."""

PACKAGES = ("ragassay", *LINKED)
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command outside the checkout; it must succeed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env = {**inherited, "COLUMNS": "200", **env}
    result = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    text = result.stdout + result.stderr
    assert result.returncode == 0 and "Traceback" not in text, f"{command}: {text}"
    return result.stdout


def list_sources() -> list[str]:
    """List the files of the packages, tracked or not ignored."""
    output = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PACKAGES, cwd=REPO)
    return [name for name in output.splitlines() if (REPO / name).exists()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel built from the files that the GPU image copies, with the installed tools."""
    root = tmp_path_factory.mktemp("source")
    copied = [
        name
        for names in re.findall(r"^COPY (.+) \S+$", (REPO / "infra" / "Dockerfile.gpu").read_text(), re.M)
        for name in names.split()
    ]
    for name in [*(n for n in copied if n not in PACKAGES), *(n for n in list_sources() if n.split("/")[0] in copied)]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, root / name, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    run(*pip, "--wheel-dir", root / "dist", root, cwd=root, **OFFLINE)
    (built,) = (root / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of commands of an environment with the wheel and this environment's dependencies, without its editable install."""
    root = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", root, cwd=root)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", root / "bin" / "python"]
    run(*pip, "install", "-q", "--no-deps", wheel, cwd=root, **OFFLINE)
    packages = run(root / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=root).strip()
    # A folder named in a .pth file is searched, but its own .pth files, the editable install's among them, are not run.
    (Path(packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return root / "bin"


def test_the_wheel_contains_every_file_of_the_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    expected = [
        name if name.startswith("ragassay/") else f"ragassay/{name}"
        for name in list_sources()
        if not (REPO / name).is_symlink()
    ]
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(expected)
    assert "ragassay/py.typed" in names and all(f"ragassay/{folder}/__init__.py" in names for folder in LINKED)


def test_the_wheel_names_and_contains_its_license(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE"} <= set(archive.read(metadata).decode().splitlines())
    license_text = archive.read(metadata.replace("METADATA", "licenses/LICENSE")).decode()
    assert "Apache License" in license_text and "END OF TERMS AND CONDITIONS" in license_text


def test_commands_and_bundled_logs_come_from_the_installed_copy(installed: Path, tmp_path: Path) -> None:
    for package in ("ragassay", *(f"ragassay.{folder}" for folder in LINKED)):
        origin = run(installed / "python", "-c", f"import {package} as it; print(it.__file__)", cwd=tmp_path)
        assert Path(origin.strip()).is_relative_to(installed.parent), origin
    top_level = [folder for folder in LINKED if list(installed.parent.glob(f"lib/python3.*/site-packages/{folder}"))]
    assert not top_level, "the folders are installed only inside `ragassay`"
    assert "Usage: ragassay" in run(installed / "ragassay", "--help", cwd=tmp_path)
    version = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["version"]
    assert version in run(installed / "ragassay", "--version", cwd=tmp_path)
    logs = Path(run(installed / "ragassay", "demo-logs", cwd=tmp_path).strip())
    assert logs.is_relative_to(installed.parent) and list(logs.glob("dt=*/*.parquet"))


@pytest.mark.slow
def test_a_whole_job_runs_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    for name in ("pipeline/__init__.py", "schemas/__init__.py", "jobs.py"):  # a user's own; Ray's workers find them first
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise ImportError('not of RAGAssay')\n")
    labeled = [{**row, "label": ["correct", "wrong"][i % 2]} for i, row in enumerate(example_rows(30))]
    logs = write_logs(tmp_path / "logs.parquet", labeled)
    kinds = ("entities", "attribution", "novelty")
    job = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [{"name": kind, "kind": kind} for kind in kinds]})
    result = run(installed / "ragassay", "run", logs, tmp_path / "out", "--config", job, cwd=tmp_path)
    assert "30 in = 30 scored + 0 unscorable" in result
    assert "AUROC" in run(installed / "ragassay", "evaluate", tmp_path / "out", "--label", "label", cwd=tmp_path)
    run(installed / "ragassay", "report", tmp_path / "out", "--label", "label", cwd=tmp_path)
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
