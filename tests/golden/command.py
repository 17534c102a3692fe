"""Run the program as a user does. Only this file of the corpus imports modules of the product's internals."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

REPO = Path(__file__).resolve().parents[2]
UNSET = (
    "LANGFUSE_HOST", "LANGFUSE_BASE_URL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_API_KEY",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "OPENLINEAGE_URL", "OPENLINEAGE_API_KEY",
)  # fmt: skip
SETTINGS = {
    "COLUMNS": "400",
    "LANGFUSE_PUBLIC_KEY": "pk-lf-test",
    "LANGFUSE_SECRET_KEY": "sk-lf-test",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class Finished:
    """Result of a command.

    Attributes:
        exit_code: Exit code.
        stdout: Standard output; progress goes to stderr as JSON.
        error: Error message, if any, and other text of stderr.
    """

    exit_code: int
    stdout: str
    error: str


def run_here(arguments: Sequence[str]) -> Finished:
    """Run a command in this process; it joins this process's Ray.

    Raises:
        AssertionError: The command raised an exception other than SystemExit.
    """
    from ragassay.jobs.cli.main import app

    env: Mapping[str, str | None] = {**SETTINGS, **dict.fromkeys(UNSET)}
    result = CliRunner(env=env).invoke(app, _with_log_format(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{' '.join(arguments)} raised {result.exception!r}") from result.exception
    return Finished(result.exit_code, result.stdout, _drop_logs(result.stderr))


def _with_log_format(arguments: Sequence[str]) -> list[str]:
    return ["--log-format", "json", *arguments]


def _drop_logs(stderr: str) -> str:
    """Remove JSON progress and the logs of Ray and other libraries from stderr."""
    noise = re.compile(r'^(\{"time"|\(raylet\)|\(pid=|\[20|20\d\d-\d\d-\d\d |WARNING:|.*Warning: |  warnings\.warn)')
    return "".join(f"{line}\n" for line in stderr.splitlines() if line.strip() and not noise.match(line))


def start(arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a new process with a new Ray."""
    env = {name: value for name, value in os.environ.items() if name not in UNSET}
    return subprocess.Popen(
        [sys.executable, "-m", "ragassay", *_with_log_format(arguments)],
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        env={**env, **SETTINGS},
        cwd=REPO,
        start_new_session=True,
    )


@contextmanager
def shared_ray() -> Iterator[None]:
    """Share one Ray among all commands of this process."""
    from ragassay.jobs.runtime.ray_session import set_ray_environment
    from ragassay.jobs.runtime.ray_start import start_local_ray

    set_ray_environment()
    import ray

    start_local_ray(2)
    try:
        yield
    finally:
        ray.shutdown()


def write_job(path: Path, settings: Mapping[str, Any]) -> Path:
    """Write a job file."""
    path.write_text(yaml.safe_dump(dict(settings), sort_keys=False))
    return path
