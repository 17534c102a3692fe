"""Cases about runs: members, steps, rules, runs day by day, and what was left by a budget or a sample."""

import shutil
from typing import Any

from tests.golden.jobs import DETECTORS, FINALIZE, RUN, detector_job, novelty_job, served_job, verdicts
from tests.golden.logs import INVENTED, shop_rows, write, write_days, write_demo
from tests.golden.scene import Case, Command, Scene

WEIGHTS = {"recorded": 27, "entities": 1, "attribution": 1, "novelty": 1}


def _demo_detectors(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    detector_job(scene, evaluation={"resamples": 20})


def _demo_recorded(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    more: dict[str, Any] = {"members": {"weights": WEIGHTS}, "verdict": {"threshold": {"quantile": 0.3}}}
    scene.job("job.yaml", more, members={"slms": [scene.servers.slm("recorded")], "detectors": DETECTORS})
    normalize = {"source": "frozen", "file": f"{scene.folder}/_moments.json"}
    threshold = {"value": 0.4, "measured_on": "a labelled set"}
    members = {"slms": [scene.servers.slm("recorded")], "detectors": DETECTORS, "weights": WEIGHTS}
    scene.job("job-frozen.yaml", members=members, verdict={"normalize": normalize, "threshold": threshold})
    moments = '{"recorded": {"mu": 1.5, "sigma": 2.5, "count": 900, "low": -6.0}'
    for name in ("entities", "attribution", "novelty"):
        moments += f', "{name}": {{"mu": 0.6, "sigma": 0.3, "count": 900, "low": 0.0}}'
    (scene.folder / "_moments.json").write_text(moments + "}")


def _days(scene: Scene) -> None:
    write_days(scene.logs, 3, 6)
    novelty_job(scene)


def _served(scene: Scene) -> None:
    rows = shop_rows(8)
    rows += [{**rows[0], "row_id": "refused", "response": "It has a REFUSED word. It opens at 6 a.m."}]
    rows += [{**rows[1], "row_id": "mute", "response": "It has a MUTE word."}]
    rows.insert(3, {**rows[2], "row_id": "same"})  # in the row group of its twin, so that it is always the second
    write(scene.logs / "a.parquet", rows, row_group_size=4)
    scene.servers.faults["REFUSED"] = lambda: (400, {"error": {"message": "too long"}})
    scene.servers.faults["MUTE"] = lambda: (
        200,
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []},
    )
    slms = [scene.servers.slm("first", whole_response=True), scene.servers.slm("second", value="p_yes")]
    scene.job(
        members={"slms": slms, "detectors": DETECTORS[2:], "weights": {"first": 3, "second": 1, "novelty": 1}},
        runtime={"cluster_mib": 1},
    )


def _trouble(scene: Scene) -> None:
    rows = shop_rows(12)
    write(scene.logs / "a.parquet", [*rows, {**rows[0], "row_id": "busy", "response": "It is a BUSY day."}])
    scene.servers.faults["BUSY"] = lambda: (503, {"error": {"message": "busy"}})
    served_job(scene, "first")


def _no_trouble(scene: Scene) -> None:
    """The server is well again."""
    scene.servers.faults.clear()


def _steps(scene: Scene) -> None:
    write_days(scene.logs, 2, 8)
    detector_job(scene)
    detector_job(scene, name="job-other.yaml", verdict={"threshold": {"quantile": 0.5}, "rule": "aggregate"})


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


def _rules(scene: Scene) -> None:
    write_days(scene.logs, 2, 8)
    detector_job(scene)
    for name, rule in RULES.items():
        detector_job(scene, name=f"job-{name}.yaml", **rule)


def _rule_steps() -> tuple[Any, ...]:
    steps: list[Any] = [RUN, verdicts]
    for name in RULES:
        steps += ["finalize {out} --config {dir}/job-" + name + ".yaml", verdicts]
    return tuple(steps)


def _nights(scene: Scene) -> None:
    write_days(scene.logs, 2, 10)
    detector_job(scene, verdict={"drift": {"min_sentences": 5}, "history": {"partitions": 2}})


def _third_night(scene: Scene) -> None:
    """A third day comes, in which much is invented."""
    rows = [{**row, "response": f"{INVENTED} {row['response']}"} for row in shop_rows(9, 40)]
    write(scene.logs / "dt=2026-11-03" / "a.parquet", rows)


def _late_file(scene: Scene) -> None:
    """A file comes late for the first day."""
    write(scene.logs / "dt=2026-11-01" / "b.parquet", shop_rows(2, 60))


def _without_last_run(scene: Scene) -> None:
    """`scored/` is removed: finalize makes it anew."""
    shutil.rmtree(scene.out / "scored")


def _lineage(scene: Scene) -> None:
    write_days(scene.logs, 1, 4)
    scene.servers.tools.requests.clear()
    novelty_job(scene, integrations={"openlineage": {"url": scene.servers.tools.url, "namespace": "audits"}})


def _events(scene: Scene) -> None:
    """Write down the lineage events."""
    scene.write_requests("events.json")


CASES = (
    Case("demo_detectors", _demo_detectors, (RUN, RUN, "evaluate {out} --label label --slice part --config {job} --all")),
    Case("demo_recorded", _demo_recorded, (RUN, verdicts, "finalize {out} --config {dir}/job-frozen.yaml")),
    Case("served_members", _served, (RUN, "compare {out} --last 6 --label label --config {job}")),
    Case("served_trouble", _trouble, (Command(RUN, 1), _no_trouble, Command(RUN, 1))),
    Case("steps", _steps, ("score {logs} {out} --config {job}", "fit {out} --config {job}", FINALIZE,
                           "finalize {out} --config {dir}/job-other.yaml", _without_last_run, FINALIZE)),
    Case("rules", _rules, _rule_steps()),
    Case("budget", _days, (f"{RUN} --budget-rows 8", f"{RUN} --budget-rows 8", RUN)),
    Case("sample", _days, (f"{RUN} --fraction 0.5", verdicts, RUN)),
    Case("backfill", _days, (f'{RUN} --partitions "dt>=2026-11-02" --order newest --budget-rows 6', f"{RUN} --order newest")),
    Case("nights", _nights, (RUN, _third_night, Command(f"{RUN} --fail-on-drift", 3), "drift {out} --config {job}",
                             _late_file, RUN, RUN)),
    Case("lineage", _lineage, (RUN, FINALIZE, _events)),
)  # fmt: skip
