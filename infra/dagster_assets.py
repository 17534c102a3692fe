"""The verdicts as a Dagster asset, every night: `dagster dev -f infra/dagster_assets.py`, or take it among your definitions.

It calls the command, in an environment in which this package is installed and Dagster need not be: `ragassay` is what PATH
finds, or RAGASSAY names. The job itself says where it runs (`runtime.ray_address`).
"""

import os
import subprocess

import dagster as dg

INPUT = os.environ.get("RAGASSAY_INPUT", "s3://your-logs/rag/")
OUTPUT = os.environ.get("RAGASSAY_OUTPUT", "s3://your-audits/rag/")
JOB = os.environ.get("RAGASSAY_JOB", "/opt/ragassay/infra/job_gpu.yaml")


@dg.asset(  # type: ignore[untyped-decorator]
    description="OUTPUT/scored/: score, verdict and sentences of every response",
    retry_policy=dg.RetryPolicy(max_retries=2, delay=900),  # a retry resumes: finished rows are not scored again
)
def ragassay_verdicts(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Run the job; what it prints, which holds nothing of the logs' texts, goes with the materialisation."""
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
