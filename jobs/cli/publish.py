"""The command `ragassay publish`."""

import time
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.decide import opened
from ragassay.jobs.cli.options import Output
from ragassay.jobs.output.partitions import partitions
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.publish.targets import TARGETS, Tool
from ragassay.pipeline.errors import OutputError

app = typer.Typer()


class Only(StrEnum):
    """Of which responses."""

    FLAGGED = "flagged"


@app.command()
def publish(
    output: Output,
    to: Annotated[Tool, typer.Option("--to", help="The tool; otel is the event gen_ai.evaluation.result over OTLP.")],
    url: Annotated[
        str | None, typer.Option("--url", help="Its address; else that of the environment. Keys are taken from there alone.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the score there.")] = "ragassay",
    trace_column: Annotated[
        str | None, typer.Option("--trace-column", help="Column of the trace's id; trace_id where it is there, else row_id.")
    ] = None,
    span_column: Annotated[
        str | None,
        typer.Option(
            "--span-column",
            help="Column of the span's id. Phoenix takes span_id where it is there, otel generation_span_id or span_id; the "
            "others tell the trace. An empty name takes none.",
        ),
    ] = None,
    only: Annotated[Only | None, typer.Option("--only", help="Leave out responses without anything flagged.")] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option("--partitions", metavar="CONDITION", help="Such as dt>=2026-11-01 or tenant=a; can be repeated."),
    ] = None,
    sentences: Annotated[bool, typer.Option("--sentences", help="Tell also of every sentence, as metadata.")] = False,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Quote flagged sentences and what is missing.")] = True,
    per_second: Annotated[float | None, typer.Option("--per-second", min=0.001, help="Requests a second at most.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Send all anew, over what is there.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be sent, show the first, and ask nobody.")
    ] = False,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Send verdicts to the tool in which people look at traces; goes on where it stopped, and sends nothing twice."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.publish.choose import chosen
        from ragassay.jobs.publish.http import Http
        from ragassay.jobs.publish.run import Job, columns_to_take, rehearse
        from ragassay.jobs.publish.run import publish as run_publish
        from ragassay.jobs.publish.state import State
        from ragassay.jobs.publish.summary import print_published, print_rehearsed, refuse_unsent
        from ragassay.jobs.publish.verdict import Wanted

        files = partitions(folder, "scored")
        if not files:
            raise OutputError(f"output {output} has no verdicts yet: run `ragassay finalize {output}` first")
        target = TARGETS[to]
        files = {place: files[place] for place in chosen(files, partition or [])}
        job = Job(folder, manifest, files, target, Wanted("", None, only is not None, text, sentences), name, again)
        job = replace(job, wanted=columns_to_take(job, trace_column, span_column))
        connection = target.connect(url)
        state, where = State(folder, to, connection, name), f"{to} at {connection.url}"
        if dry_run:
            print_rehearsed(*rehearse(job, state), where, console)
            return
        started = time.monotonic()
        with doing("publishing", to, unit="rows"):
            done = run_publish(job, Http(connection, per_second), state)
        print_published(done, where, time.monotonic() - started, console)
        refuse_unsent(done, where)
