"""How honest probabilities are: reliability curves, the binned calibration error, calibration slope and intercept.

Bins are `(lo, hi]` between `numpy.linspace` edges, with 0 in the first; equal values never sit in two equal-mass bins.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import bins, blocks, logistic_roots, newton
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows, ClassRows
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input, read_input
from calibrant.metrics._scores import _one_of, bin_sums, mass_starts, pooled, uniform_edges

STRATEGIES = ("uniform", "quantile", "isotonic")


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Mean prediction and event rate, bin by bin.

    Attributes
    ----------
    edges : ndarray of shape (B + 1,)
        Bin b holds `edges[b] < p <= edges[b + 1]` (the first bin also its lower end).
    mean_predicted, observed_rate : ndarray of shape (B,)
        Weighted means over the bin; NaN in an empty one.
    weight, rows : ndarray of shape (B,)
        Weight and number of rows; 0 in an empty bin.
    """

    edges: Floats
    mean_predicted: Floats
    observed_rate: Floats
    weight: Floats
    rows: Floats

    def calibration_error(self, norm: Literal["l1", "l2", "max"] = "l1") -> float:
        """The gap between mean prediction and event rate over the bins, weighted by their weight.

        `l1` the mean of the gaps, `l2` the root of the mean of their squares, `max` the largest.
        """
        _one_of("norm", norm, ("l1", "l2", "max"))
        kept = self.weight > 0
        gaps = np.abs(self.mean_predicted[kept] - self.observed_rate[kept])
        share = self.weight[kept] / self.weight.sum()
        if norm == "max":
            return float(gaps.max())
        return float(share @ gaps) if norm == "l1" else float(np.sqrt(share @ gaps**2))


def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile", "isotonic"] = "uniform",
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> ReliabilityCurve:
    """Mean prediction against event rate in bins of the predicted probability.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    n_bins : int
        Number of bins; not used by "isotonic".
    strategy : {"uniform", "quantile", "isotonic"}
        Bins of equal width; of equal mass (equal values stay together, so there can be fewer bins than asked); or the
        blocks of the isotonic fit, which need no choice.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    ReliabilityCurve
        Empty bins are kept with weight 0.

    Notes
    -----
    Cost: one pass for "uniform", one sort otherwise. Source: Murphy and Winkler (1977); isotonic: Dimitriadis,
    Gneiting, Jordan (2021).

    Examples
    --------
    >>> from calibrant import reliability_curve
    >>> curve = reliability_curve([1, 1, 0], [0.9, 0.8, 0.2], n_bins=3)
    >>> curve.rows
    array([1., 0., 2.])
    """
    _one_of("strategy", strategy, STRATEGIES)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="reliability_curve")
    return _curve(table, n_bins, strategy)


def _curve(table: ScoreTable, n_bins: int, strategy: str) -> ReliabilityCurve:
    edges = uniform_edges(n_bins)
    if strategy == "uniform":
        return _curve_of_sums(edges, bin_sums(table, edges))
    distinct = table.distinct
    size = len(distinct.scores)
    starts = mass_starts(distinct, n_bins) if strategy == "quantile" else pooled(distinct)[0].starts
    sums = bins.BinSums(*blocks.sums_between(starts, size, lambda at: _columns(distinct._at(at))))
    return _curve_of_sums(np.append(distinct.scores[0], distinct.scores[np.append(starts[1:], size) - 1]), sums)


def _columns(part: ScoreTable) -> tuple[Floats, ...]:
    return part.weight, part.positives, part.weight * part.scores, part.rows, part.squared_weights


def _curve_of_sums(edges: Floats, sums: bins.BinSums) -> ReliabilityCurve:
    kept = np.where(sums.weight > 0, sums.weight, np.nan)
    return ReliabilityCurve(edges, sums.sum_p / kept, sums.positives / kept, sums.weight, sums.rows)


