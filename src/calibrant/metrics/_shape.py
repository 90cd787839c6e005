"""What kind of distortion scores have: what is left after the best line on the log-odds.

Three questions, each a likelihood-ratio test on the log-odds z: does the event rate fall anywhere (isotonic against
free rates of twenty equal-mass groups), does a cubic fit better than a line (bend and S-shape), is the line the
identity (slope 1, intercept 0).
May import NumPy, SciPy's chi-squared function, the kernels and the measures beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import bins, isotonic, likelihood, newton
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
        Likelihood-ratio test of bend and S-shape after the line (2 degrees of freedom).
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
        table = table.with_scores(_checks.probabilities(table.scores, "scores"))
    _checks.both_classes(table.total_positives, table.total_negatives, "shape_diagnosis")
    distinct = table.distinct
    z = distinct.scores if logits else fit_log_odds(distinct)
    unit = _unit(z)
    z = z / unit
    line = newton.fit_logistic((z,), distinct.positives, distinct.weight)
    if line.outcome != newton.OK:
        why = "separate the classes" if line.outcome == newton.SEPARABLE else "are all the same"
        raise InputError(f"The scores {why}, so there is no line on the log-odds to compare with.")
    return _diagnose(distinct, z, unit, line, bool(logits))


def _unit(z: Floats) -> float:
    """A power of two in which the squares and cubes of z fit into a float; 1 wherever they do anyway."""
    size = float(np.abs(z).max())
    return 1.0 if 1e-50 < size < 1e50 else 2.0 ** (np.frexp(size)[1] - 1)


def _diagnose(distinct: ScoreTable, z: Floats, unit: float, line: newton.LogisticFit, logits: bool) -> ShapeDiagnosis:
    intercept, slope = map(float, line.coefficients)
    error = _slope_error(z, distinct.weight, likelihood.expit(intercept + slope * z))
    cubic = _cubic(z, distinct, line)
    groups = _grouped(distinct, z, intercept, slope)
    falling = _falling_p_value(groups)
    slope, error = slope / unit, error / unit
    identity = float("nan") if logits else _identity_p_value(z, distinct, line.loss)
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


def _slope_error(z: Floats, weight: Floats, p: Floats) -> float:
    information = weight * p * (1 - p)
    mean = float(information @ z / information.sum())
    return float(1 / np.sqrt(information @ (z - mean) ** 2))


def _cubic(z: Floats, distinct: ScoreTable, line: newton.LogisticFit) -> _Cubic:
    """The gain of a square and of a cube over the line, on standardised log-odds limited to their inner part."""
    share = np.cumsum(distinct.weight) / distinct.weight.sum()
    low, high = z[int(np.searchsorted(share, INNER))], z[min(int(np.searchsorted(share, 1 - INNER)), len(z) - 1)]
    weight = distinct.weight
    u = np.clip(z, low, high)
    deviation = float(np.sqrt(weight @ (u - weight @ u / weight.sum()) ** 2 / weight.sum()))
    if len(z) < 4 or deviation == 0:
        return _Cubic(0.0, 1.0, 0.0, 0.0, 0.0)
    u = (u - float(weight @ u / weight.sum())) / deviation
    one = np.ones_like(z)
    square = _orthogonal(u**2, [one, z], weight)
    cube = _orthogonal(u**3, [one, z, u**2], weight)
    with_bend = newton.fit_logistic((z, square), distinct.positives, weight)
    both = newton.fit_logistic((z, square, cube), distinct.positives, weight)
    if both.outcome != newton.OK or with_bend.outcome != newton.OK:
        return _Cubic(0.0, 1.0, 0.0, 0.0, 0.0)
    statistic = max(0.0, 2 * (line.loss - both.loss))
    gain = max(0.0, 2 * (line.loss - with_bend.loss))
    return _Cubic(statistic, _chi_squared(statistic, 2), float(both.coefficients[2]), float(both.coefficients[3]), gain)


def _orthogonal(column: Floats, others: list[Floats], weight: Floats) -> Floats:
    """The part of a column that the others do not explain, by weighted least squares."""
    root = np.sqrt(weight)
    design = np.column_stack(others)
    scale = np.sqrt(weight @ design**2)
    solved = np.linalg.lstsq(design / scale * root[:, None], column * root, rcond=None)[0]
    return np.asarray(column - (design / scale) @ solved)


def _grouped(distinct: ScoreTable, z: Floats, intercept: float, slope: float) -> _Groups:
    """Equal-mass groups in the order of the score: mean log-odds after the line, positives, weight."""
    weight = distinct.weight
    ends = bins.quantile_bin_ends(weight, GROUPS)
    starts = np.concatenate([[0], ends[:-1] + 1])
    total = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight * z, starts) / total
    return _Groups(intercept + slope * mean, np.add.reduceat(distinct.positives, starts), total)


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


def _identity_p_value(z: Floats, distinct: ScoreTable, best_loss: float) -> float:
    loss = float(distinct.weight @ np.logaddexp(0, z) - distinct.positives @ z)
    return _chi_squared(2 * (loss - best_loss), 2)
