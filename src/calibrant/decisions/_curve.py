"""Every threshold at once: counts, costs and rates of acting on `p >= threshold`.

One sweep over the distinct scores of a table from the highest down; the last entry, infinity, is never acting.
May import NumPy, the kernels, `calibrant.data`, `calibrant.metrics._inputs` and `calibrant.decisions._costs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import PROBABILITY_TOLERANCE, Bytes, Floats, Label
from calibrant._kernels.blocks import slices
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, array_of, read_binary_rows
from calibrant.decisions._costs import Costs, read_costs
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """What acting on `p >= threshold` does, at every threshold that makes a difference.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        The distinct probabilities, rising; the last is infinity (never act).
    tp, fp, fn, tn : ndarray of shape (m,)
        Weight of the rows of each outcome.
    cost : ndarray of shape (m,) or None
        Cost of all rows together; None without costs.
    recall, precision, false_positive_rate, alert_rate, accuracy, f1, youden : ndarray of shape (m,)
        Rates. Precision without an alert is NaN, as is recall without a positive row.
    """

    thresholds: Floats
    tp: Floats
    fp: Floats
    cost: Floats | None
    total_positives: float
    total_negatives: float

    @cached_property
    def fn(self) -> Floats:
        """Weight of the positive rows below the threshold."""
        return self.total_positives - self.tp

    @cached_property
    def tn(self) -> Floats:
        """Weight of the negative rows below the threshold."""
        return self.total_negatives - self.fp

    @property
    def of_probabilities(self) -> bool:
        """Whether all scores lie in [0, 1], but for rounding."""
        scores = self.thresholds[:-1]
        return bool(len(scores) and scores[0] >= -PROBABILITY_TOLERANCE and scores[-1] <= 1 + PROBABILITY_TOLERANCE)

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return self.total_positives + self.total_negatives

    @property
    def alerts(self) -> Floats:
        """Weight of the rows acted on."""
        return self.tp + self.fp

    @property
    def recall(self) -> Floats:
        """Share of the positive rows that is acted on."""
        return _ratio(self.tp, self.total_positives)

    @property
    def precision(self) -> Floats:
        """Share of the rows acted on that is positive."""
        return _ratio(self.tp, self.alerts)

    @property
    def false_positive_rate(self) -> Floats:
        """Share of the negative rows that is acted on."""
        return _ratio(self.fp, self.total_negatives)

    @property
    def alert_rate(self) -> Floats:
        """Share of all rows that is acted on."""
        return self.alerts / self.total_weight

    @property
    def accuracy(self) -> Floats:
        """Share of the rows that is decided right."""
        return (self.tp + self.tn) / self.total_weight

    @property
    def f1(self) -> Floats:
        """`2 tp / (2 tp + fp + fn)`."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def youden(self) -> Floats:
        """Recall minus false-positive rate."""
        return self.recall - self.false_positive_rate

    def at(self, threshold: float) -> int:
        """Index of the entry that any threshold acts like: the least listed one that is not below it."""
        return int(np.searchsorted(self.thresholds, threshold, side="left"))


def _ratio(part: Floats, whole: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(part, whole))


def threshold_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    false_positive: Any = None,
    false_negative: Any = None,
    true_positive: Any = 0.0,
    true_negative: Any = 0.0,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> ThresholdCurve:
    """Counts and costs at every distinct threshold, and for never acting.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities, or any scores of which higher ones are likelier positive.
    false_positive, false_negative, true_positive, true_negative : float or array-like of shape (n,), optional
        Costs; without the first two no cost is reckoned. Costs by row need rows, not a table.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    ThresholdCurve

    Notes
    -----
    Cumulative sums from the highest score down. Cost: one sort, O(n log n); O(n) from a sorted table.

    Examples
    --------
    >>> from calibrant import threshold_curve
    >>> curve = threshold_curve([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.4], false_positive=1, false_negative=5)
    >>> curve.thresholds, curve.cost
    (array([0.2, 0.4, 0.8, inf]), array([ 2.,  1.,  5., 10.]))
    """
    given = false_positive is not None or false_negative is not None
    costs = None
    if given:
        named = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "true_positive": true_positive,
            "true_negative": true_negative,
        }
        aligned(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, **named)
        costs = read_costs(**named)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, reads="score", what="threshold_curve")
    curve = curve_of(table, None if costs is None or costs.by_row else costs)
    if costs is None or not costs.by_row:
        return curve
    cost = _cost_by_row(curve.thresholds, costs, y_true, y_prob, sample_weight, pos_label)
    return ThresholdCurve(curve.thresholds, curve.tp, curve.fp, cost, curve.total_positives, curve.total_negatives)


