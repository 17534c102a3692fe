"""Draw the report's charts: matplotlib SVG with the page's CSS variables as colors, so that they follow light and dark
mode.
"""

import io
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragassay.jobs.display.visible import make_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GRID, ACCENT, TAU = "#010101", "#020202", "#030303", "#040404"
LABEL_COLORS = {"correct": "#050505", "partial": "#060606", "wrong": "#070707"}
CATEGORY_COLORS = tuple(f"#{n:02x}{n:02x}{n:02x}" for n in range(0x10, 0x18))
OTHER_COLOR = "#181818"
COLOR_VARIABLES = {
    INK: "--ink", GRID: "--line", ACCENT: "--accent", TAU: "--tau",
    "#050505": "--correct", "#060606": "--partial", "#070707": "--wrong",
    **{color: f"--k{i}" for i, color in enumerate(CATEGORY_COLORS)}, OTHER_COLOR: "--dim",
}  # fmt: skip
"""Placeholder colors in the SVG -> the page's variables."""

MAX_BARS = 20
WIDE, NARROW = 6.8, 4.2
"""Widths in inches; a chart is shown at its own size, with texts of 9 points."""


def draw_shares(name: str, values: Sequence[str], shares: Sequence[float], title: str) -> str:
    """Draw the flagged share of each value: bars for a few values, a line for many."""
    if len(values) > MAX_BARS:
        fig, ax = _new_figure(WIDE, 2.0)
        ax.plot(range(len(values)), shares, color=ACCENT, linewidth=1.5)
        ticks = np.unique(np.linspace(0, len(values) - 1, 8).astype(int))
        ax.set_xticks(ticks, [_shorten_label(values[i]) for i in ticks], rotation=30, ha="right", parse_math=False)
        ax.set_ylim(0, max(0.05, *shares) * 1.1)
        ax.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
        return _to_svg(fig, name, title)
    labels = [_shorten_label(value) for value in values]
    fig, ax = _new_figure(2.8 + 0.07 * max(map(len, labels), default=0), 0.25 + 0.24 * len(values))
    bars = ax.barh(range(len(values)), shares, color=ACCENT, height=0.7)
    ax.bar_label(bars, [f"{share:.1%}" for share in shares], padding=3, color=INK)
    ax.set_yticks(range(len(values)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, max(0.05, *shares, 0.0) * 1.15)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    return _to_svg(fig, name, title)


def draw_categories(name: str, counts_by_group: Mapping[str, Mapping[str, int]], title: str) -> str:
    """Draw the number of explanations of each category, a bar per group: horizontal bars for a few groups, vertical ones for
    many.

    Args:
        name: Unique in the page.
        counts_by_group: Group -> category -> count; the groups in their order.
        title: Description for screen readers.
    """
    totals: Counter[str] = Counter()
    for counts in counts_by_group.values():
        totals.update(counts)
    ranked = sorted(totals, key=lambda category: (-totals[category], category))
    others = ranked[len(CATEGORY_COLORS) :]  # more colors would look alike
    groups = [(category, [category], color) for category, color in zip(ranked, CATEGORY_COLORS, strict=False)]
    groups += [(f"{len(others)} others", others, OTHER_COLOR)] if others else []
    is_long = len(counts_by_group) > MAX_BARS
    fig, ax = _new_figure(WIDE, max(2.0 if is_long else 0.45 + 0.26 * len(counts_by_group), 0.3 + 0.2 * len(groups)))
    positions, ends = range(len(counts_by_group)), np.zeros(len(counts_by_group))
    bars, texts = [], []
    for label, categories, color in groups:
        heights = np.array([sum(counts.get(category, 0) for category in categories) for counts in counts_by_group.values()])
        drawn = ax.bar(positions, heights, 0.9, ends) if is_long else ax.barh(positions, heights, 0.7, ends)
        for bar in drawn:
            bar.set_facecolor(color)
        ends += heights
        bars.append(drawn[0])
        texts.append(f"{_shorten_label(label)} ({heights.sum():,})")
    _label_groups(ax, list(counts_by_group), is_long)
    # Texts are set after the legend is made: it drops labels that start with an underscore and reads dollars as formulas.
    legend = ax.legend(bars, ["x"] * len(bars), frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        entry.set_parse_math(False)
        entry.set_text(text)
    return _to_svg(fig, name, title)


def _label_groups(ax: "Axes", groups: Sequence[str], is_long: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    if is_long:
        ticks = np.unique(np.linspace(0, len(groups) - 1, 6).astype(int))
        ax.set_xticks(ticks, [_shorten_label(groups[i]) for i in ticks], rotation=30, ha="right", parse_math=False)
    else:
        ax.set_yticks(range(len(groups)), [_shorten_label(group) for group in groups], parse_math=False)
        ax.invert_yaxis()
    (ax.yaxis if is_long else ax.xaxis).set_major_locator(MaxNLocator("auto", integer=True))


def draw_histogram(
    name: str, edges: Sequence[float], counts: Mapping[str, Sequence[float]], thresholds: Sequence[float], title: str
) -> str:
    """Draw responses by score: an outline per label, and the thresholds.

    Args:
        name: Unique in the page.
        edges: Edges of the bins.
        counts: Label -> responses per bin; an empty label means all responses.
        thresholds: Values of tau, a vertical line each; those outside the bins are not drawn.
        title: Description for screen readers.
    """
    fig, ax = _new_figure(NARROW, 2.2 if any(counts) else 2.0)
    for label, values in counts.items():
        color = LABEL_COLORS.get(label, ACCENT)
        ax.stairs(values, edges, color=color, fill=not label, alpha=0.85, linewidth=1.6, label=label or None)
    for tau in thresholds:
        if edges[0] <= tau <= edges[-1]:
            ax.axvline(tau, color=TAU, linestyle="--", linewidth=1.2)
            ax.annotate(f"tau {tau:.3g}", (tau, 1.0), xycoords=("data", "axes fraction"), color=TAU, ha="center", va="bottom")
    ax.set_xlabel("response score")
    ax.set_ylabel("responses")
    if any(counts):
        ax.figure.legend(frameon=False, labelcolor=INK, loc="outside lower center", ncols=len(counts))
    return _to_svg(fig, name, title)


def draw_curves(
    name: str,
    shares: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    band: tuple[Sequence[float], Sequence[float]],
    title: str,
) -> str:
    """Draw quality by the share that the judge decides: a line per order, and a band of intervals around the first.

    Args:
        name: Unique in the page.
        shares: From 0 to 1.
        curves: Order -> its value at each share; at most one more than there are colors.
        band: Lower and upper ends around the first curve; empty without intervals.
        title: Label of the values, and description for screen readers.
    """
    fig, ax = _new_figure(WIDE, 2.6)
    for (order, values), color in zip(curves.items(), (ACCENT, *CATEGORY_COLORS), strict=False):
        ax.plot(shares, values, color=color, linewidth=2.2 if color == ACCENT else 1.2, label=_shorten_label(order))
    if band[0]:
        ax.fill_between(shares, *band, color=ACCENT, alpha=0.15, linewidth=0)
    ax.set_xlabel("share that the judge decides")
    ax.set_ylabel(title)
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
    ax.legend(frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    return _to_svg(fig, name, title)


def _new_figure(width: float, height: float) -> "tuple[object, Axes]":
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 9, "axes.titlesize": 10}):
        fig = Figure(figsize=(width, height), layout="constrained")
        ax = fig.add_subplot()
    fig.patch.set_alpha(0)
    ax.patch.set_alpha(0)
    ax.tick_params(colors=INK, labelcolor=INK)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GRID)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    return fig, ax


def _to_svg(fig: object, name: str, title: str) -> str:
    """Return the figure as an SVG element: texts stay text, colors are variables, ids are unique in the page."""
    from html import escape

    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "svg.id": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the browser draws glyphs that matplotlib's font lacks
        fig.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})  # type: ignore[attr-defined]
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for color, variable in COLOR_VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _shorten_label(value: str) -> str:
    text = make_visible(value)
    return text if len(text) <= 40 else text[:39] + "…"
