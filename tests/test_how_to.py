"""Every how-to page works: its commands, job files and Python run in order on a small output, without Ray and models."""

import json
import re
import shlex
import shutil
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from ragassay.jobs.cli.main import app
from ragassay.jobs.config.job import Job, load_job
from tests.golden.command import SETTINGS, write_job
from tests.golden.jobs import DETECTORS
from tests.golden.logs import make_shop_rows, write
from tests.golden.servers import Servers, serve
from tests.job_settings import merged
from tests.jobs.integrations.traces.exports import TOOLS
from tests.jobs.integrations.traces.stories import stories
from tests.without_ray import without_ray

REPO = Path(__file__).parent.parent
PAGES = sorted((REPO / "docs" / "how-to").glob("*.md"))

NOT_RUN = {
    "docker run": "needs a container engine",
    "ragassay run s3://your-logs": "needs a cluster and an object store",
    "ragassay tune": "trains a model for minutes",
    "from phoenix.client": "needs a Phoenix server",
    "frame = mlflow": "needs an MLflow server",
    "dataset.records": "needs an Argilla server",
}
"""Beginning of a command or Python block that is not run -> reason. The options of a command are checked."""

MISSING = {"inputs": ("audit", "job.yaml"), "nightly": ("audit",), "privacy": ("audit",)}
"""Page -> what does not exist at its beginning."""

REPLACED = {
    "s3://bucket/langfuse/": "langfuse/",
    "delta:s3://lake/": "delta:lake/",
    "file:///lake": "file://{folder}/lake",
    "http://localhost:6006": "{url}",
}
"""Address in a page -> the stand-in."""

