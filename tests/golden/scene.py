"""A golden case and its scene: folder, servers, commands and transcript."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.command import run_here, write_job
from tests.golden.masks import Masks
from tests.golden.servers import Servers
from tests.job_settings import merged


@dataclass(frozen=True)
class Command:
    """Command of a case.

    Attributes:
        line: Arguments, with the placeholders {logs}, {out}, {job}, {dir} and {url}.
        exit_code: Expected exit code.
    """

    line: str
    exit_code: int = 0


Step = str | Command | Callable[["Scene"], "str | None"]
"""A command, or a function that changes or reads files and may return text to compare."""


@dataclass(frozen=True)
class Case:
    """Entry of the corpus.

    Attributes:
        name: Name, also of the folder in `expected/`.
        prepare: Writes logs and job files.
        steps: Steps, in order.
        needs_ray: Whether the case always runs on Ray; other cases can run `without_ray`.
    """

    name: str
    prepare: Callable[["Scene"], Any]
    steps: tuple[Step, ...]
    needs_ray: bool = False


@dataclass
class Scene:
    """Running case.

    Attributes:
        folder: Folder with `logs`, `job.yaml`, `out` and the other files of the case.
        servers: Stand-ins for models and tools.
        masks: Masks of the texts.
        transcript: Commands and their output.
        initial: Texts of files before the first step; files that stay equal are not compared.
    """

    folder: Path
    servers: Servers
    masks: Masks
    transcript: list[str] = field(default_factory=list)
    initial: dict[str, str] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return self.folder / "logs"

    @property
    def out(self) -> Path:
        """Output folder."""
        return self.folder / "out"

    def write_job(self, name: str = "job.yaml", *parts: dict[str, Any], **sections: Any) -> Path:
        """Write a job file from merged parts and sections."""
        return write_job(self.folder / name, merged(*parts, **sections))

    def write_requests(self, name: str) -> None:
        """Write the requests sent to the tools, in a stable order, and clear them."""
        requests = sorted(
            ({"path": path, "body": body} for path, body in self.servers.tools.requests),
            key=lambda request: self.masks.mask_record(json.dumps(request, sort_keys=True)),
        )
        (self.folder / name).write_text(json.dumps(requests))
        self.servers.tools.requests.clear()

    def arguments(self, line: str) -> list[str]:
        """Split a command line and fill in the placeholders."""
        values: Mapping[str, Any] = {
            "dir": self.folder, "logs": self.logs, "out": self.out, "job": self.folder / "job.yaml",
            "url": self.servers.tools.url,
        }  # fmt: skip
        return [word.format_map(values) for word in shlex.split(line)]

    def run_command(self, command: Command) -> None:
        """Run a command and add its output to the transcript.

        Raises:
            AssertionError: The exit code is not the expected one.
        """
        result = run_here(self.arguments(command.line))
        self.number_runs()
        text = f"$ {command.line}\n{self.masks.mask_output(result.stdout)}{self.masks.mask_output(result.error)}"
        self.transcript.append(text if result.exit_code == 0 else f"{text}exit code {result.exit_code}\n")
        if result.exit_code != command.exit_code:
            raise AssertionError(f"exit code {result.exit_code} instead of {command.exit_code}:\n{text}")

    def number_runs(self) -> None:
        """Number the runs in the manifests."""
        for manifest in sorted(self.folder.glob("*/manifest.json")):
            data = json.loads(manifest.read_text())
            self.masks.number_runs(json.dumps(data.get("runs", [])))
            self.masks.number_runs(json.dumps(data))

    def run_step(self, step: Step) -> None:
        """Run a step and add its text to the transcript."""
        if callable(step):
            text = step(self)
            self.number_runs()
            if text:
                self.transcript.append(f"# {step.__doc__ or getattr(step, '__name__', '')}\n{text.rstrip()}\n")
        else:
            self.run_command(Command(step) if isinstance(step, str) else step)
