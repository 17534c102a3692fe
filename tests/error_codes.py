"""Write docs/reference/errors.md, the reference of error codes: `python -m tests.error_codes`."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ragassay.pipeline.errors import Message
from tests.test_errors import REPO, files, messages

PAGE = REPO / "docs" / "reference" / "errors.md"
HEAD = """# Error codes

The command line prints an error as `error[CODE]: TEXT`; in Python it has `code` and `fields`. A code is stable, its text is
not. This page shortens the texts; words in braces are fields. Faults of a job file are listed in the field `faults` of
`config.invalid`, faults of the columns of logs in the field `faults` of `input.faults`. Each fault has a code:
`config.unknown-key` for an unknown key, a code below, or a code of pydantic.
"""
FIELD = re.compile(r"(?<!\{)\{([a-z_.]+)(?:![ra])?(?::[^{}]*)?\}")
"""A field, with the way in which the text formats it."""

NAMED = "input|output|labels|SLM|member|model|adapter|target|job file|column|label column"
SUBJECT = re.compile(rf"^(?:(?:{NAMED}) )?\{{[a-z_]+\}}(?:, line \{{line\}})?: ")
"""The thing that a text names first; the rest is a sentence without it."""

SHORT = {
    "output {output}": "OUTPUT",
    "input {uri}": "INPUT",
    "label column {column}": "column {column}",
    "run the same command again": "run it again",
}
"""Words of texts -> shorter words of the page."""

ASIDE = re.compile(r" \([^(){}`]{16,}\)")
"""A remark in parentheses, which the page omits."""

BREAK = re.compile(r"(?:; |: (?!(?:true|false|null|none|own|dynamic|share)\b)|[.?] (?=[A-Z{]))")
JOINT = re.compile(r", | or | and | such as ")
LONGEST = 84
"""Characters of a cell, about: a longer text ends at the last clause that fits."""


def faults() -> list[Message]:
    """Read the messages of the job file's validators from the code."""
    calls = [node for path in files() for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    made = [call.args[:2] for call in calls if ast.unparse(call.func) == "PydanticCustomError"]
    return [Message(ast.literal_eval(code), ast.literal_eval(text)) for code, text in made]


def page() -> str:
    """Build the page: one table per area of codes."""
    lines = [HEAD]
    everything = sorted([*messages().values(), *faults()], key=lambda message: message.code)
    for area, group in groupby(everything, key=lambda message: message.code.partition(".")[0]):
        lines.append(f"\n## {area}\n\n| code | when | what to do |\n| --- | --- | --- |\n")
        lines += [f"| `{message.code}` | {' | '.join(map(_escaped, cells(message.text)))} |\n" for message in group]
    return "".join(lines)


def cells(text: str) -> tuple[str, str]:
    """Split the text of an error into when it happens and what to do."""
    lines = [line.rstrip(":,") for line in text.split("\n") if _has_words(line) and line[0] != " "] or [text]
    text = FIELD.sub(r"{\1}", ". ".join(lines))
    rest = SUBJECT.sub("", text)
    text = ASIDE.sub("", rest if _has_words(rest) else text)
    for words, short in SHORT.items():
        text = text.replace(words, short)
    when, *actions = _clauses(text)
    if actions and re.fullmatch(r"[\w .]*'?\{\w+\}'?", when):
        when = f"{when}: {actions.pop(0)}"
    return _short([when]), _short([action for action in actions if _has_words(action)])


def _has_words(text: str) -> bool:
    """Return whether a text has words next to its fields."""
    return len(re.findall(r"[a-zA-Z]{2,}", re.sub(r"\{[^{}]*\}", "", text))) > 1


def _clauses(text: str) -> Iterator[str]:
    """Cut a text at colons, semicolons and full stops outside code and braces."""
    start = 0
    for mark in BREAK.finditer(text):
        before = text[: mark.start()]
        clause = before[start:]
        if re.search(r" |\}$", clause) and before.count("`") % 2 == 0 and before.count("{") == before.count("}"):
            yield clause
            start = mark.end()
    yield text[start:].rstrip(".")


def _short(clauses: list[str]) -> str:
    """Join as many clauses as fit, and cut a long one at its last joint."""
    kept = ""
    for clause in clauses:
        joined = f"{kept}; {clause}" if kept else clause
        if kept and len(joined) > LONGEST:
            break
        kept = joined
    if len(kept) <= LONGEST + 12:
        return kept
    joints = [mark.start() for mark in JOINT.finditer(kept[:LONGEST]) if kept[: mark.start()].count("`") % 2 == 0]
    return f"{kept[: joints[-1]]} …" if joints and joints[-1] > LONGEST // 2 else kept


def _escaped(text: str) -> str:
    text = re.sub(r"\{\{|\}\}", lambda found: found[0][0], text).strip()
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    Path(PAGE).write_text(page())
