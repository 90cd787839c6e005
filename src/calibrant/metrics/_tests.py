"""Tests of calibration: is what happened compatible with the probabilities?

A small p-value says that it is not. A large one does not say that the probabilities are calibrated, only that these
rows do not show the contrary: for that there is `calibration_verdict`.
May import NumPy, SciPy's distribution functions inside functions, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from calibrant._checks import Label
from calibrant._kernels import bins, newton, shape
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant._parameters import Flag, check_parameters
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import worth
from calibrant.metrics._scores import _one_of, uniform_edges
from calibrant.metrics._shape import counted

KINDS = ("spiegelhalter", "hosmer-lemeshow", "cox")


@dataclass(frozen=True)
class CalibrationTest:
    """A test that the probabilities are calibrated.

    Attributes
    ----------
    kind : str
        "spiegelhalter", "hosmer-lemeshow" or "cox".
    statistic : float
        Spiegelhalter: a normal z, positive when the Brier score is larger than promised; the others chi-squared.
    degrees_of_freedom : int
        Of the chi-squared distribution; 1 for z, whose square has it.
    p_value : float
        Two-sided for z.
    """

    kind: str
    statistic: float
    degrees_of_freedom: int
    p_value: float


def calibration_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    kind: Literal["spiegelhalter", "hosmer-lemeshow", "cox"] = "spiegelhalter",
    n_groups: int = 10,
    fitted: bool = False,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> CalibrationTest:
    """Test whether what happened is compatible with the probabilities; small p-values speak against them.

    A p-value above 0.05 is no evidence of calibration: on few rows nothing is ever refuted. `calibration_verdict`
    says whether the rows show calibration.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    kind : {"spiegelhalter", "hosmer-lemeshow", "cox"}
        Spiegelhalter asks whether the Brier score is what the probabilities promise; Hosmer-Lemeshow whether groups of
        similar probability have their event rates; Cox whether the line on the log-odds has slope 1 and intercept 0.
    n_groups : int
        Equal-mass groups of Hosmer-Lemeshow.
    fitted : bool
        Whether the probabilities were fitted on these very rows: takes two degrees off Hosmer-Lemeshow.
    sample_weight : array-like of shape (n,), optional
        Frequencies. Rows of weights that differ are worth `(sum w)^2 / sum w^2` rows.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    CalibrationTest

    Notes
    -----
    Spiegelhalter: `sum (y - p)(1 - 2p) / sqrt(sum (1 - 2p)^2 p (1 - p))`. Hosmer-Lemeshow: `sum (O - E)^2 / (n q
    (1 - q))` over the groups, q the mean probability; as many degrees as groups for probabilities from elsewhere. Cox:
    twice the gain in log-likelihood of the best line, 2 degrees. Cost: one pass; Hosmer-Lemeshow one sort; Cox a few
    passes. Source: Spiegelhalter (1986), eq. 9; Hosmer, Lemeshow, Sturdivant (2013), eq. 5.7 and section 5.2.2; Cox
    (1958).

    Examples
    --------
    >>> from calibrant import calibration_test
    >>> found = calibration_test([0, 1] * 50, [0.1, 0.6] * 50)
    >>> round(found.statistic, 2), found.p_value < 0.01
    (-4.36, True)
    """
    _one_of("kind", kind, KINDS)
    uniform_edges(n_groups)
    check_parameters("calibration_test", {"fitted": fitted}, {"fitted": Flag()})
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="calibration_test")
    if kind == "spiegelhalter":
        return _spiegelhalter(table)
    return _hosmer_lemeshow(table, int(n_groups), fitted) if kind == "hosmer-lemeshow" else _cox(table)


def _spiegelhalter(table: ScoreTable) -> CalibrationTest:
    from scipy.special import ndtr

    excess, variance = map(math.fsum, zip(*(_spiegelhalter_sums(table._at(at)) for at in slices(len(table)))))
    statistic = excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess) if excess else 0.0
    return CalibrationTest("spiegelhalter", statistic, 1, 2 * float(ndtr(-abs(statistic))))


def _spiegelhalter_sums(table: ScoreTable) -> tuple[float, float]:
    """What the Brier score exceeds its promise by, and the variance of that."""
    p, lean = table.scores, 1 - 2 * table.scores
    excess = lean * (table.positives - table.weight * p)
    return float(excess.sum()), float((table.squared_weights * lean**2 * p * (1 - p)).sum())


def _hosmer_lemeshow(table: ScoreTable, n_groups: int, fitted: bool) -> CalibrationTest:
    distinct = table.distinct
    if distinct._labels is not None:
        ends = bins.quantile_row_ends(len(distinct), n_groups)
    else:
        ends = bins.quantile_bin_ends(distinct.weight, n_groups)
    groups = (distinct._at(slice(first + 1, last + 1)) for first, last in pairwise([-1, *ends]))
    weight, hits, expected, squares = np.array([_group_sums(group) for group in groups]).T
    rate = expected / weight
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        parts = (hits - expected) ** 2 / (squares * rate * (1 - rate))
    statistic = float(np.where(hits == expected, 0.0, parts).sum())
    degrees = len(ends) - 2 * bool(fitted)
    if degrees < 1:
        raise InputError(
            f"Hosmer-Lemeshow found {len(ends)} groups of different probabilities, which leaves no degree of freedom "
            f"with fitted=True. Use kind='spiegelhalter'."
        )
    return CalibrationTest("hosmer-lemeshow", statistic, degrees, _chi_squared(degrees, statistic))


def _group_sums(group: ScoreTable) -> tuple[float, float, float, float]:
    """Weight, positives, expected positives and squared weights."""
    weight = group.weight
    expected = dot(weight, group.scores)
    return float(weight.sum()), float(group.positives.sum()), expected, float(group.squared_weights.sum())


def _cox(table: ScoreTable) -> CalibrationTest:
    z, (hits, weight) = fit_log_odds(table), counted(table)
    fit = newton.fit_logistic((z,), hits, weight)
    best = 0.0 if fit.outcome == newton.SEPARABLE and not _constant(z) else fit.loss
    loss = shape.identity_loss(z, hits, weight)
    degrees = 1 if _constant(z) else 2
    statistic = max(0.0, 2 * (loss - best)) * worth(table) / table.total_weight
    return CalibrationTest("cox", statistic, degrees, _chi_squared(degrees, statistic))


def _constant(z: Any) -> bool:
    return bool(z.min() == z.max())


def _chi_squared(degrees: int, statistic: float) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic)) if math.isfinite(statistic) else 0.0
