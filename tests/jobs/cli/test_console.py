"""What reaches a terminal: no escape sequence, markup or emoji code of a log means anything there."""

import io
import os
import signal

import pytest
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from ragassay.jobs.cli.console import command_console
from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.runtime.endings import Terminated, handle_sigterm
from ragassay.pipeline.errors import InputError, Message

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202edesrever [bold]b[/bold] :smile: \\[x]"
# a bell is dropped by the console itself
SHOWN = "[U+001B][31mred[U+001B]]0;title [U+009B]2J [U+202E]desrever [bold]b[/bold] :smile: \\[x]"


def test_log_text_in_tables_and_lines_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with command_console() as console:
        table = Table("row", title=escape(HOSTILE))
        table.add_row(escape(HOSTILE))
        console.print(table)
        console.print(HOSTILE, markup=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x9b" not in out and "\x07" not in out and "\u202e" not in out
    assert out.splitlines()[-1] == SHOWN and out.count("[U+001B][31mred") == 3 and out.count(":smile:") == 3


def test_on_a_terminal_only_the_consoles_own_sequences_are_left(capsys: pytest.CaptureFixture[str]) -> None:
    with command_console() as console:
        console.file = io.StringIO()
        console._force_terminal, console._color_system = True, None
        with Progress(console=console) as bar:
            bar.add_task("scoring", total=1)
            console.print(HOSTILE, markup=False)
        said = console.file.getvalue()
    assert "\x1b[31m" not in said and "\x1b]0" not in said and "[U+001B][31mred" in said and "\x1b[?25l" in said


def test_values_in_error_messages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, command_console():
        raise InputError(Message("input.example", "row {row}"), row=HOSTILE)
    assert ended.value.code == 1 and capsys.readouterr().err.strip() == f"error[input.example]: row {SHOWN}"


def test_line_ends_and_letters_stay() -> None:
    assert (
        make_visible("a\nb\tc é 漢 🙂") == "a\nb\tc é 漢 🙂"
        and make_visible("a\rb") == "a\nb"
        and make_visible("\ud800") == "[U+D800]"
    )


def test_a_handler_that_is_not_pythons_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a handler that C code has set, `getsignal` says None, and there is no way to set it again."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    with command_console():
        pass
    monkeypatch.undo()
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_one_line(number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    with pytest.raises(SystemExit) as ended, command_console():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray puts its own handler there
        handle_sigterm()
        os.kill(os.getpid(), number)
    signal.signal(signal.SIGINT, ignored)
    assert ended.value.code == code and issubclass(Terminated, KeyboardInterrupt)
    assert capsys.readouterr().err == "stopped; run the same command again to resume\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_full_disk_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, command_console():
        os.write(os.open("/dev/full", os.O_WRONLY), b"x")
    assert ended.value.code == 1 and "error[disk.full]: " in capsys.readouterr().err
    with pytest.raises(PermissionError), command_console():
        raise PermissionError(13, "another kind")


def test_what_breaks_while_a_command_is_stopped_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, command_console():
        try:
            raise Terminated
        finally:
            raise RuntimeError("Ray was shutting down")
    assert end.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "stopped; run the same command again to resume\n"
