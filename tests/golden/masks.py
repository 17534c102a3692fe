"""Replace what differs from run to run, or from machine to machine, by placeholders."""

import re
import sys
from pathlib import Path

RUN_ID = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b")
JUDGE_ID = re.compile(r"\bjudge-[0-9a-f]{6}\b")
"""Run id of what `ragassay.judge` returns."""

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
SERVER = re.compile(r"\b127\.0\.0\.1:\d+")
MOMENT = re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:\d\d))?")
DURATION = re.compile(
    r"\b\d[\d,]*(\.\d+)?(?= ?(s|seconds|engine seconds|rows/s|sentences/s|minutes?|hours?|min|h|ms|tokens/s)\b)"
    r"|(?<=\()\d+%(?= busy\))"
)
HOLDER = re.compile(r"(?<=\(host )\S+, process \d+")
"""Who holds a lock."""

SIZE = re.compile(r"\b\d+(?= bytes\))")
"""Size of a file, which depends on the library that wrote it."""

SNAPSHOT = re.compile(r"(?<![\w.])\d{17,19}\b")
"""Ids that Iceberg gives by chance."""

MACHINE = re.compile(r"^(machine +).*|(?<=takes all )\d+ cores?(?= of this machine)", re.M)
"""What `init` says of the machine it runs on."""

EVENT = re.compile(r'(?<="id": ")[0-9a-f]{32}(?=",\s+"type": "score-create")')
"""Ids of events of Langfuse, which depend on the run's."""

BOX = re.compile(r"^([╭╰].*?)─{2,}", re.M)
"""Edge of a box around an error of usage."""

SPACES = re.compile(r"(?<=\S) {2,}")
REPO = str(Path(__file__).resolve().parents[2])


class Masks:
    """Masks of one case: its folder, and the ids of the runs in the order in which they appeared."""

    def __init__(self, folder: Path) -> None:
        """Begin without any run.

        Args:
            folder: Folder of the case.
        """
        self._folders = [str(folder)]
        self._runs: dict[str, str] = {}

    def add_folder(self, folder: Path) -> None:
        """Mask another folder as the case's own."""
        self._folders.append(str(folder))

    def learn(self, text: str) -> None:
        """Number the run ids of a text that are not known yet."""
        for found in RUN_ID.findall(text):
            self._runs.setdefault(found, f"<run-{len(self._runs) + 1}>")

    def value(self, text: str) -> str:
        """Mask a value of a row: paths, servers and run ids. Times and ids there come from the logs."""
        for folder in self._folders:
            text = text.replace(folder, "<dir>")
        text = text.replace(REPO, "<repo>")
        text = RUN_ID.sub(lambda found: self._runs.get(found[0], "<run>"), text)
        return SERVER.sub("<server>", JUDGE_ID.sub("judge-<id>", text))

    def record(self, text: str) -> str:
        """Mask a string of a record such as the manifest."""
        return UUID.sub("<uuid>", self.value(text))

    def output(self, text: str) -> str:
        """Mask what a command printed: also moments, durations and the width of tables."""
        text = MOMENT.sub("<time>", self.record(text).replace(sys.executable, "python"))
        text = BOX.sub(r"\1─", EVENT.sub("<id>", text))
        text = SNAPSHOT.sub("<snapshot>", MACHINE.sub(r"\g<1><machine>", text))
        text = DURATION.sub("<n>", SIZE.sub("<n>", HOLDER.sub("<host>, process <n>", text)))
        lines = [SPACES.sub("  ", line).rstrip() for line in text.splitlines()]
        return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""
