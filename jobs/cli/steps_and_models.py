"""The help panel "Steps and models": score, fit, finalize, prepare, tune, demo-logs, schema."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ragassay.jobs.cli.console import command_console, show_task
from ragassay.jobs.cli.options import (
    BudgetHours,
    BudgetRows,
    Calibration,
    Config,
    FileOrder,
    Fraction,
    Label,
    Labels,
    Logs,
    Output,
    Partitions,
)
from ragassay.jobs.cli.panels import Panel
from ragassay.jobs.scoring.order import ScoringOrder

steps = Panel("Steps and models")


@steps.add("score logs/ audit/ --config job.yaml")
def score(
    input_uri: Logs,
    output: Output,
    config: Config = None,
    partitions: Partitions = None,
    order: FileOrder = ScoringOrder.PATH,
    budget_rows: BudgetRows = None,
    budget_hours: BudgetHours = None,
    fraction: Fraction = 1.0,
) -> None:
    """Score new logs into OUTPUT/raw, without verdicts."""
    began = time.perf_counter()
    with command_console() as console:
        from ragassay.jobs.cli.option_values import parse_scope
        from ragassay.jobs.cli.run_summary import print_run_and_check_errors
        from ragassay.jobs.config.job import load_job
        from ragassay.jobs.run import RunOptions, score_job

        job = load_job(config)
        scope = parse_scope(partitions, order, budget_rows, budget_hours, fraction)
        done = score_job(job, input_uri, output, console, RunOptions(scope))
        print_run_and_check_errors(job, done, output, console, began)


@steps.add("fit audit/")
def fit(output: Output, config: Config = None) -> None:
    """Update OUTPUT/stats, and print mean and standard deviation of every member's values."""
    with command_console() as console:
        from ragassay.jobs.cli.run_summary import print_fit
        from ragassay.jobs.config.job import load_job
        from ragassay.jobs.run import fit_job

        print_fit(fit_job(load_job(config), output, console), console)


@steps.add("finalize audit/ --calibration audit/calibration.json")
def finalize(output: Output, config: Config = None, calibration: Calibration = None) -> None:
    """Give every scored response a verdict under new settings or a calibration, without a model."""
    began = time.perf_counter()
    with command_console() as console:
        from ragassay.jobs.cli.run_summary import print_run_and_check_errors
        from ragassay.jobs.config.job import load_job
        from ragassay.jobs.run import finalize_job

        job = load_job(config).with_calibration(calibration)
        done = finalize_job(job, output, console)
        print_run_and_check_errors(job, done, output, console, began)


@steps.add("prepare --config job.yaml")
def prepare(config: Config = None) -> None:
    """Prepare the models of a job on this machine, so that a run starts faster."""
    with command_console() as console:
        from ragassay.jobs.config.job import load_job
        from ragassay.pipeline.engines.prepare import prepare_model
        from ragassay.pipeline.slm.config import Slm

        job = load_job(config)
        for model in (*job.scoring_slms, *job.members.models_without_slms):
            is_served = isinstance(model, Slm) and model.engine.IS_SERVED
            with show_task("preparing", model.name):
                location = "at its server" if is_served else prepare_model(model)
            console.print(f"{model.name}: {location}", markup=False)


@steps.add("tune labeled.parquet --out verifiers/ours")
def tune(
    data: Annotated[
        str,
        typer.Argument(
            help="Labeled logs (Parquet: question, context, response, labels); with --labels, the reviewed output folder."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Path to write: the adapter. An interrupted training resumes there.")
    ],
    config: Config = None,
    slm: Annotated[str | None, typer.Option("--slm", metavar="NAME", help="SLM of the job file to train.")] = None,
    adapter: Annotated[
        str | None,
        typer.Option("--adapter", metavar="ADAPTER", help="Adapter to start from: a folder, or the name of a bundled one."),
    ] = None,
    label: Label = None,
    labels: Labels = None,
    watch: Annotated[
        list[str] | None,
        typer.Option(
            "--watch",
            metavar="FILE",
            help="Labeled logs of another origin; training keeps the weights with the best mean AUROC on them. Repeatable.",
        ),
    ] = None,
    settings_file: Annotated[
        str | None,
        typer.Option("--settings", metavar="FILE", help="Settings of the training (YAML); every setting has a default."),
    ] = None,
) -> None:
    """Train a LoRA adapter for an SLM on labeled responses."""
    with command_console() as console:
        from ragassay.jobs.cli.option_values import require_label_source
        from ragassay.jobs.config.job import load_job
        from ragassay.jobs.training.command import UNTUNED, choose_slm
        from ragassay.jobs.training.command import tune as run_tune
        from ragassay.jobs.training.settings import load_training_settings

        settings = load_training_settings(settings_file)
        job = load_job(config)
        source = require_label_source(label or ("label" if labels is None else None), labels, None, job)
        run_tune(
            job,
            choose_slm(job.members.slms if config else (UNTUNED,), slm, settings.base, adapter),
            data,
            source,
            out,
            settings.recipe,
            held_out=settings.held_out,
            corruptions=settings.corruptions,
            watch=watch or (),
            console=console,
        )
        console.print(f"adapter  {out} (in a job file: `adapter: {out}`)", markup=False, highlight=False)


@steps.add("demo-logs")
def demo_logs() -> None:
    """Print the folder of the bundled demo logs."""
    typer.echo(Path(__file__).parents[1] / "data" / "handbook" / "demo")


@steps.add("schema")
def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    from ragassay.jobs.config.schema import schema_text

    typer.echo(schema_text(), nl=False)
