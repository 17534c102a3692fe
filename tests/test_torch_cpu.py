"""`make setup` keeps an installed torch, else installs it with pip, else with uv, else prints one line on what to do."""

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


def write_script(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Folder of an empty environment with a working pip."""
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    write_script(root / "bin" / "pip", f'exec {sys.executable} -m pip --python {root}/bin/python "$@"')
    return root


def make_wheel_folder(folder: Path, version: str | None) -> Path:
    """Make a folder of wheels with a torch of this version that contains only its version."""
    folder.mkdir()
    if version:
        with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("torch/__init__.py", f"__version__ = {version!r}\n")
            info = f"torch-{version}.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    return folder


def install_torch(venv: Path, wheels: Path, *, uv: str | None = None) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the script with a pip that sees only this folder and a `uv` with this body; return the result and uv's arguments."""
    tools, calls = venv.parent / "tools", venv.parent / "calls"
    tools.mkdir(exist_ok=True)
    for name in ("sed", "dirname"):  # the script's tools; hides this machine's uv
        if not (tools / name).exists():
            (tools / name).symlink_to(shutil.which(name) or name)
    calls.unlink(missing_ok=True)
    if uv is not None:
        write_script(tools / "uv", f'echo "$@" >> {calls}\n{uv}')
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    env = {**os.environ, **pip, "PATH": str(tools)}
    result = subprocess.run(
        [REPO / "requirements" / "torch-cpu.sh", venv / "bin"], capture_output=True, text=True, env=env, check=False
    )
    return result, calls.read_text() if calls.exists() else ""


def get_torch_version(venv: Path) -> str:
    show = "import torch; print(torch.__version__)"
    return subprocess.run([venv / "bin" / "python", "-c", show], capture_output=True, text=True, check=False).stdout.strip()


def test_a_cpu_build_from_pip_is_installed_and_then_kept(venv: Path, tmp_path: Path) -> None:
    result, calls = install_torch(venv, make_wheel_folder(tmp_path / "wheels", f"{VERSION}+cpu"), uv="exit 1")
    assert result.returncode == 0 and not result.stdout + result.stderr + calls
    assert get_torch_version(venv) == f"{VERSION}+cpu"
    result, calls = install_torch(venv, make_wheel_folder(tmp_path / "empty", None), uv="exit 1")
    assert result.returncode == 0 and not result.stdout + result.stderr + calls


def test_uv_is_called_if_pip_finds_no_cpu_build(venv: Path, tmp_path: Path) -> None:
    wheels = make_wheel_folder(tmp_path / "wheels", VERSION)  # a CUDA build, as on PyPI
    result, calls = install_torch(venv, wheels, uv="exit 0")
    assert result.returncode == 0 and f"pip finds no CPU build of torch {VERSION}" in result.stdout
    assert not get_torch_version(venv)
    assert calls == f"pip install -q --python {venv}/bin/python --no-deps --torch-backend cpu {SPEC}\n"


@pytest.mark.parametrize("uv", ["echo no such index >&2; exit 2", None], ids=["uv finds none", "no uv anywhere"])
def test_one_line_explains_what_to_do_if_neither_has_a_cpu_build(venv: Path, tmp_path: Path, uv: str | None) -> None:
    result, _ = install_torch(venv, make_wheel_folder(tmp_path / "wheels", None), uv=uv)
    assert result.returncode == 1
    assert re.fullmatch(rf"No CPU build of torch {VERSION} .*PIP_FIND_LINKS=FOLDER make setup\n", result.stderr)
    log = (venv / "torch.log").read_text()
    assert f"No matching distribution found for {SPEC}" in log and ("no such index" if uv else "for uv") in log


def test_torch_is_installed_before_the_other_requirements() -> None:
    script = (REPO / "requirements" / "install.sh").read_text()
    assert script.index('torch-cpu.sh" "$bin"') < script.index('-r "$lock"')


def test_both_locks_for_cpus_have_the_same_versions() -> None:
    demo, development = (set((REPO / "requirements" / f"{name}.txt").read_text().split()) for name in ("cpu", "dev"))
    assert demo < development
    assert not {line.partition("==")[0] for line in development} & {"triton", "torchvision", "torchaudio", "torchcodec"}


def test_no_requirements_file_contains_an_address() -> None:
    for path in (REPO / "requirements").iterdir():
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links|^-[if]\b", path.read_text(), re.M), path.name
