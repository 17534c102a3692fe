"""Test that manifests match the schemas of their kinds, and that the command line accepts their commands."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ragassay.jobs.config.job import load_job
from tests.infra.commands import INFRA, REPO, find_commands_in_module, find_commands_in_text, parse_command
from tests.infra.kinds import CronJob, Kind, RayCluster, RayCronJob, RayJob

KINDS: dict[str, type[Kind]] = {
    "rayjob.yaml": RayJob, "raycluster.yaml": RayCluster, "raycronjob.yaml": RayCronJob, "cronjob.yaml": CronJob,
}  # fmt: skip
IMAGE = "/opt/ragassay/"
PAGE = REPO / "docs" / "how-to" / "clusters.md"


def load(name: str) -> Any:
    return yaml.safe_load((INFRA / name).read_text())


def find_commands(name: str) -> list[str]:
    """Return the `ragassay` commands in a file of infra/."""
    path = INFRA / name
    if path.suffix == ".py":
        return find_commands_in_module(path)
    if name == "cronjob.yaml":
        (container,) = load(name)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        return [shlex.join(container["args"])]
    if name in KINDS:
        spec = load(name)["spec"]
        return [job["entrypoint"] for job in (spec, spec.get("jobTemplate", {})) if "entrypoint" in job]
    return find_commands_in_text(path.read_text())


@pytest.mark.parametrize("name", KINDS)
def test_manifests_match_the_schemas_of_their_kinds(name: str) -> None:
    KINDS[name].model_validate(load(name))


@pytest.mark.parametrize("name", KINDS)
def test_unknown_fields_and_wrong_values_are_refused(name: str) -> None:
    text = (INFRA / name).read_text()
    for wrong in (text.replace("requests:", "request:"), text.replace("\nspec:", "\nspecs:"), text.replace(" image:", " img:")):
        assert wrong != text
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            KINDS[name].model_validate(yaml.safe_load(wrong))
    with pytest.raises(ValidationError):
        KINDS[name].model_validate(yaml.safe_load(re.sub(r'cpu: "?\w+"?', 'cpu: "many"', text)))


def test_all_manifests_define_the_same_cluster() -> None:
    job, cron, cluster = load("rayjob.yaml")["spec"], load("raycronjob.yaml")["spec"], load("raycluster.yaml")["spec"]
    assert cron["jobTemplate"] == job and job["rayClusterSpec"] == cluster
    version = re.search(r"^ARG BASE=rayproject/ray:([\d.]+)-", (INFRA / "Dockerfile.gpu").read_text(), re.M)
    assert version and cluster["rayVersion"] == version[1]
    assert f"ray=={version[1]}" in (REPO / "requirements" / "gpu.txt").read_text().split()


def test_cronjob_submits_to_the_cluster() -> None:
    (container,) = load("cronjob.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    name, image = load("raycluster.yaml")["metadata"]["name"], load("raycluster.yaml")["spec"]["headGroupSpec"]["template"]
    assert container["command"] == ["ray", "job", "submit", "--address", f"http://{name}-head-svc:8265", "--"]
    assert container["image"] == image["spec"]["containers"][0]["image"]
    (token,) = [entry["valueFrom"]["secretKeyRef"] for entry in container["env"] if "valueFrom" in entry]
    assert token == {"name": name, "key": "auth_token"}


COMMANDS = [
    (path.name, command)
    for path in sorted(INFRA.iterdir())
    if path.suffix in (".yaml", ".py") and not path.name.startswith(("job_", "__"))
    for command in find_commands(path.name)
]


def test_commands_of_every_file_that_starts_a_job_are_found() -> None:
    names = {name for name, _ in COMMANDS}
    assert names == {"rayjob.yaml", "raycronjob.yaml", "cronjob.yaml", "ray-up.yaml", "airflow_dag.py", "dagster_assets.py"}


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[f"{name}: {command[:20]}" for name, command in COMMANDS])
def test_command_line_accepts_the_commands(name: str, command: str) -> None:
    kind, parameters = parse_command(command)
    assert kind in ("run", "report")
    if kind == "run":
        config = str(parameters["config"])
        assert config.startswith(IMAGE), "the path in the image"
        load_job(str(REPO / config.removeprefix(IMAGE)))
        assert "$" not in command, "the submitter's shell would expand it"


def test_commands_match_those_of_the_docs_page() -> None:
    jobs = {
        tuple(sorted(parse_command(command)[1].items(), key=str))
        for _, command in COMMANDS
        if command.startswith("ragassay run")
    }
    same = {tuple(pair for pair in job if pair[0] in ("input_uri", "output", "config")) for job in jobs}
    page = [
        parse_command(command)[1]
        for command in find_commands_in_text(PAGE.read_text())
        if command.startswith("ragassay run s3:")
    ]
    assert len(same) == 1 and page
    assert all(dict(next(iter(same))).items() <= parameters.items() for parameters in page)


def test_the_command_line_accepts_the_commands_of_the_github_workflow() -> None:
    """Its job file is that of the user's repository; the soak tests check the file against GitHub's schema."""
    workflow = load("github_workflow.yaml")
    steps = workflow["jobs"]["audit"]["steps"]
    commands = [parse_command(step["run"]) for step in steps if step.get("run", "").startswith("ragassay ")]
    (run, options), (report, report_options) = commands
    assert (run, report) == ("run", "report") and options["output"] == report_options["output"]
    assert options["budget_hours"] * 60 < workflow["jobs"]["audit"]["timeout-minutes"] < 360  # type: ignore[operator]
    assert workflow["concurrency"] and report_options["out"] == steps[-1]["with"]["path"]
    assert [step["uses"] for step in steps if "@v" not in step.get("uses", "@v")] == []


def test_a_wrong_command_is_refused() -> None:
    with pytest.raises(Exception, match="--confg"):
        parse_command("ragassay run a b --confg c")


def test_replicas_of_the_job_fill_exactly_one_worker() -> None:
    (container,) = load("rayjob.yaml")["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"]
    limits = container["resources"]["limits"]
    job = load_job(str(INFRA / "job_gpu.yaml"))
    replicas = job.members.slms[0].replicas
    assert replicas.max * replicas.num_gpus == float(limits["nvidia.com/gpu"])
    assert replicas.max * replicas.num_cpus <= float(limits["cpu"])
    share = job.members.slms[0].engine.gpu_memory_utilization  # type: ignore[union-attr]
    assert share / replicas.num_gpus < 1


def test_ray_up_accepts_its_file() -> None:
    from ray.autoscaler._private.util import fillout_defaults, validate_config

    config = load("ray-up.yaml")
    filled = fillout_defaults(config)
    validate_config({**filled, "cluster_synced_files": []})
    with pytest.raises(Exception, match="Additional properties are not allowed"):
        validate_config({**filled, "cluster_synced_files": [], "max_worker": 8})
    image = load("raycluster.yaml")["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]
    assert config["docker"]["image"] == image


@pytest.mark.parametrize("path", sorted(INFRA.iterdir()), ids=lambda path: path.name)
def test_no_file_names_a_registry(path: Path) -> None:
    if path.is_file():
        text = path.read_text()
        images = re.findall(r"(?:image: |^ARG BASE=)(\S+)", text, re.M)
        assert all("." not in image.split(":")[0].split("/")[0] for image in images), images
        assert not re.search(r"https?://(?!ragassay-head-svc|127\.0\.0\.1)", text)
