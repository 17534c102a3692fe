"""The command `ragassay tune`."""

from pathlib import Path
from typing import Annotated

import typer

from ragassay.jobs.cli.console import Log, our_errors
from ragassay.jobs.cli.options import Config, IgnoreLabel, Labels, SentenceLabels, TrueMeans, label_source
from ragassay.jobs.config.job import load_job
from ragassay.jobs.progress.show import LogFormat

app = typer.Typer()


@app.command()
def tune(
    data: Annotated[
        str,
        typer.Argument(
            help="Labelled log, a Parquet file: question, context, response and the label column; with --labels the output "
            "folder that was reviewed."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the adapter; a broken training that lies there is taken up.")],
    base: Annotated[str | None, typer.Option("--base", help="Model to train; by default the SLM's own.")] = None,
    adapter: Annotated[
        str | None, typer.Option("--adapter", help="Go on from this adapter, a folder or a bundled one, under its prompt.")
    ] = None,
    config: Config = None,
    slm: Annotated[str | None, typer.Option("--slm", help="SLM of the job file whose prompt and words are trained.")] = None,
    label: Annotated[
        str, typer.Option("--label", help="Column of the labels: booleans, or correct, partial, wrong.")
    ] = "label",
    labels: Labels = None,
    true_means: TrueMeans = None,
    ignore_label: IgnoreLabel = None,
    sentence_labels: SentenceLabels = None,
    corruptions: Annotated[
        int,
        typer.Option("--corruptions", min=0, help="Statements of each label to make from every context, by rule, besides."),
    ] = 0,
    watch: Annotated[
        list[str] | None,
        typer.Option(
            "--watch",
            help="Labelled log of other origin, measured at every look; the best matrices are those with the highest mean "
            "AUROC on all of them. May be repeated.",
        ),
    ] = None,
    epochs: Annotated[float, typer.Option("--epochs", min=0.01, help="Passes over the data.")] = 1.0,
    learning_rate: Annotated[float, typer.Option("--learning-rate", min=0, help="Its peak.")] = 6e-4,
    rank: Annotated[int, typer.Option("--rank", min=1, help="Rank of the LoRA matrices.")] = 16,
    layers: Annotated[int, typer.Option("--layers", min=0, help="Upper layers that get them; 0 for all.")] = 0,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Labels an optimizer step.")] = 32,
    pack: Annotated[int, typer.Option("--pack", min=64, help="Tokens of one forward pass; larger on a GPU.")] = 2048,
    held_out: Annotated[
        float, typer.Option("--held-out", min=0.01, max=0.5, help="Share of contexts kept for measuring.")
    ] = 0.1,
    check_every: Annotated[int, typer.Option("--check-every", min=1, help="Steps between two looks at them.")] = 50,
    patience: Annotated[int, typer.Option("--patience", min=1, help="Looks without gain after which training stops.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of first values and order.")] = 0,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Train a LoRA adapter for an SLM on labelled responses; `adapter: OUT` in a job file then judges with it."""
    with our_errors() as console:
        from ragassay.jobs.training.run import UNTUNED, job_slm
        from ragassay.jobs.training.run import tune as run_tune
        from ragassay.jobs.training.train import Recipe

        job = load_job(config)
        source = label_source(label, labels, true_means, ignore_label, sentence_labels, None, job.evaluation)
        assert source is not None
        recipe = Recipe(
            epochs=epochs,
            learning_rate=learning_rate,
            rank=rank,
            layers=layers or None,
            batch=batch,
            pack=pack,
            check_every=check_every,
            patience=patience,
            seed=seed,
        )
        run_tune(
            job,
            job_slm(job.members.slms if config else (UNTUNED,), slm, base, adapter),
            data,
            source,
            out,
            recipe,
            held_out=held_out,
            corruptions=corruptions,
            watch=watch or (),
            console=console,
        )
        console.print(f"adapter  {out} (in a job file: `adapter: {out}`)", markup=False, highlight=False)
