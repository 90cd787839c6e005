"""Sigmoid maps with one slope: Platt scaling of any score, and the affine fit of the log-odds.

`expit(intercept + slope * score)` by weighted maximum likelihood. Where no finite optimum exists (separable rows) the
affine fit falls back to Platt's targets and says so, so that every map is finite and rising.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and `calibrant.calibrators._base`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from calibrant._checks import Bytes, Floats
from calibrant._kernels import newton
from calibrant._parameters import Flag, Rule
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds, log_odds_ends
from calibrant.errors import FitWarning
from calibrant.maps import AffineLogitMap, PlattMap

SINGULAR, SEPARABLE = 2, 1
FARTHEST_INTERCEPT = 1e10
"""Beyond it, intercept and slope times score cancel to less than six digits of the log-odds."""


def platt_targets(table: ScoreTable) -> tuple[float, float]:
    """Platt's targets of positives and negatives, `(n1 + 1) / (n1 + 2)` and `1 / (n0 + 2)`."""
    return (table.total_positives + 1) / (table.total_positives + 2), 1 / (table.total_negatives + 2)


def mean_target(table: ScoreTable, targets: tuple[float, float]) -> float:
    """The weighted mean of the targets: what a constant score is mapped to."""
    return (table.total_positives * targets[0] + table.total_negatives * targets[1]) / table.total_weight


def logit_of_rate(rate: float) -> float:
    """The log-odds of a rate strictly between 0 and 1."""
    return float(np.log(rate) - np.log1p(-rate))


class Likelihood(NamedTuple):
    """What the labels say, or targets that stand for them: positive part and total weight of each entry.

    Rows without weights keep their labels, and no column of weights.
    """

    positives: Floats | Bytes
    weight: Floats | None
    targets: tuple[float, float]
    """What a label of 0 and of 1 stand for."""

    @property
    def constant(self) -> newton.LogisticFit:
        """The fit without a slope."""
        low, high = self.targets
        total = float(len(self.positives) if self.weight is None else self.weight.sum())
        hits = float(self.positives.sum())
        hits = hits if self.weight is not None else hits * high + (total - hits) * low
        rate = hits / total
        loss = -(hits * np.log(rate) + (total - hits) * np.log1p(-rate))
        return newton.LogisticFit(np.array([logit_of_rate(rate)]), True, float(loss), newton.OK)

    def fit(self, *columns: Floats) -> newton.LogisticFit:
        """The fit with a slope for each column."""
        return told_apart(newton.fit_logistic(columns, self.positives, self.weight, targets=self.targets))


def likelihood_of(table: ScoreTable, targets: tuple[float, float] | None = None) -> Likelihood:
    """The likelihood of a table's labels, or of targets for positives and negatives."""
    high, low = targets or (1.0, 0.0)
    if table._labels is not None and table._weights is None:
        return Likelihood(table._labels, None, (low, high))
    return Likelihood(high * table.positives + low * table.negatives, table.weight, (0.0, 1.0))


def told_apart(fit: newton.LogisticFit) -> newton.LogisticFit:
    """The fit; scores that differ by rounding only, beside their size, are as good as constant."""
    if fit.outcome != newton.OK or abs(fit.coefficients[0]) <= FARTHEST_INTERCEPT:
        return fit
    warnings.warn(
        "The scores differ so little beside their size that a slope on them is rounding noise: they were read as one "
        "value, the event rate. If the differences mean something, subtract a constant from all scores first.",
        FitWarning,
        stacklevel=7,
    )
    return fit._replace(outcome=SINGULAR)


