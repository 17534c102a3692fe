"""Cases about exports of traces: two days of each tool, in a stable order of records."""

import hashlib
from collections.abc import Sequence
from typing import Any

from tests.golden.jobs import novelty_job
from tests.golden.scene import Case, Scene
from tests.jobs.traces.exports import TOOLS
from tests.jobs.traces.stories import nights, stories

ALL = (0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
"""Numbers of stories: one of each kind; number 3 begins on the first day and ends on the second."""

SOME = (3, 4, 9, 10, 12)


def _export(tool: str, day: int, chosen: Sequence[int]) -> Any:
    def export(scene: Scene) -> None:
        """A day's export comes."""
        how, known = TOOLS[tool], stories(13)
        rows: list[dict[str, Any]] = []
        for story in (known[number] for number in chosen):
            first, second = nights(story, at_end=how.at_end)
            spans = first if day == 1 else list(story.spans) if how.whole and second else second
            rows += how.rows(story, spans) if spans else []
        rows.sort(key=lambda row: hashlib.sha256(str(row).encode()).digest())  # no tool promises an order
        how.write(scene.logs, day, rows)

    return export


def _case(tool: str, chosen: Sequence[int]) -> Case:
    def prepare(scene: Scene) -> None:
        _export(tool, 1, chosen)(scene)
        novelty_job(scene, input={"preset": tool.split()[0], "hold_days": 2})
        novelty_job(scene, name="job-at-once.yaml", input={"preset": tool.split()[0], "hold_days": 0})

    steps = ("run {logs} {out} --config {job}", _export(tool, 2, chosen), "run {logs} {out} --config {dir}/job-at-once.yaml")
    left_out = ("out/raw.txt", "out/stats.json", "out/frequencies.parquet.txt", "out/_traces.txt")
    return Case(f"traces_{tool.replace(' ', '_')}", prepare, steps, left_out)


CASES = tuple(_case(tool, ALL if tool == "langfuse" else SOME) for tool in TOOLS)
