"""The command line: `ragassay run`, or its steps `score`, `fit` and `finalize`."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ragassay.jobs.cli.check import app as check
from ragassay.jobs.cli.console import DRIFT_EXIT, Log, doing, our_errors
from ragassay.jobs.cli.decide import app as decide
from ragassay.jobs.cli.entry import CleanGroup, CommandLine
from ragassay.jobs.cli.estimate import app as estimate
from ragassay.jobs.cli.explain import app as explain
from ragassay.jobs.cli.init import app as init
from ragassay.jobs.cli.options import (
    BudgetHours,
    BudgetRows,
    Config,
    FailOnDrift,
    FileOrder,
    Output,
    Partitions,
    SampleShare,
    backfill_of,
)
from ragassay.jobs.cli.plan import app as plan
from ragassay.jobs.cli.publish import app as publish
from ragassay.jobs.cli.review import app as review
from ragassay.jobs.cli.schema import app as schema
from ragassay.jobs.cli.table import app as table
from ragassay.jobs.cli.tune import app as tune
from ragassay.jobs.config.job import load_job
from ragassay.jobs.progress.show import LogFormat
from ragassay.jobs.scoring.backfill import Order

app = CommandLine(
    cls=CleanGroup,
    help="Say of every sentence of every logged RAG answer whether its context supports it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.add_typer(check)
app.add_typer(decide)
app.add_typer(estimate)
app.add_typer(explain)
app.add_typer(init)
app.add_typer(plan)
app.add_typer(publish)
app.add_typer(review)
app.add_typer(schema)
app.add_typer(table)
app.add_typer(tune)

Input = Annotated[
    str, typer.Argument(help="Logs: file, folder, glob or object-store URI; Delta or Lance table; iceberg://CATALOG/NS.TABLE.")
]


CalibrationFile = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        help="File of `calibrate`, in place of the job file's verdict.normalize, aggregate and threshold; or bundled, or none.",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ragassay {version('ragassay')}")
        raise typer.Exit


@app.callback()
def _of_all(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of no command."""


@app.command()
def run(
    input_uri: Input,
    output: Output,
    config: Config = None,
    fail_on_drift: FailOnDrift = False,
    partitions: Partitions = None,
    order: FileOrder = Order.PATH,
    budget_rows: BudgetRows = None,
    budget_hours: BudgetHours = None,
    sample: SampleShare = 1.0,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Score what is new, fit, and finalise: logs in, verdicts out."""
    with our_errors() as console:
        from ragassay.jobs.cli.summary import print_summary
        from ragassay.jobs.run import RunOptions, run_job
        from ragassay.jobs.verdicts.error_share import refuse_too_many_errors

        job = load_job(config)
        backfill = backfill_of(partitions, order, budget_rows, budget_hours, sample)
        done = run_job(job, input_uri, output, console, RunOptions(backfill))
        print_summary(done, output, console)
        refuse_too_many_errors(job.runtime, done, output)
        if fail_on_drift and done.drift and done.drift.drifted:
            sys.exit(DRIFT_EXIT)


@app.command()
def score(
    input_uri: Input,
    output: Output,
    config: Config = None,
    partitions: Partitions = None,
    order: FileOrder = Order.PATH,
    budget_rows: BudgetRows = None,
    budget_hours: BudgetHours = None,
    sample: SampleShare = 1.0,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Score what is new into OUTPUT/raw; resumes where a broken run stopped."""
    with our_errors() as console:
        from ragassay.jobs.cli.summary import print_summary
        from ragassay.jobs.run import RunOptions, score_job
        from ragassay.jobs.verdicts.error_share import refuse_too_many_errors

        job = load_job(config)
        backfill = backfill_of(partitions, order, budget_rows, budget_hours, sample)
        done = score_job(job, input_uri, output, console, RunOptions(backfill))
        print_summary(done, output, console)
        refuse_too_many_errors(job.runtime, done, output)


@app.command()
def fit(
    output: Output,
    config: Config = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Bring OUTPUT/stats up to date and print mu and sigma of every member."""
    with our_errors() as console:
        from ragassay.jobs.cli.summary import print_fit
        from ragassay.jobs.run import fit_job

        print_fit(fit_job(load_job(config), output, console), console)


@app.command()
def finalize(
    output: Output,
    config: Config = None,
    calibration: CalibrationFile = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Give every row of OUTPUT/raw a verdict under the job file's settings, or a calibration's; needs no model."""
    with our_errors() as console:
        from ragassay.jobs.cli.summary import print_summary
        from ragassay.jobs.run import finalize_job
        from ragassay.jobs.verdicts.error_share import refuse_too_many_errors

        job = load_job(config).with_calibration(calibration)
        done = finalize_job(job, output, console)
        print_summary(done, output, console)
        refuse_too_many_errors(job.runtime, done, output)


@app.command()
def escalate(
    output: Output,
    config: Config = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Put the most doubtful responses of OUTPUT to a larger judge, which decides them; so does `run`, if the job says so."""
    with our_errors() as console:
        from ragassay.jobs.cli.summary import print_summary
        from ragassay.jobs.run import escalate_job

        print_summary(escalate_job(load_job(config), output, console), output, console)


@app.command()
def prepare(config: Config = None, log_format: Log = LogFormat.TEXT) -> None:
    """Make the models of a job ready on this machine (a GGUF file is dequantised once)."""
    with our_errors() as console:
        from ragassay.pipeline.engines.prepare import prepare_slm
        from ragassay.pipeline.slm.config import Slm

        job = load_job(config)
        for model in (*job.scoring_slms, *job.members.reading_models):
            served = isinstance(model, Slm) and model.engine.SERVED
            with doing("preparing", model.name):
                made = "at its server" if served else prepare_slm(model)
            console.print(f"{model.name}: {made}", markup=False)


@app.command()
def demo_logs() -> None:
    """Print the folder of the bundled logs: everyday RAG answers, and hard ones about a staff handbook."""
    typer.echo(Path(__file__).parents[1] / "data" / "handbook" / "demo")


if __name__ == "__main__":
    app()