class PlattScaling(BinaryCalibrator):
    """Sigmoid of a score on any real scale, `p = expit(intercept + slope * score)`.

    Fitted by weighted cross-entropy against Platt's targets `(n1 + 1) / (n1 + 2)` for positives and `1 / (n0 + 2)` for
    negatives, which keep the fit finite on separable rows. The score is taken as given; for probabilities use
    `AffineLogit`, which works on their log-odds and is nearly always better.

    Parameters
    ----------
    target_correction : bool, default=True
        False gives plain logistic regression on the score.

    Attributes
    ----------
    slope_, intercept_ : float
        The coefficients; the slope is not constrained.
    target_positive_, target_negative_ : float
        The targets used.
    map_ : PlattMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Cost: about three passes over the rows, O(n) time, no copy of the rows. Source: Platt, Probabilistic outputs for
    support vector machines (1999); Newton steps as in Lin, Lin, Weng (2007).

    Examples
    --------
    >>> from calibrant import PlattScaling
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> round(fitted.slope_, 6)
    0.673996
    >>> fitted.predict_proba([0.0])
    array([[0.5, 0.5]])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"target_correction": Flag()}

    slope_: float
    intercept_: float
    target_positive_: float
    target_negative_: float

    def __init__(self, target_correction: bool = True) -> None:
        self.target_correction = target_correction

    def _learn(self, table: ScoreTable) -> PlattMap:
        targets = platt_targets(table) if self.target_correction else (1.0, 0.0)
        fit = likelihood_of(table, targets).fit(table.scores)
        if fit.outcome == SEPARABLE:
            warn_separable("PlattScaling")
            targets = platt_targets(table)
            fit = likelihood_of(table, targets).fit(table.scores)
        self.target_positive_, self.target_negative_ = targets
        self.intercept_, self.slope_ = map(float, fit.coefficients)
        if fit.outcome == SINGULAR:
            self.slope_, self.intercept_ = 0.0, logit_of_rate(mean_target(table, platt_targets(table)))
        warn_if_falling(self.slope_ < 0)
        return PlattMap(table.classes, self.slope_, self.intercept_)


class AffineLogit(BinaryCalibrator):
    """Straight line on the log-odds, `p -> expit(intercept + slope * logit(p))`.

    Unpenalised logistic regression on `z = log p - log(1 - p)`. A slope below 1 says that the model was
    over-confident, above 1 under-confident; an intercept away from 0 that it was too high or too low on the whole.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are log-odds already (any real number) instead of probabilities.

    Attributes
    ----------
    slope_, intercept_ : float
        The coefficients on the log-odds.
    map_ : AffineLogitMap
        The frozen map; it accepts any p in [0, 1].
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Warns
    -----
    FitWarning
        When the rows are separable (no finite optimum): fitted against Platt's targets instead.

    Notes
    -----
    In the fit exact 0 is moved to `min(1 / (2N + 2), half the smallest positive p)`, exact 1 likewise; the map reads
    any p beyond these ends as the end. Cost:
    about three passes over the rows, O(n). Source: Cox (1958), Two further applications of a model for binary
    regression; Platt on logits.

    Examples
    --------
    >>> from calibrant import AffineLogit
    >>> fitted = AffineLogit().fit([0.1, 0.3, 0.6, 0.8, 0.9], [0, 1, 0, 1, 1])
    >>> 0 < fitted.map_(0.5) < 1
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"from_logits": Flag()}

    slope_: float
    intercept_: float

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    @property
    def _reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _learn(self, table: ScoreTable) -> AffineLogitMap:
        z = table.scores if self.from_logits else fit_log_odds(table)
        fit = likelihood_of(table).fit(z)
        if fit.outcome == SEPARABLE:
            warn_separable("AffineLogit")
            fit = likelihood_of(table, platt_targets(table)).fit(z)
        self.intercept_, self.slope_ = map(float, fit.coefficients)
        if fit.outcome == SINGULAR:
            self.slope_, self.intercept_ = 0.0, logit_of_rate(table.prevalence)
        warn_if_falling(self.slope_ < 0)
        ends = () if self.from_logits else log_odds_ends(table)
        return AffineLogitMap(table.classes, self.slope_, self.intercept_, self.from_logits, *ends)


def warn_separable(name: str) -> None:
    warnings.warn(
        f"{name}: the scores separate the classes, so no finite slope is best. The map was fitted against Platt's "
        f"targets instead, which keeps it finite; more rows, or scores the model was not trained on, would settle it.",
        FitWarning,
        stacklevel=6,
    )
