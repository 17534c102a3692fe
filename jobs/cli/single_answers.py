"""The help panel "Single answers": check."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from ragassay.jobs.cli import errors
from ragassay.jobs.cli.answer_input import read_answers
from ragassay.jobs.cli.console import command_console
from ragassay.jobs.cli.options import Calibration, Config
from ragassay.jobs.cli.panels import Panel
from ragassay.jobs.display.library_log import get_output, get_terminal, report_crash
from ragassay.pipeline.errors import InputError

single_answers = Panel("Single answers")


@single_answers.add("check answer.json --fast")
def check(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="Question, context and response: JSON objects, or rows of CSV, TSV or Parquet. Default: the options below, or "
            "standard input.",
        ),
    ] = None,
    question: Annotated[str | None, typer.Option("--question", metavar="TEXT", help="Question of the user.")] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", metavar="TEXT", help="Context passages: one of them; repeatable.")
    ] = None,
    response: Annotated[str | None, typer.Option("--response", metavar="TEXT", help="Response to check.")] = None,
    config: Config = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="OUTPUT",
            help="Output folder to read: its normalization, threshold and word frequencies apply.",
        ),
    ] = None,
    calibration: Calibration = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Use the job's detectors only (by default three), and load no model.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one object per answer, with the columns of scored/.")
    ] = False,
) -> None:
    """Check single answers and show the score and best passage of each sentence."""
    with command_console() as console:
        from ragassay.jobs.api.progress import show_progress

        with show_progress(stream=get_terminal()):
            _disable_pandas_in_pyarrow()
            from ragassay.jobs.api.check import check_answers
            from ragassay.jobs.api.select_job import select_job

            job = select_job(config, history, fast=fast)
        has_options = question is not None or context is not None or response is not None
        if file is not None and has_options:
            raise InputError(errors.GIVEN_TWICE)
        if has_options:
            columns = job.input.columns
            passages = context[0] if context and len(context) == 1 else context
            values = {columns.question: question, columns.context: passages, columns.response: response}
            answers = [{name: value for name, value in values.items() if value is not None}]
        else:
            answers = read_answers(file, job.input.csv_encoding)
        with report_crash() if job.members.local_pools else nullcontext(), show_progress(stream=get_terminal()) as progress:
            checked_answers = check_answers(job, answers, history, calibration, progress.report_step)
        if as_json:
            for checked in checked_answers:
                # JSON may contain half of a surrogate pair, which UTF-8 can't encode: print it as JSON escapes it.
                line = json.dumps(checked.to_dict(), ensure_ascii=False)
                typer.echo(line.encode("utf-8", "backslashreplace").decode(), file=get_output())
            return
        from ragassay.jobs.display.verdicts import render_rich

        for number, checked in enumerate(checked_answers):
            console.print(*([""] if number else []), render_rich(checked), sep="\n")


def _disable_pandas_in_pyarrow() -> None:
    """Make pyarrow decide that pandas is missing (apache/arrow pull request 3893).

    pyarrow imports pandas at its first array. That takes a quarter of the time of a fast check, which needs no data
    frame. The decision is final, so only a process of this command may make it. None in `sys.modules` would be shorter, but
    compiled code takes it for the module.
    """

    import pyarrow as pa

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
