"""The charts of the report, drawn as SVG from its records.

Before and after always share a scale, and differ by shape and dash as well as by colour.
May import the standard library, and `_svg`, `_words` and the records beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from calibrant.view import _svg
from calibrant.view._curves import SWEEP_BINS, Bin, Reliability, Roc, SweepRow
from calibrant.view._map_card import MapCard
from calibrant.view._measured import Parts, Side
from calibrant.view._svg import Frame, Point
from calibrant.view._words import count, counted, decimals_for, fixed, general, percent, percent_pair

FEW_ROWS = 20
SQUARE = 352.0
LEFT = 56.0
WIDTH = 428.0


# ---------------------------------------------------------------- reliability


def reliability_chart(side: Side, tallest: float) -> str:
    """One panel: event rate against prediction, and the counts under it; `tallest` is the longest bar of both."""
    shown = side.reliability
    ends = (shown.bar_edges[0], shown.bar_edges[-1])
    plot = Frame(LEFT, 32, SQUARE, SQUARE, ends, ends)
    bars = Frame(LEFT, 32 + SQUARE + 44, SQUARE, 66, ends, (0.0, math.sqrt(tallest) or 1.0))
    ticks = _svg.steps(*ends)
    labels = _svg.percents(ticks)
    kept = [b for b in shown.bins if b.mean_predicted is not None]
    parts = [
        plot.ground(ticks, ticks),
        _band(plot, side),
        _svg.line(plot.at(ends[0], ends[0]), plot.at(ends[1], ends[1]), "diagonal"),
        _svg.polyline((bin_at(plot, b) for b in kept), f"link {side.name}") if len(kept) > 1 else "",
        "".join(gap_mark(plot, b, side.name) for b in kept),
        plot.y_labels(ticks, labels),
        plot.x_labels(ticks, labels),
        plot.y_name("how often the event happened"),
        score_bars(bars, shown, side.name),
        bars.x_name("predicted probability, and rows at each", 22),
    ]
    title = f"Reliability {side.name} the map"
    return _svg.picture(f"reliability-{side.name}", (WIDTH, 526), title, _reliability_words(side, kept), parts)


def _band(plot: Frame, side: Side) -> str:
    """Where the true curve may lie, cut to the frame."""
    low, high = plot.x_range
    band = side.proof.band
    kept = [k for k, p in enumerate(band.predicted) if low <= p <= high]
    if not kept:
        return ""
    lower = [plot.at(band.predicted[k], min(max(band.low[k], low), high)) for k in kept]
    upper = [plot.at(band.predicted[k], min(max(band.high[k], low), high)) for k in kept]
    return _svg.polygon([*lower, *reversed(upper)], f"band {side.name}")


def bin_at(plot: Frame, b: Bin) -> Point:
    """Place of a bin that holds rows."""
    return plot.at(b.mean_predicted or 0.0, b.observed_rate or 0.0)


def gap_mark(plot: Frame, b: Bin, side: str) -> str:
    """The mark of a bin and its distance from the diagonal."""
    mean, rate = b.mean_predicted or 0.0, b.observed_rate or 0.0
    said, happened = percent_pair(mean, rate)
    title = f"{counted(b.rows, 'row')}: predicted {said}, happened {happened}"
    mark = _svg.mark(bin_at(plot, b), side, hollow=b.rows < FEW_ROWS, title=title)
    return _svg.line(plot.at(mean, mean), bin_at(plot, b), f"gap {side}") + mark


def score_bars(frame: Frame, shown: Reliability, side: str) -> str:
    """Rows at each probability, the tallest bar labelled."""
    floor = frame.top + frame.height
    drawn = [_svg.line((frame.left, floor), (frame.left + frame.width, floor), "base")]
    for (low, high), weight in zip(pairwise(shown.bar_edges), shown.bar_weights):
        if weight > 0:
            height = max(1.5, floor - frame.y(math.sqrt(weight)))
            said = f"{count(weight)} from {percent(low)} to {percent(high)}"
            width = frame.x(high) - frame.x(low) - 1.5
            drawn.append(_svg.box(frame.x(low) + 0.75, floor - height, width, height, f"bar {side}", said))
    tallest = max(shown.bar_weights)
    place = shown.bar_weights.index(tallest)
    middle = frame.x((shown.bar_edges[place] + shown.bar_edges[place + 1]) / 2)
    anchor = "start" if place < 3 else "end" if place > len(shown.bar_weights) - 4 else "middle"
    edge = {"start": frame.x(shown.bar_edges[place]), "end": frame.x(shown.bar_edges[place + 1])}.get(anchor, middle)
    if tallest > 0:
        drawn.append(_svg.text(edge, frame.y(math.sqrt(tallest)) - 4, count(tallest), "tick", anchor))
    return "".join(drawn)


def _reliability_words(side: Side, kept: Sequence[Bin]) -> str:
    said = "; ".join(
        "predicted {}, happened {}".format(*percent_pair(b.mean_predicted or 0.0, b.observed_rate or 0.0)) for b in kept
    )
    return f"Points on the diagonal are honest. By bin: {said}."


# ---------------------------------------------------------------- the map


def map_chart(card: MapCard) -> str:
    """What the map makes of every score."""
    xs, ys = [point.score for point in card.curve], [point.after for point in card.curve]
    if len(xs) < 2:
        return ""
    is_probability = card.curve[0].before is not None and card.curve[0].before == card.curve[0].score
    low, top = _map_heights(xs, ys) if is_probability else (0.0, 1.0)
    plot = Frame(LEFT, 32, SQUARE, 250, (xs[0], xs[-1]), (low, top))
    x_ticks, y_ticks = _svg.steps(xs[0], xs[-1]), _svg.steps(low, top)
    x_labels = _svg.percents(x_ticks) if is_probability else [general(tick) for tick in x_ticks]
    inside = [e for e in card.examples if xs[0] <= e.score <= xs[-1] and low <= e.after <= top]
    ends = max(xs[0], low), min(xs[-1], top)
    parts = [
        plot.ground(x_ticks, y_ticks),
        _svg.line(plot.at(ends[0], ends[0]), plot.at(ends[1], ends[1]), "diagonal") if is_probability else "",
        _svg.polyline((plot.at(x, y) for x, y in zip(xs, ys)), "curve after solid"),
        "".join(_svg.mark(plot.at(e.score, e.after), "after") for e in inside),
        plot.y_labels(y_ticks, _svg.percents(y_ticks)),
        plot.x_labels(x_ticks, x_labels),
        plot.y_name("probability after the map"),
        plot.x_name("score before"),
    ]
    words = "; ".join(f"{general(e.score)} becomes {percent(e.after)}" for e in card.examples)
    return _svg.picture("map", (WIDTH, 326), "The map: score before, probability after", words, parts)


def _map_heights(xs: Sequence[float], ys: Sequence[float]) -> Point:
    """The range of the vertical axis: all of [0, 1], or as close a look as the horizontal one takes."""
    if xs[0] == 0 and xs[-1] < 1:
        return 0.0, min(1.0, _svg.nice_top(max(*ys, xs[-1])))
    if xs[-1] == 1 and xs[0] > 0:
        return max(0.0, 1 - _svg.nice_top(max(1 - min(ys), 1 - xs[0]))), 1.0
    return 0.0, 1.0


# ---------------------------------------------------------------- decomposition


def decomposition_chart(name: str, label: str, rows: Sequence[tuple[str, Parts]]) -> str:
    """One bar per side: what perfect calibration would leave, and miscalibration on top of it."""
    finite = [p.score.value for _, p in rows if p.score.value is not None]
    uncertainty = rows[0][1].uncertainty
    longest = max([uncertainty, *finite]) * (1.02 if len(finite) == len(rows) else 1.25)
    plot = Frame(LEFT, 40, SQUARE - 68, 78.0 * len(rows), (0.0, longest))
    places = decimals_for([uncertainty, *finite])
    at = plot.x(uncertainty)
    parts = [_part_row(plot, k, side, row) for k, (side, row) in enumerate(rows)]
    parts.append(_svg.line((at, plot.top - 8), (at, plot.top + plot.height), "reference"))
    anchor = "end" if at > LEFT + 200 else "start"
    parts += [_part_total(plot, k, row, places) for k, (_, row) in enumerate(rows)]
    parts.append(_svg.text(at, plot.top - 16, f"base rate for all: {fixed(uncertainty, places)}", "tick", anchor))
    words = ". ".join(_part_words(side, row, places) for side, row in rows)
    return _svg.picture(name, (WIDTH, plot.top + plot.height + 6), f"{label}: what it is made of", words, parts)


def _part_row(plot: Frame, k: int, side: str, parts: Parts) -> str:
    top = plot.top + 78 * k + 6
    left = parts.uncertainty - parts.discrimination
    start, inner, base = plot.x(0), plot.x(left), plot.x(parts.uncertainty)
    end = _part_end(plot, parts)
    bracket = top + 42
    return "".join(
        [
            _svg.text(plot.left - 8, top + 19, side, "name", "end"),
            _svg.box(start, top, inner - start, 28, "kept"),
            _svg.box(inner, top, end - inner, 28, f"wasted {side}"),
            _endless(end, top) if parts.score.value is None else "",
            _svg.line((inner, bracket), (base, bracket), "won"),
            _svg.line((inner, bracket - 5), (inner, bracket + 5), "won"),
            _svg.line((base, bracket - 5), (base, bracket + 5), "won"),
        ]
    )


def _part_end(plot: Frame, parts: Parts) -> float:
    return plot.left + plot.width if parts.score.value is None else plot.x(parts.score.value)


def _part_total(plot: Frame, k: int, parts: Parts, places: int) -> str:
    total = "infinite" if parts.score.value is None else fixed(parts.score.value, places)
    left, base = _part_end(plot, parts) + 6, plot.top + 78 * k + 25
    behind = _svg.box(left - 3, base - 13, 7.8 * len(total) + 6, 18, "cut")
    return behind + _svg.text(left, base, total, "value", "start")


def _endless(end: float, top: float) -> str:
    """Two cuts through the end of a bar that has none."""
    cuts = [[(x, top - 2), (x + 4, top - 2), (x - 4, top + 30), (x - 8, top + 30)] for x in (end - 16, end - 27)]
    return "".join(_svg.polygon(cut, "cut") for cut in cuts)


def _part_words(side: str, parts: Parts, places: int) -> str:
    value, lost = parts.score.value, parts.miscalibration.value
    total = "infinite" if value is None else fixed(value, places)
    wasted = "infinite" if lost is None else fixed(lost, places)
    rest = f"discrimination {fixed(parts.discrimination, places)} + uncertainty {fixed(parts.uncertainty, places)}"
    return f"{side.capitalize()}: {total} = miscalibration {wasted} − {rest}"


# ---------------------------------------------------------------- the bin sweep


def sweep_chart(rows: Sequence[SweepRow]) -> str:
    """The calibration error against the number of bins, a line for each side and kind of bins."""
    highest = max(value for row in rows for value in row.values)
    top = _svg.nice_top(highest) if highest > 0 else 1.0
    places = [float(k) for k in range(len(SWEEP_BINS))]
    plot = Frame(LEFT, 32, SQUARE, 230, (-0.3, len(SWEEP_BINS) - 0.7), (0.0, top))
    ticks = _svg.steps(0, top)
    decimals = decimals_for([top], 2) if top < 1 else 2
    parts = [
        plot.ground(y_ticks=ticks),
        plot.y_labels(ticks, [fixed(tick, min(6, decimals + 1)) for tick in ticks]),
        plot.x_labels(places, [str(n) for n in SWEEP_BINS]),
        plot.y_name("calibration error"),
        plot.x_name("number of bins"),
    ]
    for row in rows:
        points = [plot.at(x, value) for x, value in zip(places, row.values)]
        parts.append(_svg.polyline(points, f"curve {row.side} {row.strategy}"))
        hollow = row.strategy == "quantile"
        parts += [_svg.mark(point, row.side, size=4.0, hollow=hollow) for point in points]
    words = "; ".join(
        f"{row.side}, {row.strategy} bins: from {fixed(min(row.values), 4)} to {fixed(max(row.values), 4)}"
        for row in rows
    )
    return _svg.picture("sweep", (WIDTH, 306), "Calibration error by number and kind of bins", words, parts)


# ---------------------------------------------------------------- ROC


def roc_chart(scores: Roc, after: Roc | None, words: str) -> str:
    """The ROC curve of the scores, of the cross-fitted probabilities, and the convex hull."""
    plot = Frame(LEFT, 32, SQUARE, SQUARE)
    ticks = _svg.steps(0, 1)
    hull = [plot.at(x, y) for x, y in zip(scores.hull_false_positive_rate, scores.hull_true_positive_rate)]
    parts = [
        plot.ground(ticks, ticks),
        _svg.polygon([*hull, plot.at(1, 0)], "hull"),
        _svg.line(plot.at(0, 0), plot.at(1, 1), "diagonal"),
        _svg.polyline(_roc_points(plot, scores), "curve before uniform"),
        "" if after is None else _svg.polyline(_roc_points(plot, after), "curve after quantile"),
        plot.y_labels(ticks, _svg.percents(ticks)),
        plot.x_labels(ticks, _svg.percents(ticks)),
        plot.y_name("share of events found"),
        plot.x_name("share of the other rows taken for events"),
    ]
    return _svg.picture("roc", (WIDTH, 428), "ROC curve", words, parts)


def _roc_points(plot: Frame, curve: Roc) -> list[Point]:
    return [plot.at(x, y) for x, y in zip(curve.false_positive_rate, curve.true_positive_rate)]
