"""The documentation can't rot: its commands exist, its job file is complete, its prompt is the default."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import BaseModel

from ragassay.jobs.cli.main import app
from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.job_text import parse
from ragassay.pipeline.engines.vllm_engine import Vllm
from ragassay.pipeline.slm.config import Replicas, Slm
from tests import error_codes, rooms

REPO = Path(__file__).parent.parent
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").glob("*.md"))]
GENERATED = REPO / "docs" / "cli.md"


def commands(name: str) -> list[list[str]]:
    """Every use of a command in code blocks and code spans of the pages; a trailing … means that it goes on."""
    found = []
    for page in set(PAGES) - {GENERATED}:
        text = page.read_text().replace("\\\n", " ")
        spans = re.findall(r"`([^`\n]+)`", text) + [
            line for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.S) for line in block.split("\n")
        ]
        found += [span.lstrip("$ ") for span in spans if re.match(rf"(\$ )?{name} ", span.strip())]
    return [shlex.split(line.replace("…", " "), comments=True) for line in found]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPO / "Makefile").read_text(), re.M))
    used = {command[1] for command in commands("make")}
    assert {"demo", "test"} <= used <= targets


def test_ragassay_commands_and_options_exist() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    used = [c for c in commands("ragassay") if len(c) > 1]
    assert {"run", "finalize"} <= {c[1] for c in used}
    for command in used:
        options = {name for parameter in known[command[1]].params for name in parameter.opts}
        assert {word for word in command[2:] if word.startswith("--")} <= options, command


def test_the_documented_job_file_is_complete_and_the_default() -> None:
    path = REPO / "docs" / "job.yaml"
    assert load_job(str(path)) == Job() == load_job(None)

    def names(model: BaseModel) -> dict[str, Any]:
        fields = {name: getattr(model, name) for name in type(model).model_fields}
        return {name: names(value) if isinstance(value, BaseModel) else None for name, value in fields.items()}

    def keys(data: Any, like: Any) -> Any:
        return {k: keys(v, like.get(k)) for k, v in data.items()} if isinstance(like, dict) else None

    expected = names(Job())
    written = keys(yaml.safe_load(path.read_text()), expected)
    assert written == expected


def job_blocks() -> list[tuple[str, str]]:
    """Every part of a job file in the pages, with its page; a part with … leaves something out."""
    sections = set(Job.model_fields)
    blocks = [(page.name, block) for page in PAGES for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)]
    return [(name, block) for name, block in blocks if "…" not in block and set(yaml.safe_load(block)) & sections]


@pytest.mark.parametrize(("name", "block"), job_blocks())
def test_job_files_in_the_pages_are_legal(name: str, block: str) -> None:
    make_job(parse(block.replace("verifiers/mine", "facts")))  # an adapter of the reader


def test_the_documented_slm_is_complete_and_the_default() -> None:
    written = yaml.safe_load((REPO / "docs" / "slm.yaml").read_text())
    assert Slm.model_validate(written) == Slm(name=written["name"])
    assert written.keys() == Slm.model_fields.keys() and written["replicas"].keys() == Replicas.model_fields.keys()
    assert written["engine"].keys() == Vllm.model_fields.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_files_exist(page: Path) -> None:
    for name in re.findall(r"`((?:docs|infra|tests|jobs|requirements|pipeline|schemas)/[\w./-]+\w)`", page.read_text()):
        assert (REPO / name).exists(), name
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_is_short() -> None:
    lines = (REPO / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert [line for line in lines if len(line) > 140] == []


def test_the_codes_of_errors_are_those_of_the_code() -> None:
    assert error_codes.PAGE.read_text(encoding="utf-8") == error_codes.page(), "`make docs` writes it anew"


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    assert rooms.PAGE.read_text(encoding="utf-8") == rooms.page(), "`make docs` writes it anew"


def test_the_reference_of_commands_is_theirs() -> None:
    command = [sys.executable, "-m", "typer", "ragassay.jobs.cli.main", "utils", "docs", "--name", "ragassay"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert GENERATED.read_text(encoding="utf-8").strip() == found.strip(), "`make docs` writes it anew"
