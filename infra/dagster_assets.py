"""The verdicts as a nightly Dagster asset: `dagster dev -f infra/dagster_assets.py`, or add it to your definitions.

It calls the command `ragassay`, from PATH or from the variable RAGASSAY; its environment needs this package, but not Dagster.
The job file states where the job runs (`runtime.ray_address`).
"""

import os
import subprocess

import dagster as dg

INPUT = os.environ.get("RAGASSAY_INPUT", "s3://your-logs/rag/")
OUTPUT = os.environ.get("RAGASSAY_OUTPUT", "s3://your-audits/rag/")
JOB = os.environ.get("RAGASSAY_JOB", "/opt/ragassay/infra/job_gpu.yaml")


@dg.asset(  # type: ignore[untyped-decorator]
    description="OUTPUT/scored/: score, verdict and sentences of every response",
    retry_policy=dg.RetryPolicy(max_retries=2, delay=900),  # a retry resumes; committed rows are not scored again
)
def ragassay_verdicts(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Run the job and attach its printed summary, which contains no log text, to the materialization."""
    command = [os.environ.get("RAGASSAY", "ragassay"), "run", INPUT, OUTPUT, "--config", JOB]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    context.log.info(done.stdout)
    if done.returncode:
        raise dg.Failure(f"ragassay ended with exit code {done.returncode}")
    return dg.MaterializeResult(
        metadata={"summary": dg.MetadataValue.md(f"```\n{done.stdout}\n```"), "output": dg.MetadataValue.path(OUTPUT)}
    )


defs = dg.Definitions(
    assets=[ragassay_verdicts],
    schedules=[dg.ScheduleDefinition(name="ragassay_nightly", target=[ragassay_verdicts], cron_schedule="0 2 * * *")],
)