ROWS = 48
BASE: dict[str, Any] = {
    "members": {"slms": [], "detectors": DETECTORS},
    "verdict": {"threshold": {"quantile": 0.4}},
    "evaluation": {"resamples": 20},
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with serve() as started:
        yield started


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages use: logs, a job file, an output, labels of two reviewers, and an export of traces.

    Returns:
        A copy of the folder. An output knows the paths of its logs, so each page works in the folder `page` next to the copy.
    """
    folder = tmp_path_factory.mktemp("how_to") / "page"
    rows = [
        {**row, "split": "train" if n % 5 else "test", "trace_id": f"{n + 1:032x}", "span_id": f"{n + 1:016x}"}
        for n, row in enumerate(make_shop_rows(ROWS))
    ]
    for day in range(3):
        write(folder / "logs" / f"dt=2026-11-0{day + 1}" / "a.parquet", rows[day::3])
    write_job(folder / "job.yaml", BASE)
    run(["run", f"{folder}/logs", f"{folder}/audit", "--config", f"{folder}/job.yaml"], {})
    for name, reviewer in (("reviewed", "ana"), ("ana", "ana"), ("review-audit-ana", "ana"), ("ben", "ben")):
        labels = [
            {
                "row_id": row["row_id"],
                "partition": f"dt=2026-11-0{n % 3 + 1}",
                "label": "supported" if row["label"] == "correct" else "unsupported",
                "reviewer": reviewer,
                "at": "2026-11-22T10:00:00Z",
            }
            for n, row in enumerate(rows)
            if n % 4
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    export = TOOLS["langfuse"]
    traces = [row for story in stories(9) for row in export.rows(story, story.spans)]
    export.write(folder / "langfuse", 1, sorted(traces, key=str))
    return shutil.copytree(folder, folder.parent / "start")


def run(arguments: list[str], env: Mapping[str, str]) -> str:
    """Run a command in this process, and return what it prints."""
    with without_ray():
        result = CliRunner(env={**SETTINGS, **env}).invoke(app, ["--log-format", "json", *arguments])
    allowed = {0, 3} if "--fail-on-drift" in arguments else {0}
    assert result.exit_code in allowed, f"{arguments}: {result.output} {result.exception!r}"
    return result.stdout


def parse(arguments: list[str]) -> None:
    """Check the options of a command, and the job file in `infra/` that it names."""
    group: Any = typer.main.get_command(app)
    name, command, rest = group.resolve_command(typer.Context(group), arguments)
    job = Path(command.make_context(name, rest).params["config"] or "")
    if job.parent.name == "infra":
        load_job(str(REPO / "infra" / job.name))


def is_run(text: str) -> bool:
    """Return whether a command or Python block is run."""
    return not text.startswith(tuple(NOT_RUN))


def blocks(page: Path, replaced: Mapping[str, str]) -> list[tuple[str, str]]:
    """Language and text of each code block of a page, after replacements."""
    text = page.read_text(encoding="utf-8")
    for address, stand_in in replaced.items():
        text = text.replace(address, stand_in)
    return [(name, textwrap.dedent(block)) for name, block in re.findall(r"^ *```(\w+)\n(.*?)^ *```", text, re.M | re.S)]


def commands(block: str) -> list[str]:
    """Commands of a console block, without what they print."""
    return re.findall(r"^\$ (.*)", block, re.M)


def with_stand_ins(job: dict[str, Any], servers: Servers) -> dict[str, Any]:
    """Return a page's job file with the members of the output, and with served stand-ins for its larger models."""
    engine = {"kind": "server", "base_url": servers.chat, "retries": 0}
    models = {
        "judge": {"name": "judge", "model": "judge", "engine": engine},
        "explainer": {"model": "reasoner", "engine": engine},
    }
    larger = {role: model for role, model in models.items() if role in job.get("escalation", {})}
    sections = {name: settings for name, settings in job.items() if name not in {"members", "runtime"}}
    return merged(BASE, sections, {"escalation": larger} if larger else {})


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_works(page: Path, start: Path, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = start.parent / "page"
    shutil.rmtree(folder)
    shutil.copytree(start, folder)
    monkeypatch.chdir(folder)
    for name in MISSING.get(page.stem, ()):
        Path(name).rename(f"_{name}")
    url = servers.tools.url
    env = {"LANGFUSE_HOST": url, "MLFLOW_TRACKING_URI": url, "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    replaced = {address: stand_in.format(folder=folder, url=url) for address, stand_in in REPLACED.items()}
    for language, block in blocks(page, replaced):
        if language == "yaml":
            settings = yaml.safe_load(block)
            if settings.keys() <= Job.model_fields.keys():
                write_job(Path("job.yaml"), with_stand_ins(settings, servers))
        elif language == "python" and is_run(block):
            Path(f"{page.stem}.py").write_text(block)  # privacy.md names a function of privacy.py
            exec(block, {})
        elif language == "console":
            for command in commands(block):
                program, *arguments = shlex.split(command)
                if is_run(command):
                    assert program == "ragassay", command
                    run(arguments, env)
                elif program == "ragassay":
                    parse(arguments)


def test_the_readme_shows_what_check_prints() -> None:
    text = (REPO / "README.md").read_text(encoding="utf-8").replace("\\\n", "")
    command, output = re.findall(r"^\$ ragassay (check [^\n]*)\n(.*?)judged by", text, re.M | re.S)[0]
    assert run(shlex.split(command), {}).startswith(output)


def test_your_logs_in_the_readme_work(start: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(start / "logs", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    text = (REPO / "README.md").read_text(encoding="utf-8").partition("## Your logs")[2]
    lines = [shlex.split(line)[1:] for line in commands(text.partition("## ")[0])]
    assert [line[0] for line in lines] == ["init", "plan", "run", "report"]
    for line in lines:
        if line[0] == "init":
            run(line, {})
            settings = yaml.safe_load(Path("job.yaml").read_text())
            write_job(Path("job.yaml"), {**settings, **BASE})
        elif line[0] != "plan":  # it starts the engines of the job in Ray
            run(line, {})
    assert Path("audit/report.html").exists()


def test_the_readme_names_every_extra() -> None:
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (REPO / "README.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"The extras are ([^;]+);", text)
    assert set(re.findall(r"`([\w-]+)`", listed)) == set(extras) - {"dev"}
    assert set(re.findall(r"(?:ragassay|\.)\[([\w-]+)\]", text)) <= set(extras)


@pytest.mark.slow
def test_the_calibration_page_shows_what_evaluate_prints(tmp_path: Path) -> None:
    text = (REPO / "docs" / "how-to" / "calibration.md").read_text(encoding="utf-8")
    (output,) = re.findall(r"^\$ ragassay evaluate audit/ --label label\n(.*?)```", text, re.M | re.S)
    job = write_job(tmp_path / "job.yaml", {"members": BASE["members"]})
    run(["run", run(["demo-logs"], {}).strip(), f"{tmp_path}/audit", "--config", str(job)], {})
    printed = run(["evaluate", f"{tmp_path}/audit", "--label", "label"], {})
    lines = [line.rstrip() for line in printed.splitlines() if line.strip("─ ")]
    assert lines[: len(output.splitlines())] == output.splitlines()


def test_each_exception_is_in_a_page() -> None:
    texts = [text for page in PAGES for _, block in blocks(page, {}) for text in (block, *commands(block))]
    assert [beginning for beginning in NOT_RUN if not any(text.startswith(beginning) for text in texts)] == []
