"""Odd rows through the default job, whose verifier runs in vLLM."""

from pathlib import Path

import pytest

from tests.corpus import rows as odd
from tests.corpus.tally import scored_rows
from tests.jobs.conftest import here, ragassay
from tests.jobs.test_corpus import check_classes, write_rows

pytestmark = pytest.mark.soak


def test_odd_rows_through_the_default_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = {kind: [row for row in rows if len(str(row)) < 500][:1] for kind, rows in odd.ROWS.items()}
    write_rows(tmp_path / "logs", {kind: rows for kind, rows in short.items() if rows})
    tried = {kind: len(rows) for kind, rows in short.items()}
    for command, done in ((ragassay, "0 skipped"), (here, f"{sum(tried.values())} skipped")):
        run = command("run", tmp_path / "logs", tmp_path / "out")
        assert run.returncode == 0 and done in run.stdout, run.stderr
    check_classes(scored_rows(tmp_path / "out"), tried, capsys)
