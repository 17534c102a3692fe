"""Run a case and compare its output with the expected files."""

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
    """Largest accepted difference of floats; processors' vector instructions differ in the last digits."""

    relative: float = 1e-5
    absolute: float = 1e-6


@dataclass
class Outcome:
    """Outcome of a case.

    Attributes:
        texts: File name -> actual text.
        diff: Unified diff from expected to actual; empty if they agree.
        fault: Why the case failed before its end; empty otherwise.
    """

    texts: dict[str, str] = field(default_factory=dict)
    diff: str = ""
    fault: str = ""


def run_case(case: Case, folder: Path, servers: Servers) -> dict[str, str]:
    """Run a case in an empty folder.

    Returns:
        File name -> text.

    Raises:
        AssertionError: A command had another exit code than expected, or a recorded value is missing.
    """
    folder = folder.resolve()
    scene = Scene(folder, servers, Masks(folder))
    servers.unrecorded.clear()
    servers.faults.clear()
    servers.tools.requests.clear()
    case.prepare(scene)
    for step in case.steps:
        scene.run_step(step)
    if servers.unrecorded:
        first = servers.unrecorded[0]
        raise AssertionError(f"{len(servers.unrecorded)} prompts are not recorded (first: {first!r}): run --record")
    texts = {name: text for name, text in normalize(folder, scene.masks).items() if scene.initial.get(name) != text}
    return {STDOUT: "\n".join(scene.transcript), **texts}


def read_expected(name: str, root: Path = EXPECTED) -> dict[str, str]:
    """Read the expected files of a case."""
    folder = root / name
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file()}


def diff_texts(name: str, actual: dict[str, str], expected: dict[str, str], tolerance: Tolerance) -> str:
    """Compare texts.

    Returns:
        A unified diff; empty if they agree within the tolerance.
    """
    parts: list[str] = []
    for file in sorted({*actual, *expected}):
        before, after = expected.get(file, "").splitlines(), actual.get(file, "").splitlines()
        after = _keep_agreeing_lines(before, after, tolerance)
        parts += difflib.unified_diff(before, after, f"expected/{name}/{file}", f"actual/{name}/{file}", n=2, lineterm="")
    return "".join(f"{line}\n" for line in parts)


def _keep_agreeing_lines(expected: list[str], actual: list[str], tolerance: Tolerance) -> list[str]:
    """Replace each actual line that agrees within the tolerance with the expected line."""
    matcher = difflib.SequenceMatcher(None, expected, actual, autojunk=False)
    result = list(actual)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "replace" and i_end - i == j_end - j:
            for offset in range(i_end - i):
                if lines_agree(expected[i + offset], actual[j + offset], tolerance.relative, tolerance.absolute):
                    result[j + offset] = expected[i + offset]
    return result


def write_expected(name: str, actual: dict[str, str], root: Path = EXPECTED) -> None:
    """Rewrite the expected files of a case."""
    shutil.rmtree(root / name, ignore_errors=True)
    for file, text in actual.items():
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def check_case(case: Case, folder: Path, servers: Servers, tolerance: Tolerance | None = None) -> Outcome:
    """Run a case and compare it; the outcome has the case's fault, if any."""
    try:
        texts = run_case(case, folder, servers)
    except Exception as error:
        return Outcome(fault=f"{type(error).__name__}: {error}")
    return Outcome(texts, diff_texts(case.name, texts, read_expected(case.name), tolerance or Tolerance()))
