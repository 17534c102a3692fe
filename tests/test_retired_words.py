"""Retired words do not come back: one term per thing, and plain technical English."""

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent

RETIRED = {
    r"told|tells?": "report, print, send, show",
    r"says?|said": "states, shows, returns",
    r"mine": "the name of the thing",
    r"tonight|nights?": "run, partition, day",
    r"mend(s|ed)?": "fix",
    r"go(es)? on|went on": "resume, continue",
    r"br(eaks|oke|oken) off": "was interrupted",
    r"anew|all the same|as ever": "again; drop it",
    r"takes? the place of|in (the )?place of": "replaces, instead of",
    r"beside": "next to, with, in addition to",
    r"comes? back": "return",
    r"so many": "the number, or a limit",
    r"(rows|tokens|responses|labels|scores|answers|prompts|sentences|requests) a [a-z]+": "per",
    r"(normal|final|token|organ|summar)is(ed?|es|ing|ation)s?|(label|cancel)l\w+|colour\w*|judgement": "American spelling",
}  # fmt: skip
"""Pattern -> what to write instead."""

PATTERN = re.compile("|".join(rf"(?<![a-z])(?:{pattern})(?![a-z])" for pattern in RETIRED), re.IGNORECASE)

FOREIGN = re.compile(
    r"\btell\(|was_cancelled|The context says that|As the text says|\(\?:say\||\|said\||"
    r"\|day\|night|at(?: |\\s\+)night|\d at night"
)
"""Names of other programs, phrases of training data, and words that a pattern finds in log texts."""

DATA = (
    "tests/benchmarks/evasion.py",
    "tests/benchmarks/results/",
    "tests/corpus/texts.py",
    "tests/golden/expected/",
    "docs/reference/cli.md",
    "docs/reference/errors.md",
    "pipeline/reasoning/categories.py",
    "pipeline/reasoning/strategy.py",
)
"""Recorded data and texts, pages that are made from the code's texts, and prompts, whose scores depend on every word."""


def files() -> list[str]:
    """Paths of code and pages, relative to the repository."""
    code = [
        path
        for folder in ("infra", "jobs", "pipeline", "ragassay", "schemas", "tests")
        for path in (REPO / folder).rglob("*.py")
    ]
    pages = [*REPO.glob("*.md"), *(REPO / "docs").rglob("*.md")]
    names = (path.relative_to(REPO).as_posix() for path in code + pages if path.name != Path(__file__).name)
    return sorted(name for name in names if not name.startswith((*DATA, "ragassay/jobs", "ragassay/pipeline")))


def retired_words(name: str) -> list[str]:
    """Lines of a file with retired words. Code spans of the changelog contain old names and are not checked."""
    text = FOREIGN.sub("", (REPO / name).read_text(encoding="utf-8"))
    lines = (re.sub(r"`[^`\n]*`", "", text) if name == "CHANGELOG.md" else text).splitlines()
    return [f"{name}:{number}: {hit[0]}" for number, line in enumerate(lines, 1) if (hit := PATTERN.search(line))]


@pytest.mark.parametrize("name", files())
def test_a_file_has_no_retired_words(name: str) -> None:
    assert retired_words(name) == []
