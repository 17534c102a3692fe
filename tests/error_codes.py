"""Write `docs/errors.md`, every error with its code: `python -m tests.error_codes`."""

import ast
import re
from pathlib import Path

from ragassay.pipeline.errors import Message
from tests.test_errors import REPO, files, messages

PAGE = REPO / "docs" / "errors.md"
HEAD = """# Error codes

Every error that RAGAssay raises on purpose has a stable code. The command line prints it as `error[CODE]: TEXT`; in Python
an error has `code` and `fields`. Codes stay; texts may change at any time. The words in braces are the fields.
Faults of a job file stand together in the field `faults` of `config.invalid`, those of columns of logs in that of
`input.faults`. Each has a code too: `config.unknown-key` for a key that is none, one of those below, or one of pydantic.
"""


def faults() -> list[Message]:
    """What validators of the job file say."""
    calls = [node for path in files() for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    made = [call.args[:2] for call in calls if ast.unparse(call.func) == "PydanticCustomError"]
    return [Message(ast.literal_eval(code), ast.literal_eval(text)) for code, text in made]


def page() -> str:
    """The page."""
    lines = [HEAD]
    area = ""
    for message in sorted([*messages().values(), *faults()], key=lambda found: found.code):
        if message.code.partition(".")[0] != area:
            area = message.code.partition(".")[0]
            lines.append(f"\n## {area}\n\n| code | text |\n| --- | --- |\n")
        text = re.sub(r"\{\{|\}\}|\{([^{}!:]*)[^{}]*\}", _plain, message.text).replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{message.code}` | {_as_code(text)} |\n")
    return "".join(lines)


def _as_code(text: str) -> str:
    return re.sub(r"<", "&lt;", text).replace("*", "\\*")


def _plain(part: re.Match[str]) -> str:
    """A doubled brace as one, and a field without its format."""
    return part[0][0] if part[1] is None else f"{{{part[1]}}}"


if __name__ == "__main__":
    Path(PAGE).write_text(page())
