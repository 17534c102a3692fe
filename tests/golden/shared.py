"""A scored output, made once per process; each case that only reads verdicts gets a copy."""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.jobs import DETECTORS, RUN
from tests.golden.logs import Row, make_shop_rows, write
from tests.golden.masks import Masks
from tests.golden.normalize import normalize
from tests.golden.scene import Command, Scene
from tests.golden.servers import Servers

ROWS = 32
"""Number of rows that can be scored; one more row has no context."""

_folders: dict[str, Path] = {}
"""Address of the models -> folder with the shared logs and their output."""


def build_shared_job(servers: Servers) -> dict[str, Any]:
    """Build the job file of the shared output."""
    return {
        "members": {"slms": [servers.slm("first", whole_response=True)], "detectors": DETECTORS},
        "verdict": {"threshold": {"quantile": 0.4}},
    }


def copy_shared(scene: Scene) -> None:
    """Copy the shared logs and their output into a case; files that the case does not change are not compared."""
    source = _folders.get(scene.servers.chat) or _make_output(scene.servers)
    scene.masks.add_folder(source)
    shutil.copytree(source, scene.folder, dirs_exist_ok=True)
    scene.number_runs()
    scene.initial = normalize(scene.folder, scene.masks)


def _make_output(servers: Servers) -> Path:
    folder = Path(tempfile.mkdtemp()).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scene = Scene(folder, servers, Masks(folder))
    rows = [_make_row(n, row) for n, row in enumerate(make_shop_rows(ROWS))]
    no_context = {**_make_row(ROWS, rows[0]), "row_id": "no-context", "context": None}
    write(scene.logs / "dt=2026-11-01" / "a.parquet", rows[: ROWS // 2])
    write(scene.logs / "dt=2026-11-02" / "a.parquet", [*rows[ROWS // 2 :], no_context])
    scene.write_job(**build_shared_job(servers))
    scene.run_command(Command(RUN))
    _folders[servers.chat] = folder
    return folder


def _make_row(n: int, row: Row) -> Row:
    """Add a split and trace ids to a row; every eighth row repeats the question of the row before it."""
    row = {**row, "split": "train" if n % 5 else "test", "trace_id": f"{n + 1:032x}", "span_id": f"{n + 1:016x}"}
    if n % 8 == 1:
        (previous,) = make_shop_rows(1, n - 1)
        response = "Dr. Quentin Marlow has closed that shop since 2011."
        labels = [{"start": 0, "end": len(response), "supported": False}]
        row |= {
            "question": previous["question"],
            "context": previous["context"],
            "response": response,
            "sentence_labels": labels,
        }
    return row
