"""Run the fast tests of changed files: `python -m tests.changed FILE …`, as pre-commit does."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ALL_ARE_SLOW = 5  # pytest's exit code where no test is left
REPO = Path(__file__).parent.parent


def tests_of(files: Iterable[Path]) -> list[Path]:
    """The tests of files, by paths below the repository: those of its own name, else those of its room, else of its folder."""
    found: dict[Path, None] = {}
    for file in files:
        if file.parts[0] == "tests":
            places = [file] if file.name.startswith("test_") else [file.parent]
        else:
            room = Path("tests", *file.parent.parts)
            places = [room / f"test_{file.name}", room, *room.parents]
        found[next(place for place in places if (REPO / place).exists())] = None
    return list(found)


def main() -> None:
    """Run them."""
    chosen = tests_of(map(Path, sys.argv[1:]))
    command = [sys.executable, "-m", "pytest", "-m", "not slow", *map(str, chosen)]
    sys.exit(0 if not chosen or (code := subprocess.call(command, cwd=REPO)) == ALL_ARE_SLOW else code)


if __name__ == "__main__":
    main()
