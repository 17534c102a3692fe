"""Cases about what is done with verdicts: calibrate, evaluate, compare, estimate, review, report, export."""

import json
import re
from typing import Any

from tests.golden.jobs import DETECTORS, FINALIZE, RUN, detector_job, verdicts
from tests.golden.logs import Row, shop_rows, write
from tests.golden.scene import Case, Command, Scene

ROWS = ("out/raw.txt", "out/scored.txt", "out/stats.json", "out/frequencies.parquet.txt", "out/tree.txt")
"""Expected files of cases that are about other things than rows."""


def _labelled(scene: Scene, count: int = 32, **settings: Any) -> None:
    rows = [{**row, "split": "train" if n % 5 else "test"} for n, row in enumerate(shop_rows(count))]
    half = count // 2
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[:half])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", rows[half:])
    slms = [scene.servers.slm("first", whole_response=True)]
    scene.job(slms=slms, detectors=DETECTORS, threshold={"quantile": 0.4}, **settings)


def _evaluated(scene: Scene) -> None:
    _labelled(scene, 24)
    engine = {"base_url": scene.servers.chat, "retries": 0}
    slms = [scene.servers.slm("first", whole_response=True)]
    scene.job("job-judge.yaml", slms=slms, detectors=DETECTORS, judge={"name": "gpt", "model": "judge", **engine})


def _few(scene: Scene) -> None:
    rows = [{**row, "question": "When does it open?"} if n % 4 < 2 else row for n, row in enumerate(shop_rows(12))]
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows)
    detector_job(scene, threshold={"quantile": 0.5})


def _page(scene: Scene) -> list[Row]:
    html = (scene.folder / "review.html").read_text()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    rows: list[Row] = json.loads(data)["rows"]
    return rows


def _label_page(scene: Scene) -> None:
    """Two people label what the page shows; the second differs about every fifth."""
    for who, differs in (("ana", 0), ("ben", 5)):
        lines = []
        for n, row in enumerate(_page(scene)):
            number = int(row["row_id"].rpartition("-")[2])
            is_wrong = (number % 4 in (1, 2)) != bool(differs and n % differs == 0)
            line = {name: row[name] for name in ("row_id", "partition", "stratum", "inclusion_probability")}
            label = "unsure" if n == 7 else "unsupported" if is_wrong else "supported"
            lines.append(json.dumps({**line, "label": label, "reviewer": who, "at": "2026-11-22T10:00:00Z"}) + "\n")
        (scene.folder / f"_{who}.jsonl").write_text("".join(lines))


LABEL = "--label label"
ESTIMATE = "estimate {out} --labels {dir}/_ana.jsonl"
EXPORTS = tuple(
    f"export {{out}} {{dir}}/{name} --format {form}"
    for name, form in (
        ("messages.jsonl", "messages --system 'Be brief.'"), ("bare.jsonl", "messages --no-context --clean"),
        ("rows.parquet", "parquet"), ("pairs.jsonl", "dpo"), ("flagged.parquet", "flagged"),
        ("near.jsonl", "messages --near-duplicates 0.5"), ("tasks.json", "label-studio"), ("records.json", "argilla"),
    )
)  # fmt: skip

CASES = (
    Case("calibrate", _labelled, (
        RUN,
        "calibrate {out} --label label --where split=train --target precision>=0.8 --to {dir}/calibration.json",
        "calibrate {out} --label label --target recall>=0.9 --of hallucinated --threshold-only",
        "calibrate {out} --target flagged=0.25 --to {dir}/share.json",
        Command("calibrate {out} --label label --target precision>=0.99 --certify 0.05 --to {dir}/none.json", 1),
        "finalize {out} --config {job} --calibration {dir}/calibration.json", verdicts,
        "finalize {out} --config {job} --calibration {dir}/share.json", verdicts,
        Command("calibrate {out} --label none --target f1", 1),
    ), ROWS),
    Case("evaluate", _evaluated, (
        RUN, f"evaluate {{out}} {LABEL} --slice tenant --resamples 20",
        f"evaluate {{out}} {LABEL} --config {{dir}}/job-judge.yaml --where split=train --resamples 10",
        f"compare {{out}} {LABEL} --last 8", "compare {out} --order-by tenant --last 4", "drift {out}",
    ), (*ROWS, "out/manifest.json")),
    Case("report", _few, (RUN, f"report {{out}} {LABEL} --slice tenant --resamples 10 --to {{dir}}/report.html"),
         (*ROWS, "out/manifest.json", "out/evaluation.json")),
    Case("review", _labelled, (
        RUN, "review {out} --sample 12 --stratified --to {dir}/review.html", _label_page,
        "agreement {dir}/_ana.jsonl {dir}/_ben.jsonl --output {out} --to {dir}/talk.jsonl", ESTIMATE,
        f"{ESTIMATE} --slice tenant", "evaluate {out} --labels {dir}/_ana.jsonl --resamples 10",
        "review {out} --sample 2 --level responses --seed 3 --to {dir}/other.html",
        Command("calibrate {out} --labels {dir}/_ana.jsonl --target f1 --certify 0.1", 1),
    ), (*ROWS, "out/manifest.json", "out/evaluation.json")),
    Case("estimate", _labelled, (RUN, f"estimate {{out}} {LABEL}", "estimate {out} --label label --where tenant=tenant-1 --slice dt"),
         (*ROWS, "out/manifest.json")),
    Case("export", _few, (RUN, *EXPORTS, Command("export {out} {dir}/flagged.parquet --format flagged", 1)),
         (*ROWS, "out/manifest.json")),
    Case("finalize_missing", _few, (Command(FINALIZE, 1), Command("report {out}", 1), Command("drift {out}", 1))),
)  # fmt: skip
