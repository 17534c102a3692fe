"""Write docs/reference/cli.md, the reference of commands: `python -m tests.cli_page`."""

from collections import Counter
from typing import Any

import typer

from ragassay.jobs.cli.main import app
from tests.test_layout import REPO

PAGE = REPO / "docs" / "reference" / "cli.md"
SHARED_BY = 2
"""An option that so many commands have with the same text is described once, at the end of the page."""

Record = tuple[str, str]
"""What a command calls an argument or option, and its help."""

HEAD = """# Commands

`ragassay COMMAND --help` prints the same. `ragassay --version` prints the version; `--install-completion` installs completion
for the current shell. Options under "Also" are described in [Shared options](#shared-options).
"""


def page() -> str:
    """Build the page: one section per command, then the options that several commands share."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    records = {name: _records(command) for name, command in commands.items()}
    counts = Counter(record for options in records.values() for record in options)
    shared = [record for record, count in counts.items() if count >= SHARED_BY and record[0].startswith("-")]
    lines = [HEAD]
    for name, command in commands.items():
        lines.append(f"\n## `ragassay {name}`\n\n{_escaped(command.help or '')}\n\n")
        lines += [_line(record) for record in records[name] if record not in shared]
        also = ", ".join(f"`{_name(record)}`" for record in records[name] if record in shared)
        lines.append(f"- Also: {also}\n" if also else "")
    lines.append("\n## Shared options\n\n")
    lines += [_line(record) for record in sorted(shared)]
    return "".join(lines)


def _records(command: Any) -> list[Record]:
    """Read name and help of each argument and option of a command."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    names = [name.replace(" <str>", "") for name, _ in records]
    named = [(name if name.startswith("-") else name.upper(), text) for name, (_, text) in zip(names, records, strict=True)]
    return [record for record in named if not record[0].startswith("--help")]


def _name(record: Record) -> str:
    return record[0].split()[0].rstrip(",")


def _line(record: Record) -> str:
    return f"- `{record[0]}`: {_escaped(record[1])}\n"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
