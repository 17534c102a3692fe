"""`ragassay init`: look at logs, write a job file for them, and print what to type next."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.console import Console
from rich.text import Text

from ragassay.jobs.config.job import make_job
from ragassay.jobs.config.job_text import parse
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.init import errors
from ragassay.jobs.init.findings import Findings, look_at_logs
from ragassay.jobs.init.names import show, show_all
from ragassay.jobs.init.traces import look_at_traces
from ragassay.jobs.input import check_logs
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import InputError, OutputError

GIB = 1 << 30
SCHEMA = "job.schema.json"
"""File beside a job file that editors check it by; `ragassay schema` prints it."""


@dataclass(frozen=True)
class Machine:
    """What a machine has.

    Attributes:
        cores: Logical CPUs, as Ray counts them.
        memory: GiB of memory.
        gpus: Memory of each GPU that this installation can use, in GiB.
        unused_gpus: GPUs that are there, and that this installation's PyTorch can't use.
    """

    cores: int
    memory: float
    gpus: tuple[float, ...] = ()
    unused_gpus: int = 0


def look_at_machine() -> Machine:
    """Look at this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    there, gpus = len(list(Path("/dev").glob("nvidia[0-9]*"))), ()
    if there:
        import torch  # takes seconds, so only where there is a GPU at all

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        gpus = tuple(torch.cuda.get_device_properties(number).total_memory / GIB for number in range(count))
    return Machine(os.cpu_count() or 1, memory, gpus, 0 if gpus else there)


def render_job(found: Findings, machine: Machine) -> str:
    """A job file that a run takes as it stands.

    Args:
        found: What is known of the logs or traces.
        machine: Where it will run.
    """
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=folder, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    template = environment.get_template("job.yaml.j2")
    return template.render(found=found, machine=machine, show=show, show_all=show_all, as_yaml=_as_yaml, schema=SCHEMA)


def _as_yaml(name: str | None) -> str:
    """A name as a YAML value in one line, quoted where it has to be."""
    style = None if name is None or name.isprintable() else '"'
    text: str = yaml.safe_dump(name, allow_unicode=True, width=float("inf"), default_style=style)
    return text.removesuffix("...\n").strip()


def init(uri: str, to: str, console: Console) -> None:
    """Write a job file.

    Args:
        uri: File, folder, glob or object-store URI of logs, or of an export of traces.
        to: File to write on this machine; nothing is ever overwritten.
        console: Where it prints what was chosen, and why.

    Raises:
        OutputError: The file is there already, or can't be written.
        InputError: The logs can't be read, or no job could read them as they stand.
    """
    _check_new(to)
    found, machine = _look(uri), look_at_machine()
    text = render_job(found, machine)
    job = make_job(parse(text), where=to)
    if found.preset is None:  # what a run would refuse is an error now, and nothing is written
        check_logs(found.files, job.input.columns, job.members.need_question)
    _write(to, text)
    print_lines([*_describe(found, machine), ("written", to)], console)
    for line in _next_commands(found, to):
        console.print(Text(line))  # not in the table, which would fold what is to be copied


def _look(uri: str) -> Findings:
    """Traces where retrievals show it, logs where names of columns do, traces where only a generation does."""
    traces = look_at_traces(uri)
    if traces is not None and traces.is_certain:
        return traces
    try:
        logs = look_at_logs(uri)
    except InputError:
        if traces is None:
            raise
        return traces
    return logs if traces is None or logs.is_certain else traces


def _check_new(to: str) -> None:
    check_writable(open_folder(to), to)
    if os.path.lexists(to):
        raise OutputError(errors.FILE_EXISTS, path=to)
    if not Path(to).parent.is_dir():  # a folder that is not there is more likely a slip than a wish
        raise OutputError(errors.NO_FOLDER, path=to, folder=Path(to).parent)


def _write(to: str, text: str) -> None:
    try:
        with Path(to).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=to, reason=error.strerror or error) from error


def _describe(found: Findings, machine: Machine) -> Iterator[tuple[str, str]]:
    yield "input", found.size
    yield "looked at", found.sample
    if found.preset:
        yield "columns", "question, context and response are put together of each trace's spans: docs/how-to/inputs.md"
    for choice in found.choices:
        yield choice.key, f"{'none' if choice.column is None else show(choice.column)}: {'; '.join(choice.why)}"
        yield from (("in doubt", f"{choice.key}: {doubt}") for doubt in choice.doubts)
    yield from (("in doubt", doubt) for doubt in found.doubts)
    if not found.is_asked:
        yield "judges", "detectors alone: the bundled verifier asks with a question"
    if found.labels:
        yield "labels", show_all(found.labels)
    if found.slices:
        yield "slices", show_all(found.slices)
    if found.files.unreadable:
        yield "in doubt", f"{len(found.files.unreadable)} file(s) can't be read, and a run stops at them (input.on_bad_file)"
    gpus = f"{len(machine.gpus)} GPU(s) of {min(machine.gpus):.0f} GiB" if machine.gpus else "no GPU that can be used"
    yield "machine", f"{machine.cores} cores, {machine.memory:.0f} GiB of memory, {gpus}"


def _next_commands(found: Findings, to: str) -> Iterator[str]:
    logs, job = shlex.quote(found.files.uri), shlex.quote(to)
    yield f"what it takes  ragassay plan {logs} --config {job}"
    yield f"run it         ragassay run {logs} audit/ --config {job}"
    for name, needs_meaning in list(found.labels.items())[:1]:
        if needs_meaning:
            yield f"then           set evaluation.true_means in {to} to supported or hallucinated"
        yield f"then           ragassay evaluate audit/ --label {shlex.quote(name)} --config {job}"
