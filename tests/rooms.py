"""Draw which room imports from which: `python -m tests.rooms` writes docs/assets/imports.svg."""

from tests.site_picture import Arrows, svg
from tests.test_layout import REPO, arrows

PICTURE = REPO / "docs" / "assets" / "imports.svg"
SHARED = ("pipeline/errors", "pipeline/arrays", "pipeline/contain", "schemas", "jobs/storage/folder", "jobs/config/job")
"""Rooms that nearly all others import: left out of the picture."""

STYLE = (
    "svg { background: #fff; font: 13px sans-serif; } path { fill: none; stroke: #777; } marker path { fill: #777; } "
    "rect { fill: #f3f4f8; stroke: #777; } text { fill: #222; text-anchor: middle; }"
)


def imports() -> Arrows:
    """Pairs of rooms: the first imports from the second, and no longer way leads from the first to the second."""
    graph = {room: targets - set(SHARED) for room, targets in arrows().items() if room not in SHARED}
    pairs: Arrows = []
    for room in sorted(graph):
        indirect = {far for near in graph[room] for far in _reachable(near, graph)}
        pairs += [(room, target) for target in sorted(graph[room] - indirect)]
    return pairs


def _reachable(room: str, graph: dict[str, set[str]]) -> set[str]:
    targets = graph.get(room, set())
    return targets.union(*(_reachable(target, graph) for target in targets))


def picture() -> str:
    """The picture of today's imports, as SVG."""
    return svg(imports(), STYLE) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
