"""The command `ragassay table`."""

from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.options import Config, Output
from ragassay.jobs.cli.outputs import read_output
from ragassay.jobs.config.job import load_job
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.manifest import Manifest

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
    with our_errors() as console:
        from ragassay.jobs.integrations.tables.run import LOCK, WrittenTable, target_of, write_table

        folder = existing_output(output)
        job = load_job(config)
        target = target_of(to, folder, job.input.catalog)

        def write(seen: Folder, manifest: Manifest) -> WrittenTable:
            with doing("writing", "table", unit="partitions"):
                return write_table(seen, manifest, target, name)

        with locked(folder, "table", job.runtime.wait_seconds, console, LOCK):
            done = read_output(output, write, console, whole=False)
        same = f"; {done.same:,} hold these verdicts already" if done.same else ""
        console.print(
            f"table   {target.uri}: {done.rows:,} rows in {done.partitions:,} partition(s) written{same}", markup=False
        )
