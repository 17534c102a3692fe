"""Cases about interrupted runs: the same command resumes them, and the output equals that of an uninterrupted run."""

import threading
import time
from collections.abc import Callable

import psutil

from tests.chat_server import Reply
from tests.golden.command import start
from tests.golden.jobs import RUN, write_served_job
from tests.golden.logs import make_shop_rows, write
from tests.golden.masks import RUN_ID
from tests.golden.scene import Case, Command, Scene
from tests.golden.servers import wait_for
from tests.golden.tables import read_dataset, render_rows
from tests.jobs.conftest import committed_rows
from tests.without_ray import without_ray

COMMITTED_ROWS = 8
"""Rows of the first two days. The run is interrupted at the row of the third day."""

LAST_ROW_WORD = "Tallinn"
"""Occurs only in the row of the third day."""


def _write_scene(scene: Scene) -> None:
    rows = [row for row in make_shop_rows(20) if LAST_ROW_WORD not in row["response"]]
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[:4])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", rows[4:8])
    last = next(row for row in make_shop_rows(20) if LAST_ROW_WORD in row["response"])
    write(scene.logs / "dt=2026-11-03" / "a.parquet", [last])
    write_served_job(scene, "first")
    scene.write_job("job-impatient.yaml", runtime={"wait_minutes": 0})


def _refuse_after(action: Callable[[], None]) -> Callable[[], Reply]:
    def refuse() -> Reply:
        action()
        return 401, {"error": {"message": "invalid key"}}

    return refuse


def _kill_run(scene: Scene) -> str:
    """Kill a run while it waits for the server; another command finds its lock."""
    killed = threading.Event()
    scene.servers.faults[LAST_ROW_WORD] = _refuse_after(lambda: wait_for(killed.is_set, 600))
    process = start(scene.arguments(RUN), scene.folder / "_killed.log")
    try:
        wait_for(lambda: process.poll() is not None or committed_rows(scene.out) == COMMITTED_ROWS, 300)
        assert process.poll() is None, (scene.folder / "_killed.log").read_text()[-2000:]
        scene.run_command(Command("finalize {out} --config {dir}/job-impatient.yaml", 1))
    finally:
        children = [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
        process.kill()
        process.wait()
        for child in children:
            if child.is_running():
                child.kill()
        psutil.wait_procs(children, timeout=20)
        killed.set()
        time.sleep(0.2)
        scene.servers.faults.clear()
    return f"{committed_rows(scene.out)} rows committed"


def _refuse_key(scene: Scene) -> None:
    """Refuse the key once the other rows are committed."""
    scene.servers.faults[LAST_ROW_WORD] = _refuse_after(
        lambda: wait_for(lambda: committed_rows(scene.out) == COMMITTED_ROWS, 300)
    )


def _accept_key(scene: Scene) -> None:
    """Answer again."""
    scene.servers.faults.clear()


def _compare_with_whole_run(scene: Scene) -> str:
    """Compare the output with that of an uninterrupted run."""
    with without_ray():
        scene.run_command(Command("run {logs} {dir}/_whole --config {job}"))
    lines = []
    for name in ("raw", "scored"):
        texts = [render_rows(read_dataset(folder / name), _mask_runs) for folder in (scene.out, scene.folder / "_whole")]
        lines.append(f"{name}: {'equal' if texts[0] == texts[1] else 'different'}")
    return "\n".join(lines)


def _mask_runs(text: str) -> str:
    return RUN_ID.sub("<run>", text)


CASES = (
    Case("killed", _write_scene, (_kill_run, RUN, RUN, _compare_with_whole_run), needs_ray=True),
    Case(
        "interrupted",
        _write_scene,
        (_refuse_key, Command(RUN, 1), _accept_key, RUN, _compare_with_whole_run),
        needs_ray=True,
    ),
)