def curve_of(table: ScoreTable, costs: Costs | None = None) -> ThresholdCurve:
    """The curve of a table, with costs that are the same for all rows."""
    distinct = table.distinct
    if distinct._labels is None:
        tp, fp = _from_above(distinct.positives), _from_above(distinct.negatives)
    else:
        tp, fp = _from_above(distinct._labels), np.arange(len(distinct), -1, -1, dtype=np.float64)
        fp -= tp
    curve = ThresholdCurve(np.append(distinct.scores, np.inf), tp, fp, None, float(tp[0]), float(fp[0]))
    return curve if costs is None else with_costs(curve, costs)


def counts_above(table: ScoreTable, thresholds: Floats) -> tuple[Floats, Floats]:
    """True and false positives at some thresholds: what a curve says there, without the curve."""
    distinct = table.distinct
    place = np.searchsorted(distinct.scores, thresholds, side="left")
    starts, back = np.unique(place, return_inverse=True)
    inside = starts[starts < len(distinct)]

    def above(sums: Any) -> Floats:
        padded = np.append(sums, np.zeros(len(starts) - len(inside)))
        return np.asarray(np.cumsum(padded[::-1])[::-1][back].reshape(place.shape))

    if distinct._labels is None:
        columns = (distinct.positives, distinct.negatives)
        tp, fp = (above(np.add.reduceat(column, inside) if len(inside) else []) for column in columns)
        return tp, fp
    events = distinct._labels.view(bool)
    hits = above([np.count_nonzero(events[first:last]) for first, last in pairwise([*inside, len(distinct)])])
    return hits, len(distinct) - place - hits


def with_costs(curve: ThresholdCurve, costs: Costs) -> ThresholdCurve:
    """The curve with the cost of all rows at each threshold."""
    base = float(costs.false_negative) * curve.total_positives + float(costs.true_negative) * curve.total_negatives
    cost = float(costs.of_false_alarm) * curve.fp
    cost += base
    for at in slices(len(cost)):
        cost[at] -= float(costs.of_miss) * curve.tp[at]
    return ThresholdCurve(curve.thresholds, curve.tp, curve.fp, cost, curve.total_positives, curve.total_negatives)


def _from_above(values: Bytes | Floats) -> Floats:
    """Sums of the entries from each one on, and a last 0."""
    result = np.zeros(len(values) + 1)
    np.cumsum(values[::-1], out=result[-2::-1])
    return result


def _cost_by_row(
    thresholds: Floats, costs: Costs, y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Label | None
) -> Floats:
    if isinstance(y_true, ScoreTable):
        raise InputError("Costs by row need the rows: give y_true and y_prob, not a table.")
    n = len(array_of(y_true, "y_true"))
    by_row = {name: np.broadcast_to(value, n) if value.ndim == 0 else value for name, value in costs._asdict().items()}
    _checks.same_length(y_true=np.empty(n), **by_row)
    # Rows of weight 0 stay here, so that costs and rows keep step; they add nothing.
    rows = read_binary_rows(y_prob, y_true, None, pos_label, names=("y_prob", "y_true"))
    given = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    weights = np.ones(n) if given is None else np.asarray(given, dtype=np.float64)
    event = rows.labels == 1
    acting = np.where(event, by_row["true_positive"], by_row["false_positive"]) * weights
    leaving = np.where(event, by_row["false_negative"], by_row["true_negative"]) * weights
    place = np.searchsorted(thresholds, rows.scores, side="right") - 1
    change = np.bincount(np.maximum(place, 0), acting - leaving, minlength=len(thresholds) - 1)
    return float(leaving.sum()) + _from_above(np.asarray(change, dtype=np.float64))


def net_benefit(
    y_true: Any,
    y_prob: Any = None,
    thresholds: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> Any:
    """Net benefit of acting on `p >= threshold` (decision curve); higher is better, 0 is never acting.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Calibrated probabilities; leave it out beside a table.
    thresholds : float or array-like
        Probabilities in [0, 1) from which one would act: each stands for what a false alarm is worth in events found.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    float or ndarray
        In units of events found per row; at most the prevalence. Acting on everybody gives
        `prevalence - (1 - prevalence) t / (1 - t)`.

    Notes
    -----
    `tp / n - fp / n * t / (1 - t)`. Cost: one sort, and a binary search for every threshold. Source: Vickers and Elkin
    (2006).

    Examples
    --------
    >>> from calibrant import net_benefit
    >>> net_benefit([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.4], [0.2, 0.5])
    array([0.375, 0.25 ])
    """
    if thresholds is None:
        raise InputError("Give thresholds: the probabilities from which one would act, for example [0.1, 0.2].")
    asked = _checks.finite(_checks.numbers(array_of(thresholds, "thresholds"), "thresholds"), "thresholds")
    if asked.size and (asked.min() < 0 or asked.max() >= 1):
        raise InputError("thresholds must lie in [0, 1): at 1 a false alarm would cost infinitely many events.")
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="net_benefit")
    tp, fp = counts_above(table, asked)
    benefit = (tp - fp * asked / (1 - asked)) / table.total_weight
    return float(benefit) if asked.ndim == 0 else benefit
