"""RAGAssay: says of every sentence of every logged RAG answer whether its context supports it. The library's front door.

`ragassay.run` is the command `ragassay run`. The folders beside this file are links to those at the top of the repository:
`schemas` (what data looks like), `pipeline` (what happens to a batch), `jobs` (where and when it runs), `infra`.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragassay.schemas.manifest import Run

__version__ = version("ragassay")

__all__ = ["__version__", "run"]


def run(logs: str, output: str, job: dict[str, Any] | str | None = None) -> "Run":
    """Score what is new of the logs, fit, and give every response a verdict, as the command `ragassay run` does.

    Args:
        logs: Parquet file, folder, glob or object-store URI: question, context, response.
        output: Output folder or URI; a broken run that lies there goes on.
        job: The job as its file has it, or the path of one; by default the bundled verifier and the detectors.

    Returns:
        The run's record, as the manifest has it; the verdicts lie in `output`/scored.

    Raises:
        RagassayError: It names what is wrong and the way out; nothing is lost, the same call goes on where it stopped. Too
            many rows on which this program failed (`max_error_share`) raise it too, when everything is written.
    """
    from ragassay.jobs.cli.console import new_console
    from ragassay.jobs.config import load_job, make_job
    from ragassay.jobs.endings import sigterm_restored
    from ragassay.jobs.run import run_job
    from ragassay.jobs.verdict.error_share import refuse_too_many_errors

    made = make_job(job) if isinstance(job, dict) else load_job(job)
    with sigterm_restored():
        done = run_job(made, logs, output, new_console())
    refuse_too_many_errors(made, done, output)
    return done
