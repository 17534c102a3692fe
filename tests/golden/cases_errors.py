"""Cases about mistakes: each command ends with one message and leaves existing files unchanged."""

import pyarrow as pa

from tests.golden.jobs import DETECTORS, RUN, write_detector_job, write_novelty_job
from tests.golden.logs import make_shop_rows, write
from tests.golden.scene import Case, Command, Scene

JOBS = {
    "unknown-key": "thresold: 1\n",
    "faults": "verdict: {threshold: {value: 1, quantile: 0.5}}\n"
    "members: {slms: [], detectors: [{name: a, kind: nothing}]}\nruntime: {block_mib: 0}\n",
    "no-yaml": "a: [1\n",
    "no-member": "members: {slms: [], detectors: []}\n",
    "weights": "members: {slms: [], detectors: [{name: novelty, kind: novelty}], weights: {other: 1}}\n",
    "language": "members: {slms: [], detectors: [{name: novelty, kind: novelty}]}\nsplitting: {pipeline: xx_no}\n",
    "model": "members: {slms: [{name: m, model: ./nowhere}]}\n",
    "server": "members:\n"
    "  slms: [{name: m, model: m, engine: {kind: server, base_url: 'http://127.0.0.1:9/v1', retries: 0}}]\n",
}


def _write_job_files(scene: Scene) -> None:
    write(scene.logs / "a.parquet", make_shop_rows(2))
    for name, text in JOBS.items():
        (scene.folder / f"job-{name}.yaml").write_text(text)


def _write_logs(scene: Scene) -> None:
    write_novelty_job(scene)
    good = pa.Table.from_pylist(make_shop_rows(2))
    tables = {
        "columns": pa.table({"query": ["q"], "answer": ["a"]}),
        "numbers": good.set_column(good.schema.get_field_index("response"), "response", pa.array([1, 2])),
        "twice": good.set_column(0, "row_id", pa.array(["same", "same"])),
        "null_id": good.set_column(0, "row_id", pa.array(["a", None])),
        "no_rows": good.slice(0, 0),
        "good": good,
    }
    for name, table in tables.items():
        write(scene.folder / f"logs_{name}" / "a.parquet", table)
    write(scene.folder / "logs_keys" / "dt=1" / "a.parquet", good)
    write(scene.folder / "logs_keys" / "day=2" / "a.parquet", good)
    (scene.folder / "logs_empty").mkdir()
    (scene.folder / "_file").write_text("a file")


def _run(name: str, out: str = "{out}") -> Command:
    return Command(f"run {{dir}}/{name} {out} --config {{job}}", 1)


def _write_refused_jobs(scene: Scene) -> None:
    write(scene.logs / "a.parquet", make_shop_rows(4))
    write_detector_job(scene)
    write_detector_job(scene, name="job-fewer.yaml", members={"detectors": DETECTORS[:1]})
    write_detector_job(scene, name="job-split.yaml", splitting={"language": "de"})
    write_detector_job(scene, name="job-calibrated.yaml", verdict={"calibration": f"{scene.folder}/_none.json"})


def _change_logs(scene: Scene) -> None:
    """Change the logs in place."""
    write(scene.logs / "a.parquet", make_shop_rows(5))


def _replace_manifest(scene: Scene) -> None:
    """Replace the manifest with one of another version."""
    (scene.out / "manifest.json").write_text('{"version": 99}')


USAGE = (
    "run", "nothing", "run a b --budget-rows 0", "run a b --fraction 2", "export {out} {dir}/x --format csv",
    "evaluate {out} --members --last 0",
)  # fmt: skip

CASES = (
    Case("errors_job_files", _write_job_files, tuple(
        Command(f"run {{logs}} {{out}} --config {{dir}}/job-{name}.yaml", 1) for name in (*JOBS, "none"))),
    Case("errors_logs", _write_logs, (
        *(_run(f"logs_{name}") for name in ("columns", "numbers", "twice", "null_id", "no_rows", "keys", "empty", "nowhere")),
        _run("logs_good", "{dir}/logs_good"), _run("logs_good", "{dir}/logs_good/out"), _run("logs_good", "{dir}/logs_twice"),
        _run("logs_good", "{dir}/_file"),
        Command("run {dir}/logs_good {out} --config {job} --partitions day=1", 1),
        Command("run {dir}/logs_good {out} --config {job} --fraction 0", 1),
    )),
    Case("errors_outputs", _write_refused_jobs, (
        RUN,
        *(Command(f"run {{logs}} {{out}} --config {{dir}}/job-{name}.yaml", 1) for name in ("fewer", "split", "calibrated")),
        Command("explain {out} --config {job}", 1), Command("table {out} --table delta", 1), _change_logs, Command(RUN, 1),
        _replace_manifest, Command(RUN, 1), Command("report {out}", 1),
    )),
    Case("errors_usage", lambda scene: None, tuple(Command(line, 2) for line in USAGE)),
)  # fmt: skip
