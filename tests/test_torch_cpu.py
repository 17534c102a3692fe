"""Where `make setup` takes torch from: what is there, what pip finds, what uv fetches, or one line that says what to do."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
VERSION = next(line for line in (REPO / "requirements" / "cpu.txt").read_text().split() if line.startswith("torch=="))[7:]
SPEC = f"torch=={VERSION}+cpu"


def script(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment without anything, whose pip is the real one."""
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    script(root / "bin" / "pip", f'exec {sys.executable} -m pip --python {root}/bin/python "$@"')
    return root


def offered(folder: Path, version: str | None) -> Path:
    """A folder of wheels, with a torch of this version that has no code but its version."""
    folder.mkdir()
    if version:
        with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("torch/__init__.py", f"__version__ = {version!r}\n")
            info = f"torch-{version}.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def put_torch(venv: Path, wheels: Path, *, uv: str | None = None) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the script where pip sees this folder only, with a `uv` of this body; also what uv was called with."""
    tools, calls = venv.parent / "tools", venv.parent / "calls"
    tools.mkdir(exist_ok=True)
    for name in ("sed", "dirname"):  # what the script needs; a uv of this machine is out of sight
        if not (tools / name).exists():
            (tools / name).symlink_to(shutil.which(name) or name)
    calls.unlink(missing_ok=True)
    if uv is not None:
        script(tools / "uv", f'echo "$@" >> {calls}\n{uv}')
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    env = {**os.environ, **pip, "PATH": str(tools)}
    done = subprocess.run(
        [REPO / "requirements" / "torch-cpu.sh", venv / "bin"], capture_output=True, text=True, env=env, check=False
    )
    return done, calls.read_text() if calls.exists() else ""


def torch_in(venv: Path) -> str:
    show = "import torch; print(torch.__version__)"
    return subprocess.run([venv / "bin" / "python", "-c", show], capture_output=True, text=True, check=False).stdout.strip()


def test_what_pip_finds_is_installed_and_then_left_alone(venv: Path, tmp_path: Path) -> None:
    done, calls = put_torch(venv, offered(tmp_path / "wheels", f"{VERSION}+cpu"), uv="exit 1")
    assert done.returncode == 0 and not done.stdout + done.stderr + calls and torch_in(venv) == f"{VERSION}+cpu"
    done, calls = put_torch(venv, offered(tmp_path / "empty", None), uv="exit 1")
    assert done.returncode == 0 and not done.stdout + done.stderr + calls


def test_uv_is_asked_where_pip_finds_no_cpu_build(venv: Path, tmp_path: Path) -> None:
    done, calls = put_torch(venv, offered(tmp_path / "wheels", VERSION), uv="exit 0")  # a build, but PyPI's, for CUDA
    assert done.returncode == 0 and f"pip finds no CPU build of torch {VERSION}" in done.stdout and not torch_in(venv)
    assert calls == f"pip install -q --python {venv}/bin/python --no-deps --torch-backend cpu {SPEC}\n"


@pytest.mark.parametrize("uv", ["echo no such index >&2; exit 2", None], ids=["uv finds none", "no uv anywhere"])
def test_one_line_says_what_to_do_where_neither_has_it(venv: Path, tmp_path: Path, uv: str | None) -> None:
    done, _ = put_torch(venv, offered(tmp_path / "wheels", None), uv=uv)
    assert done.returncode == 1
    assert re.fullmatch(rf"No CPU build of torch {VERSION} .*PIP_FIND_LINKS=FOLDER make setup\n", done.stderr)
    log = (venv / "torch.log").read_text()
    assert f"No matching distribution found for {SPEC}" in log and ("no such index" if uv else "for uv") in log


def test_setup_asks_for_torch_before_the_other_requirements() -> None:
    setup = (REPO / "Makefile").read_text().split("\n$(STAMP):")[1].split("\n\n")[0]
    assert setup.index("requirements/torch-cpu.sh $(BIN)") < setup.index("-r requirements/cpu.txt")


def test_no_requirements_file_names_an_address() -> None:
    for path in (REPO / "requirements").iterdir():
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links|^-[if]\b", path.read_text(), re.M), path.name
