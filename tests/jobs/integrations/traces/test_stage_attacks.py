"""Exports made to break staging: many days or tenants, lines without an end."""

import subprocess
import sys
from pathlib import Path

import pytest

from ragassay.jobs.integrations.traces.stage import TRACES
from tests.jobs.integrations.traces.test_stage import DAY, ids, otlp, staging, write
from tests.raises import raises

STAGE_MANY = """
import resource, sys
from pathlib import Path
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.integrations.traces.export import export_files
from ragassay.jobs.integrations.traces.stage import stage
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
print(stage(export_files(sys.argv[1]), open_folder(sys.argv[2]), "otel", 0, False)["traces"])
"""


@pytest.mark.parametrize("days", [1000, 1])
def test_attack_an_export_of_1000_days_or_tenants_needs_no_more_than_256_files(tmp_path: Path, days: int) -> None:
    traces = (otlp(f"t{i % 1000}-{i}", 1e9 + i % days * DAY, text=f"Tenant {i % 1000}.") for i in range(2000))
    write(tmp_path / "export" / "all.jsonl", *traces)
    command = [sys.executable, "-c", STAGE_MANY, str(tmp_path / "export"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2000\n"), done.stderr
    files = [path.relative_to(tmp_path / "out" / TRACES) for path in (tmp_path / "out" / TRACES).glob("dt=*/*.parquet")]
    assert len(files) == days and set(ids(tmp_path / "out").values()) == {1}


def test_attack_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragassay.jobs.integrations.traces.export.LONGEST_LINE", 5000)
    huge = otlp("t2", 1e9, text="A" * 20_000)
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9), huge, otlp("t3", 1e9))
    with raises("traces.damaged", where="line 2"):
        staging(tmp_path / "export", tmp_path / "out")
    assert staging(tmp_path / "export", tmp_path / "out", keep_bad=True)["unreadable"] == 1
    assert ids(tmp_path / "out") == {"t1": 1, "t3": 1}
