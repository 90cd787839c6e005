"""What kind of distortion scores have: what is left after the best line on the log-odds.

Three questions, each a likelihood-ratio test on the log-odds z: does the event rate fall anywhere (isotonic against
free rates of twenty equal-mass groups), does a cubic fit better than a line (bend and S-shape), is the line the
identity (slope 1, intercept 0).
May import NumPy, SciPy's chi-squared function, the kernels and the measures beside this file.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Bytes, Floats, Label
from calibrant._kernels import bins, isotonic, newton, shape
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input

LEVEL = 0.05
GROUPS = 20
WIDE = 0.25
INNER = 0.005


@dataclass(frozen=True, eq=False)
class ShapeDiagnosis:
    """The line on the log-odds, a test of what it leaves, and a verdict in words.

    Attributes
    ----------
    slope, intercept : float
        The best line on the log-odds.
    slope_error : float
        Standard error of the slope.
    statistic, p_value : float
        Likelihood-ratio test of bend and S-shape after the line (2 degrees of freedom; one less for a term that the
        scores take too few values to tell from the others).
    bend, s_shape : float
        Coefficients of the square and the cube of the standardised log-odds, each orthogonal to what is before it.
    falling_p_value : float
        Test that the event rate falls somewhere as the score rises.
    identity_p_value : float
        Test that the line is the identity; NaN for scores that are not probabilities.
    verdict : str
        "calibrated", "affine", "bent", "S-shaped", "not monotone" or "not enough rows to tell".
    predicted, observed, weight : ndarray
        Mean log-odds after the line, log-odds of the event rate (smoothed by half a row) and weight of each group: the
        picture of the residual.
    """

    slope: float
    intercept: float
    slope_error: float
    statistic: float
    p_value: float
    bend: float
    s_shape: float
    falling_p_value: float
    identity_p_value: float
    verdict: str
    predicted: Floats
    observed: Floats
    weight: Floats


def shape_diagnosis(
    y_true: Any,
    scores: Any = None,
    *,
    from_logits: Literal["auto"] | bool = "auto",
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> ShapeDiagnosis:
    """Tell what kind of distortion the scores have, and whether the rows are enough to tell.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    scores : array-like of shape (n,) or (n, 2)
        Probabilities, or log-odds and margins.
    from_logits : "auto" or bool
        Whether the scores are log-odds; "auto" goes by their range.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    ShapeDiagnosis
        Together the tests call calibrated scores distorted in about 5 % of samples. Of the verdicts the first that
        applies of: not monotone, bent or S-shaped, affine, not enough rows to tell, calibrated.

    Raises
    ------
    InputError
        Rows of one class only, separable rows, a constant score: there is no line.

    Notes
    -----
    Twice the gain in log-likelihood is compared with chi-squared; for the fall, with the conservative bound of all
    pooled groups. The log-odds are limited to their inner 99 % in the bend and S-shape terms, so that a few extreme
    scores do not decide. Cost: one sort and some passes. Source: Cox (1958); Robertson, Wright, Dykstra (1988),
    section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import shape_diagnosis
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-z))
    >>> shape_diagnosis(y, 1 / (1 + np.exp(-2 * z))).verdict
    'affine'
    """
    logits = from_logits
    table = binary_input(y_true, scores, sample_weight, pos_label, reads="score", what="shape_diagnosis")
    if logits == "auto":
        logits = bool(table.scores.min() < 0 or table.scores.max() > 1)
    if not logits:
        inside = _checks.probabilities(table.scores, "scores")
        table = table if inside is table.scores else table.with_scores(inside)  # its order is kept
    _checks.both_classes(table.total_positives, table.total_negatives, "shape_diagnosis")
    distinct = table.distinct
    z = distinct.scores if logits else fit_log_odds(distinct)
    unit = _unit(z)
    rows = _Rows(z if unit == 1.0 else z / unit, *counted(distinct))
    line = newton.fit_logistic((rows.z,), rows.positives, rows.weight)
    if line.outcome != newton.OK:
        why = "separate the classes" if line.outcome == newton.SEPARABLE else "are all the same"
        raise InputError(f"The scores {why}, so there is no line on the log-odds to compare with.")
    return _diagnose(rows, unit, line, bool(logits))


class _Rows(NamedTuple):
    """Ascending log-odds; the label of each, and None, where they are rows that count once; else their sums."""

    z: Floats
    positives: Bytes | Floats
    weight: Floats | None


def counted(table: ScoreTable) -> tuple[Bytes | Floats, Floats | None]:
    """Labels, and None, of rows that count once each; else the positive and the whole weight of each entry."""
    if table._labels is not None and table._weights is None:
        return table._labels, None
    return table.positives, table.weight


def _unit(z: Floats) -> float:
    """A power of two in which the squares and cubes of z fit into a float; 1 wherever they do anyway."""
    size = max(float(z.max()), -float(z.min()))
    return 1.0 if 1e-50 < size < 1e50 else 2.0 ** (np.frexp(size)[1] - 1)


def _diagnose(rows: _Rows, unit: float, line: newton.LogisticFit, logits: bool) -> ShapeDiagnosis:
    intercept, slope = map(float, line.coefficients)
    error = shape.slope_error(rows.z, rows.weight, intercept, slope)
    cubic = _cubic(rows, line)
    groups = _grouped(rows, intercept, slope)
    falling = _falling_p_value(groups)
    slope, error = slope / unit, error / unit
    gap = float("nan") if logits else 2 * (shape.identity_loss(*rows) - line.loss)
    identity = float("nan") if logits else _chi_squared(gap, 2)
    verdict = _verdict(falling, cubic, identity, error / max(abs(slope), 1.0) > WIDE / 1.96)
    observed = np.log(groups.positives + 0.5) - np.log(groups.weight - groups.positives + 0.5)
    return ShapeDiagnosis(
        slope,
        intercept,
        error,
        cubic.statistic,
        cubic.p_value,
        cubic.bend,
        cubic.s_shape,
        falling,
        identity,
        verdict,
        groups.predicted,
        observed,
        groups.weight,
    )


class _Cubic(NamedTuple):
    statistic: float
    p_value: float
    bend: float
    s_shape: float
    bend_gain: float


class _Groups(NamedTuple):
    predicted: Floats
    positives: Floats
    weight: Floats


def _verdict(falling: float, cubic: _Cubic, identity: float, wide: bool) -> str:
    if falling < LEVEL / 5:  # the strongest claim needs the strongest evidence
        return "not monotone"
    if cubic.p_value < LEVEL / 2:
        return "bent" if cubic.bend_gain >= cubic.statistic / 2 else "S-shaped"
    if identity < LEVEL / 2:
        return "affine"
    if wide:
        return "not enough rows to tell"
    return "affine" if np.isnan(identity) else "calibrated"


def _chi_squared(statistic: float, degrees: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))


def _cubic(rows: _Rows, line: newton.LogisticFit) -> _Cubic:
    """The gain of a square and of a cube over the line, on standardised log-odds limited to their inner part."""
    z, positives, weight = rows
    square, cube = shape.terms(z, weight, *_inner(z, weight)) if len(z) >= 4 else (None, None)
    columns = [z] + [term for term in (square, cube) if term is not None]
    bent = line if square is None else newton.fit_logistic((z, square), positives, weight)
    both = bent if cube is None else newton.fit_logistic(tuple(columns), positives, weight)
    degrees = len(columns) - 1
    if degrees == 0 or both.outcome != newton.OK or bent.outcome != newton.OK:
        return _Cubic(0.0, 1.0, 0.0, 0.0, 0.0)
    statistic = max(0.0, 2 * (line.loss - both.loss))
    gain = max(0.0, 2 * (line.loss - bent.loss))
    bend = 0.0 if square is None else float(both.coefficients[2])
    s_shape = 0.0 if cube is None else float(both.coefficients[-1])
    return _Cubic(statistic, _chi_squared(statistic, degrees), bend, s_shape, gain)


def _inner(z: Floats, weight: Floats | None) -> tuple[float, float]:
    """The log-odds between which the inner part of the rows lies."""
    if weight is None:
        low, high = (bisect_left(range(1, len(z) + 1), q, key=lambda k: k / len(z)) for q in (INNER, 1 - INNER))
    else:
        share = np.cumsum(weight)
        share /= float(weight.sum())
        low, high = np.searchsorted(share, (INNER, 1 - INNER))
    return float(z[low]), float(z[min(high, len(z) - 1)])


def _grouped(rows: _Rows, intercept: float, slope: float) -> _Groups:
    """Equal-mass groups in the order of the score: mean log-odds after the line, positives, weight."""
    z, positives, weight = rows
    ends = bins.quantile_row_ends(len(z), GROUPS) if weight is None else bins.quantile_bin_ends(weight, GROUPS)
    starts = np.concatenate([[0], ends[:-1] + 1])
    total = np.diff(ends, prepend=-1).astype(float) if weight is None else np.add.reduceat(weight, starts)
    mean = np.add.reduceat(z if weight is None else weight * z, starts) / total
    return _Groups(intercept + slope * mean, np.add.reduceat(positives, starts, dtype=np.float64), total)


def _falling_p_value(groups: _Groups) -> float:
    """Free rates against their isotonic fit; the bound counts every pooled group as a degree of freedom."""
    blocks = isotonic.pool_adjacent(groups.positives, groups.weight)
    fitted = np.repeat(blocks.values, blocks.ends - blocks.starts + 1)
    free = groups.positives / groups.weight
    gain = 2 * (_log_likelihood(groups, free) - _log_likelihood(groups, fitted))
    return 1.0 if gain <= 1e-9 else _chi_squared(gain, len(free) - 1)


def _log_likelihood(groups: _Groups, rate: Floats) -> float:
    negatives = groups.weight - groups.positives
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(groups.positives > 0, groups.positives * np.log(rate), 0.0)
        misses = np.where(negatives > 0, negatives * np.log1p(-rate), 0.0)
    return float(hits.sum() + misses.sum())
