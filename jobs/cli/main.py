"""The command line: the commands of all help panels, and the options that belong to no command."""

import logging
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from ragassay.jobs.cli.act import act
from ragassay.jobs.cli.audit import audit
from ragassay.jobs.cli.hide_secrets import CleanGroup, CommandLine
from ragassay.jobs.cli.measure import measure
from ragassay.jobs.cli.panels import EXIT_CODES
from ragassay.jobs.cli.single_answers import single_answers
from ragassay.jobs.cli.steps_and_models import steps
from ragassay.jobs.progress.show import LogFormat, set_log_format
from ragassay.pipeline.engines.verbosity import VERBOSE

PANELS = (audit, measure, act, single_answers, steps)

app = CommandLine(
    cls=CleanGroup,
    help="Check whether the retrieved context supports every sentence of logged RAG answers.",
    epilog="\n\n".join(["Exit codes:", *(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for panel in PANELS:
    app.add_typer(panel)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"ragassay {version('ragassay')}")
        raise typer.Exit


@app.callback()
def _set_global_options(
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log-format",
            envvar="RAGASSAY_LOG_FORMAT",
            help="Format of progress on stderr: text for people, json for programs (one object per line).",
        ),
    ] = LogFormat.TEXT,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help=f"Show messages of engines and libraries, which otherwise go to a log file ({VERBOSE}=1). Any position.",
        ),
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    if verbose:
        os.environ[VERBOSE] = "1"  # workers inherit it
    set_log_format(log_format)  # in every invocation: a process may run several commands


def main() -> None:
    """Run the command line of this process, and end the process."""
    try:
        app()
    except SystemExit as end:
        # A loaded engine takes five seconds to destroy, although the process ends.
        if "vllm" in sys.modules and not isinstance(end.code, str):
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(end.code if isinstance(end.code, int) else 0)
        raise
