"""Draw the imports between rooms: `python -m tests.rooms` writes docs/assets/imports.svg."""

from tests.site_picture import Arrows, draw_svg
from tests.test_layout import REPO, find_room_imports

PICTURE = REPO / "docs" / "assets" / "imports.svg"
SHARED = ("pipeline/errors", "pipeline/arrays", "pipeline/contain", "schemas", "jobs/storage/folder", "jobs/config/job")
"""Rooms that nearly all others import; omitted from the picture."""

STYLE = (
    "svg { background: #fff; font: 13px sans-serif; } path { fill: none; stroke: #777; } marker path { fill: #777; } "
    "rect { fill: #f3f4f8; stroke: #777; } text { fill: #222; text-anchor: middle; }"
)


def list_imports() -> Arrows:
    """List pairs of rooms: the first imports from the second, and no indirect path leads from the first to the second."""
    graph = {room: targets - set(SHARED) for room, targets in find_room_imports().items() if room not in SHARED}
    pairs: Arrows = []
    for room in sorted(graph):
        indirect = {far for near in graph[room] for far in _find_reachable(near, graph)}
        pairs += [(room, target) for target in sorted(graph[room] - indirect)]
    return pairs


def _find_reachable(room: str, graph: dict[str, set[str]]) -> set[str]:
    targets = graph.get(room, set())
    return targets.union(*(_find_reachable(target, graph) for target in targets))


def draw_picture() -> str:
    """Draw the imports as SVG."""
    return draw_svg(list_imports(), STYLE) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw_picture(), encoding="utf-8")
