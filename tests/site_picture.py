"""MkDocs hook that turns Mermaid flowcharts into SVG, so that pages load no external script."""

import html
import re
from statistics import fmean

LETTER, HEIGHT, GAP = 6.5, 26, 12
"""Width of a letter, height of a box, and gap between two boxes, in pixels."""

NARROW, ROW, LOW_ROW = 4, 92, 48
"""Height of a layer in pixels: LOW_ROW if no layer has more than NARROW boxes, because then no arrow is flat."""

SWEEPS = 8
"""Number of times that each layer is sorted by the positions of its neighbors."""

HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8Z"/></marker>'
)

Arrows = list[tuple[str, str]]


def on_page_markdown(markdown: str, **_: object) -> str:
    """Draw each flowchart of a page, one arrow per line: `a[label] --> b[label]`; a label is given once.

    Args:
        markdown: Source of the page.

    Returns:
        The page with pictures instead of charts.
    """
    return re.sub(
        r"```mermaid\nflowchart TD\n(.*?)```", lambda match: _draw_figure(find_arrows(match[1])), markdown, flags=re.DOTALL
    )


def find_arrows(chart: str) -> Arrows:
    """Find the arrows of a chart as pairs of labels: from, to."""
    labels = dict(re.findall(r"(\w+)\[([^\]]+)\]", chart))
    return [(labels[start], labels[end]) for start, end in re.findall(r"(\w+)(?:\[[^\]]+\])? --> (\w+)", chart)]


def layer_labels(arrows: Arrows) -> list[list[str]]:
    """Arrange boxes in layers: each below all boxes that point to it, and near its neighbors.

    Args:
        arrows: Pairs of labels, without cycles.

    Returns:
        Labels of each layer from left to right, top layer first.
    """
    depth = dict.fromkeys((label for arrow in arrows for label in arrow), 0)
    for _ in depth:
        for upper, lower in arrows:
            depth[lower] = max(depth[lower], depth[upper] + 1)
    layers = [sorted(label for label in depth if depth[label] == row) for row in range(max(depth.values()) + 1)]
    for _ in range(SWEEPS):
        for row in layers:
            positions = {label: (number + 0.5) / len(other) for other in layers for number, label in enumerate(other)}
            neighbors = {label: [positions[b if a == label else a] for a, b in arrows if label in (a, b)] for label in row}
            row.sort(key=lambda label: fmean(neighbors[label]))
    return layers


def _draw_figure(arrows: Arrows) -> str:
    return f'<div class="flowchart">{draw_svg(arrows)}</div>'


def draw_svg(arrows: Arrows, style: str = "") -> str:
    """Draw a chart.

    Args:
        arrows: Pairs of labels, without cycles.
        style: CSS rules inside the picture if it is a separate file; empty if the page has them.
    """
    layers = layer_labels(arrows)
    width = 16 + LETTER * max(len(label) for row in layers for label in row)
    widest = max(map(len, layers))
    picture_width, row_height = widest * (width + GAP), LOW_ROW if widest <= NARROW else ROW
    centers = {
        label: ((column + 0.5) * picture_width / len(row), number * row_height + HEIGHT / 2 + 1)
        for number, row in enumerate(layers)
        for column, label in enumerate(row)
    }
    parts = [f"<style>{style}</style>" if style else "", HEAD]
    for upper, lower in arrows:
        (x1, y1), (x2, y2) = centers[upper], centers[lower]
        y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2
        y_middle = (y1 + y2) / 2
        path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y_middle:.0f} {x2:.0f} {y_middle:.0f} {x2:.0f} {y2:.0f}"
        parts.append(f'<path d="{path}" marker-end="url(#head)"/>')
    for label, (x, y) in centers.items():
        box = f'<rect x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="4"/>'
        parts.append(f'{box}<text x="{x:.0f}" y="{y + 4:.0f}">{html.escape(label)}</text>')
    size = f"0 0 {picture_width:.0f} {(len(layers) - 1) * row_height + HEIGHT + 2}"
    attributes = f'viewBox="{size}" style="max-width: {picture_width:.0f}px" role="img" aria-label="A flowchart"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{"".join(parts)}</svg>'
