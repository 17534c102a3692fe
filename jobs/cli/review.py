"""The command `ragassay review`."""

from enum import StrEnum
from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.options import Output, Where, conditions
from ragassay.jobs.cli.outputs import page_file, read_output, rows_of, writable
from ragassay.jobs.output.manifest import existing_output, needs_text
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.manifest import Manifest

app = typer.Typer()


class Level(StrEnum):
    """What a label is of."""

    SENTENCES = "sentences"
    RESPONSES = "responses"


@app.command()
def review(
    output: Output,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Responses to draw; all, if there are no more.")] = 200,
    stratified: Annotated[
        bool,
        typer.Option(
            "--stratified",
            help="Draw as many of flagged and supported ones, near the threshold and far from it; else all are drawn alike.",
        ),
    ] = False,
    where: Where = None,
    seed: Annotated[int, typer.Option("--seed", help="Another one draws others; the same draws the same again.")] = 0,
    level: Annotated[
        Level, typer.Option("--level", help="What is labelled first; a key turns to the other.")
    ] = Level.SENTENCES,
    to: Annotated[str | None, typer.Option("--to", help="File to write; OUTPUT/review.html if none is named.")] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Write one self-contained HTML page in which a person labels a sample; `--labels` elsewhere takes what it saves."""
    with our_errors() as console:
        from ragassay.jobs.report.review.page import render
        from ragassay.jobs.report.review.rows import Shown, shown_rows
        from ragassay.jobs.report.review.sample import Sample, draw, passes

        place, name = page_file(existing_output(output), to, "review")

        def draw_rows(folder: Folder, manifest: Manifest) -> tuple[Sample, list[Shown]]:
            needs_text(manifest, output, "`review`")
            with doing("reading", total=passes(stratified) * rows_of(manifest), unit="rows"):
                drawn = draw(folder, sample, seed=seed, stratified=stratified, where=conditions(where))
            return drawn, shown_rows(folder, drawn.rows)

        drawn, rows = read_output(output, draw_rows, console)
        with writable(to):
            place.write(name, render(existing_output(output).address, rows, level.value))
        sentences = sum(not isinstance(part, str) for row in rows for part in row["parts"])
        there = sum(count for _, count in drawn.strata.values())
        console.print(f"sample  {len(rows):,} of {there:,} scored responses, {sentences:,} sentences", markup=False)
        for stratum, (taken, count) in drawn.strata.items():
            if stratum:
                console.print(f"        {stratum}: {taken:,} of {count:,}", markup=False)
        if drawn.repeated:
            console.print(
                f"        {drawn.repeated:,} more are neither drawn nor counted: other rows of their partition have the same "
                "id, and a label could be of any of them",
                markup=False,
            )
        console.print(f"review  {place.strip_credentials(name)}", markup=False)
