"""Cases about trace exports: two days of each tool, with traces that start on the first day and end on the second."""

from functools import partial

from tests.golden.jobs import NOVELTY
from tests.golden.scene import Case, Scene
from tests.jobs.integrations.traces.exports import TOOLS
from tests.jobs.integrations.traces.stories import split_days, stories

TRACES = 17


def _make_name(tool: str) -> str:
    return tool.replace(" ", "_")


def _write_export(scene: Scene, tool: str, day: int) -> None:
    """Write a tool's export of one day, with the records in a stable order."""
    export = TOOLS[tool]
    rows = []
    for story in stories(TRACES):
        first, second = split_days(story, at_end=export.at_end)
        spans = first if day == 1 else list(story.spans) if export.whole and second else second
        rows += export.rows(story, spans) if spans else []
    export.write(scene.logs, day, sorted(rows, key=str))


def _prepare_first_day(tool: str, scene: Scene) -> None:
    _write_export(scene, tool, 1)
    # The second job accepts incomplete traces, which otherwise wait for two days.
    scene.write_job("job.yaml", members={"slms": [], "detectors": NOVELTY}, input={"preset": tool.split(maxsplit=1)[0]})
    scene.write_job(
        "job-second.yaml",
        members={"slms": [], "detectors": NOVELTY},
        input={"preset": tool.split(maxsplit=1)[0], "hold_days": 0},
    )


def _add_second_day(tool: str, scene: Scene) -> None:
    _write_export(scene, tool, 2)


CASES = tuple(
    Case(
        f"traces_{_make_name(tool)}",
        partial(_prepare_first_day, tool),
        (
            *(("init {logs} --out {dir}/init.yaml",) if tool in {"langfuse", "otel"} else ()),
            "run {logs} {out} --config {job}",
            partial(_add_second_day, tool),
            "run {logs} {out} --config {dir}/job-second.yaml",
        ),
    )
    for tool in TOOLS
)
