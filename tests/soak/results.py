"""Collect the results of the soak tests, and write them as the tables of tests/benchmarks/results/faults.md."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

REPO = Path(__file__).parents[2]
RESULTS = REPO / "out" / "soak" / "results.jsonl"
PAGE = REPO / "tests" / "benchmarks" / "results" / "faults.md"
MARK = "<!-- written by `make soak` -->"


@dataclass(frozen=True)
class Result:
    """Result of one class of faults or one kind of input.

    Attributes:
        group: Heading of its table: `faults`, `inputs` or `publish`.
        name: Name of the class or kind.
        tried: Number of tries; of rows, for an input.
        survived: Number of tries in which the job ended as expected: completely, or with an error that names the cause, after
            which the same command resumed.
        lost: Rows lost, over all tries.
        twice: Duplicate rows, over all tries.
        note: Remarks.
    """

    group: str
    name: str
    tried: int
    survived: int
    lost: int
    twice: int
    note: str = ""


def record(result: Result) -> None:
    """Add a result; a later result with the same name replaces it."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(result)) + "\n")


def render_tables() -> str:
    """Render all results as Markdown, one table per group."""
    results = [Result(**json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    last = {(result.group, result.name): result for result in results}
    text = []
    for group in dict.fromkeys(group for group, _ in last):
        rows = [result for (result_group, _), result in last.items() if result_group == group]
        text += [
            f"### {group.capitalize()}",
            "",
            "| what | tried | survived | rows lost | rows twice | |",
            "| --- | ---: | ---: | ---: | ---: | --- |",
        ]
        text += [f"| {r.name} | {r.tried:,} | {r.survived:,} | {r.lost} | {r.twice} | {r.note} |" for r in rows]
        text.append("")
    return "\n".join(text)


def main() -> None:
    """Write the tables behind the mark in tests/benchmarks/results/faults.md."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{mark or MARK}\n\n{render_tables()}", encoding="utf-8")


if __name__ == "__main__":
    main()
