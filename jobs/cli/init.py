"""The command `ragassay init`."""

from typing import Annotated

import typer

from ragassay.jobs.cli.console import our_errors

app = typer.Typer()


@app.command()
def init(
    input_uri: Annotated[
        str, typer.Argument(help="File, folder, glob or object-store URI of logs, or of an export of traces.")
    ],
    to: Annotated[str, typer.Option("--to", help="Job file to write; nothing is overwritten.")] = "job.yaml",
) -> None:
    """Write a commented job file for given logs: which columns are what and why, and what to touch first."""
    with our_errors() as console:
        from ragassay.jobs.init.run import init as run_init

        run_init(input_uri, to, console)
