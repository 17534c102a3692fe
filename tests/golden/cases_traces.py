"""Cases about exports of tracing tools: two nights of each, with traces that begin on the one and end on the other."""

from functools import partial

from tests.golden.jobs import NOVELTY
from tests.golden.scene import Case, Scene
from tests.jobs.integrations.traces.exports import TOOLS
from tests.jobs.integrations.traces.stories import nights, stories

TRACES = 17


def _slug(tool: str) -> str:
    return tool.replace(" ", "_")


def _export(scene: Scene, tool: str, night: int) -> None:
    """Write what a tool exports in a night, records in a stable order."""
    how = TOOLS[tool]
    rows = []
    for story in stories(TRACES):
        first, second = nights(story, at_end=how.at_end)
        spans = first if night == 1 else list(story.spans) if how.whole and second else second
        rows += how.rows(story, spans) if spans else []
    how.write(scene.logs, night, sorted(rows, key=str))


def _prepare(tool: str, scene: Scene) -> None:
    _export(scene, tool, 1)
    # The second night's traces are all taken as they are: they would wait for two days otherwise.
    scene.job("job.yaml", members={"slms": [], "detectors": NOVELTY}, input={"preset": tool.split(maxsplit=1)[0]})
    scene.job(
        "job-second.yaml",
        members={"slms": [], "detectors": NOVELTY},
        input={"preset": tool.split(maxsplit=1)[0], "hold_days": 0},
    )


def _second_night(tool: str, scene: Scene) -> None:
    _export(scene, tool, 2)


CASES = tuple(
    Case(
        f"traces_{_slug(tool)}",
        partial(_prepare, tool),
        (
            *(("init {logs} --out {dir}/found.yaml",) if tool in {"langfuse", "otel"} else ()),
            "run {logs} {out} --config {job}",
            partial(_second_night, tool),
            "run {logs} {out} --config {dir}/job-second.yaml",
        ),
    )
    for tool in TOOLS
)