def expected_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: Literal["l1", "l2", "max"] = "l1",
    kind: Literal["confidence", "classwise"] = "confidence",
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
) -> float:
    """Binned gap between predicted probability and event rate; lower is better, but it is never 0 on real data.

    The plain estimate is biased upwards, and it moves with the number and kind of bins: read it beside its bins
    (`reliability_curve` with the same arguments), and never choose a calibrator by it.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities. Two classes: the positive class is judged.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        Equal width or equal mass.
    norm : {"l1", "l2", "max"}
        Mean gap, root of the mean squared gap, or largest gap.
    kind : {"confidence", "classwise"}
        K >= 3: the highest probability against whether it was right, or the mean over the classes.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.
    labels : sequence, optional
        The classes of the columns.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    `sum_b w_b / N |mean p in b - event rate in b|`. Cost: one pass, O(nK). Source: Naeini, Cooper, Hauskrecht (2015);
    top label: Guo et al. (2017), eq. 3; classwise: Kull et al. (2019), eq. 3.

    Examples
    --------
    >>> from calibrant import expected_calibration_error
    >>> round(expected_calibration_error([1, 0], [0.95, 1.0], n_bins=10), 4)
    0.475
    """
    _one_of("strategy", strategy, ("uniform", "quantile"))
    _one_of("norm", norm, ("l1", "l2", "max"))
    _one_of("kind", kind, ("confidence", "classwise"))
    read = read_input(y_true, y_prob, sample_weight, pos_label, labels)
    if isinstance(read, ScoreTable):
        return _curve(read, n_bins, strategy).calibration_error(norm)
    if kind == "confidence":
        return _curve(_top_label_table(read), n_bins, strategy).calibration_error(norm)
    tables = [_column_table(read, k) for k in range(read.scores.shape[1])]
    return float(np.mean([_curve(table, n_bins, strategy).calibration_error(norm) for table in tables]))


def _top_label_table(rows: ClassRows) -> ScoreTable:
    """The highest probability of each row (the first of equals), and whether it was right."""
    top = rows.scores.argmax(axis=1)
    confidence = np.take_along_axis(rows.scores, top[:, None], axis=1)[:, 0]
    return ScoreTable._of_rows(BinaryRows(confidence, (top == rows.labels).view(np.uint8), rows.weights, (0, 1)))


def _column_table(rows: ClassRows, k: int) -> ScoreTable:
    member = (rows.labels == k).view(np.uint8)
    return ScoreTable._of_rows(BinaryRows(np.ascontiguousarray(rows.scores[:, k]), member, rows.weights, (0, 1)))


@dataclass(frozen=True)
class CalibrationLine:
    """The line that the log-odds would need: `logit P(event) = intercept + slope * logit(p)`.

    Attributes
    ----------
    slope : float
        1 is calibrated; below 1 over-confident, above 1 under-confident.
    intercept : float
        Of the joint fit with the slope; 0 is calibrated.
    intercept_at_slope_one : float
        Of the fit with slope 1 ("calibration in the large"): positive when events are more frequent than predicted.
    """

    slope: float
    intercept: float
    intercept_at_slope_one: float


def calibration_slope_intercept(
    y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Label | None = None
) -> CalibrationLine:
    """Slope and intercept of the log-odds of the event on the log-odds of the prediction.

    Exact 0 and 1 are moved as in every fit: 0 to `min(1 / (2N + 2), half the smallest positive p)`, 1 likewise.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    CalibrationLine

    Raises
    ------
    InputError
        Rows of one class only; separable rows (no finite slope); a constant prediction (no slope).

    Notes
    -----
    Logistic regression without penalty. Cost: a few passes, O(n). Source: Cox (1958); Steyerberg (2009), section 15.3.

    Examples
    --------
    >>> from calibrant import calibration_slope_intercept
    >>> line = calibration_slope_intercept([0, 1, 0, 1, 1], [0.1, 0.3, 0.6, 0.8, 0.9])
    >>> 0 < line.slope < 1
    True
    """
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="calibration_slope_intercept")
    _checks.both_classes(table.total_positives, table.total_negatives, "calibration_slope_intercept")
    on_line = table.with_scores(fit_log_odds(table))
    fit: newton.LogisticFit = on_line.reduce(
        lambda z, labels, weights: newton.fit_logistic((z,), labels, weights),
        lambda z, positives, negatives: newton.fit_logistic((z,), positives, positives + negatives),
    )
    if fit.outcome == newton.SEPARABLE:
        raise InputError(
            "The probabilities separate the classes, so the calibration slope is not finite. More rows would settle it."
        )
    if fit.outcome == newton.SINGULAR:
        raise InputError(
            "All probabilities are the same, so there is no calibration slope; compare their value with the event rate."
        )
    shift: float = on_line.reduce(
        logistic_roots.fit_shift,
        lambda z, positives, negatives: logistic_roots.fit_shift(z, positives, positives + negatives),
    )
    return CalibrationLine(float(fit.coefficients[1]), float(fit.coefficients[0]), shift)
