"""The charts of the report for K classes, drawn as SVG from its records.

Before and after always share a scale, and differ by shape and dash as well as by colour.
May import the standard library, and `_svg`, `_words`, `_charts` and the records beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.view import _svg
from calibrant.view._charts import FEW_ROWS, LEFT, SQUARE, WIDTH, bin_at, gap_mark, score_bars
from calibrant.view._class_measured import ClassSide, Panel
from calibrant.view._curves import Bin, Reliability
from calibrant.view._proof import Band
from calibrant.view._svg import Frame
from calibrant.view._words import counted, percent_pair

SMALL = 184.0
SMALL_LEFT = 44.0


# ---------------------------------------------------------------- the top label


def top_label_chart(side: ClassSide, tallest: float) -> str:
    """How often the likeliest class was right against its probability, and the rows at each; `tallest` bar of both."""
    shown = side.reliability
    ends = (shown.bar_edges[0], shown.bar_edges[-1])
    plot = Frame(LEFT, 32, SQUARE, SQUARE, ends, ends)
    below = Frame(LEFT, 32 + SQUARE + 44, SQUARE, 66, ends, (0.0, math.sqrt(tallest) or 1.0))
    ticks = _svg.steps(*ends)
    labels = _svg.percents(ticks)
    kept = _with_rows(shown)
    parts = [
        plot.ground(ticks, ticks),
        _band(plot, side.band, side.name),
        _svg.line(plot.at(ends[0], ends[0]), plot.at(ends[1], ends[1]), "diagonal"),
        _svg.polyline((bin_at(plot, b) for b in kept), f"link {side.name}") if len(kept) > 1 else "",
        "".join(gap_mark(plot, b, side.name) for b in kept),
        plot.y_labels(ticks, labels),
        plot.x_labels(ticks, labels),
        plot.y_name("how often the likeliest class was right"),
        score_bars(below, shown, side.name),
        below.x_name("probability of the likeliest class, and rows at each", 22),
    ]
    title = f"Reliability of the top label {side.name} the map"
    return _svg.picture(f"top-{side.name}", (WIDTH, 526), title, _words(kept), parts)


def _with_rows(shown: Reliability) -> list[Bin]:
    return [b for b in shown.bins if b.mean_predicted is not None]


def _band(plot: Frame, band: Band, side: str) -> str:
    """Where the true curve may lie, cut to the frame."""
    low, high = plot.x_range
    kept = [k for k, p in enumerate(band.predicted) if low <= p <= high]
    if not kept:
        return ""
    lower = [plot.at(band.predicted[k], min(max(band.low[k], low), high)) for k in kept]
    upper = [plot.at(band.predicted[k], min(max(band.high[k], low), high)) for k in kept]
    return _svg.polygon([*lower, *reversed(upper)], f"band {side}")


def _words(kept: Sequence[Bin]) -> str:
    said = "; ".join(
        "predicted {}, right {}".format(*percent_pair(b.mean_predicted or 0.0, b.observed_rate or 0.0)) for b in kept
    )
    return f"Points on the diagonal are honest. By bin: {said}."


# ---------------------------------------------------------------- one class


def class_chart(panel: Panel, number: int) -> str:
    """One class against the rest, before and after in one small frame."""
    ends = (panel.before.bar_edges[0], panel.before.bar_edges[-1])
    plot = Frame(SMALL_LEFT, 8, SMALL, SMALL, ends, ends)
    ticks = _svg.steps(*ends, count=2)
    labels = _svg.percents(ticks)
    sides = [("before", panel.before), *([("after", panel.after)] if panel.after else [])]
    parts = [
        plot.ground(ticks, ticks),
        _svg.line(plot.at(ends[0], ends[0]), plot.at(ends[1], ends[1]), "diagonal"),
        *(_small_curve(plot, shown, side) for side, shown in sides),
        plot.y_labels(ticks, labels),
        plot.x_labels(ticks, labels),
    ]
    size = (SMALL_LEFT + SMALL + 14, SMALL + 30)
    words = ". ".join(f"{side.capitalize()}: {_words(_inside(plot, shown))}" for side, shown in sides)
    return _svg.picture(f"class-{number}", size, f"Reliability of {panel.name}", words, parts)


def _small_curve(plot: Frame, shown: Reliability, side: str) -> str:
    """Marks of the bins; only those with enough rows are joined, so that chance draws no lines."""
    kept = _inside(plot, shown)
    firm = [b for b in kept if b.rows >= FEW_ROWS]
    line = _svg.polyline((bin_at(plot, b) for b in firm), f"link {side}") if len(firm) > 1 else ""
    return line + "".join(_small_mark(plot, b, side) for b in kept)


def _inside(plot: Frame, shown: Reliability) -> list[Bin]:
    """Bins that the frame can hold."""
    low, high = plot.x_range
    held = [(b, b.mean_predicted, b.observed_rate) for b in shown.bins]
    return [b for b, mean, rate in held if mean is not None and rate is not None and low <= min(mean, rate)
            and max(mean, rate) <= high]  # fmt: skip


def _small_mark(plot: Frame, b: Bin, side: str) -> str:
    said, happened = percent_pair(b.mean_predicted or 0.0, b.observed_rate or 0.0)
    title = f"{side}, {counted(b.rows, 'row')}: predicted {said}, happened {happened}"
    few = b.rows < FEW_ROWS
    return _svg.mark(bin_at(plot, b), side, hollow=few, title=title, size=2.2 if few else 3.4)
