"""Cases about second passes over verdicts: explain, escalate, publish."""

from functools import partial
from typing import Any

from tests.golden.jobs import FINALIZE, verdicts
from tests.golden.logs import shop_rows, write
from tests.golden.scene import Case, Command, Scene
from tests.golden.shared import copy_shared, shared_job

PRICE = {"input": 0.4, "output": 1.6}


def _engine(scene: Scene) -> dict[str, Any]:
    return {"kind": "server", "base_url": scene.servers.chat, "retries": 0}


def _explained(scene: Scene) -> None:
    copy_shared(scene)
    scene.job(
        "job.yaml",
        shared_job(scene.servers),
        escalation={"explainer": {"model": "reasoner", "engine": _engine(scene), "price": PRICE}},
    )


def _escalated(scene: Scene) -> None:
    copy_shared(scene)
    write(scene.folder / "logs_few" / "dt=2026-11-01" / "a.parquet", shop_rows(10))
    parts = shared_job(scene.servers)
    judge = {"name": "judge", "model": "judge", "engine": _engine(scene)}
    scene.job("job-share.yaml", parts, escalation={"judge": judge, "share": 0.25, "price": PRICE})
    scene.job("job-more.yaml", parts, escalation={"judge": judge, "share": 0.5, "when": "first"})
    scene.job(
        "job-dynamic.yaml", parts, escalation={"judge": judge, "when": "first", "threshold": "dynamic", "order": "row_id"}
    )
    scene.job("job-10.yaml", evaluation={"resamples": 10})


def _published(scene: Scene) -> None:
    copy_shared(scene)
    scene.servers.tools.requests.clear()
    scene.job("job-other.yaml", shared_job(scene.servers), verdict={"threshold": {"quantile": 0.5}})
    for name, setting in (
        ("sentences", {"sentences": True}),
        ("no-text", {"text": False}),
        ("trace", {"trace_column": "none"}),
    ):
        scene.job(f"job-{name}.yaml", integrations={"publish": setting})


def _requests(name: str, scene: Scene) -> None:
    scene.write_requests(f"{name}.json")


def _publish(tool: str, more: str = "") -> str:
    return f"publish {{out}} --tool {tool} --url {{url}}{more}"


def _publish_steps() -> tuple[Any, ...]:
    """Each tool gets the second day; then the rule changes, and what differs is sent again."""
    langfuse = _publish("langfuse", " --config {dir}/job-sentences.yaml --partitions dt=2026-11-02")
    steps: list[Any] = [_publish("langfuse", " --dry-run"), langfuse, partial(_requests, "langfuse")]
    for tool, more in (
        ("phoenix", " --flagged-only"), ("mlflow", " --flagged-only"),
        ("otel", " --config {dir}/job-no-text.yaml --partitions dt=2026-11-01"),
    ):  # fmt: skip
        steps += [_publish(tool, more), partial(_requests, tool)]
    steps += [langfuse, "finalize {out} --config {dir}/job-other.yaml", langfuse, partial(_requests, "langfuse-again")]
    return (*steps, Command(_publish("phoenix", " --config {dir}/job-trace.yaml"), 1))


CASES = (
    Case("explain", _explained, (
        "explain {out} --config {job} --sample 3",
        "explain {out} --config {job} --feedback {dir}/feedback.parquet --review {dir}/opinions.parquet",
        "explain {out} --config {job} --strategy fallback",
        "explain {out} --config {job} --strategy vanilla --budget-usd 0.001",
        "explain {out} --config {job}", "evaluate {out} --explanations", "report {out} --out {dir}/report.html")),
    Case("escalate", _escalated, (
        "escalate {out} --config {dir}/job-share.yaml", verdicts, "escalate {out} --config {dir}/job-more.yaml", verdicts,
        FINALIZE, "evaluate {out} --label label --cascade --config {dir}/job-10.yaml",
        Command("escalate {out} --config {job}", 1),
        "run {dir}/logs_few {dir}/dynamic --config {dir}/job-dynamic.yaml",
        "plan {dir}/logs_few --config {dir}/job-share.yaml --seconds 0")),
    Case("publish", _published, _publish_steps()),
)  # fmt: skip
