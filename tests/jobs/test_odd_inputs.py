"""Inputs with odd layouts: each is scored and then skipped, or refused before anything is scored."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ragassay.jobs.run import run_job
from tests.corpus.inputs import ALONE, REFUSED, Alone, Refused
from tests.corpus.job import without_slm
from tests.corpus.tally import check_row, find_control_characters, read_scored_rows
from tests.raises import refuses


def input_uri(root: Path, at: str) -> str:
    return at if "://" in at else f"{root}/{at}".removesuffix("/") if not at else f"{root}/{at}"


@pytest.mark.slow
@pytest.mark.parametrize("layout", ALONE, ids=lambda layout: f"{layout.kind}: {layout.name}")
def test_odd_inputs_are_scored_and_then_skipped(layout: Alone, tmp_path: Path, without_ray: None) -> None:
    root, output = tmp_path / "logs", tmp_path / "out"
    root.mkdir()
    layout.write(root)
    for expected in ({"in": layout.rows, "skipped": 0}, {"in": layout.rows, "skipped": layout.rows}):
        run = run_job(without_slm(**layout.job), input_uri(root, layout.at), str(output), Console(file=StringIO()))
        assert run.rows.items() >= expected.items()
    rows = read_scored_rows(output)
    assert len(rows) == layout.rows
    for row in rows:
        check_row(row)


@pytest.mark.parametrize("layout", REFUSED, ids=lambda layout: f"{layout.kind}: {layout.name}")
def test_odd_inputs_are_refused_before_anything_is_scored(
    layout: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, output = tmp_path / "logs", tmp_path / "logs" / layout.out
    root.mkdir()
    layout.write(root)
    monkeypatch.setattr("ragassay.jobs.run.commands.open_session", _no_session)
    with refuses(layout.fault) as refused:
        run_job(without_slm(**layout.job), input_uri(root, layout.at), str(output), Console(quiet=True))
    assert not find_control_characters(str(refused.value)) and not (output / "raw").exists()


def _no_session(*_: Any, **__: Any) -> None:
    raise AssertionError("the run started to score")
