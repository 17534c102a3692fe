"""The command `ragassay check`."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from ragassay.jobs.cli import errors
from ragassay.jobs.cli.console import our_errors
from ragassay.pipeline.errors import InputError

app = typer.Typer()

STDIN = "-"


@app.command()
def check(
    answers: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="JSON object with question, context and response, or several of them (JSON Lines); without it, and without "
            "--response, standard input is read.",
        ),
    ] = None,
    question: Annotated[str | None, typer.Option("--question", help="The user's question.")] = None,
    context: Annotated[list[str] | None, typer.Option("--context", help="A passage; may be repeated.")] = None,
    response: Annotated[str | None, typer.Option("--response", help="The answer to check.")] = None,
    config: Annotated[str | None, typer.Option("--config", help="Job file (YAML); every setting has a default.")] = None,
    like: Annotated[
        str | None, typer.Option("--like", help="Output folder whose last moments, threshold and word frequencies count.")
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option("--calibration", help="File of `calibrate`; its moments and threshold come first. Or bundled, or none."),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="By the three default detectors alone; loads no model.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object an answer, with the columns of scored/, and nothing else.")
    ] = False,
) -> None:
    """Check single answers: their sentences with scores, what each was held against, and what the context lacks.

    The exit code is 0 whatever the verdicts are; 1 where an answer can't be read or a model not be used.
    """
    with our_errors() as console:
        from ragassay.jobs.api.check import check_answers
        from ragassay.jobs.api.job import job_of
        from ragassay.jobs.api.progress import engines_silent, shown

        job = job_of(config, like, fast=fast)
        if answers is None and (question is not None or context is not None or response is not None):
            columns = job.input.columns
            given = {columns.question: question, columns.context: context, columns.response: response}
            found = [{name: value for name, value in given.items() if value is not None}]
        elif question is not None or context is not None or response is not None:
            raise InputError(errors.GIVEN_TWICE)
        else:
            found = parse_answers(*_read(answers))
        _arrow_without_pandas()
        with engines_silent() if job.members.local_pools else nullcontext() as stream, shown(stream=stream) as progress:
            checked = check_answers(job, found, like, calibration, progress.tell)
        if as_json:
            for one in checked:
                # Half a character pair, which JSON may hold and UTF-8 can't, goes out as JSON writes it.
                line = json.dumps(one.to_dict(), ensure_ascii=False)
                typer.echo(line.encode("utf-8", "backslashreplace").decode())
            return
        from ragassay.jobs.api.show import rich_of

        for number, one in enumerate(checked):
            console.print(*([""] if number else []), rich_of(one), sep="\n")


def parse_answers(text: str, name: str) -> list[dict[str, Any]]:
    """The objects of a text, one after the other, on one line or many.

    Args:
        text: JSON, or JSON Lines.
        name: Where it comes from, for the message.

    Raises:
        InputError: It is no JSON, holds something else than objects, or nothing; the line is named.
    """
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = _next(text, 0)
    while at < len(text):
        try:
            data, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(errors.NO_JSON, file=name, line=error.lineno, reason=error.msg, column=error.colno) from error
        except RecursionError as error:
            raise InputError(errors.NESTED_TOO_DEEPLY, file=name, line=_line(text, at)) from error
        if not isinstance(data, dict):
            raise InputError(errors.NO_OBJECT, file=name, line=_line(text, at), type=type(data).__name__)
        found.append(data)
        at = _next(text, end)
    if not found:
        raise InputError(errors.EMPTY_FILE, file=name)
    return found


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _read(path: str | None) -> tuple[str, str]:
    """The input's text, and its name."""
    if path is None and sys.stdin.isatty():
        raise InputError(errors.NOTHING_GIVEN)
    name = "standard input" if path in (None, STDIN) else str(path)
    try:
        data = sys.stdin.buffer.read() if path in (None, STDIN) else Path(str(path)).read_bytes()
        return data.decode("utf-8-sig"), name
    except OSError as error:
        raise InputError(errors.UNREADABLE_FILE, file=name, reason=error.strerror or error) from error
    except UnicodeDecodeError as error:
        raise InputError(errors.NO_UTF8, file=name, byte=error.start) from error


def _arrow_without_pandas() -> None:
    """Have pyarrow settle that there is no pandas, which it imports at its first array (apache/arrow pull request 3893).

    That is a quarter of the time of a fast check, and no frame is ever seen here. It does not look again, so only a process
    of this command may do so. None in `sys.modules` would be shorter, but the compiled import takes it for the module.
    """

    class NoPandas:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name)

    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, NoPandas)
        try:
            pa.array([])
        finally:
            sys.meta_path.remove(NoPandas)
