"""Commands of ours wherever a file of infra/ or a page names one, and what our own command line makes of them."""

import ast
import re
import shlex
from pathlib import Path

import typer

from ragassay.jobs.cli.main import app

REPO = Path(__file__).parents[2]
INFRA = REPO / "infra"


def parsed(command: str) -> tuple[str, dict[str, object]]:
    """What our command line takes from a command: name of the command, and its parameters."""
    name, *arguments = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    context = group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
    return name, dict(context.params)


def in_text(text: str) -> list[str]:
    """Commands in quotes of a shell, behind `-- `, or in a line of their own."""
    found = re.findall(r"(?:^|'|-- |\$ )(ragassay (?:run|report|prepare|plan|evaluate) [^'\n…]*[^'\n…\s])", text, re.M)
    return [command for command in found if "INPUT" not in command]


def of_python(path: Path, **known: str) -> list[str]:
    """Commands that a module of infra/ gives to a shell or starts: its own constants filled in."""
    text = path.read_text()
    values = {"RAGASSAY": "ragassay", **_constants(text), **known}
    found = [
        re.sub(r'"\$(\w+)"', lambda name: values[name[1]], line).removeprefix("exec ")
        for line in re.findall(r"bash_command='([^']+)'", text)
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "command":
            assert isinstance(node.value, ast.List)
            words = [values[e.id] if isinstance(e, ast.Name) else ast.literal_eval(e) for e in node.value.elts[1:]]
            found.append(shlex.join(["ragassay", *words]))
    return found


def _constants(text: str) -> dict[str, str]:
    """NAME = os.environ.get("…", default) of a module."""
    return {name: value for name, value in re.findall(r'^(\w+) = os\.environ\.get\("\w+", "([^"]+)"\)', text, re.M)}
