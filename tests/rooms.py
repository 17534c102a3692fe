"""The rooms of the house and which imports from which, as a Mermaid picture: `make docs` puts it into its page."""

import re

from tests.test_layout import REPO, arrows

PAGE = REPO / "docs" / "imports.md"
SHARED = ("pipeline/errors", "pipeline/arrays", "pipeline/contain", "schemas", "jobs/storage/folder", "jobs/config/job")
"""Rooms that nearly all others use: left out of the picture."""


def picture() -> str:
    """Each arrow goes from a room to one that it imports from, if no longer way leads there."""
    found = {
        room: {other for other in others if other not in SHARED} for room, others in arrows().items() if room not in SHARED
    }
    lines = ["flowchart TD"]
    for room in sorted(found):
        longer = {far for near in found[room] for far in _reached(near, found)}
        lines += [f"  {_id(room)}[{room}] --> {_id(other)}[{other}]" for other in sorted(found[room] - longer)]
    return "\n".join(lines)


def _reached(room: str, found: dict[str, set[str]]) -> set[str]:
    others = found.get(room, set())
    return others.union(*(_reached(other, found) for other in others))


def _id(room: str) -> str:
    return re.sub(r"\W", "_", room)


def page() -> str:
    """The page with the present picture."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"```mermaid\n.*?```", lambda _: f"```mermaid\n{picture()}\n```", text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
