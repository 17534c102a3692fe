"""The shape of the command line: panels, examples, and options that mean the same in every command."""

import re
import shlex
from collections import defaultdict
from typing import Any

import pytest
import typer

from ragassay.jobs.cli.main import PANELS, app
from ragassay.jobs.cli.panels import EXAMPLE, EXIT_CODES
from ragassay.jobs.progress import show
from tests.jobs.conftest import invoke

MOST_OPTIONS = 11
EXPECTED_PANELS = {
    "Audit": ["init", "plan", "run", "report"],
    "Measure": ["evaluate", "calibrate", "estimate", "compare", "agreement", "drift"],
    "Act": ["review", "export", "publish", "table", "explain", "escalate"],
    "Single answers": ["check"],
    "Steps and models": ["score", "fit", "finalize", "prepare", "tune", "demo-logs", "schema"],
}
GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands


def options(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "option" and parameter.name != "help"]


def meaning(help_text: str) -> str:
    """The first clause of an option's help."""
    return re.split(r"[.;:,]( |$)", help_text)[0]


def test_every_command_is_in_its_panel() -> None:
    panels: dict[str, list[str]] = defaultdict(list)
    for name, command in COMMANDS.items():
        panels[command.rich_help_panel].append(name)
    assert dict(panels) == EXPECTED_PANELS
    assert list(panels) == [panel.title for panel in PANELS]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_few_options_and_one_line_of_purpose(name: str) -> None:
    assert len(options(COMMANDS[name])) <= MOST_OPTIONS
    assert re.fullmatch(r"[A-Z][^\n]{10,120}\.", COMMANDS[name].help)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_parses(name: str) -> None:
    assert COMMANDS[name].epilog.startswith(EXAMPLE)
    program, command, *arguments = shlex.split(COMMANDS[name].epilog.removeprefix(EXAMPLE))
    assert (program, command) == ("ragassay", name)
    COMMANDS[name].make_context(name, arguments)


def test_an_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for command in COMMANDS.values():
        for option in options(command):
            meanings[option.opts[0]].add(meaning(option.help))
    assert {name: texts for name, texts in meanings.items() if len(texts) > 1} == {}


def test_an_option_takes_a_value_in_every_command_or_in_none() -> None:
    kinds: dict[str, set[bool]] = defaultdict(set)
    for name, command in COMMANDS.items():
        for option in options(command):
            if (name, option.opts[0]) != ("export", "--context"):
                kinds[option.opts[0]].add(option.is_flag)
    assert {name: types for name, types in kinds.items() if len(types) > 1} == {}


def test_the_main_help_lists_panels_and_exit_codes() -> None:
    text = invoke("--help").stdout
    assert [title for title in EXPECTED_PANELS if title not in text] == []
    assert [code for code, meaning in EXIT_CODES.items() if f"{code}: {meaning}" not in text] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_shows_its_example(name: str) -> None:
    assert COMMANDS[name].epilog in invoke(name, "--help", env={"COLUMNS": "400"}).stdout


def test_the_log_format_is_reset_in_every_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGASSAY_LOG_FORMAT", raising=False)
    formats = []
    for arguments, env in (
        (["--log-format", "json"], {}),
        ([], {}),
        ([], {"RAGASSAY_LOG_FORMAT": "json"}),
        (["--log-format", "text"], {"RAGASSAY_LOG_FORMAT": "json"}),
        ([], {}),
    ):
        assert invoke(*arguments, "demo-logs", env=env).returncode == 0
        formats.append(show.get_log_format().value)
    assert formats == ["json", "text", "json", "text", "text"]


def test_a_misspelt_option_gets_a_suggestion() -> None:
    done = invoke("run", "logs", "out", "--partition", "dt=2026-11-01")
    assert done.returncode == 2 and "--partitions" in done.stderr


@pytest.mark.parametrize("option", ["--to", "--wait", "--address", "--resamples", "--true-means", "--group"])
def test_options_of_the_job_file_are_no_options_of_commands(option: str) -> None:
    assert [name for name, command in COMMANDS.items() if option in {o for p in command.params for o in p.opts}] == []
