"""`evaluate --cascade`: quality against cost, from never to always."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ragassay.jobs.evaluation.cascade import JUDGED_SHARES, CascadeCurve
from ragassay.jobs.evaluation.evaluate import Evaluation, evaluate
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.report.tables import print_evaluation
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.calibration.metrics import compute_auroc
from tests.chat_server import Reply, completion
from tests.jobs.conftest import here, resamples
from tests.jobs.evaluation.conftest import job
from tests.jobs.second_pass.escalate.conftest import Judge, asked, by_key, judges, outcomes
from tests.jobs.second_pass.explain.test_explain import finalize
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")


def evaluated(output: Path, resamples: int = 200) -> Evaluation:
    folder = open_folder(str(output))
    return evaluate(folder, read_manifest(folder), LabelSource("label"), resamples=resamples, cascade=True)


def curve_of(found: Evaluation) -> CascadeCurve:
    assert found.cascade is not None
    return found.cascade


@pytest.fixture
def escalated(scored: Path, judge: Judge) -> Callable[..., Path]:
    def run(reply: Callable[[dict[str, Any]], Reply] = judges, **section: Any) -> Path:
        _, config = judge(reply, **{"share": 1, **section})
        done = here("escalate", scored, "--config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        return scored

    return run


def test_the_ends_are_the_ensemble_and_the_judge(escalated: Callable[..., Path]) -> None:
    output = escalated()
    found = evaluated(output)
    curve = curve_of(found)
    lines = {line.name: line.measures for line in found.comparisons[-1].scores}
    first, last = curve.points[0].measures, curve.points[-1].measures
    ensemble = lines["ensemble, as finalized"]
    assert first["balanced_accuracy"].value == pytest.approx(ensemble["balanced_accuracy"].value)
    assert first["auroc"].value == pytest.approx(ensemble["auroc"].value)
    assert lines["cascade, as finalized"]["balanced_accuracy"].value == 1.0
    assert [last[name].value for name in last] == [1.0, 1.0, 1.0] and curve.rows == curve.labeled == 180
    rows = [row for row in by_key(output).values() if row["status"] == "ok"]
    good = np.array([row["label"] == "correct" for row in rows])
    passed = np.array([row["score"] > row["threshold"] for row in rows])
    caught, flagged = (~good & ~passed).sum(), (~passed).sum()
    assert first["f1_hallucinated"].value == pytest.approx(2 * caught / (flagged + (~good).sum()))
    assert first["auroc"].value == pytest.approx(compute_auroc(np.array([row["score"] for row in rows]), good))


def test_every_order_begins_and_ends_alike_and_cost_only_rises(escalated: Callable[..., Path]) -> None:
    output = escalated()
    curve = curve_of(evaluated(output))
    assert list(curve.orders) == ["uncertainty", "a", "b", "random"] and curve.when == "uncertainty"
    for metric in ("balanced_accuracy", "f1_hallucinated", "auroc"):
        orders = [curve.orders[name][metric] for name in curve.orders]
        assert {len(values) for values in orders} == {len(JUDGED_SHARES)} == {21}
        for end in (0, -1):
            assert [values[end] for values in orders] == pytest.approx([orders[0][end]] * 4)
    assert [point.escalated for point in curve.points] == [9 * i for i in range(21)]
    tokens = [point.tokens for point in curve.points]
    assert tokens == sorted(tokens) and tokens[0] == 0
    assert tokens[-1] == sum(row["usage"]["tokens_computed"] for row in outcomes(output).values())


def test_an_honest_judge_is_worth_it_and_a_blind_one_is_not(escalated: Callable[..., Path], scored: Path) -> None:
    honest = curve_of(evaluated(escalated()))
    share = honest.sufficient_share["balanced_accuracy"]
    assert share is not None and 0.2 < share <= 1
    values = {point.share: point.measures["balanced_accuracy"].value for point in honest.points}
    assert values[0.0] < values[0.5] < values[1.0] == 1.0
    (scored / "escalated").rename(scored / "gone")
    finalize(scored, job())
    blind = curve_of(
        evaluated(escalated(lambda body: completion({"Yes": 0.4, "No": 0.3 + 0.2 * (crc32(asked(body).encode()) % 2)})))
    )
    assert (blind.sufficient_share["balanced_accuracy"] or 0) <= 0.1
    assert blind.points[-1].measures["balanced_accuracy"].value < blind.points[0].measures["balanced_accuracy"].value


def test_a_curve_of_some_says_where_it_ends(escalated: Callable[..., Path]) -> None:
    output = escalated(share=0.4)
    found = evaluated(output)
    curve = curve_of(found)
    assert (curve.rows, curve.labeled) == (72, 180)
    text = printed(found)
    assert "judge has decided 72 of 180" in text and "40%" in text and "escalation.share: 1" in text


def printed(found: Evaluation, width: int = 100) -> str:
    page = io.StringIO()
    print_evaluation(found, Console(file=page, width=width, soft_wrap=True))
    return page.getvalue()


def test_it_fits_a_hundred_columns_and_the_json_has_it(escalated: Callable[..., Path]) -> None:
    output = escalated(when="a")
    found = evaluated(output)
    text = printed(found)
    assert all(len(line) <= 100 for line in text.splitlines())
    part = text[text.index("cascade: judge decides") : text.index("Smallest share")]
    assert "by a" in part and "100%" in part and "…" not in part
    rows = [line.split() for line in part.splitlines() if line.strip()[:1].isdigit()]
    assert len(rows) == 42 and all(row[0] == f"{share:.0%}" for row, share in zip(rows, JUDGED_SHARES * 2, strict=True))
    data = json.loads((output / "evaluation.json").read_text())["cascade"]
    assert data["when"] == "a" and len(data["points"]) == 21 and data["points"][10]["measures"]["auroc"]["low"] is not None


def test_on_the_command_line_and_without_resamples(escalated: Callable[..., Path]) -> None:
    output = escalated()
    done = here("evaluate", output, "--label", "label", "--cascade", *resamples(output.parent, 0))
    assert done.returncode == 0 and "cascade: judge decides" in done.stdout and "Smallest share" not in done.stdout
    plain = here("evaluate", output, "--label", "label", *resamples(output.parent, 0))
    assert plain.returncode == 0 and "cascade: judge" not in plain.stdout
    assert len(plain.stdout.splitlines()) <= 10 and "\ncascade " in plain.stdout


def test_without_a_judge_it_says_how_to_get_one(scored: Path) -> None:
    done = here("evaluate", scored, "--label", "label", "--cascade")
    fails(done, "evaluate.no-judged-labels")


def test_the_report_shows_who_decided_and_the_curve(escalated: Callable[..., Path]) -> None:
    output = escalated(share=0.4)
    done = here("report", output, "--label", "label", *resamples(output.parent, 20))
    assert done.returncode == 0, done.stderr
    page = (output / "report.html").read_text()
    assert "<b>72</b> decided by judge" in page and "share that the judge decides" in page
    assert "hallucinated by judge, " in page and "if a judge decided" in page
    assert here("compare", output).returncode == 0


def test_exports_and_drift_go_by_the_verdicts_in_force(escalated: Callable[..., Path], tmp_path: Path) -> None:
    output = escalated()
    rows = by_key(output).values()
    done = here("export", output, tmp_path / "passed.parquet", "--format", "parquet")
    assert done.returncode == 0, done.stderr
    passed = pq.read_table(tmp_path / "passed.parquet")["row_id"].to_pylist()
    assert sorted(passed) == sorted(row["row_id"] for row in rows if row["verdict"] == "supported")
    assert {row["label"] for row in rows if row["row_id"] in passed} == {"correct"}
    done = here("drift", output)
    share = sum(row["verdict"] == "hallucinated" for row in rows if row["dt"] == "2026-11-04") / 60
    assert done.returncode == 0 and f"{share:.4g}" in next(line for line in done.stdout.splitlines() if "flagged" in line)
