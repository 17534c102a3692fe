"""Cases about single answers, the library, and the commands that look ahead: check, judge, stages, plan, init."""

import json
from typing import Any

import polars as pl
import pyarrow as pa

from tests.golden.jobs import DETECTORS, RUN, detector_job
from tests.golden.logs import shop_rows, write, write_days
from tests.golden.scene import Case, Command, Scene
from tests.golden.tables import Rows, rows_text
from tests.golden.values import compact, plain

ANSWER: dict[str, Any] = {
    "question": "What does a suitcase cost?",
    "context": ["The Basic fare has one small item.", "A cabin suitcase costs 19 euros per flight."],
    "response": "A cabin suitcase costs 19 euros per flight. Ask Dr. Quentin Marlow at gate 45.",
}


def _answers(scene: Scene) -> None:
    (scene.folder / "_one.json").write_text(json.dumps(ANSWER, indent=1))
    more = [ANSWER, {**ANSWER, "response": "It costs 45 euros.", "row_id": 7}, {**ANSWER, "context": None}]
    (scene.folder / "_more.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in more))
    (scene.folder / "_bad.jsonl").write_text('{"context": "c", "response": "r"}\n{oops}\n')
    write(scene.logs / "a.parquet", shop_rows(8))
    detector_job(scene)


def _checked(scene: Scene) -> str:
    """ragassay.check"""
    import ragassay

    found = ragassay.check(**ANSWER, fast=True)
    like = ragassay.check(**ANSWER, like=str(scene.out))
    numbers = [[found.verdict, found.score, [s.flagged for s in found.sentences]], [like.verdict, like.score]]
    return f"{compact(plain(numbers, scene.masks.value))}\n{found}"


def _judged(scene: Scene) -> str:
    """ragassay.judge, of three kinds of tables"""
    import ragassay

    table = pa.Table.from_pylist([*shop_rows(4), {**shop_rows(1)[0], "row_id": "bad", "context": None}])
    job = {"members": {"slms": [], "detectors": DETECTORS}, "verdict": {"threshold": {"quantile": 0.5}}}
    judged = ragassay.judge(table, job)
    others = [ragassay.judge(pl.DataFrame(table), job), ragassay.judge(table.to_pandas(), job)]
    same = [list(other["score"])[:4] == judged["score"].to_pylist()[:4] for other in others]
    rows = Rows()
    rows.add(judged)
    return f"polars and pandas have the same scores: {same}\n{rows_text(rows, scene.masks.value)}{ragassay.show(judged)}"


def _staged(scene: Scene) -> str:
    """ragassay.stages in a pipeline of Ray Data"""
    import ray

    import ragassay

    dataset = ray.data.from_items([{k: row[k] for k in ("question", "context", "response")} for row in shop_rows(4)])
    for stage in ragassay.stages(fast=True):
        dataset = dataset.map_batches(**stage)
    found = sorted((row["response"], row["verdict"], row["score"], row["probability"]) for row in dataset.take_all())
    return "\n".join(compact(plain(row, scene.masks.value)) for row in found)


def _run_of_library(scene: Scene) -> str:
    """ragassay.run"""
    import ragassay

    done = ragassay.run(str(scene.logs), str(scene.out), str(scene.folder / "job.yaml"))
    return compact(plain([done.rows, done.flagged, done.statuses], scene.masks.value))


def _ahead(scene: Scene) -> None:
    write_days(scene.logs, 2, 5)
    rows = [
        {"prompt": row["question"], "documents": row["context"], "answer": row["response"], "ts": n}
        for n, row in enumerate(shop_rows(4))
    ]
    write(scene.folder / "logs_other" / "a.parquet", rows)
    talk = [("user", "When?"), ("tool", "At 7."), ("assistant", "At 7.")]
    messages = [{"role": role, "content": content} for role, content in talk]
    write(scene.folder / "logs_talks" / "a.parquet", [{"messages": messages, "id": n} for n in range(3)])
    detector_job(scene)
    scene.job("job-served.yaml", members={"slms": [scene.servers.slm("first")]})


INITS = tuple(f"init {{dir}}/logs{name} --out {{dir}}/init{name}.yaml" for name in ("", "_other", "_talks"))

CASES = (
    Case("check", _answers, (
        "check --fast {dir}/_one.json", "check --fast --json {dir}/_more.jsonl", Command("check --fast {dir}/_bad.jsonl", 1),
        "check --fast --question Q --context 'It opens at 7.' --response 'It opens at 8.'",
    )),
    Case("library", _answers, (
        _run_of_library, RUN, "check --json --history {out} {dir}/_one.json", _checked, _judged, _staged), needs_ray=True),
    Case("ahead", _ahead, (
        "plan {logs} --config {job} --seconds 0", "plan {logs} --config {dir}/job-served.yaml --seconds 0 --gpus 2 "
        "--gpu-tokens-per-second 20000 --gpu-price 2", *INITS, Command(INITS[0], 1), "--version",
        "prepare --config {dir}/job-served.yaml",
    )),
)  # fmt: skip
