"""Cases about runs: members, steps, rules, runs over days, crashes."""

from typing import Any

from tests.golden.logs import shop_rows, write, write_days, write_demo
from tests.golden.scene import Case, Command, Scene

DETECTORS: list[dict[str, Any]] = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
RUN = "run {logs} {out} --config {job}"


def _demo_detectors(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    scene.job(slms=[], detectors=DETECTORS)


def _demo_recorded(scene: Scene) -> None:
    write_demo(scene.logs, 4)
    weights = {"recorded": 27, "entities": 1, "attribution": 1, "novelty": 1}
    scene.job(slms=[scene.servers.slm("recorded")], detectors=DETECTORS, weights=weights, threshold={"quantile": 0.3})


def _days(scene: Scene) -> None:
    write_days(scene.logs, 3, 6)
    scene.job(slms=[], detectors=DETECTORS)


CASES = (
    Case("demo_detectors", _demo_detectors, (RUN, RUN)),
    Case("budget", _days, (f"{RUN} --budget-rows 8", f"{RUN} --budget-rows 8", RUN)),
    Case("sample", _days, (f"{RUN} --sample 0.5", RUN)),
    Case("backfill", _days, (f'{RUN} --partitions "dt>=2026-11-02" --order newest --budget-rows 6', f"{RUN} --order newest")),
    Case("steps", _days, ("score {logs} {out} --config {job}", "fit {out} --config {job}", "finalize {out} --config {job}")),
)
