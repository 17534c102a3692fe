"""The command line: `ragassay run`, or its steps `score`, `fit` and `finalize`."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jobs.config import Job, load_job
from pipeline.errors import RagassayError

app = typer.Typer(
    help="Say of every sentence of every logged RAG answer whether its context supports it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Input = Annotated[str, typer.Argument(help="Parquet file, folder, glob or object-store URI of logs.")]
Output = Annotated[str, typer.Argument(help="Output folder or URI: raw/, stats/, scored/ and manifest.json.")]
Config = Annotated[str | None, typer.Option("--config", help="Job file (YAML); every setting has a default.")]


class BadFile(StrEnum):
    """What to do with a file that can't be read."""

    STOP = "stop"
    SKIP = "skip"


OnBadFile = Annotated[
    BadFile | None, typer.Option("--on-bad-file", help="Unreadable Parquet file: stop, or skip it and score the rest.")
]


@app.command()
def run(input_uri: Input, output: Output, config: Config = None, on_bad_file: OnBadFile = None) -> None:
    """Score what is new, fit, and finalise: logs in, verdicts out."""
    with _errors() as console:
        from jobs.run import run_job
        from jobs.summary import print_summary

        done = run_job(_job(config, on_bad_file), input_uri, output, console)
        print_summary(done, output, console)


@app.command()
def score(input_uri: Input, output: Output, config: Config = None, on_bad_file: OnBadFile = None) -> None:
    """Score what is new into OUTPUT/raw; resumes where a broken run stopped."""
    with _errors() as console:
        from jobs.run import score_job
        from jobs.summary import print_summary

        done = score_job(_job(config, on_bad_file), input_uri, output, console)
        print_summary(done, output, console)


@app.command()
def fit(output: Output, config: Config = None) -> None:
    """Bring OUTPUT/stats up to date and print mu and sigma of every member."""
    with _errors() as console:
        from jobs.run import fit_job
        from jobs.summary import print_fit

        print_fit(fit_job(load_job(config), output), console)


@app.command()
def finalize(output: Output, config: Config = None) -> None:
    """Give every row of OUTPUT/raw a verdict under the job file's settings; needs no model."""
    with _errors() as console:
        from jobs.run import finalize_job
        from jobs.summary import print_summary

        print_summary(finalize_job(load_job(config), output, console), output, console)


@app.command()
def prepare(config: Config = None) -> None:
    """Make the models of a job ready on this machine (a GGUF file is dequantised once)."""
    with _errors() as console:
        from pipeline.engines.weights import prepare as prepare_model

        for slm in load_job(config).slms:
            console.print(f"{slm.name}: {prepare_model(slm.model)}")


@app.command()
def demo_logs() -> None:
    """Print the folder of the bundled employee-handbook logs."""
    typer.echo(Path(__file__).parent / "handbook" / "logs")


def _job(config: str | None, on_bad_file: BadFile | None) -> Job:
    job = load_job(config)
    return job.model_copy(update={"on_bad_file": on_bad_file.value}) if on_bad_file else job


@contextmanager
def _errors() -> Iterator[Console]:
    """Our own errors end in one message and exit code 1; anything else is a fault of the program, and shows its traceback."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.basicConfig(level=logging.WARNING)
    try:
        yield Console(soft_wrap=True)
    except RagassayError as error:
        Console(stderr=True, soft_wrap=True, markup=False, highlight=False).print(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped; the same command goes on where it stopped")
        sys.exit(130)


if __name__ == "__main__":
    app()
