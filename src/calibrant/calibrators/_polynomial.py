"""Maps with two slopes: quadratic in the log-odds, and beta calibration.

Both are weighted maximum likelihood under constraints that keep the map rising; where a constraint binds, the optimum
lies on one of a few edges, each a fit with one slope, and the likeliest is taken.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder's `_base` and `_logistic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import newton, softmax
from calibrant._parameters import Flag, Rule
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._logistic import Likelihood, likelihood_of, platt_targets, warn_separable
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds, fit_probabilities, inner_ends, log_odds_ends
from calibrant.maps import BetaMap, QuadraticLogitMap

TIE = 1e-12
"""Losses that differ by less, as a share, differ by rounding: two scores are fitted alike by either slope."""


def best_rising(fits: list[tuple[newton.LogisticFit, Floats]]) -> Floats:
    """Of fits with one slope, and the coefficients each stands for, the first of the likeliest with a slope >= 0."""
    allowed = [(fit.loss, k) for k, (fit, _) in enumerate(fits) if fit.outcome == newton.OK]
    rising = [(loss, k) for loss, k in allowed if len(fits[k][0].coefficients) == 1 or fits[k][0].coefficients[1] >= 0]
    most = min(loss for loss, _ in rising) * (1 + TIE)
    return fits[next(k for loss, k in rising if loss <= most)][1]


class QuadraticLogit(BinaryCalibrator):
    """Parabola on the log-odds, `p -> expit(b + w1 z + w2 z^2)`, rising on the range of the calibration scores.

    One more coefficient than `AffineLogit` lets the two tails be over- or under-confident differently. Outside the
    range of the calibration scores the map goes on as a line with the slope at the end, down to where exact 0 was moved
    in the fit and up to where exact 1 was.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are log-odds already (any real number) instead of probabilities.

    Attributes
    ----------
    intercept_, linear_, square_ : float
        The coefficients b, w1, w2.
    map_ : QuadraticLogitMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Maximum likelihood under two linear constraints, slope >= 0 at both ends of the range. Cost: about ten passes,
    O(n). Source: CalArena (2026), quadratic scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import QuadraticLogit
    >>> p = np.linspace(0.02, 0.98, 200)
    >>> y = (np.arange(200) % 10) / 10 < p**2
    >>> fitted = QuadraticLogit().fit(p, y)
    >>> bool(np.all(np.diff(fitted.map_(p)) >= 0))
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {"from_logits": Flag()}

    intercept_: float
    linear_: float
    square_: float

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    @property
    def _reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _learn(self, table: ScoreTable) -> QuadraticLogitMap:
        z = table.scores if self.from_logits else fit_log_odds(table)
        low, high = float(z.min()), float(z.max())
        coefficients = self._fit_scaled(z / _scale(low, high), low / _scale(low, high), high / _scale(low, high), table)
        unit = _scale(low, high) ** -np.arange(3.0)
        self.intercept_, self.linear_, self.square_ = map(float, coefficients * unit)
        return QuadraticLogitMap(
            table.classes,
            self.intercept_,
            self.linear_,
            self.square_,
            low,
            high,
            self.from_logits,
            *(() if self.from_logits else log_odds_ends(table)),
        )

    def _fit_scaled(self, z: Floats, low: float, high: float, table: ScoreTable) -> Floats:
        target = likelihood_of(table)
        fit = target.fit(z, z * z)
        if fit.outcome == newton.SEPARABLE:
            warn_separable("QuadraticLogit")
            target = likelihood_of(table, platt_targets(table))
            fit = target.fit(z, z * z)
        if fit.outcome == newton.SINGULAR:
            return self._without_bend(z, target)
        _, w1, w2 = fit.coefficients
        if w1 + 2 * w2 * low >= 0 and w1 + 2 * w2 * high >= 0:
            return fit.coefficients
        return _on_an_edge(z, low, high, target)

    @staticmethod
    def _without_bend(z: Floats, target: Likelihood) -> Floats:
        line, flat = target.fit(z), target.constant
        warn_if_falling(line.outcome == newton.OK and line.coefficients[1] < 0)
        return best_rising(
            [(line, np.append(line.coefficients, 0.0)), (flat, np.append(flat.coefficients, [0.0, 0.0]))]
        )


