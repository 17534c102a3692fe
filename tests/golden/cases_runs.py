"""Cases about runs: members, steps, rules, daily runs, budgets, samples and backfills."""

import shutil
from typing import Any

from tests.golden.jobs import (
    DETECTORS,
    FINALIZE,
    RUN,
    list_verdicts,
    write_detector_job,
    write_novelty_job,
    write_served_job,
)
from tests.golden.logs import INVENTED, make_shop_rows, write, write_days, write_demo
from tests.golden.scene import Case, Command, Scene

WEIGHTS = {"recorded": 27, "entities": 1, "attribution": 1, "novelty": 1}


def _write_detector_demo(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    write_detector_job(scene, evaluation={"resamples": 20})


def _write_recorded_demo(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    settings: dict[str, Any] = {"members": {"weights": WEIGHTS}, "verdict": {"threshold": {"quantile": 0.3}}}
    scene.write_job("job.yaml", settings, members={"slms": [scene.servers.slm("recorded")], "detectors": DETECTORS})
    normalize = {"source": "frozen", "file": f"{scene.folder}/_moments.json"}
    threshold = {"value": 0.4, "measured_on": "a labeled set"}
    members = {"slms": [scene.servers.slm("recorded")], "detectors": DETECTORS, "weights": WEIGHTS}
    scene.write_job("job-frozen.yaml", members=members, verdict={"normalize": normalize, "threshold": threshold})
    moments = '{"recorded": {"mu": 1.5, "sigma": 2.5, "count": 900, "low": -6.0}'
    for name in ("entities", "attribution", "novelty"):
        moments += f', "{name}": {{"mu": 0.6, "sigma": 0.3, "count": 900, "low": 0.0}}'
    (scene.folder / "_moments.json").write_text(moments + "}")


def _write_days(scene: Scene) -> None:
    write_days(scene.logs, 3, 6)
    write_novelty_job(scene)


def _prepare_served(scene: Scene) -> None:
    rows = make_shop_rows(8)
    rows += [{**rows[0], "row_id": "refused", "response": "It has a REFUSED word. It opens at 6 a.m."}]
    rows += [{**rows[1], "row_id": "mute", "response": "It has a MUTE word."}]
    rows.insert(3, {**rows[2], "row_id": "same"})  # in the row group of its duplicate, so that it is always the second
    write(scene.logs / "a.parquet", rows, row_group_size=4)
    scene.servers.faults["REFUSED"] = lambda: (400, {"error": {"message": "too long"}})
    scene.servers.faults["MUTE"] = lambda: (
        200,
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []},
    )
    slms = [scene.servers.slm("first", whole_response=True), scene.servers.slm("second", value="p_yes")]
    scene.write_job(
        members={"slms": slms, "detectors": DETECTORS[2:], "weights": {"first": 3, "second": 1, "novelty": 1}},
        runtime={"context_order_mib": 1},
    )


def _break_server(scene: Scene) -> None:
    rows = make_shop_rows(12)
    write(scene.logs / "a.parquet", [*rows, {**rows[0], "row_id": "busy", "response": "It is a BUSY day."}])
    scene.servers.faults["BUSY"] = lambda: (503, {"error": {"message": "busy"}})
    write_served_job(scene, "first")


def _repair_server(scene: Scene) -> None:
    """Let the server answer again."""
    scene.servers.faults.clear()


def _prepare_steps(scene: Scene) -> None:
    write_days(scene.logs, 2, 8)
    write_detector_job(scene)
    write_detector_job(scene, name="job-other.yaml", verdict={"threshold": {"quantile": 0.5}, "rule": "aggregate"})


RULES: dict[str, dict[str, Any]] = {
    "arithmetic": {"verdict": {"aggregate": {"mean": "arithmetic"}, "threshold": {"quantile": 0.3}}},
    "geometric": {
        "verdict": {"aggregate": {"mean": "geometric", "positive": "clip", "epsilon": 0.05}, "threshold": {"quantile": 0.3}}
    },
    "shifted": {"verdict": {"aggregate": {"mean": "harmonic", "positive": "shift"}, "threshold": {"quantile": 0.3}}},
    "minimum": {"verdict": {"aggregate": {"mean": "min", "positive": "none"}, "threshold": {"value": -0.5}}},
    "maximum": {"verdict": {"aggregate": {"mean": "max"}, "rule": "aggregate", "threshold": {"quantile": 0.25}}},
    "strict": {"verdict": {"threshold": {"value": 0.6, "sentence": 0.9}}},
    "none_flagged": {"verdict": {"threshold": {"quantile": 0}}},
    "of_history": {"verdict": {"threshold": {"quantile": 0.4, "of": "history"}, "normalize": {"source": "history"}}},
}


def _prepare_rules(scene: Scene) -> None:
    write_days(scene.logs, 2, 8)
    write_detector_job(scene)
    for name, rule in RULES.items():
        write_detector_job(scene, name=f"job-{name}.yaml", **rule)


def _list_rule_steps() -> tuple[Any, ...]:
    steps: list[Any] = [RUN, list_verdicts]
    for name in RULES:
        steps += ["finalize {out} --config {dir}/job-" + name + ".yaml", list_verdicts]
    return tuple(steps)


def _write_two_days(scene: Scene) -> None:
    write_days(scene.logs, 2, 10)
    write_detector_job(scene, verdict={"drift": {"min_sentences": 5}, "history": {"partitions": 2}})


def _add_third_day(scene: Scene) -> None:
    """Add a third day with many invented sentences."""
    rows = [{**row, "response": f"{INVENTED} {row['response']}"} for row in make_shop_rows(9, 40)]
    write(scene.logs / "dt=2026-11-03" / "a.parquet", rows)


def _add_late_file(scene: Scene) -> None:
    """Add a late file to the first day."""
    write(scene.logs / "dt=2026-11-01" / "b.parquet", make_shop_rows(2, 60))


def _remove_scored(scene: Scene) -> None:
    """Remove `scored/`; finalize must write it again."""
    shutil.rmtree(scene.out / "scored")


def _prepare_lineage(scene: Scene) -> None:
    write_days(scene.logs, 1, 4)
    scene.servers.tools.requests.clear()
    write_novelty_job(scene, integrations={"openlineage": {"url": scene.servers.tools.url, "namespace": "audits"}})


def _write_events(scene: Scene) -> None:
    """Write the lineage events to a file."""
    scene.write_requests("events.json")


CASES = (
    Case("demo_detectors", _write_detector_demo, (RUN, RUN, "evaluate {out} --label label --slice part --config {job} --all")),
    Case("demo_recorded", _write_recorded_demo, (RUN, list_verdicts, "finalize {out} --config {dir}/job-frozen.yaml")),
    Case("served_members", _prepare_served, (RUN, "evaluate {out} --members --last 6 --label label --config {job}")),
    Case("server_errors", _break_server, (Command(RUN, 1), _repair_server, Command(RUN, 1))),
    Case("steps", _prepare_steps, ("score {logs} {out} --config {job}", "fit {out} --config {job}", FINALIZE,
                           "finalize {out} --config {dir}/job-other.yaml", _remove_scored, FINALIZE)),
    Case("rules", _prepare_rules, _list_rule_steps()),
    Case("budget", _write_days, (f"{RUN} --budget-rows 8", f"{RUN} --budget-rows 8", RUN)),
    Case("sample", _write_days, (f"{RUN} --fraction 0.5", list_verdicts, RUN)),
    Case("backfill", _write_days, (
        f'{RUN} --partitions "dt>=2026-11-02" --order newest --budget-rows 6', f"{RUN} --order newest")),
    Case("daily_runs", _write_two_days, (RUN, _add_third_day, Command(f"{RUN} --fail-on-drift", 3),
                             "drift {out} --config {job}",
                             _add_late_file, RUN, RUN)),
    Case("lineage", _prepare_lineage, (RUN, FINALIZE, _write_events)),
)  # fmt: skip
