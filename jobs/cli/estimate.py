"""The commands of what people say of all logs: estimate, agreement."""

from typing import Annotated, Any

import typer

from ragassay.jobs.cli.console import Log, doing, our_errors
from ragassay.jobs.cli.options import IgnoreLabel, Label, Labels, Output, Slices, TrueMeans, Where, label_source, needed
from ragassay.jobs.cli.outputs import read_output, rows_of
from ragassay.jobs.output.manifest import existing_output
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.estimate import Estimate
from ragassay.schemas.manifest import Manifest

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
    with our_errors() as console:
        from ragassay.jobs.evaluation.estimate import ESTIMATE
        from ragassay.jobs.evaluation.estimate import estimate as run_estimate
        from ragassay.jobs.report.tables import print_estimate

        source = needed(label_source(label, labels, true_means, ignore_label, None, where))

        def measure(folder: Folder, manifest: Manifest) -> Estimate:
            with doing("reading", total=rows_of(manifest), unit="rows"):
                return run_estimate(folder, source, slices or [])

        found = read_output(output, measure, console)
        print_estimate(found, existing_output(output).strip_credentials(ESTIMATE), console)


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
        from ragassay.jobs.evaluation.agreement import agreement as run_agreement
        from ragassay.jobs.evaluation.agreement import read_reviewers, to_talk_about, write_rows
        from ragassay.jobs.report.tables import print_agreement
        from ragassay.jobs.storage.writable import new_file

        place = new_file(to, existing_output(output) if output else None) if to else None
        reviewers = read_reviewers(files)

        def compare(folder: Folder | None, manifest: Manifest | None) -> list[dict[str, Any]]:
            with doing("reading", total=rows_of(manifest) if manifest else None, unit="rows"):
                return to_talk_about(reviewers, folder)

        rows = read_output(output, compare, console) if output else compare(None, None)
        if place:
            write_rows(rows, place)
        print_agreement(run_agreement(reviewers), rows, console)
        if to:
            console.print(f"{len(rows)} rows to talk about in {to}", markup=False)
