"""Extract `ragassay` commands from files of infra/ and pages, and parse them with the real command line."""

import ast
import re
import shlex
from pathlib import Path

import typer

from ragassay.jobs.cli.main import app

REPO = Path(__file__).parents[2]
INFRA = REPO / "infra"


def parse_command(command: str) -> tuple[str, dict[str, object]]:
    """Return the name and the parameters of a command, parsed by the command line."""
    name, *arguments = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    context = group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
    return name, dict(context.params)


def find_commands_in_text(text: str) -> list[str]:
    """Return commands in shell quotes, after `-- `, or on separate lines."""
    commands = re.findall(r"(?:^|'|-- |\$ )(ragassay (?:run|report|prepare|plan|evaluate) [^'\n…]*[^'\n…\s])", text, re.M)
    return [command for command in commands if "INPUT" not in command]


def find_commands_in_module(path: Path, **known: str) -> list[str]:
    """Return the commands that a module of infra/ runs, with its constants inserted."""
    text = path.read_text()
    values = {"RAGASSAY": "ragassay", **_read_constants(text), **known}
    commands = [
        re.sub(r'"\$(\w+)"', lambda name: values[name[1]], line).removeprefix("exec ")
        for line in re.findall(r"bash_command='([^']+)'", text)
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "command":
            assert isinstance(node.value, ast.List)
            words = [values[e.id] if isinstance(e, ast.Name) else ast.literal_eval(e) for e in node.value.elts[1:]]
            commands.append(shlex.join(["ragassay", *words]))
    return commands


def _read_constants(text: str) -> dict[str, str]:
    """Return the defaults of NAME = os.environ.get("…", default) in a module."""
    return {name: value for name, value in re.findall(r'^(\w+) = os\.environ\.get\("\w+", "([^"]+)"\)', text, re.M)}
