"""The command `ragassay schema`."""

import typer

from ragassay.jobs.cli.console import our_errors

app = typer.Typer()


@app.command()
def schema() -> None:
    """Print the JSON Schema of job files, for editors: `ragassay schema >job.schema.json` beside a job file."""
    with our_errors():
        from ragassay.jobs.config.schema import schema_text

        typer.echo(schema_text(), nl=False)
