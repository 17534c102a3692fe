"""Plot cost against quality of members: `python -m tests.benchmarks.results.plot_members` writes docs/assets/members.svg."""

import csv
import html
from math import log10
from pathlib import Path

DATA = Path(__file__).parent / "members.csv"
PICTURE = Path(__file__).parents[3] / "docs" / "assets" / "members.svg"

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 16, 50
"""Margins in pixels."""

SECONDS = (0.05, 2000.0)
"""Range of the horizontal axis, in seconds per 1,000 responses."""

AUROC = (0.45, 1.0)
"""Range of the vertical axis."""

COLORS = {"detector": "#2b6cb0", "uncertainty": "#b7791f", "SLM": "#2f855a"}
LABEL_AT = {
    "attribution": (0, -10, "middle"),
    "entities": (0, 18, "middle"),
    "novelty": (-9, -8, "end"),
    "three detectors": (10, 4, "start"),
    "attribution by embeddings": (-9, 4, "end"),
}
"""Member -> shift and anchor of its label; others have it at the right of the point."""

STYLE = (
    "svg { background: #fff; font: 12px sans-serif; } text { fill: #222; } .grid { stroke: #ddd; } .base { stroke: #888; "
    "stroke-dasharray: 5 4; }"
)


def draw_picture() -> str:
    """The plot of the recorded figures, as SVG."""
    lines = [line for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    parts = [f"<style>{STYLE}</style>", *_draw_axes()]
    for row in rows:
        parts += _draw_baseline(row) if row["group"] == "baseline" else _draw_point(row)
    parts += [
        f'<circle cx="{LEFT + 12}" cy="{TOP + 14 + 18 * number}" r="4" fill="{color}"/>'
        f'<text x="{LEFT + 22}" y="{TOP + 18 + 18 * number}">{group}</text>'
        for number, (group, color) in enumerate(COLORS.items())
    ]
    label = "AUROC of members on RAGTruth QA against seconds per 1,000 responses"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return "".join([head, *parts, "</svg>\n"])


def _scale_x(seconds: float) -> float:
    low, high = map(log10, SECONDS)
    return LEFT + (log10(seconds) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _scale_y(auroc: float) -> float:
    low, high = AUROC
    return HEIGHT - BOTTOM - (auroc - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _draw_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {kind}/>'


def _draw_text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _draw_axes() -> list[str]:
    parts = []
    for exponent in range(-1, 4):
        seconds = 10.0**exponent
        parts += [_draw_line(_scale_x(seconds), TOP, _scale_x(seconds), HEIGHT - BOTTOM, 'class="grid"')]
        parts += [_draw_text(_scale_x(seconds), HEIGHT - BOTTOM + 18, f"{seconds:g}", "middle")]
    for tenths in range(5, 11):
        parts += [_draw_line(LEFT, _scale_y(tenths / 10), WIDTH - RIGHT, _scale_y(tenths / 10), 'class="grid"')]
        parts += [_draw_text(LEFT - 8, _scale_y(tenths / 10) + 4, f"{tenths / 10:.1f}", "end")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_draw_text(middle, HEIGHT - 10, "seconds per 1,000 responses, 2 CPU cores (log scale)", "middle"))
    return [*parts, f'<text transform="translate(16 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">AUROC</text>']


def _draw_baseline(row: dict[str, str]) -> list[str]:
    y = _scale_y(float(row["auroc"]))
    label = f"baseline: {row['member']} {float(row['auroc']):.2f}"
    return [_draw_line(LEFT, y, WIDTH - RIGHT, y, 'class="base"'), _draw_text(WIDTH - RIGHT - 4, y - 6, label, "end")]


def _draw_point(row: dict[str, str]) -> list[str]:
    x, y = _scale_x(float(row["seconds_per_1000_responses"])), _scale_y(float(row["auroc"]))
    color = COLORS[row["group"]]
    across, down, anchor = LABEL_AT.get(row["member"], (9, 4, "start"))
    parts = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>',
        _draw_text(x + across, y + down, row["member"], anchor),
    ]
    if row["low"]:
        parts.insert(
            0, _draw_line(x, _scale_y(float(row["low"])), x, _scale_y(float(row["high"])), f'stroke="{color}" opacity="0.5"')
        )
    return parts


if __name__ == "__main__":
    PICTURE.write_text(draw_picture(), encoding="utf-8")
