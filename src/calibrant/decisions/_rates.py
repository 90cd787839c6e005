"""The numbers that thresholds are chosen by, each with an interval: one small table of names.

May import NumPy, the kernels, `calibrant.metrics._intervals` and `calibrant.decisions._costs`, `_curve`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import intervals
from calibrant.decisions._costs import Costs
from calibrant.decisions._curve import ThresholdCurve
from calibrant.metrics._intervals import Estimate

OBJECTIVES = ("cost", "recall", "precision", "f1", "accuracy", "youden")
LIMITS = (*OBJECTIVES, "alerts", "alert_rate", "false_positive_rate")
SHARES = ("recall", "precision", "false_positive_rate", "alert_rate", "alerts", "accuracy")
"""Rates that are hits out of trials at a given threshold, so that exact binomial bounds hold."""
EXACT = "Clopper-Pearson"


class Cells(NamedTuple):
    """Weights of the four outcomes, at one threshold or at many."""

    tp: Floats
    fp: Floats
    fn: Floats
    tn: Floats

    @property
    def total(self) -> Floats:
        """Weight of all rows."""
        return np.asarray(self.tp + self.fp + self.fn + self.tn)


class Scale(NamedTuple):
    """How many rows `alerts` are counted over, and how many independent rows one unit of weight is worth."""

    alert_rows: float
    rows_per_weight: float


def cells_of(curve: ThresholdCurve, at: int) -> Cells:
    """The four outcomes at one entry of a curve."""
    tp, fp = np.asarray(curve.tp[at]), np.asarray(curve.fp[at])
    return Cells(tp, fp, np.asarray(curve.total_positives - tp), np.asarray(curve.total_negatives - fp))


def hits_and_trials(name: str, cells: Cells) -> tuple[Floats, Floats]:
    """The two counts whose ratio is the rate."""
    tp, fp, fn, tn = cells
    pairs = {
        "recall": (tp, tp + fn),
        "precision": (tp, tp + fp),
        "false_positive_rate": (fp, fp + tn),
        "alert_rate": (tp + fp, cells.total),
        "alerts": (tp + fp, cells.total),
        "accuracy": (tp + tn, cells.total),
        "f1": (tp, tp + fp + fn),
    }
    hits, trials = pairs[name]
    return np.asarray(hits), np.asarray(trials)


def values_of(name: str, curve: ThresholdCurve, scale: Scale) -> Floats:
    """A rate (or the cost of a row) at every threshold."""
    if name == "cost":
        assert curve.cost is not None
        return curve.cost / curve.total_weight
    if name == "alerts":
        return curve.alert_rate * scale.alert_rows
    return np.asarray(getattr(curve, name))


def estimate_of(name: str, cells: Cells, scale: Scale, costs: Costs | None, level: float) -> Estimate:
    """One number at one threshold, with its interval."""
    if name == "cost":
        assert costs is not None
        return _cost(cells, scale, costs, level)
    if name == "youden":
        return _youden(cells, scale, level)
    hits, trials = hits_and_trials(name, cells)
    rate = float(hits / trials) if trials > 0 else math.nan
    low, high = _limits(hits, trials, scale, level)
    if name == "f1":
        rate, low, high = (2 * x / (1 + x) for x in (rate, low, high))
    times = scale.alert_rows if name == "alerts" else 1.0
    return Estimate(rate * times, low * times, high * times, level, EXACT)


def _limits(hits: Floats, trials: Floats, scale: Scale, level: float) -> tuple[float, float]:
    worth = scale.rows_per_weight
    low, high = intervals.binomial_limits(np.atleast_1d(hits * worth), np.atleast_1d(trials * worth), level)
    return float(low[0]), float(high[0])


def _youden(cells: Cells, scale: Scale, level: float) -> Estimate:
    """Difference of two independent rates; the limits are those of the parts, put together by squares."""
    recall, alarms = (estimate_of(name, cells, scale, None, level) for name in ("recall", "false_positive_rate"))
    value = recall.value - alarms.value
    low = value - math.hypot(recall.value - recall.low, alarms.high - alarms.value)
    high = value + math.hypot(recall.high - recall.value, alarms.value - alarms.low)
    return Estimate(value, max(low, -1.0), min(high, 1.0), level, "Clopper-Pearson limits, added by squares")


def _cost(cells: Cells, scale: Scale, costs: Costs, level: float) -> Estimate:
    """Shares of the outcomes times their costs; the limits of the shares are put together by squares."""
    total = float(cells.total)
    base = float(costs.true_negative)
    value, below, above = base, 0.0, 0.0
    priced = zip((cells.tp, cells.fp, cells.fn), (costs.true_positive, costs.false_positive, costs.false_negative))
    for count, cost in priced:
        weight, share = float(cost) - base, float(count) / total
        low, high = _limits(count, cells.total, scale, level)
        down, up = (share - low, high - share) if weight >= 0 else (high - share, share - low)
        value += weight * share
        below, above = math.hypot(below, weight * down), math.hypot(above, weight * up)
    return Estimate(
        value, value - below, value + above, level, "Clopper-Pearson limits of the shares, added by squares"
    )
