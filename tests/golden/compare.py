"""Run a case, and compare what came out with the expected files."""

import difflib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden.masks import Masks
from tests.golden.normalize import normalize
from tests.golden.scene import Case, Scene
from tests.golden.servers import Servers
from tests.golden.values import lines_agree

EXPECTED = Path(__file__).parent / "expected"
STDOUT = "stdout.txt"


@dataclass(frozen=True)
class Tolerance:
    """How far floats of two lines may be apart: vector instructions of processors differ in the last digits."""

    relative: float = 1e-5
    absolute: float = 1e-6


@dataclass
class Outcome:
    """How a case ended.

    Attributes:
        texts: Name of a file -> what came out.
        diff: Unified diff from expected to actual; empty where they agree.
        fault: Why the case could not run to its end; empty otherwise.
    """

    texts: dict[str, str] = field(default_factory=dict)
    diff: str = ""
    fault: str = ""


def make(case: Case, folder: Path, servers: Servers) -> dict[str, str]:
    """Run a case in an empty folder.

    Returns:
        Name of each expected file -> its text.

    Raises:
        AssertionError: A command ended otherwise than it must, or a recorded value is missing.
    """
    folder = folder.resolve()
    scene = Scene(folder, servers, Masks(folder))
    servers.faulty.clear()
    servers.faults.clear()
    servers.tools.requests.clear()
    case.prepare(scene)
    for step in case.steps:
        scene.do(step)
    if servers.faulty:
        raise AssertionError(f"{len(servers.faulty)} prompts are not recorded, such as {servers.faulty[0]!r}: run --record")
    texts = {name: text for name, text in normalize(folder, scene.masks).items() if scene.known.get(name) != text}
    return {STDOUT: "\n".join(scene.transcript), **texts}


def expected_texts(name: str, root: Path = EXPECTED) -> dict[str, str]:
    """The expected files of a case."""
    folder = root / name
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()}


def compare(name: str, actual: dict[str, str], expected: dict[str, str], tolerance: Tolerance) -> str:
    """Compare texts.

    Returns:
        A unified diff; empty where they agree within the tolerance.
    """
    parts: list[str] = []
    for file in sorted({*actual, *expected}):
        before, after = expected.get(file, "").splitlines(), actual.get(file, "").splitlines()
        after = _aligned(before, after, tolerance)
        parts += difflib.unified_diff(before, after, f"expected/{name}/{file}", f"actual/{name}/{file}", n=2, lineterm="")
    return "".join(f"{line}\n" for line in parts)


def _aligned(before: list[str], after: list[str], tolerance: Tolerance) -> list[str]:
    """Lines of the second text, those that agree with the first's in its words."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    result = list(after)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "replace" and i_end - i == j_end - j:
            for offset in range(i_end - i):
                if lines_agree(before[i + offset], after[j + offset], tolerance.relative, tolerance.absolute):
                    result[j + offset] = before[i + offset]
    return result


def update(name: str, actual: dict[str, str], root: Path = EXPECTED) -> None:
    """Write the expected files of a case anew."""
    shutil.rmtree(root / name, ignore_errors=True)
    for file, text in actual.items():
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def check(case: Case, folder: Path, servers: Servers, tolerance: Tolerance | None = None) -> Outcome:
    """Run a case and compare it; faults of the case are part of the outcome."""
    try:
        texts = make(case, folder, servers)
    except Exception as error:
        return Outcome(fault=f"{type(error).__name__}: {error}")
    return Outcome(texts, compare(case.name, texts, expected_texts(case.name), tolerance or Tolerance()))
