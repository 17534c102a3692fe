"""One scored output that is made once a process, for all cases that only read verdicts; each of them has a copy."""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.jobs import DETECTORS, RUN
from tests.golden.logs import Row, shop_rows, write
from tests.golden.masks import Masks
from tests.golden.normalize import normalize
from tests.golden.scene import Command, Scene
from tests.golden.servers import Servers

COUNT = 32
"""Rows that can be scored; another has no context."""

_made: dict[str, Path] = {}
"""Address of the models -> the folder with the shared logs and their output."""


def shared_job(servers: Servers) -> dict[str, Any]:
    """The job file of the shared output."""
    return {
        "members": {"slms": [servers.slm("first", whole_response=True)], "detectors": DETECTORS},
        "verdict": {"threshold": {"quantile": 0.4}},
    }


def copy_shared(scene: Scene) -> None:
    """Copy the shared logs and their output into a case; what the case leaves as it is is not compared again."""
    source = _made.get(scene.servers.chat) or _make(scene.servers)
    scene.masks.add_folder(source)
    shutil.copytree(source, scene.folder, dirs_exist_ok=True)
    scene.learn()
    scene.known = normalize(scene.folder, scene.masks)


def _make(servers: Servers) -> Path:
    folder = Path(tempfile.mkdtemp()).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scene = Scene(folder, servers, Masks(folder))
    rows = [_row(n, row) for n, row in enumerate(shop_rows(COUNT))]
    bad = {**_row(COUNT, rows[0]), "row_id": "no-context", "context": None}
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[: COUNT // 2])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", [*rows[COUNT // 2 :], bad])
    scene.job(**shared_job(servers))
    scene.run(Command(RUN))
    _made[servers.chat] = folder
    return folder


def _row(n: int, row: Row) -> Row:
    """A row with what some commands want: a split, ids of a trace; every eighth answers what the row before it did."""
    row = {**row, "split": "train" if n % 5 else "test", "trace_id": f"{n + 1:032x}", "span_id": f"{n + 1:016x}"}
    if n % 8 == 1:
        (before,) = shop_rows(1, n - 1)
        response = "Dr. Quentin Marlow has closed that shop since 2011."
        labels = [{"start": 0, "end": len(response), "supported": False}]
        row |= {"question": before["question"], "context": before["context"], "response": response, "sentence_labels": labels}
    return row
