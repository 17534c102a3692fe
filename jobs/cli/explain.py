"""`explain`: why sentences were flagged, by a larger model."""

from typing import Annotated

import typer

from ragassay.jobs.cli import errors
from ragassay.jobs.cli.console import Log, our_errors
from ragassay.jobs.cli.options import Config, Output
from ragassay.jobs.cli.outputs import read_output
from ragassay.jobs.config.job import load_job
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output, needs_text, read_manifest
from ragassay.jobs.progress.show import LogFormat
from ragassay.pipeline.reasoning.strategy import Strategy

app = typer.Typer()


@app.command()
def explain(
    output: Output,
    config: Config = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            "--strategy",
            help="vanilla: explain. fallback: explain, or say UNKNOWN. categorized: explain, and choose a kind of "
            "hallucination; one kind is that it is none. The job file's, if none is named.",
        ),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            "--sentences",
            min=1,
            help="Explain the worst responses, up to so many flagged sentences of the whole output, or a sample with "
            "--stratify; all, if no number is given. Run again, it asks nothing new.",
        ),
    ] = None,
    stratify: Annotated[
        str | None,
        typer.Option("--stratify", metavar="COLUMN", help="Take a random sample with as much of every value of this column."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of that sample.")] = 0,
    dollars: Annotated[
        float | None,
        typer.Option(
            "--usd", min=0, help="US dollars that this run may spend; needs escalation.explainer.price in the job file."
        ),
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            "--feedback",
            metavar="FILE",
            help="Write the model's opinions as weak labels, for `calibrate --labels FILE --label label` and others.",
        ),
    ] = None,
    review: Annotated[
        str | None,
        typer.Option(
            "--review",
            metavar="FILE",
            help="Write the explanations for people to judge; `evaluate --explanations --judgements FILE` reads it.",
        ),
    ] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Ask a larger model why sentences were flagged: OUTPUT/explanations; goes on where it stopped, and asks nothing twice."""
    with our_errors() as console:
        from ragassay.jobs.cli.explain_summary import print_explained
        from ragassay.jobs.export.explanation_feedback import check_files, rejected_flags, write_feedback, write_review
        from ragassay.jobs.second_pass.explain.run import LOCK, Budget, explain_output
        from ragassay.pipeline.errors import ConfigError

        folder = existing_output(output)
        needs_text(read_manifest(folder), output, "`explain`")
        if stratify is not None and sentences is None:
            raise ConfigError(errors.STRATIFY_WITHOUT_SENTENCES)
        job = load_job(config)
        budget = Budget(sentences, stratify, seed, dollars)
        explainer = job.escalation.explainer
        if explainer is not None:  # else `explain_output` raises
            check_files(folder, strategy or explainer.strategy, feedback, review)
        with locked(folder, "explain", job.runtime.wait_seconds, console, LOCK):
            done = explain_output(job, folder, read_manifest(folder), strategy, budget, console)
            rejected = read_output(output, lambda seen, known: rejected_flags(seen, known, done.strategy), console)
            print_explained(done, rejected, output, console)
            if feedback is not None:
                labels = read_output(output, lambda seen, known: write_feedback(seen, known, done.strategy, feedback), console)
                console.print(f"feedback  {labels} responses with weak labels in {feedback}", markup=False)
            if review is not None:
                written = read_output(output, lambda seen, _: write_review(seen, done.strategy, review), console)
                console.print(f"review  {written} explanations to judge in {review}", markup=False)
