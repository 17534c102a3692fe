"""A terminal shows escape sequences, markup and emoji codes of logs as plain text."""

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
# the console itself drops a bell
SHOWN = "[U+001B][31mred[U+001B]]0;title [U+009B]2J [U+202E]desrever [bold]b[/bold] :smile: \\[x]"


def test_log_text_in_tables_and_lines_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    with command_console() as console:
        table = Table("row", title=escape(HOSTILE))
        table.add_row(escape(HOSTILE))
        console.print(table)
        console.print(HOSTILE, markup=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x9b" not in out and "\x07" not in out and "\u202e" not in out
    assert out.splitlines()[-1] == SHOWN and out.count("[U+001B][31mred") == 3 and out.count(":smile:") == 3


def test_a_terminal_gets_only_the_consoles_own_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    with command_console() as console:
        console.file = io.StringIO()
        console._force_terminal, console._color_system = True, None
        with Progress(console=console) as bar:
            bar.add_task("scoring", total=1)
            console.print(HOSTILE, markup=False)
        text = console.file.getvalue()
    assert "\x1b[31m" not in text and "\x1b]0" not in text and "[U+001B][31mred" in text and "\x1b[?25l" in text


def test_values_in_error_messages_are_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, command_console():
        raise InputError(Message("input.example", "row {row}"), row=HOSTILE)
    assert ended.value.code == 1 and capsys.readouterr().err.strip() == f"error[input.example]: row {SHOWN}"


def test_line_ends_and_letters_are_unchanged() -> None:
    assert (
        make_visible("a\nb\tc é 漢 🙂") == "a\nb\tc é 漢 🙂"
        and make_visible("a\rb") == "a\nb"
        and make_visible("\ud800") == "[U+D800]"
    )


def test_a_signal_handler_set_by_c_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a handler set by C code, `getsignal` returns None, and Python can't set it again."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    with command_console():
        pass
    monkeypatch.undo()
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_command_with_one_line(number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT
    with pytest.raises(SystemExit) as ended, command_console():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Ray sets its own handler too
        handle_sigterm()
        os.kill(os.getpid(), number)
    signal.signal(signal.SIGINT, ignored)
    assert ended.value.code == code and issubclass(Terminated, KeyboardInterrupt)
    assert capsys.readouterr().err == "stopped; run the same command again to resume\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_full_disk_ends_a_command_with_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, command_console():
        os.write(os.open("/dev/full", os.O_WRONLY), b"x")
    assert ended.value.code == 1 and "error[disk.full]: " in capsys.readouterr().err
    with pytest.raises(PermissionError), command_console():
        raise PermissionError(13, "another kind")


def test_errors_during_an_interruption_are_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, command_console():
        try:
            raise Terminated
        finally:
            raise RuntimeError("Ray was shutting down")
    assert end.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "stopped; run the same command again to resume\n"
