"""Spline calibration: a smooth curve on the log-odds, as bent as cross-validation finds worth it.

`p -> expit(s(z))`, s a natural cubic spline. The rows are gathered into at most 4,096 cells of nearby log-odds (their
exact mean each), so that after one sort nothing depends on the number of rows.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder's `_base` and `_cross_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import likelihood, smooth, spline
from calibrant._kernels._dot import dot
from calibrant._kernels._one_thread import one_blas_thread
from calibrant._kernels.blocks import slices
from calibrant._parameters import Flag, Number, Rule, Seed, generator
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._cross_fit import Dealt, columns_of, deal, most_folds
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds, log_odds_ends
from calibrant.errors import InputError
from calibrant.maps import SplineMap

MOST_CELLS = 4096
FARTHEST_UNIT = 1e100
CLOSEST_KNOTS = 1e-30
"""Of knots as close as this, in standard units, one stands for all: the roughness between them has no float."""
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
        z = distinct.scores.copy() if self.from_logits else fit_log_odds(distinct)
        unit = _unit(z, distinct)
        if not 1 / FARTHEST_UNIT < unit < FARTHEST_UNIT:
            raise InputError(
                f"The log-odds spread over {unit:.3g}, whose curvature a float cannot hold: divide all scores by a "
                f"constant first."
            )
        folds = min(self.cv, most_folds(distinct))
        z /= unit
        cells = _gather(z, distinct, folds, generator(self.random_state))
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


def _unit(z: Floats, distinct: ScoreTable) -> float:
    """The standard deviation of the log-odds; 1 when they are constant."""
    largest = max(float(z.max()), -float(z.min())) or 1.0
    total = distinct.total_weight

    def mean(power: int, centre: float) -> float:
        parts = (dot(distinct._at(at).weight, (z[at] / largest - centre) ** power) for at in slices(len(z)))
        return sum(parts) / total

    return largest * float(np.sqrt(mean(2, mean(1, 0.0)))) or 1.0


def _gather(z: Floats, distinct: ScoreTable, folds: int, rng: np.random.Generator) -> Cells:
    """Cells of a distinct table, with the part of each that falls into each fold."""
    found = smooth.gather(z, columns_of(distinct), distinct.total_weight, 1.0, MOST_CELLS)
    weight = found.positives + found.negatives
    mean = np.clip(found.moment / weight, found.least, found.greatest)
    if _whole(distinct):  # all rows of a cell weigh the same, so the cell can be dealt instead of them
        starts, columns = np.arange(len(mean)), (found.positives, found.negatives)
    else:
        starts, columns = found.starts, (distinct.positives, distinct.negatives)
    positives, negatives = (_by_fold(deal(column, folds, rng), starts) for column in columns)
    return Cells(mean, found.positives, weight, positives, positives + negatives)


def _whole(distinct: ScoreTable) -> bool:
    """Whether every weight is a whole number, so that every piece of it is dealt as one row."""
    if distinct._labels is not None:
        return True
    return all(
        np.array_equal(part, np.rint(part))
        for column in (distinct.positives, distinct.negatives)
        for part in (column[at] for at in slices(len(column)))
    )


def _by_fold(dealt: Dealt, starts: NDArray[np.int64]) -> Floats:
    return np.array([np.add.reduceat(dealt.inside(fold), starts) for fold in range(len(dealt.pieces))])


def _knots(cells: Cells, most: int) -> Floats:
    """Quantiles of z at equal shares of the weight, the outer ones a few rows inside; fewer where rows are few."""
    total = cells.weight.sum()
    number = int(np.clip(total / 20, 3, most))
    edge = min(0.5 / number, max(5 / total, 0.002))
    levels = np.linspace(edge, 1 - edge, number) * total
    place = np.searchsorted(np.cumsum(cells.weight), levels)
    knots = np.unique(cells.z[np.minimum(place, len(cells.z) - 1)])
    return knots[np.diff(knots, prepend=-np.inf) > CLOSEST_KNOTS]


def _pull(cells: Cells, unit: float) -> Cells:
    """Pseudo-observations of the identity map at equal shares of the weight."""
    levels = (np.arange(PULL_POINTS) + 0.5) / PULL_POINTS * cells.weight.sum()
    place = np.searchsorted(np.cumsum(cells.weight), levels)
    z = cells.z[np.minimum(place, len(cells.z) - 1)]
    weight = np.full(PULL_POINTS, PULL / PULL_POINTS)
    positives = weight * likelihood.expit(z * unit)
    return Cells(z, positives, weight, positives[None], weight[None])
