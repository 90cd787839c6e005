"""Spline calibration: a smooth curve on the log-odds, as bent as cross-validation finds worth it.

`p -> expit(s(z))`, s a natural cubic spline. The rows are gathered into at most 4,096 cells of nearby log-odds (their
exact mean each), so that after one sort nothing depends on the number of rows.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder's `_base` and `_cross_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import likelihood, smooth, spline
from calibrant._kernels._one_thread import one_blas_thread
from calibrant._parameters import Flag, Number, Rule, Seed, generator
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._cross_fit import deal, most_folds
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds, log_odds_ends
from calibrant.errors import InputError
from calibrant.maps import SplineMap

MOST_CELLS = 4096
FARTHEST_UNIT = 1e100
PULL = 20.0
PULL_POINTS = 20
PENALTIES = 10.0 ** np.arange(-1.0, 7.0)


class Cells(NamedTuple):
    """Cells of nearby log-odds in units of their spread: mean, positive weight, weight, by fold for validation."""

    z: Floats
    positives: Floats
    weight: Floats
    fold_positives: Floats
    fold_weight: Floats


class SplineCalibration(BinaryCalibrator):
    """Natural cubic spline on the log-odds, `p -> expit(s(z))`, with its roughness chosen by cross-validation.

    Follows any smooth distortion, and becomes the straight line of `AffineLogit` when the rows do not support a bend.
    Best with some thousands of rows and more.

    Parameters
    ----------
    n_knots : int, default=12
        Knots at quantiles of the log-odds.
    monotone : bool, default=False
        Raise the penalty until the curve does not fall anywhere.
    cv : int, default=5
        Folds of the cross-validation.
    from_logits : bool, default=False
        Whether the scores are log-odds already (any real number) instead of probabilities.
    random_state : int, generator or None, default=0
        Draws the folds.

    Attributes
    ----------
    penalty_ : float
        The chosen weight of the roughness, `penalty * integral of s''^2` with z in units of its standard deviation.
    map_ : SplineMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    The penalty is chosen by the log loss of `cv` folds among eight powers of ten, then the curve is fitted to all rows.
    Pseudo-observations of the identity map (p observed at p) of total weight 20 keep every fit finite. Cost: one sort,
    then fits to at most 4,096 cells whatever n. Source: Lucena (2018), Spline-based probability calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import SplineCalibration
    >>> p = np.linspace(0.02, 0.98, 500)
    >>> y = (np.arange(500) * 7 % 10) / 10 < p**2
    >>> fitted = SplineCalibration().fit(p, y)
    >>> bool(abs(fitted.map_(0.5) - 0.25) < 0.08)
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_knots": Number(3, 50, whole=True),
        "monotone": Flag(),
        "cv": Number(2, whole=True),
        "from_logits": Flag(),
        "random_state": Seed(),
    }

    penalty_: float

    def __init__(
        self,
        n_knots: int = 12,
        monotone: bool = False,
        cv: int = 5,
        from_logits: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_knots = n_knots
        self.monotone = monotone
        self.cv = cv
        self.from_logits = from_logits
        self.random_state = random_state

    @property
    def _reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _learn(self, table: ScoreTable) -> SplineMap:
        distinct = table.distinct
        warn_if_falling(distinct._auc < 0.5)
        z = distinct.scores if self.from_logits else fit_log_odds(distinct)
        unit = _unit(z, distinct.weight)
        if not 1 / FARTHEST_UNIT < unit < FARTHEST_UNIT:
            raise InputError(
                f"The log-odds spread over {unit:.3g}, whose curvature a float cannot hold: divide all scores by a "
                f"constant first."
            )
        folds = min(self.cv, most_folds(distinct))
        cells = _gather(z / unit, distinct, folds, generator(self.random_state))
        knots = _knots(cells, self.n_knots)
        if len(knots) < 2:
            return self._flat(distinct, unit * knots[0])
        with one_blas_thread():
            curve = _Curve(cells, knots, unit)
            chosen = curve.best_penalty() if folds >= 2 else len(PENALTIES) - 1
            values, self.penalty_ = curve.fit_at(chosen, self.monotone)
        curvatures = spline.second_derivatives(knots, values)
        ends = () if self.from_logits else log_odds_ends(distinct)
        return SplineMap(distinct.classes, unit * knots, values, curvatures / unit**2, self.from_logits, *ends)

    def _flat(self, table: ScoreTable, at: float) -> SplineMap:
        """The map of a constant score: the base rate."""
        level = float(np.log(table.total_positives) - np.log(table.total_negatives))
        self.penalty_ = float(PENALTIES[-1])
        ends = np.array([at, np.nextafter(at, np.inf) if at else 1.0])
        return SplineMap(table.classes, ends, np.array([level, level]), np.zeros(2), self.from_logits)


class _Curve:
    """The penalised fits of one set of cells."""

    def __init__(self, cells: Cells, knots: Floats, unit: float) -> None:
        self.cells = cells
        self.knots = knots
        self.roughness = spline.roughness(knots)
        self.design = spline.basis(cells.z, knots)
        pull = _pull(cells, unit)
        self.pull_design = spline.basis(pull.z, knots)
        self.pull = pull
        self.identity = knots * unit

    def _fit(self, positives: Floats, weight: Floats, penalty: float, start: Floats) -> Floats:
        design = np.concatenate([self.design, self.pull_design])
        hits = np.concatenate([positives, self.pull.positives])
        totals = np.concatenate([weight, self.pull.weight])
        return smooth.fit_penalised(design, hits, totals, penalty * self.roughness, start)

    def best_penalty(self) -> int:
        """Place in PENALTIES of the least cross-validated log loss; from smooth to rough, each started at the last."""
        losses = np.zeros(len(PENALTIES))
        for positives, weight in zip(self.cells.fold_positives, self.cells.fold_weight):
            at = self.identity
            for k in range(len(PENALTIES))[::-1]:
                rest = self.cells.positives - positives, self.cells.weight - weight
                at = self._fit(np.maximum(rest[0], 0), np.maximum(rest[1], 0), PENALTIES[k], at)
                eta = self.design @ at
                losses[k] += float(weight @ np.logaddexp(0, eta) - positives @ eta)
        return int(np.argmin(losses))

    def fit_at(self, chosen: int, monotone: bool) -> tuple[Floats, float]:
        """Values at the knots and the penalty used: the chosen one, or the next that gives a rising curve."""
        penalties = (
            [*PENALTIES[chosen:], *(PENALTIES[-1] * 10.0 ** np.arange(1, 6))] if monotone else [PENALTIES[chosen]]
        )
        values = self.identity
        for penalty in penalties:
            values = self._fit(self.cells.positives, self.cells.weight, float(penalty), values)
            if not monotone or self._rises(values):
                return values, float(penalty)
        level = np.log(self.cells.positives.sum()) - np.log((self.cells.weight - self.cells.positives).sum())
        return np.full(len(self.knots), level), float("inf")

    def _rises(self, values: Floats) -> bool:
        curvatures = spline.second_derivatives(self.knots, values)
        return spline.least_slope(self.knots, values, curvatures) >= 0


def _unit(z: Floats, weight: Floats) -> float:
    """The standard deviation of the log-odds; 1 when they are constant."""
    largest = float(np.abs(z).max()) or 1.0
    scaled = z / largest
    mean = float(weight @ scaled / weight.sum())
    return largest * float(np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())) or 1.0


