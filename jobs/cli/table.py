"""The command `ragassay table`."""

from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.decide import opened
from ragassay.jobs.cli.options import Config, Output
from ragassay.jobs.config import load_job
from ragassay.jobs.progress.show import LogFormat

app = typer.Typer()


@app.command()
def table(
    output: Output,
    to: Annotated[
        str, typer.Option("--to", help="delta:PATH (or URI), or iceberg:CATALOG/NAMESPACE.TABLE; made if it is not there.")
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", help="What the table calls OUTPUT, in the column ragassay_output; its address if not given."),
    ] = None,
    config: Config = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Write the verdicts of OUTPUT into a Delta or Iceberg table; what it holds already is not written again."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.table.run import target_of, write_table

        target = target_of(to, folder, load_job(config).input.catalog)
        with doing("writing", "table", unit="partitions"):
            done = write_table(folder, manifest, target, name)
        same = f"; {done.same:,} hold these verdicts already" if done.same else ""
        console.print(
            f"table   {target.uri}: {done.rows:,} rows in {done.partitions:,} partition(s) written{same}", markup=False
        )
