"""Progress on a terminal, in a file and as JSON."""

import io
import json
import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ragassay.jobs.cli.console import new_console
from ragassay.jobs.progress import show
from ragassay.jobs.progress.bar_state import Bar, SpeedEstimator
from ragassay.jobs.progress.show import (
    LINE_SECONDS,
    QUIET_SECONDS,
    LineReporter,
    LogFormat,
    print_line,
    report_finished,
    set_log_format,
    show_progress,
    update_bars,
)
from ragassay.jobs.progress.task import advance, expect, raise_done_to, task

FACTS = Bar("scoring", "facts", 120, 637, "sentences", is_estimate=True, tokens_per_second=2_100.26, seconds_left=40.0)
DETECT = Bar("waiting", "detect", 0, None, "sentences")


@pytest.fixture
def as_json() -> Iterator[None]:
    set_log_format(LogFormat.JSON)
    yield
    set_log_format(LogFormat.TEXT)


def terminal() -> tuple[Console, io.StringIO]:
    console = new_console(width=110)
    console.file = file = io.StringIO()
    console._force_terminal = console.is_interactive = True
    return console, file


def test_bars_on_a_terminal() -> None:
    console, file = terminal()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[text]}", markup=False))
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        update_bars(progress, [FACTS])
        update_bars(progress, [FACTS, DETECT])
        assert len(progress.tasks) == 2 and progress.tasks[0].percentage == pytest.approx(100 * 120 / 637)
        assert progress.tasks[1].total is None, "a bar without an end"
    output = file.getvalue()
    assert "facts: scoring" in output and "120 of about 637 sentences, 2,100 tokens/s, about 40 s left" in output
    assert "detect: waiting" in output


def test_a_live_bar_appears_after_the_quiet_time_and_is_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(show, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(show, "REFRESH_SECONDS", 0.02)
    console, file = terminal()
    with task(console, "reading", "[red]logs", 10, "rows"):
        advance(3, "rows")
        end = time.monotonic() + 20
        while "3 of 10 rows" not in file.getvalue() and time.monotonic() < end:
            time.sleep(0.02)
    output = file.getvalue()
    assert "[red]logs: reading" in output and "3 of 10 rows" in output
    assert output.rstrip().endswith("\x1b[2K"), "the line is erased at the end"


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console, file = terminal()
    with task(console, "reading", "logs"):
        pass
    with task(new_console(), "reading", "logs"):
        pass
    assert file.getvalue() == "" and capsys.readouterr() == ("", "")


def test_a_line_when_a_phase_changes_and_every_fifteen_seconds() -> None:
    now, printed = 0.0, []
    reporter = LineReporter(lambda bars: printed.append((now, bars[0].phase)), QUIET_SECONDS, lambda: now)
    for second in range(50):
        now = float(second)
        reporter.report([Bar("loading" if second < 20 else "scoring", "facts", done=second)])
    assert printed == [(2, "loading"), (2 + LINE_SECONDS, "loading"), (20, "scoring"), (35, "scoring")]


def test_one_line_for_all_bars(capsys: pytest.CaptureFixture[str]) -> None:
    print_line([FACTS, DETECT], 17.2, new_console(width=200))
    line = "facts: scoring, 120 of about 637 sentences, 2,100 tokens/s, about 40 s left; detect: waiting (17 s)\n"
    assert capsys.readouterr() == (line, "")


@pytest.mark.usefixtures("as_json")
def test_json_goes_to_stderr_with_one_object_per_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bars = [FACTS, DETECT]
    monkeypatch.setattr(SpeedEstimator, "measure", lambda _, bar: bar)
    console, file = terminal()
    with show_progress(lambda: bars, console):
        bars[1] = Bar("scoring", "det\nect \u202e", 0, 0, "sentences", seconds_left=0.0)
    report_finished("run", 637, "sentences")
    out, err = capsys.readouterr()
    assert out == file.getvalue() == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["stage"], line["phase"]) for line in lines] == [
        ("facts", "scoring"), ("detect", "waiting"), ("facts", "scoring"), ("det\nect \u202e", "scoring"), ("run", "done"),
    ]  # fmt: skip
    first, last = lines[0], lines[-1]
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    assert first == {
        "phase": "scoring", "stage": "facts", "done": 120, "total": 637, "unit": "sentences", "is_estimate": True,
        "tokens_per_second": 2100.3, "seconds_left": 40.0,
    }  # fmt: skip
    assert lines[1]["total"] is None and lines[1]["tokens_per_second"] is None
    assert last["done"] == last["total"] == 637 and last["seconds_left"] == 0


@pytest.mark.usefixtures("as_json")
def test_a_failed_task_is_not_shown_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), task(new_console(), "reading", "logs", 10, "rows"):
        advance(4, "rows")
        raise ValueError("broken")
    with task(new_console(), "reading", "logs", 10, "rows"):
        advance(4, "rows")
    ends = [json.loads(line)["done"] for line in capsys.readouterr().err.splitlines()]
    assert ends == [0, 0, 10]


@pytest.mark.usefixtures("as_json")
def test_a_task_counts_only_its_own_unit(capsys: pytest.CaptureFixture[str]) -> None:
    advance(5, "rows")  # no task is open
    with task(new_console(), "evaluating", unit="steps"):
        expect(2, "steps")
        expect(3, "steps")
        advance(99, "rows")
        advance(1, "steps")
        with task(new_console(), "training", total=100, unit="tokens", tokens=True):
            raise_done_to(60, "tokens")
            raise_done_to(40, "tokens")
            advance(1, "steps")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["phase"], line["done"], line["total"]) for line in lines] == [
        ("evaluating", 0, None), ("training", 0, 100), ("training", 100, 100), ("evaluating", 5, 5),
    ]  # fmt: skip


@pytest.mark.usefixtures("as_json")
def test_a_failing_count_does_not_stop_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    def count() -> int:
        raise OSError("moved meanwhile")

    with task(new_console(), "explaining", total=3, unit="sentences", count=count):
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("as_json")
def test_the_amount_done_never_exceeds_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    with task(new_console(), "explaining", total=3, unit="sentences", count=lambda: 7):
        pass
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert all(line["done"] == line["total"] == 3 for line in lines)
