"""Results of the soak tests: collected as they come, written as the table of tests/benchmarks/results/faults.md."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

REPO = Path(__file__).parents[2]
RESULTS = REPO / "out" / "soak" / "results.jsonl"
PAGE = REPO / "tests" / "benchmarks" / "results" / "faults.md"
MARK = "<!-- written by `make soak` -->"


@dataclass(frozen=True)
class Result:
    """What became of one class of faults, or of one kind of input.

    Attributes:
        group: Heading of its table: `faults`, `inputs` or `publish`.
        name: The class, in words.
        tried: How often; of an input, with how many rows.
        survived: Of these, how often the job ended as it should: whole, or with an error that names the thing, after which the
            same command went on.
        lost: Rows lost, over all tries.
        twice: Rows that came out twice, over all tries.
        note: What else is worth saying.
    """

    group: str
    name: str
    tried: int
    survived: int
    lost: int
    twice: int
    note: str = ""


def record(result: Result) -> None:
    """Add a result; a later one of the same name takes its place."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(result)) + "\n")


def tables() -> str:
    """All results as Markdown, a table a group."""
    found = [Result(**json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    last = {(result.group, result.name): result for result in found}
    text = []
    for group in dict.fromkeys(group for group, _ in last):
        rows = [result for (of, _), result in last.items() if of == group]
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
    PAGE.write_text(f"{head}{mark or MARK}\n\n{tables()}", encoding="utf-8")


if __name__ == "__main__":
    main()
