"""Replace text that differs between runs or machines with placeholders."""

import re
import sys
from pathlib import Path

RUN_ID = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b")
JUDGE_ID = re.compile(r"\bjudge-[0-9a-f]{6}\b")
"""Run id in the result of `ragassay.judge`."""

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
SERVER = re.compile(r"\b127\.0\.0\.1:\d+")
TIME = re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:\d\d))?")
DURATION = re.compile(
    r"\b\d[\d,]*(\.\d+)?(?= ?(s|seconds|engine seconds|rows/s|sentences/s|minutes?|hours?|min|h|ms|tokens/s)\b)"
    r"|(?<=\()\d+%(?= busy\))"
)
LOCK_HOLDER = re.compile(r"(?<=\(host )\S+, process \d+")
"""Host and process that hold a lock."""

SIZE = re.compile(r"\b\d+(?= bytes\))")
"""File size, which depends on the version of the library that wrote the file."""

SNAPSHOT = re.compile(r"(?<![\w.])\d{17,19}\b")
"""Random ids of Iceberg."""

MACHINE_SIZE = re.compile(r"^(machine +).*|(?<=takes all )\d+ cores?(?= of this machine)", re.M)
"""What `init` prints about the machine."""

EVENT = re.compile(r'(?<="id": ")[0-9a-f]{32}(?=",\s+"type": "score-create")')
"""Ids of Langfuse events, which depend on the run's id."""

BOX = re.compile(r"^([╭╰].*?)─{2,}", re.M)
"""Edge of the box around a usage error."""

SPACES = re.compile(r"(?<=\S) {2,}")
REPO = str(Path(__file__).resolve().parents[2])


class Masks:
    """Masks of one case: its folder, and the run ids in order of appearance."""

    def __init__(self, folder: Path) -> None:
        """Start without runs.

        Args:
            folder: Folder of the case.
        """
        self._folders = [str(folder)]
        self._runs: dict[str, str] = {}

    def add_folder(self, folder: Path) -> None:
        """Mask another folder as the case's own."""
        self._folders.append(str(folder))

    def number_runs(self, text: str) -> None:
        """Number the new run ids in a text."""
        for run_id in RUN_ID.findall(text):
            self._runs.setdefault(run_id, f"<run-{len(self._runs) + 1}>")

    def mask_value(self, text: str) -> str:
        """Mask a value of a row: paths, servers and run ids. Other times and ids come from the logs."""
        for folder in self._folders:
            text = text.replace(folder, "<dir>")
        text = text.replace(REPO, "<repo>")
        text = RUN_ID.sub(lambda match: self._runs.get(match[0], "<run>"), text)
        return SERVER.sub("<server>", JUDGE_ID.sub("judge-<id>", text))

    def mask_record(self, text: str) -> str:
        """Mask a string of a record such as the manifest."""
        return UUID.sub("<uuid>", self.mask_value(text))

    def mask_output(self, text: str) -> str:
        """Mask the output of a command, including times, durations and the width of tables."""
        text = TIME.sub("<time>", self.mask_record(text).replace(sys.executable, "python"))
        text = BOX.sub(r"\1─", EVENT.sub("<id>", text))
        text = SNAPSHOT.sub("<snapshot>", MACHINE_SIZE.sub(r"\g<1><machine>", text))
        text = DURATION.sub("<n>", SIZE.sub("<n>", LOCK_HOLDER.sub("<host>, process <n>", text)))
        lines = [SPACES.sub("  ", line).rstrip() for line in text.splitlines()]
        return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""
