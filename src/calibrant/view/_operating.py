"""The operating point of the report: where to act for what errors cost, what that does, and at another prevalence.

Without given costs a miss is taken to cost as many false alarms as there are other rows for each event, so that acting
on everybody and on nobody cost the same.
May import NumPy, `calibrant.decisions`, `calibrant.data` and `_svg`, `_words` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.data import ScoreTable
from calibrant.decisions._costs import Costs, read_costs, refuse_reversed, threshold_of
from calibrant.decisions._curve import ThresholdCurve, curve_of, with_costs
from calibrant.decisions._rates import Cells, Scale, estimate_of
from calibrant.errors import InputError
from calibrant.priors import adjust_prior
from calibrant.priors._shift import event_share
from calibrant.view import _svg
from calibrant.view._svg import Frame

POINTS = 200
LEVEL = 0.95
WIDTH, LEFT, WIDE, HIGH = 428.0, 56.0, 352.0, 264.0


@dataclass(frozen=True)
class CostCurve:
    """Cost of a row by threshold, on an even grid of thresholds."""

    side: str
    thresholds: tuple[float, ...]
    costs: tuple[float, ...]


@dataclass(frozen=True)
class AtPrevalence:
    """What acting does at one prevalence: probabilities moved to it, and (`cost_unmoved`) left as they are.

    `threshold` is the place on the probabilities before they are moved.
    """

    prevalence: float
    asked: bool
    threshold: float
    recall: float
    precision: float | None
    alert_rate: float
    cost: float
    cost_unmoved: float


@dataclass(frozen=True)
class Operating:
    """The threshold that the costs imply, what it does to these rows, and what it would do at other prevalences.

    `side` says whose probabilities are acted on; costs are of one row, `regret` is what the threshold costs beyond the
    best one on these rows, `best_threshold` (None is never acting).
    """

    side: str
    costs_given: bool
    false_positive: float
    false_negative: float
    threshold: float
    tp: float
    fp: float
    fn: float
    tn: float
    recall: float
    precision: float | None
    cost: float
    cost_low: float
    cost_high: float
    always: float
    never: float
    best_threshold: float | None
    regret: float
    cost_before: float | None
    curves: tuple[CostCurve, ...]
    prevalences: tuple[AtPrevalence, ...]


class Prices(NamedTuple):
    """What errors cost, and whether somebody said so."""

    costs: Costs
    given: bool


def prices(false_positive: float | None, false_negative: float | None, prevalence: float) -> Prices:
    """The given costs, or those that make acting on everybody and on nobody cost the same."""
    if false_positive is None and false_negative is None:
        ratio = (1 - prevalence) / prevalence
        up, down = (1.0, ratio) if ratio >= 1 else (1 / ratio, 1.0)
        return Prices(read_costs(false_positive=_round(up), false_negative=_round(down)), False)
    costs = read_costs(false_positive=false_positive, false_negative=false_negative)
    if costs.by_row:
        raise InputError("The report needs one cost of a false positive and one of a false negative.")
    refuse_reversed(costs.of_false_alarm, costs.of_miss)
    return Prices(costs, True)


def _round(value: float) -> float:
    """Two significant digits."""
    return float(f"{value:.2g}")


def operating(
    before: ScoreTable | None, after: ScoreTable | None, asked: Prices, prevalence: float | None
) -> Operating | None:
    """The section; None when there are no probabilities to act on, or nothing to decide."""
    table, side = (after, "after") if after is not None else (before, "before")
    threshold = float(threshold_of(asked.costs.of_false_alarm, asked.costs.of_miss))
    if table is None or not 0 < threshold <= 1:
        return None
    curve = with_costs(curve_of(table), asked.costs)
    assert curve.cost is not None
    at, best = curve.at(threshold), int(curve.cost.argmin())
    cells = Cells(*(np.asarray(part[at]) for part in (curve.tp, curve.fp, curve.fn, curve.tn)))
    worth = table.total_weight / float(table.squared_weights.sum())
    cost = estimate_of("cost", cells, Scale(table.total_weight, worth), asked.costs, LEVEL)
    per_row = curve.cost / curve.total_weight
    both = [(name, given) for name, given in (("before", before), ("after", after)) if given is not None]
    priced = [(name, with_costs(curve_of(given), asked.costs)) for name, given in both]
    reach = _reach(curve, threshold)
    return Operating(
        side=side,
        costs_given=asked.given,
        false_positive=float(asked.costs.false_positive),
        false_negative=float(asked.costs.false_negative),
        threshold=threshold,
        tp=float(cells.tp),
        fp=float(cells.fp),
        fn=float(cells.fn),
        tn=float(cells.tn),
        recall=float(curve.recall[at]),
        precision=_share(curve.tp[at], curve.alerts[at]),
        cost=cost.value,
        cost_low=cost.low,
        cost_high=cost.high,
        always=float(per_row[0]),
        never=float(per_row[-1]),
        best_threshold=_finite(float(curve.thresholds[best])),
        regret=max(0.0, float(per_row[at] - per_row[best])),
        cost_before=None if before is None or side == "before" else _cost_at(dict(priced)["before"], threshold),
        curves=tuple(_thinned(name, one, reach) for name, one in priced),
        prevalences=_at_prevalences(curve, asked.costs, threshold, prevalence),
    )


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _cost_at(curve: ThresholdCurve, threshold: float) -> float:
    assert curve.cost is not None
    return float(curve.cost[curve.at(threshold)] / curve.total_weight)


def _reach(curve: ThresholdCurve, threshold: float) -> float:
    """The right end of the chart: four times the threshold, or 1."""
    return min(1.0, _svg.nice_top(max(4 * threshold, 1e-6)))


def _thinned(side: str, curve: ThresholdCurve, reach: float) -> CostCurve:
    assert curve.cost is not None
    grid = np.linspace(0, reach, POINTS + 1)
    costs = curve.cost[np.searchsorted(curve.thresholds, grid)] / curve.total_weight
    return CostCurve(side, tuple(grid.tolist()), tuple(costs.tolist()))


def _at_prevalences(
    curve: ThresholdCurve, costs: Costs, threshold: float, asked: float | None
) -> tuple[AtPrevalence, ...]:
    own = curve.total_positives / curve.total_weight
    listed = {own / 2, own, min(2 * own, (1 + own) / 2)}
    if asked is not None:
        listed.add(event_share(asked, "new_prevalence", open_ends=True))
    return tuple(_at_prevalence(curve, costs, threshold, share, share == asked) for share in sorted(listed))


def _at_prevalence(curve: ThresholdCurve, costs: Costs, threshold: float, share: float, asked: bool) -> AtPrevalence:
    own = curve.total_positives / curve.total_weight
    place = float(adjust_prior(threshold, share, own)) if 0 < threshold < 1 else threshold
    at, still = curve.at(place), curve.at(threshold)
    recall, alarms = float(curve.recall[at]), float(curve.false_positive_rate[at])
    alerts = share * recall + (1 - share) * alarms

    def cost(k: int) -> float:
        misses, false = share * (1 - float(curve.recall[k])), (1 - share) * float(curve.false_positive_rate[k])
        return float(costs.false_negative) * misses + float(costs.false_positive) * false

    precision = _share(share * recall, alerts)
    return AtPrevalence(share, asked, place, recall, precision, alerts, cost(at), cost(still))


# ---------------------------------------------------------------- the chart


def cost_chart(shown: Operating) -> str:
    """Cost of a row by threshold, before and after, the implied threshold and the best one marked."""
    reach = shown.curves[0].thresholds[-1]
    seen = [cost for curve in shown.curves for cost in curve.costs]
    usual = 1.25 * max(shown.always, shown.never)
    top = _svg.nice_top(min(max(seen), usual) or 1.0)
    plot = Frame(LEFT, 32, WIDE, HIGH, (0.0, reach), (0.0, top))
    x_ticks, y_ticks = _svg.steps(0, reach), _svg.steps(0, top)
    parts = [
        plot.ground(x_ticks, y_ticks),
        _svg.line(plot.at(0, min(shown.never, top)), plot.at(reach, min(shown.never, top)), "diagonal"),
        _svg.line(plot.at(shown.threshold, 0), plot.at(shown.threshold, top), "reference"),
        *(_line(plot, curve.thresholds, curve.costs, top, curve.side) for curve in shown.curves),
        _svg.mark(plot.at(shown.threshold, min(shown.cost, top)), shown.side),
        _svg.text(plot.x(reach) - 6, plot.y(min(shown.never, top)) - 6, "never acting", "tick", "end"),
        plot.y_labels(y_ticks, [f"{tick:.3g}" for tick in y_ticks]),
        plot.x_labels(x_ticks, _svg.percents(x_ticks)),
        plot.y_name("cost of a row"),
        plot.x_name("threshold: act when the probability is at least"),
    ]
    words = (
        f"The cost of a row by threshold. Acting from {shown.threshold:.3g} costs {shown.cost:.3g} a row {shown.side} "
        f"the map; acting on everybody {shown.always:.3g}, on nobody {shown.never:.3g}."
    )
    return _svg.picture("cost", (WIDTH, HIGH + 84), "Cost by threshold", words, parts)


def _line(plot: Frame, thresholds: Sequence[float], costs: Sequence[float], top: float, side: str) -> str:
    points = [plot.at(x, min(y, top)) for x, y in zip(thresholds, costs)]
    return _svg.polyline(points, f"curve {side} {'uniform' if side == 'before' else 'quantile'}")