def _gather(z: Floats, distinct: ScoreTable, folds: int, rng: np.random.Generator) -> Cells:
    """Cells of a distinct table, with the part of each that falls into each fold."""
    weight = distinct.weight
    cell = smooth.cells(z, weight, MOST_CELLS)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cell) > 0]))

    def gathered(values: Floats) -> Floats:
        return np.add.reduceat(values, starts)

    total = gathered(weight)
    hits, misses = deal(distinct.positives, folds, rng), deal(distinct.negatives, folds, rng)
    positives = [gathered(hits.inside(fold)) for fold in range(folds)]
    negatives = [gathered(misses.inside(fold)) for fold in range(folds)]
    mean = np.clip(gathered(weight * z) / total, z[starts], z[np.append(starts[1:], len(z)) - 1])
    return Cells(
        mean, gathered(distinct.positives), total, np.array(positives), np.array(positives) + np.array(negatives)
    )


def _knots(cells: Cells, most: int) -> Floats:
    """Quantiles of z at equal shares of the weight, the outer ones a few rows inside; fewer where rows are few."""
    total = cells.weight.sum()
    number = int(np.clip(total / 20, 3, most))
    edge = min(0.5 / number, max(5 / total, 0.002))
    levels = np.linspace(edge, 1 - edge, number) * total
    place = np.searchsorted(np.cumsum(cells.weight), levels)
    return np.unique(cells.z[np.minimum(place, len(cells.z) - 1)])


def _pull(cells: Cells, unit: float) -> Cells:
    """Pseudo-observations of the identity map at equal shares of the weight."""
    levels = (np.arange(PULL_POINTS) + 0.5) / PULL_POINTS * cells.weight.sum()
    place = np.searchsorted(np.cumsum(cells.weight), levels)
    z = cells.z[np.minimum(place, len(cells.z) - 1)]
    weight = np.full(PULL_POINTS, PULL / PULL_POINTS)
    positives = weight * likelihood.expit(z * unit)
    return Cells(z, positives, weight, positives[None], weight[None])
