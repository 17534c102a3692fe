"""Cases about single answers, the library, and the commands before a run: check, judge, stages, plan, init."""

import json
from typing import Any

import polars as pl
import pyarrow as pa

from tests.golden.jobs import DETECTORS, RUN, write_detector_job
from tests.golden.logs import make_shop_rows, write, write_days
from tests.golden.scene import Case, Command, Scene
from tests.golden.tables import Rows, render_rows
from tests.golden.values import to_line, to_plain

ANSWER: dict[str, Any] = {
    "question": "What does a suitcase cost?",
    "context": ["The Basic fare has one small item.", "A cabin suitcase costs 19 euros per flight."],
    "response": "A cabin suitcase costs 19 euros per flight. Ask Dr. Quentin Marlow at gate 45.",
}


def _prepare_answers(scene: Scene) -> None:
    (scene.folder / "_one.json").write_text(json.dumps(ANSWER, indent=1))
    more = [ANSWER, {**ANSWER, "response": "It costs 45 euros.", "row_id": 7}, {**ANSWER, "context": None}]
    (scene.folder / "_more.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in more))
    (scene.folder / "_bad.jsonl").write_text('{"context": "c", "response": "r"}\n{oops}\n')
    write(scene.logs / "a.parquet", make_shop_rows(8))
    write_detector_job(scene)


def _check(scene: Scene) -> str:
    """ragassay.check"""
    import ragassay

    check = ragassay.check(**ANSWER, fast=True)
    history_check = ragassay.check(**ANSWER, history=str(scene.out))
    numbers = [
        [check.verdict, check.score, [s.state for s in check.sentences]],
        [history_check.verdict, history_check.score],
    ]
    return f"{to_line(to_plain(numbers, scene.masks.mask_value))}\n{check}"


def _judge_tables(scene: Scene) -> str:
    """ragassay.judge with three kinds of tables"""
    import ragassay

    table = pa.Table.from_pylist([*make_shop_rows(4), {**make_shop_rows(1)[0], "row_id": "bad", "context": None}])
    job = {"members": {"slms": [], "detectors": DETECTORS}, "verdict": {"threshold": {"quantile": 0.5}}}
    judged = ragassay.judge(table, job)
    other_tables = [ragassay.judge(pl.DataFrame(table), job), ragassay.judge(table.to_pandas(), job)]
    equal_scores = [list(other["score"])[:4] == judged["score"].to_pylist()[:4] for other in other_tables]
    rows = Rows()
    rows.add(judged)
    text = render_rows(rows, scene.masks.mask_value)
    return f"polars and pandas have the same scores: {equal_scores}\n{text}{ragassay.show(judged)}"


def _run_stages(scene: Scene) -> str:
    """ragassay.stages in a pipeline of Ray Data"""
    import ray

    import ragassay

    dataset = ray.data.from_items([{k: row[k] for k in ("question", "context", "response")} for row in make_shop_rows(4)])
    for stage in ragassay.stages(fast=True):
        dataset = dataset.map_batches(**stage)
    results = sorted((row["response"], row["verdict"], row["score"], row["probability"]) for row in dataset.take_all())
    return "\n".join(to_line(to_plain(row, scene.masks.mask_value)) for row in results)


def _run(scene: Scene) -> str:
    """ragassay.run"""
    import ragassay

    result = ragassay.run(str(scene.logs), str(scene.out), str(scene.folder / "job.yaml"))
    return to_line(to_plain([result.rows, result.flagged, result.statuses], scene.masks.mask_value))


def _prepare_logs(scene: Scene) -> None:
    write_days(scene.logs, 2, 5)
    rows = [
        {"prompt": row["question"], "documents": row["context"], "answer": row["response"], "ts": n}
        for n, row in enumerate(make_shop_rows(4))
    ]
    write(scene.folder / "logs_other" / "a.parquet", rows)
    turns = [("user", "When?"), ("tool", "At 7."), ("assistant", "At 7.")]
    messages = [{"role": role, "content": content} for role, content in turns]
    write(scene.folder / "logs_talks" / "a.parquet", [{"messages": messages, "id": n} for n in range(3)])
    write_detector_job(scene)
    scene.write_job("job-served.yaml", members={"slms": [scene.servers.slm("first")]})


INITS = tuple(f"init {{dir}}/logs{name} --out {{dir}}/init{name}.yaml" for name in ("", "_other", "_talks"))

CASES = (
    Case("check", _prepare_answers, (
        "check --fast {dir}/_one.json", "check --fast --json {dir}/_more.jsonl", Command("check --fast {dir}/_bad.jsonl", 1),
        "check --fast --question Q --context 'It opens at 7.' --response 'It opens at 8.'",
    )),
    Case("library", _prepare_answers, (
        _run, RUN, "check --json --history {out} {dir}/_one.json", _check, _judge_tables, _run_stages), needs_ray=True),
    Case("planning", _prepare_logs, (
        "plan {logs} --config {job} --seconds 0", "plan {logs} --config {dir}/job-served.yaml --seconds 0 --gpus 2 "
        "--gpu-tokens-per-second 20000 --gpu-price 2", *INITS, Command(INITS[0], 1), "--version",
        "prepare --config {dir}/job-served.yaml",
    )),
)  # fmt: skip
