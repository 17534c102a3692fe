"""Cases about runs that break off: the same command resumes, and what comes out is that of a run that nobody disturbed."""

import threading
import time
from collections.abc import Callable

import psutil

from tests.chat_server import Reply
from tests.golden.command import start
from tests.golden.jobs import RUN, served_job
from tests.golden.logs import shop_rows, write
from tests.golden.masks import RUN_ID
from tests.golden.scene import Case, Command, Scene
from tests.golden.servers import wait_for
from tests.golden.tables import read_dataset, rows_text
from tests.jobs.conftest import committed_rows
from tests.without_ray import without_ray

COMMITTED = 8
"""Rows of the two days that are scored; that of the third day is what the run breaks at."""

WORD = "Tallinn"
"""Stands in the third day's row alone."""


def _prepare(scene: Scene) -> None:
    rows = [row for row in shop_rows(20) if WORD not in row["response"]]
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[:4])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", rows[4:8])
    write(scene.logs / "dt=2026-11-03" / "a.parquet", [row for row in shop_rows(20) if WORD in row["response"]][:1])
    served_job(scene, "first")
    scene.job("job-impatient.yaml", runtime={"wait_minutes": 0})


def _fault(then: Callable[[], None]) -> Callable[[], Reply]:
    def fault() -> Reply:
        then()
        return 401, {"error": {"message": "who are you"}}

    return fault


def _kill(scene: Scene) -> str:
    """A run is killed while it waits for the server; another command meets its lock."""
    killed = threading.Event()
    scene.servers.faults[WORD] = _fault(lambda: wait_for(killed.is_set, 600))
    process = start(scene.arguments(RUN), scene.folder / "_killed.log")
    try:
        wait_for(lambda: process.poll() is not None or committed_rows(scene.out) == COMMITTED, 300)
        assert process.poll() is None, (scene.folder / "_killed.log").read_text()[-2000:]
        scene.run(Command("finalize {out} --config {dir}/job-impatient.yaml", 1))
    finally:
        family = [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
        process.kill()
        process.wait()
        for child in family:
            if child.is_running():
                child.kill()
        psutil.wait_procs(family, timeout=20)
        killed.set()
        time.sleep(0.2)
        scene.servers.faults.clear()
    return f"{committed_rows(scene.out)} rows committed"


def _refuse(scene: Scene) -> None:
    """The server refuses the key, once the other rows are committed."""
    scene.servers.faults[WORD] = _fault(lambda: wait_for(lambda: committed_rows(scene.out) == COMMITTED, 300))


def _accept(scene: Scene) -> None:
    """The server answers again."""
    scene.servers.faults.clear()


def _compare(scene: Scene) -> str:
    """The output beside that of a run that nobody disturbed."""
    with without_ray():
        scene.run(Command("run {logs} {dir}/_whole --config {job}"))
    found = []
    for name in ("raw", "scored"):
        texts = [rows_text(read_dataset(folder / name), _without_runs) for folder in (scene.out, scene.folder / "_whole")]
        found.append(f"{name}: {'equal' if texts[0] == texts[1] else 'different'}")
    return "\n".join(found)


def _without_runs(text: str) -> str:
    return RUN_ID.sub("<run>", text)


CASES = (
    Case("killed", _prepare, (_kill, RUN, RUN, _compare), needs_ray=True),
    Case("broken_off", _prepare, (_refuse, Command(RUN, 1), _accept, RUN, _compare), needs_ray=True),
)
