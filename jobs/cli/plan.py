"""The command `ragassay plan`."""

import time
from typing import Annotated

import typer

from ragassay.jobs.cli import errors
from ragassay.jobs.cli.console import Log, new_console, our_errors
from ragassay.jobs.cli.options import Config
from ragassay.jobs.config.job import load_job
from ragassay.jobs.progress.show import LogFormat
from ragassay.pipeline.errors import ConfigError

app = typer.Typer()


@app.command()
def plan(
    input_uri: Annotated[str, typer.Argument(help="Parquet file, folder, glob or object-store URI of logs.")],
    config: Config = None,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Rows to look at.")] = 2_000,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="How long to try the engines on this machine; 0 leaves that out.")
    ] = 20.0,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="Plan for so many GPUs as well.")] = None,
    gpu_tokens_per_second: Annotated[
        float | None,
        typer.Option("--gpu-tokens-per-second", min=1, help="Prompt tokens that one of them computes a second: measure it."),
    ] = None,
    gpu_price: Annotated[float | None, typer.Option("--gpu-price", min=0, help="Price of one of them for an hour.")] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="OUTPUT", help="Plan for this output folder: what it holds is not scored again."),
    ] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Tell what a job will take: rows, tokens, reuse, time here and on GPUs, and what should be mended first."""
    began = time.perf_counter()
    with our_errors() as console:
        from ragassay.jobs.forecast.run import plan as run_plan

        if (gpus is None) != (gpu_tokens_per_second is None):
            raise ConfigError(errors.GPUS_WITHOUT_THROUGHPUT)
        said = new_console(stderr=True)
        run_plan(
            load_job(config),
            input_uri,
            console,
            said,
            sample=sample,
            seconds=seconds,
            gpus=gpus,
            gpu_tokens_per_second=gpu_tokens_per_second,
            gpu_price=gpu_price,
            began=began,
            output_uri=output,
        )
