"""Test conversion with hostile exports: many days or tenants, endless lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from ragassay.jobs.integrations.traces.convert import TRACES_FOLDER
from tests.jobs.integrations.traces.test_convert import DAY, convert_folder, count_ids, otlp_request, write_lines
from tests.raises import raises

CONVERT_MANY = """
import resource, sys
from pathlib import Path
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.integrations.traces.read_export import find_export_files
from ragassay.jobs.integrations.traces.convert import convert_export
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
print(convert_export(find_export_files(sys.argv[1]), open_folder(sys.argv[2]), "otel", 0, False)["traces"])
"""


@pytest.mark.parametrize("days", [1000, 1])
def test_attack_an_export_of_1000_days_or_tenants_needs_at_most_256_open_files(tmp_path: Path, days: int) -> None:
    traces = (otlp_request(f"t{i % 1000}-{i}", 1e9 + i % days * DAY, text=f"Tenant {i % 1000}.") for i in range(2000))
    write_lines(tmp_path / "export" / "all.jsonl", *traces)
    command = [sys.executable, "-c", CONVERT_MANY, str(tmp_path / "export"), str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "2000\n"), result.stderr
    files = [
        path.relative_to(tmp_path / "out" / TRACES_FOLDER) for path in (tmp_path / "out" / TRACES_FOLDER).glob("dt=*/*.parquet")
    ]
    assert len(files) == days and set(count_ids(tmp_path / "out").values()) == {1}


def test_attack_an_endless_line_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragassay.jobs.integrations.traces.read_export.MAX_LINE_CHARS", 5000)
    huge = otlp_request("t2", 1e9, text="A" * 20_000)
    write_lines(tmp_path / "export" / "1.jsonl", otlp_request("t1", 1e9), huge, otlp_request("t3", 1e9))
    with raises("traces.damaged", where="line 2"):
        convert_folder(tmp_path / "export", tmp_path / "out")
    assert convert_folder(tmp_path / "export", tmp_path / "out", skip_unreadable=True)["unreadable"] == 1
    assert count_ids(tmp_path / "out") == {"t1": 1, "t3": 1}
