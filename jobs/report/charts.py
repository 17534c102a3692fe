"""The page's charts: matplotlib SVG whose colours are the page's CSS variables, so that they follow light and dark."""

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
LABELS = {"correct": "#050505", "partial": "#060606", "wrong": "#070707"}
KINDS = tuple(f"#{n:02x}{n:02x}{n:02x}" for n in range(0x10, 0x18))
OTHERS = "#181818"
VARIABLES = {
    INK: "--ink", GRID: "--line", ACCENT: "--accent", TAU: "--tau",
    "#050505": "--correct", "#060606": "--partial", "#070707": "--wrong",
    **{colour: f"--k{i}" for i, colour in enumerate(KINDS)}, OTHERS: "--dim",
}  # fmt: skip
"""Colours that stand in the SVG for the page's variables."""

MOST_BARS = 20
WIDE, NARROW = 6.8, 4.2
"""Inches; a chart is shown at its own size, and its texts at 9 points."""


def shares_chart(name: str, values: Sequence[str], shares: Sequence[float], title: str) -> str:
    """Share flagged a value: bars for a few, a line for many (days of months)."""
    if len(values) > MOST_BARS:
        fig, ax = _figure(WIDE, 2.0)
        ax.plot(range(len(values)), shares, color=ACCENT, linewidth=1.5)
        places = np.unique(np.linspace(0, len(values) - 1, 8).astype(int))
        ax.set_xticks(places, [_label(values[i]) for i in places], rotation=30, ha="right", parse_math=False)
        ax.set_ylim(0, max(0.05, *shares) * 1.1)
        ax.yaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
        return _svg(fig, name, title)
    labels = [_label(value) for value in values]
    fig, ax = _figure(2.8 + 0.07 * max(map(len, labels), default=0), 0.25 + 0.24 * len(values))
    bars = ax.barh(range(len(values)), shares, color=ACCENT, height=0.7)
    ax.bar_label(bars, [f"{share:.1%}" for share in shares], padding=3, color=INK)
    ax.set_yticks(range(len(values)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, max(0.05, *shares, 0.0) * 1.15)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    return _svg(fig, name, title)


def kinds_chart(name: str, nights: Mapping[str, Mapping[str, int]], title: str) -> str:
    """How often each category came, a bar a night: lying for a few nights, standing for many.

    Args:
        name: Unique in the page.
        nights: Night -> category -> count; the nights in their order.
        title: For readers who don't see the picture.
    """
    total: Counter[str] = Counter()
    for counts in nights.values():
        total.update(counts)
    ranked = sorted(total, key=lambda kind: (-total[kind], kind))
    rest = ranked[len(KINDS) :]  # more colours could not be told apart
    groups = [(kind, [kind], colour) for kind, colour in zip(ranked, KINDS, strict=False)]
    groups += [(f"{len(rest)} others", rest, OTHERS)] if rest else []
    long = len(nights) > MOST_BARS
    fig, ax = _figure(WIDE, max(2.0 if long else 0.45 + 0.26 * len(nights), 0.3 + 0.2 * len(groups)))
    places, ends = range(len(nights)), np.zeros(len(nights))
    bars, texts = [], []
    for label, kinds, colour in groups:
        counts_of = np.array([sum(counts.get(kind, 0) for kind in kinds) for counts in nights.values()])
        draw = ax.bar(places, counts_of, 0.9, ends) if long else ax.barh(places, counts_of, 0.7, ends)
        for bar in draw:
            bar.set_facecolor(colour)
        ends += counts_of
        bars.append(draw[0])
        texts.append(f"{_label(label)} ({counts_of.sum():,})")
    _nights_axis(ax, list(nights), long)
    # Texts come after the legend is made: it leaves out what begins with an underscore, and reads dollars as formulas.
    legend = ax.legend(bars, ["x"] * len(bars), frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        entry.set_parse_math(False)
        entry.set_text(text)
    return _svg(fig, name, title)


def _nights_axis(ax: "Axes", nights: Sequence[str], long: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    if long:
        places = np.unique(np.linspace(0, len(nights) - 1, 6).astype(int))
        ax.set_xticks(places, [_label(nights[i]) for i in places], rotation=30, ha="right", parse_math=False)
    else:
        ax.set_yticks(range(len(nights)), [_label(night) for night in nights], parse_math=False)
        ax.invert_yaxis()
    (ax.yaxis if long else ax.xaxis).set_major_locator(MaxNLocator("auto", integer=True))


def histogram_chart(
    name: str, edges: Sequence[float], counts: Mapping[str, Sequence[float]], thresholds: Sequence[float], title: str
) -> str:
    """Responses by score: one outline a label, with the threshold drawn in.

    Args:
        name: Unique in the page.
        edges: Ends of the bins.
        counts: Label -> responses a bin; an empty label for all together.
        thresholds: tau, a vertical line each; those outside the bins are left out of the picture.
        title: For readers who don't see the picture.
    """
    fig, ax = _figure(NARROW, 2.2 if any(counts) else 2.0)
    for label, values in counts.items():
        colour = LABELS.get(label, ACCENT)
        ax.stairs(values, edges, color=colour, fill=not label, alpha=0.85, linewidth=1.6, label=label or None)
    for tau in thresholds:
        if edges[0] <= tau <= edges[-1]:
            ax.axvline(tau, color=TAU, linestyle="--", linewidth=1.2)
            ax.annotate(f"tau {tau:.3g}", (tau, 1.0), xycoords=("data", "axes fraction"), color=TAU, ha="center", va="bottom")
    ax.set_xlabel("response score")
    ax.set_ylabel("responses")
    if any(counts):
        ax.figure.legend(frameon=False, labelcolor=INK, loc="outside lower center", ncols=len(counts))
    return _svg(fig, name, title)


def curves_chart(
    name: str,
    shares: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    band: tuple[Sequence[float], Sequence[float]],
    title: str,
) -> str:
    """Quality against the share that a judge is asked about: a line an order, around the first the band of its intervals.

    Args:
        name: Unique in the page.
        shares: From 0 to 1.
        curves: Order -> its value at each share; at most as many as there are colours beside the first.
        band: Lower and upper ends around the first; empty without intervals.
        title: For readers who don't see the picture, and beside the values.
    """
    fig, ax = _figure(WIDE, 2.6)
    for (order, values), colour in zip(curves.items(), (ACCENT, *KINDS), strict=False):
        ax.plot(shares, values, color=colour, linewidth=2.2 if colour == ACCENT else 1.2, label=_label(order))
    if band[0]:
        ax.fill_between(shares, *band, color=ACCENT, alpha=0.15, linewidth=0)
    ax.set_xlabel("share that the judge decides")
    ax.set_ylabel(title)
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:.0%}")
    ax.legend(frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    return _svg(fig, name, title)


def _figure(width: float, height: float) -> "tuple[object, Axes]":
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


def _svg(fig: object, name: str, title: str) -> str:
    """The figure as an SVG element: text stays text, colours are variables, ids don't clash with another chart's."""
    from html import escape

    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "svg.id": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a glyph that matplotlib's font lacks is drawn by the browser's
        fig.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})  # type: ignore[attr-defined]
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _label(value: str) -> str:
    text = make_visible(value)
    return text if len(text) <= 40 else text[:39] + "…"
