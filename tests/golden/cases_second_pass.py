"""Cases about second passes over verdicts: explain, escalate, publish."""

from functools import partial
from typing import Any

from tests.golden.jobs import FINALIZE, list_verdicts
from tests.golden.logs import make_shop_rows, write
from tests.golden.scene import Case, Command, Scene
from tests.golden.shared import build_shared_job, copy_shared

PRICE = {"input": 0.4, "output": 1.6}


def _build_engine(scene: Scene) -> dict[str, Any]:
    return {"kind": "server", "base_url": scene.servers.chat, "retries": 0}


def _prepare_explanation(scene: Scene) -> None:
    copy_shared(scene)
    scene.write_job(
        "job.yaml",
        build_shared_job(scene.servers),
        escalation={"explainer": {"model": "reasoner", "engine": _build_engine(scene), "price": PRICE}},
    )


def _prepare_escalation(scene: Scene) -> None:
    copy_shared(scene)
    write(scene.folder / "logs_few" / "dt=2026-11-01" / "a.parquet", make_shop_rows(10))
    parts = build_shared_job(scene.servers)
    judge = {"name": "judge", "model": "judge", "engine": _build_engine(scene)}
    scene.write_job("job-share.yaml", parts, escalation={"judge": judge, "share": 0.25, "price": PRICE})
    scene.write_job("job-more.yaml", parts, escalation={"judge": judge, "share": 0.5, "when": "first"})
    scene.write_job(
        "job-dynamic.yaml", parts, escalation={"judge": judge, "when": "first", "threshold": "dynamic", "order": "row_id"}
    )
    scene.write_job("job-10.yaml", evaluation={"resamples": 10})


def _prepare_publishing(scene: Scene) -> None:
    copy_shared(scene)
    scene.servers.tools.requests.clear()
    scene.write_job("job-other.yaml", build_shared_job(scene.servers), verdict={"threshold": {"quantile": 0.5}})
    for name, setting in (
        ("sentences", {"sentences": True}),
        ("no-text", {"text": False}),
        ("trace", {"trace_column": "none"}),
    ):
        scene.write_job(f"job-{name}.yaml", integrations={"publish": setting})


def _write_requests(name: str, scene: Scene) -> None:
    scene.write_requests(f"{name}.json")


def _build_publish(tool: str, options: str = "") -> str:
    return f"publish {{out}} --tool {tool} --url {{url}}{options}"


def _list_publish_steps() -> tuple[Any, ...]:
    """Publish to each tool, change the rule, and publish the changed verdicts again."""
    langfuse = _build_publish("langfuse", " --config {dir}/job-sentences.yaml --partitions dt=2026-11-02")
    steps: list[Any] = [_build_publish("langfuse", " --dry-run"), langfuse, partial(_write_requests, "langfuse")]
    for tool, options in (
        ("phoenix", " --flagged-only"), ("mlflow", " --flagged-only"),
        ("otel", " --config {dir}/job-no-text.yaml --partitions dt=2026-11-01"),
    ):  # fmt: skip
        steps += [_build_publish(tool, options), partial(_write_requests, tool)]
    steps += [langfuse, "finalize {out} --config {dir}/job-other.yaml", langfuse, partial(_write_requests, "langfuse-again")]
    return (*steps, Command(_build_publish("phoenix", " --config {dir}/job-trace.yaml"), 1))


CASES = (
    Case("explain", _prepare_explanation, (
        "explain {out} --config {job} --sample 3",
        "explain {out} --config {job} --feedback {dir}/feedback.parquet --review {dir}/opinions.parquet",
        "explain {out} --config {job} --strategy fallback",
        "explain {out} --config {job} --strategy vanilla --budget-usd 0.001",
        "explain {out} --config {job}", "evaluate {out} --explanations", "report {out} --out {dir}/report.html")),
    Case("escalate", _prepare_escalation, (
        "escalate {out} --config {dir}/job-share.yaml", list_verdicts,
        "escalate {out} --config {dir}/job-more.yaml", list_verdicts,
        FINALIZE, "evaluate {out} --label label --cascade --config {dir}/job-10.yaml",
        Command("escalate {out} --config {job}", 1),
        "run {dir}/logs_few {dir}/dynamic --config {dir}/job-dynamic.yaml",
        "plan {dir}/logs_few --config {dir}/job-share.yaml --seconds 0")),
    Case("publish", _prepare_publishing, _list_publish_steps()),
)  # fmt: skip