def _scale(low: float, high: float) -> float:
    """A power of two near the largest log-odds, so that squares stay in range."""
    largest = max(abs(low), abs(high))
    return float(2.0 ** np.ceil(np.log2(largest))) if largest > 0 else 1.0


def _on_an_edge(z: Floats, low: float, high: float, target: Likelihood) -> Floats:
    """The optimum with slope 0 at the low end, at the high end, or everywhere."""
    choices: list[tuple[newton.LogisticFit, Floats]] = []
    for end, sign in ((low, 1.0), (high, -1.0)):
        fit = target.fit(sign * (z - end) ** 2)
        slope = sign * fit.coefficients[1]
        choices.append((fit, np.array([fit.coefficients[0] + slope * end**2, -2 * slope * end, slope])))
    flat = target.constant
    choices.append((flat, np.append(flat.coefficients, [0.0, 0.0])))
    warn_if_falling(all(fit.coefficients[1] < 0 for fit, _ in choices[:2]))
    return best_rising(choices)


class BetaCalibration(BinaryCalibrator):
    """Beta calibration, `p -> expit(c + a log p - b log(1 - p))` with a, b >= 0.

    The family of maps between beta-distributed scores; it holds the identity (a = b = 1, c = 0), and unlike a sigmoid
    of the probability it can undo an S-shaped distortion as well as an inverse one.

    Attributes
    ----------
    a_, b_, c_ : float
        The coefficients.
    map_ : BetaMap
        The frozen map; it accepts any p in [0, 1].
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Constrained maximum likelihood: when an unconstrained coefficient is negative, the likeliest of the two fits with
    one coefficient (not negative) and the constant. In the fit exact 0 is moved to
    `min(1 / (2N + 2), half the smallest positive p)`, exact 1 likewise; the map reads any p beyond these ends as the
    end. Cost: about ten passes, O(n). Source: Kull,
    Silva Filho, Flach (2017), eq. 5.

    Examples
    --------
    >>> from calibrant import BetaCalibration
    >>> fitted = BetaCalibration().fit([0.1, 0.3, 0.6, 0.8, 0.9, 0.2], [0, 1, 0, 1, 1, 0])
    >>> fitted.a_ >= 0 and fitted.b_ >= 0
    True
    """

    a_: float
    b_: float
    c_: float

    def __init__(self) -> None:
        pass

    @property
    def _reads(self) -> str:
        return "probability"

    def _learn(self, table: ScoreTable) -> BetaMap:
        p, complement = fit_probabilities(table)
        x1, x2 = np.log(p), -np.log(complement)
        target = likelihood_of(table)
        fit = target.fit(x1, x2)
        if fit.outcome == newton.SEPARABLE:
            warn_separable("BetaCalibration")
            target = likelihood_of(table, platt_targets(table))
            fit = target.fit(x1, x2)
        inside = fit.outcome == newton.OK and fit.coefficients[1] >= 0 and fit.coefficients[2] >= 0
        self.c_, self.a_, self.b_ = map(float, fit.coefficients if inside else _one_logarithm(x1, x2, target))
        ends = softmax.log_floored(np.array(inner_ends(table)))
        return BetaMap(table.classes, self.a_, self.b_, self.c_, *ends.tolist())


def _one_logarithm(x1: Floats, x2: Floats, target: Likelihood) -> Floats:
    """The likeliest of: a alone, b alone, neither."""
    one, two, flat = target.fit(x1), target.fit(x2), target.constant
    falling = [fit.outcome == newton.OK and fit.coefficients[1] < 0 for fit in (one, two)]
    warn_if_falling(all(falling))
    return best_rising(
        [
            (one, np.array([one.coefficients[0], one.coefficients[1], 0.0])),
            (two, np.array([two.coefficients[0], 0.0, two.coefficients[1]])),
            (flat, np.array([flat.coefficients[0], 0.0, 0.0])),
        ]
    )
