"""What a case has to work with: its folder, its servers, and the commands that it runs."""

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
    """A command of a case.

    Attributes:
        line: Its arguments, with {logs}, {out}, {job}, {dir} and {url} for places.
        exit_code: The exit code that it must have.
    """

    line: str
    exit_code: int = 0


Step = str | Command | Callable[["Scene"], "str | None"]
"""A command, or a function that changes or reads files and may return text to be compared."""


@dataclass(frozen=True)
class Case:
    """One entry of the corpus.

    Attributes:
        name: Its name, also of its folder in `expected/`.
        prepare: Writes logs and job files.
        steps: What is done, in order.
        needs_ray: Whether it always runs on Ray; others need no Ray, see `without_ray`.
    """

    name: str
    prepare: Callable[["Scene"], Any]
    steps: tuple[Step, ...]
    needs_ray: bool = False


@dataclass
class Scene:
    """A case that runs.

    Attributes:
        folder: Its folder: `logs`, `job.yaml`, `out` and whatever else it writes.
        servers: Stand-ins for models and tools.
        masks: Masks of its texts.
        transcript: Commands, and what they printed.
        known: Texts of files that the case began with: those that are still the same are not compared.
    """

    folder: Path
    servers: Servers
    masks: Masks
    transcript: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """Where the logs lie."""
        return self.folder / "logs"

    @property
    def out(self) -> Path:
        """The output folder."""
        return self.folder / "out"

    def job(self, name: str = "job.yaml", *parts: dict[str, Any], **sections: Any) -> Path:
        """Write a job file, from parts and sections that are merged."""
        return write_job(self.folder / name, merged(*parts, **sections))

    def write_requests(self, name: str) -> None:
        """Write the requests that the tools were sent, in a stable order, and forget them."""
        requests = sorted(
            ({"path": path, "body": body} for path, body in self.servers.tools.requests),
            key=lambda request: self.masks.record(json.dumps(request, sort_keys=True)),
        )
        (self.folder / name).write_text(json.dumps(requests))
        self.servers.tools.requests.clear()

    def arguments(self, line: str) -> list[str]:
        """Arguments of a command, places filled in."""
        places: Mapping[str, Any] = {
            "dir": self.folder, "logs": self.logs, "out": self.out, "job": self.folder / "job.yaml",
            "url": self.servers.tools.url,
        }  # fmt: skip
        return [word.format_map(places) for word in shlex.split(line)]

    def run(self, command: Command) -> None:
        """Run a command and keep what it printed.

        Raises:
            AssertionError: It has another exit code than it must have.
        """
        done = run_here(self.arguments(command.line))
        self.learn()
        text = f"$ {command.line}\n{self.masks.output(done.stdout)}{self.masks.output(done.error)}"
        self.transcript.append(text if done.exit_code == 0 else f"{text}exit code {done.exit_code}\n")
        if done.exit_code != command.exit_code:
            raise AssertionError(f"exit code {done.exit_code} in place of {command.exit_code}:\n{text}")

    def learn(self) -> None:
        """Number the runs that the manifests name."""
        for manifest in sorted(self.folder.glob("*/manifest.json")):
            data = json.loads(manifest.read_text())
            self.masks.learn(json.dumps(data.get("runs", [])))
            self.masks.learn(json.dumps(data))

    def do(self, step: Step) -> None:
        """Do a step."""
        if callable(step):
            text = step(self)
            self.learn()
            if text:
                self.transcript.append(f"# {step.__doc__ or getattr(step, '__name__', '')}\n{text.rstrip()}\n")
        else:
            self.run(Command(step) if isinstance(step, str) else step)
