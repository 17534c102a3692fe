"""The command `ragassay publish`."""

import time
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.options import Config, Output
from ragassay.jobs.cli.outputs import read_output
from ragassay.jobs.config.job import load_job
from ragassay.jobs.integrations.publish.targets import TARGETS, Tool
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.manifest import Manifest

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
    name: Annotated[str | None, typer.Option("--name", help="Name of the score there. By default ragassay.")] = None,
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
    config: Config = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Send verdicts to the tool in which people look at traces; goes on where it stopped, and sends nothing twice."""
    with our_errors() as console:
        from ragassay.jobs.integrations.publish.http import Http
        from ragassay.jobs.integrations.publish.run import Done, Job, columns_to_take, rehearse
        from ragassay.jobs.integrations.publish.run import publish as run_publish
        from ragassay.jobs.integrations.publish.state import LOCK, State
        from ragassay.jobs.integrations.publish.summary import print_published, print_rehearsed, refuse_unsent
        from ragassay.jobs.integrations.publish.verdict import Wanted

        job_file = load_job(config)
        settings = job_file.integrations.publish
        score, limit = name or settings.name, per_second or settings.per_second
        trace, span = trace_column or settings.trace_column, settings.span_column if span_column is None else span_column
        folder = existing_output(output)
        connection = TARGETS[to].connect(url)
        where = f"{to} at {connection.url}"

        def what(seen: Folder, manifest: Manifest) -> Job:
            scored = open_scored(seen).require_verdicts().matching(partition or [])
            job = Job(seen, manifest, scored, TARGETS[to], Wanted("", None, only is not None, text, sentences), score, again)
            return replace(job, wanted=columns_to_take(job, trace, span))

        def send(seen: Folder, manifest: Manifest) -> Done:
            job = what(seen, manifest)
            with doing("publishing", to, unit="rows"):
                return run_publish(job, Http(connection, limit), State(folder, to, connection, score))

        if dry_run:
            found = read_output(output, lambda *seen: rehearse(what(*seen), State(folder, to, connection, score)), console)
            print_rehearsed(*found, where, console)
            return
        started = time.monotonic()
        with locked(folder, "publish", job_file.runtime.wait_seconds, console, LOCK):
            done = read_output(output, send, console, whole=False)
        print_published(done, where, time.monotonic() - started, console)
        refuse_unsent(done, where)
