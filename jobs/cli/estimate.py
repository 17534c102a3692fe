"""The commands of what people say of all logs: estimate, agreement."""

from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.decide import opened, rows_of
from ragassay.jobs.cli.options import IgnoreLabel, Label, Labels, Output, Slices, TrueMeans, Where, label_source, needed
from ragassay.jobs.progress.show import LogFormat

app = typer.Typer()


@app.command()
def estimate(
    output: Output,
    labels: Labels = None,
    label: Label = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    where: Where = None,
    slices: Slices = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Estimate the share of hallucinated responses in ALL rows from the labels of a few; writes OUTPUT/estimate.json."""
    with our_errors() as console, opened(output) as (folder, manifest):
        from ragassay.jobs.decide.estimate import ESTIMATE
        from ragassay.jobs.decide.estimate import estimate as run_estimate
        from ragassay.jobs.decide.estimate_tables import print_estimate

        source = needed(label_source(label, labels, true_means, ignore_label, None, where))
        with doing("reading", total=rows_of(manifest), unit="rows"):
            found = run_estimate(folder, source, slices or [])
        print_estimate(found, folder.address_of(ESTIMATE), console)


@app.command()
def agreement(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files of the review page, JSON Lines, by two people or more.")
    ],
    output: Annotated[str | None, typer.Option("--output", help="Output folder that was reviewed, for the texts.")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FILE", help="Write the rows to talk about, as JSON Lines; nothing is overwritten."),
    ] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Tell how far reviewers agree (Cohen's kappa), and the rows to talk about."""
    with our_errors() as console:
        from ragassay.jobs.decide.agreement import agreement as run_agreement
        from ragassay.jobs.decide.agreement import new_file, read_reviewers, to_talk_about, write_rows
        from ragassay.jobs.decide.estimate_tables import print_agreement
        from ragassay.jobs.output.manifest import existing_output, read_manifest

        folder = existing_output(output) if output else None
        place = new_file(to, folder) if to else None
        reviewers = read_reviewers(files)
        with doing("reading", total=rows_of(read_manifest(folder)) if folder else None, unit="rows"):
            rows = to_talk_about(reviewers, folder)
        if place:
            write_rows(rows, place)
        print_agreement(run_agreement(reviewers), rows, console)
        if to:
            console.print(f"{len(rows)} rows to talk about in {to}", markup=False)
