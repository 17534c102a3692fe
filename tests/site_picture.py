"""What MkDocs calls while it builds the site: Mermaid flowcharts become SVG, which needs no script from elsewhere."""

import html
import re
from statistics import fmean

LETTER, HEIGHT, GAP = 6.5, 26, 12
"""Pixels: of a letter, of a box, and between two boxes."""

NARROW, ROW, LOW_ROW = 4, 92, 48
"""Pixels from one row of boxes to the next: fewer in a picture with so few boxes a row that no arrow is flat."""

SWEEPS = 8
"""How often each row is put in the order of the rows beside it."""

HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8Z"/></marker>'
)

Arrows = list[tuple[str, str]]


def on_page_markdown(markdown: str, **_: object) -> str:
    """Draw each flowchart of a page, one arrow per line: `a[label] --> b[label]`; a label is given once.

    Args:
        markdown: The page as it is written.

    Returns:
        The page with pictures in place of the charts.
    """
    return re.sub(r"```mermaid\nflowchart TD\n(.*?)```", lambda found: _figure(arrows(found[1])), markdown, flags=re.DOTALL)


def arrows(chart: str) -> Arrows:
    """From whom, to whom: the labels of a chart, arrow by arrow."""
    labels = dict(re.findall(r"(\w+)\[([^\]]+)\]", chart))
    return [(labels[start], labels[end]) for start, end in re.findall(r"(\w+)(?:\[[^\]]+\])? --> (\w+)", chart)]


def rows(joined: Arrows) -> list[list[str]]:
    """The boxes row by row: each below all that point at it, and near to what it is joined with.

    Args:
        joined: From whom, to whom; without circles.

    Returns:
        Labels, the top row first, from left to right.
    """
    depth = dict.fromkeys((label for arrow in joined for label in arrow), 0)
    for _ in depth:
        for upper, lower in joined:
            depth[lower] = max(depth[lower], depth[upper] + 1)
    found = [sorted(label for label in depth if depth[label] == row) for row in range(max(depth.values()) + 1)]
    for _ in range(SWEEPS):
        for row in found:
            at = {label: (number + 0.5) / len(other) for other in found for number, label in enumerate(other)}
            beside = {label: [at[b if a == label else a] for a, b in joined if label in (a, b)] for label in row}
            row.sort(key=lambda label: fmean(beside[label]))
    return found


def _figure(joined: Arrows) -> str:
    return f'<div class="flowchart">{svg(joined)}</div>'


def svg(joined: Arrows, style: str = "") -> str:
    """Draw a chart.

    Args:
        joined: From whom, to whom; without circles.
        style: CSS rules inside the picture, for one that stands alone as a file; empty where the page has them.
    """
    drawn = rows(joined)
    width = 16 + LETTER * max(len(label) for row in drawn for label in row)
    widest = max(map(len, drawn))
    across, down = widest * (width + GAP), LOW_ROW if widest <= NARROW else ROW
    middle = {
        label: ((place + 0.5) * across / len(row), number * down + HEIGHT / 2 + 1)
        for number, row in enumerate(drawn)
        for place, label in enumerate(row)
    }
    parts = [f"<style>{style}</style>" if style else "", HEAD]
    for upper, lower in joined:
        (x1, y1), (x2, y2) = middle[upper], middle[lower]
        y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2
        half = (y1 + y2) / 2
        way = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {half:.0f} {x2:.0f} {half:.0f} {x2:.0f} {y2:.0f}"
        parts.append(f'<path d="{way}" marker-end="url(#head)"/>')
    for label, (x, y) in middle.items():
        box = f'<rect x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="4"/>'
        parts.append(f'{box}<text x="{x:.0f}" y="{y + 4:.0f}">{html.escape(label)}</text>')
    size = f"0 0 {across:.0f} {(len(drawn) - 1) * down + HEIGHT + 2}"
    attributes = f'viewBox="{size}" style="max-width: {across:.0f}px" role="img" aria-label="A flowchart"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{"".join(parts)}</svg>'
