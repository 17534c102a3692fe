"""`ragassay init`: look at logs, write a job file for them, and say what to type next."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ragassay.jobs.config import make_job
from ragassay.jobs.init import errors
from ragassay.jobs.init.found import Found, look
from ragassay.jobs.init.machine import Machine, this_machine
from ragassay.jobs.init.names import Role
from ragassay.jobs.init.others import LabelColumn
from ragassay.jobs.init.traces import Traces, traces_in
from ragassay.jobs.init.wording import listed, said
from ragassay.jobs.init.write import export_text, job_text, kinds_text, length_text, size_text, traces_text
from ragassay.jobs.input import Logs, check_logs
from ragassay.jobs.job_text import parse
from ragassay.jobs.lines import print_lines
from ragassay.jobs.storage import open_folder
from ragassay.jobs.writable import check_writable
from ragassay.pipeline.errors import InputError, OutputError


def init(uri: str, to: str, console: Console) -> None:
    """Write a job file.

    Args:
        uri: File, folder, glob or object-store URI of logs, or of an export of traces.
        to: File to write on this machine; nothing is ever overwritten.
        console: Where it is said what was taken for what.

    Raises:
        OutputError: The file is there already, or can't be written.
        InputError: The logs can't be read, or no job could read them as they stand.
    """
    _check_new(to)
    seen = _seen(uri)
    machine = this_machine()
    if isinstance(seen, Traces):
        text = traces_text(seen, machine)
        make_job(parse(text), where=to)
        lines, further = _lines_of_traces(seen), _next(uri, to)
    else:
        logs, found = seen
        text = job_text(found, machine)
        job = make_job(parse(text), where=to)
        check_logs(logs, job.columns, job.question_needed)  # what a run would refuse is said now, and nothing is written
        lines, further = _lines(found), _next(found.uri, to, found.labels)
    _write(to, text)
    print_lines(chain(lines, _where(machine, to)), console)
    for line in further:
        console.print(Text(line))  # not in the table, which would fold what is to be copied


def _seen(uri: str) -> Traces | tuple[Logs, Found]:
    """What INPUT is: traces where retrievals say so, logs where names of columns do, traces where only a generation does."""
    traces = traces_in(uri)
    if traces is not None and traces.retrieves:
        return traces
    try:
        logs, found = look(uri)
    except InputError:
        if traces is None:
            raise
        return traces
    return (logs, found) if traces is None or found.named else traces


def _check_new(to: str) -> None:
    check_writable(open_folder(to), to)
    if Path(to).exists():
        raise OutputError(errors.FILE_EXISTS, path=to)
    if not Path(to).parent.is_dir():  # a folder that is not there is more likely a slip than a wish
        raise OutputError(errors.NO_FOLDER, path=to, folder=Path(to).parent)


def _write(to: str, text: str) -> None:
    try:
        with Path(to).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise OutputError(errors.FILE_EXISTS, path=to) from error
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=to, reason=error.strerror or error) from error


def _lines(found: Found) -> Iterator[tuple[str, str]]:
    yield "input", size_text(found)
    yield "looked at", length_text(found)
    if found.messages is not None:
        yield "messages", f"{said(found.messages.column)}: {'; '.join(found.messages.why)}"
        yield from (("in doubt", f"messages: {doubt}") for doubt in found.messages.doubts)
    for role in Role if found.messages is None else ():
        if role not in found.taken:
            yield role, "none: no column's name or texts are like one"
            continue
        taken = found.taken[role]
        yield role, f"{said(taken.column)}: {'; '.join(taken.why)}"
        yield from (("in doubt", f"{role}: {doubt}") for doubt in taken.doubts)
    yield "row_id", f"{said(found.row_id)}: {found.row_id_why}" if found.row_id else f"none: {found.row_id_why}"
    yield from (("in doubt", note) for note in found.notes)
    yield from _judges(found.asked)
    if found.labels:
        yield "labels", listed(label.name for label in found.labels)
    if found.slices:
        yield "slices", listed(found.slices)
    if found.unreadable:
        yield "in doubt", f"{found.unreadable} file(s) can't be read, and a run stops at them (on_bad_file)"


def _lines_of_traces(found: Traces) -> Iterator[tuple[str, str]]:
    yield "input", export_text(found)
    yield "looked at", kinds_text(found)
    yield "columns", "question, context and response are put together of each trace's spans: docs/traces.md"
    yield from (("in doubt", doubt) for doubt in found.doubts)
    yield from _judges(found.asked)


def _judges(asked: bool) -> Iterator[tuple[str, str]]:
    if not asked:
        yield "judges", "detectors alone: the bundled verifier asks with a question"


def _where(machine: Machine, to: str) -> Iterator[tuple[str, str]]:
    gpus = f", {len(machine.gpus)} GPU(s) of {min(machine.gpus):.0f} GiB" if machine.gpus else ", no GPU that can be used"
    yield "machine", f"{machine.cores} cores, {machine.memory:.0f} GiB of memory{gpus}"
    yield "written", to


def _next(uri: str, to: str, labels: Sequence[LabelColumn] = ()) -> Iterator[str]:
    logs, job = shlex.quote(uri), shlex.quote(to)
    yield f"what it takes  ragassay plan {logs} --config {job}"
    yield f"run it         ragassay run {logs} audit/ --config {job}"
    if labels:
        label = labels[0]
        meaning = " --true-means supported (or hallucinated)" if label.true_means else ""
        yield f"then           ragassay evaluate audit/ --label {shlex.quote(label.name)}{meaning}"
