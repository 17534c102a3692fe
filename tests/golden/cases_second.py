"""Cases about second passes over verdicts: explain, escalate, publish."""

from typing import Any

from tests.golden.jobs import DETECTORS, FINALIZE, RUN, detector_job, verdicts
from tests.golden.logs import shop_rows, with_traces, write
from tests.golden.scene import Case, Command, Scene

ROWS = ("out/raw.txt", "out/stats.json", "out/frequencies.parquet.txt")


def _explained(scene: Scene) -> None:
    write(scene.logs / "dt=2026-11-01" / "a.parquet", shop_rows(12))
    engine = {"kind": "server", "base_url": scene.servers.chat, "retries": 0}
    price = {"input": 0.4, "output": 1.6}
    detector_job(scene, threshold={"quantile": 0.6}, explain={"model": "reasoner", "engine": engine, "price": price})


def _escalated(scene: Scene) -> None:
    rows = shop_rows(12)
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[:8])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", rows[8:])
    engine = {"kind": "server", "base_url": scene.servers.chat, "retries": 0}
    judge = {"name": "judge", "model": "judge", "engine": engine}
    parts: dict[str, Any] = {"slms": [scene.servers.slm("first")], "detectors": DETECTORS[2:], "threshold": {"quantile": 0.4}}
    scene.job(**parts)
    scene.job("job-share.yaml", **parts, escalate={"to": judge, "share": 0.34, "price": {"input": 0.4, "output": 1.6}})
    scene.job("job-more.yaml", **parts, escalate={"to": judge, "share": 0.6, "when": "first"})
    scene.job("job-dynamic.yaml", **parts, escalate={"to": judge, "when": "first", "threshold": "dynamic", "order": "row_id"})


def _published(scene: Scene) -> None:
    rows = with_traces(shop_rows(6))
    rows.append({**rows[0], "row_id": "no context", "context": None, "trace_id": "f" * 32, "span_id": "f" * 16})
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows)
    detector_job(scene, threshold={"quantile": 0.4})
    detector_job(scene, name="job-other.yaml", threshold={"quantile": 0.8})


def _requests(tool: str) -> Any:
    def requests(scene: Scene) -> None:
        scene.write_requests(f"{tool}.json")

    return requests


def _publish(tool: str, more: str = "") -> str:
    return f"publish {{out}} --to {tool} --url {{url}}{more}"


def _publish_steps() -> tuple[Any, ...]:
    steps: list[Any] = [RUN, _publish("langfuse", " --dry-run")]
    for tool, more in (("langfuse", " --sentences"), ("phoenix", ""), ("mlflow", " --only flagged"), ("otel", " --no-text")):
        steps += [_publish(tool, more), _requests(tool)]
    steps += [_publish("langfuse", " --sentences"), "finalize {out} --config {dir}/job-other.yaml"]
    return (*steps, _publish("langfuse", " --sentences"), _requests("langfuse-again"))


CASES = (
    Case("explain", _explained, (
        RUN, "explain {out} --config {job} --sentences 3", "explain {out} --config {job} --feedback {dir}/feedback.parquet "
        "--review {dir}/opinions.jsonl", "explain {out} --config {job} --strategy fallback", "explain {out} --config {job} --strategy vanilla "
        "--usd 0.001", "explain {out} --config {job}", "evaluate {out} --explanations", "report {out} --to {dir}/report.html",
    ), (*ROWS, "out/scored.txt", "out/evaluation.json")),
    Case("escalate", _escalated, (
        RUN, verdicts, "escalate {out} --config {dir}/job-share.yaml", verdicts, "escalate {out} --config {dir}/job-more.yaml", verdicts,
        FINALIZE, verdicts, "evaluate {out} --label label --cascade --resamples 10", Command("escalate {out} --config {job}", 1),
        "run {logs} {dir}/dynamic --config {dir}/job-dynamic.yaml", "plan {logs} --config {dir}/job-share.yaml --seconds 0",
    ), (*ROWS, "out/evaluation.json", "dynamic/raw.txt", "dynamic/stats.json", "dynamic/frequencies.parquet.txt")),
    Case("publish", _published, _publish_steps(), (*ROWS, "out/scored.txt")),
)  # fmt: skip
