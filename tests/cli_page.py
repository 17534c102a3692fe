"""Write docs/reference/cli.md, the reference of commands: `python -m tests.cli_page`."""

import re
from collections import Counter
from itertools import groupby
from typing import Any

import typer

from ragassay.jobs.cli.main import app
from ragassay.jobs.cli.panels import EXAMPLE, EXIT_CODES
from tests.test_layout import REPO

PAGE = REPO / "docs" / "reference" / "cli.md"
SHARED_BY = 2
"""An argument or option that this many commands share with the same text is described once, at the end of the page."""

Record = tuple[str, str]
"""Name of an argument or option, and its help."""

HEAD = """# Commands

`ragassay COMMAND --help` prints the same. Arguments and options under "Shared" are described
[at the end](#shared-arguments-and-options).

## Global options

They precede the command: `ragassay --log-format json run logs/ audit/`.

"""


def build_page() -> str:
    """Build the page: global options, exit codes, one section per command, and what several commands share."""
    group: Any = typer.main.get_command(app)
    records = {name: _list_records(command) for name, command in group.commands.items()}
    counts = Counter(record for options in records.values() for record in options)
    shared = [record for record, count in counts.items() if count >= SHARED_BY]
    lines = [HEAD, *(_render_record(record) for record in _list_records(group) if "completion" not in record[0])]
    lines.append("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n")
    lines += [f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()]
    for panel, commands in groupby(group.commands.items(), key=lambda item: item[1].rich_help_panel):
        lines.append(f"\n## {panel}\n")
        for name, command in commands:
            example = command.epilog.removeprefix(EXAMPLE)
            lines.append(f"\n### `ragassay {name}`\n\n{_escape(command.help)}\n\n```console\n$ {example}\n```\n\n")
            lines += [_render_record(record) for record in records[name] if record not in shared]
            names = ", ".join(f"`{_get_name(record)}`" for record in records[name] if record in shared)
            lines.append(f"- Shared: {names}\n" if names else "")
    lines.append("\n## Shared arguments and options\n\n")
    lines += [_render_record(record) for record in sorted(shared)]
    return "".join(lines)


def _list_records(command: Any) -> list[Record]:
    """Read name and help of each argument and option of a command."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.params]
    names = [re.sub(r" <(str|list\[str\])>", "", name, flags=re.I) for name, _ in records]
    named = [(name if name.startswith("-") else name.upper(), text) for name, (_, text) in zip(names, records, strict=True)]
    return [record for record in named if not record[0].startswith("--help")]


def _get_name(record: Record) -> str:
    return record[0].split()[0].rstrip(",")


def _render_record(record: Record) -> str:
    return f"- `{record[0]}`: {_escape(record[1])}\n"


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
