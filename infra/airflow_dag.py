"""A DAG for Airflow 3: the audit every night, and its report. Copy it into your DAGs' folder.

It calls the command, in an environment in which this package is installed and Airflow need not be: `ragassay` is what the
worker's PATH finds, or RAGASSAY names. The job itself says where it runs (`runtime.ray_address`). On Kubernetes a KubernetesPodOperator
with the same arguments and the image of infra/Dockerfile.cpu does the same.
"""

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

INPUT = os.environ.get("RAGASSAY_INPUT", "s3://your-logs/rag/")
OUTPUT = os.environ.get("RAGASSAY_OUTPUT", "s3://your-audits/rag/")
JOB = os.environ.get("RAGASSAY_JOB", "/opt/ragassay/infra/job_gpu.yaml")

with DAG(
    dag_id="ragassay_nightly",
    description="Says of every sentence of last night's RAG answers whether its context supports it",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # a run scores whatever is new, of however many nights
    max_active_runs=1,  # the output folder takes one at a time
    default_args={
        "retries": 2,  # a retry resumes: finished rows are not scored again
        "retry_delay": timedelta(minutes=15),
        "append_env": True,
        "env": {
            "RAGASSAY": os.environ.get("RAGASSAY", "ragassay"),
            "INPUT": INPUT,
            "OUTPUT": OUTPUT,
            "JOB": JOB,
            "RAGASSAY_LOG_FORMAT": "json",
        },
    },
) as dag:
    run = BashOperator(task_id="run", bash_command='exec "$RAGASSAY" run "$INPUT" "$OUTPUT" --config "$JOB"')
    report = BashOperator(task_id="report", bash_command='exec "$RAGASSAY" report "$OUTPUT"')
    run >> report
