"""ROC geometry: the convex hull of a ROC curve, the ROC surface of K classes, the volume under it.

May import NumPy, SciPy's convex hull, the kernels and `calibrant.metrics`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import isotonic
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of
from calibrant.errors import DataWarning, InputError
from calibrant.metrics._inputs import binary_input, read_input, row_weights
from calibrant.metrics._ranking import RocCurve
from calibrant.metrics._roc_surface_points import Points, Rows, distinct_rows, points_at, surface_points

MOST_CLASSES = 4


def roc_convex_hull(
    y_true: Any, y_score: Any = None, *, sample_weight: Any = None, pos_label: Label | None = None
) -> RocCurve:
    """The corners of the least concave curve above the ROC curve: what thresholds, chosen at random, can reach.

    The ROC curve of the isotonic fit of the scores is this hull, one corner per step of the fit.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    y_score : array-like of shape (n,) or (n, 2)
        Any real scores.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    RocCurve
        `false_positive_rate` and `true_positive_rate` of the corners, from (0, 0) to (1, 1), and their `thresholds`: a
        row is positive when its score is at least this.

    Raises
    ------
    InputError
        Rows of one class only.

    Notes
    -----
    Its slopes are `p / (1 - p)` of the blocks of the isotonic fit, up to a constant; they fall strictly. Cost: one
    sort, O(n log n). Source: Fawcett and Niculescu-Mizil (2007), "PAV and the ROC convex hull".

    Examples
    --------
    >>> from calibrant import roc_convex_hull
    >>> hull = roc_convex_hull([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5])
    >>> hull.false_positive_rate
    array([0. , 0. , 0.5, 1. ])
    """
    table = binary_input(y_true, y_score, sample_weight, pos_label, reads="score", what="roc_convex_hull")
    _checks.both_classes(table.total_positives, table.total_negatives, "roc_convex_hull")
    distinct = table.distinct
    starts = isotonic.pool_adjacent(distinct.positives, distinct.weight).starts
    rates = []
    for values in (distinct.negatives, distinct.positives):
        blocks = np.add.reduceat(values, starts)[::-1]
        rate = np.concatenate([[0.0], np.cumsum(blocks) / blocks.sum()])
        rate[-1] = 1.0
        rates.append(rate)
    return RocCurve(rates[0], rates[1], np.concatenate([[np.inf], distinct.scores[starts][::-1]]))


@dataclass(frozen=True, eq=False)
class RocSurface:
    """Points of a ROC surface.

    Attributes
    ----------
    rates : ndarray of shape (m, K)
        The share of each class that is sent to itself, in [0, 1]; no point twice.
    gammas : ndarray of shape (m, K)
        Split points that reach them: a row goes to the class with the largest `p_k - gamma_k`.
    exact : bool
        Whether these are all points that any split point reaches, except where rows tie.
    classes : tuple
        The labels of the columns.
    """

    rates: Floats
    gammas: Floats
    exact: bool
    classes: tuple[Any, ...]

    @property
    def volume(self) -> float:
        """Volume of the convex hull of the points, the origin and the unit vectors; chance is 1 / K!."""
        return _hull_volume(self.rates)

    def upper_facets(self) -> Floats:
        """Simplices (m, K, K) of the hull that face away from the origin in every coordinate; corners by rows."""
        hull = _hull(self.rates)
        outward = hull.equations[:, :-1].min(axis=1) > 1e-9
        return np.asarray(hull.points[hull.simplices[outward]])


def roc_surface(
    y_true: Any,
    y_prob: Any = None,
    gammas: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
) -> RocSurface:
    """How much of each class threshold rules send to itself, for K = 2, 3 or 4; nearer to (1, ..., 1) is better.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of all classes; or a table of two classes alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities, or any scores whose differences mean something.
    gammas : array-like of shape (m, K), optional
        Split points to evaluate; then any K. By default all that differ, where they can be listed (K = 2; K = 3 up to
        about 1,100 distinct rows; K = 4 up to about 20), else about 20,000.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        Two classes: the positive one.
    labels : sequence, optional
        The classes of the columns.

    Returns
    -------
    RocSurface
        For two classes `rates` are (true negative rate, true positive rate).

    Raises
    ------
    InputError
        A class without rows, whose share is undefined; K >= 5 without `gammas`.

    Notes
    -----
    `rate_k(gamma) = weight of rows of class k in R_k(gamma) / weight of class k`, `R_k(gamma) = {p : p_k - gamma_k >=
    p_i - gamma_i for all i}`. Cost: O(n log n) for K = 2, O(n^2) time and memory for K = 3, O(m n K) at given split
    points. Source: Berta, Bach, Jordan (2024), section 3.

    Examples
    --------
    >>> from calibrant import roc_surface
    >>> surface = roc_surface([0, 1, 2], [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])
    >>> surface.rates.max(axis=0), surface.exact
    (array([1., 1., 1.]), True)
    """
    rows, classes = _read(y_true, y_prob, sample_weight, pos_label, labels, "roc_surface")
    k = len(classes)
    if gammas is None:
        return RocSurface(*_points(rows, "roc_surface"), classes)
    given = _checks.numbers(array_of(gammas, "gammas"), "gammas")
    if given.ndim != 2 or given.shape[1] != k or not np.isfinite(given).all():
        raise InputError(f"gammas must be finite and of shape (m, {k}), but its shape is {given.shape}.")
    return RocSurface(*points_at(rows, given), classes)


def volume_under_roc_surface(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
) -> float:
    """Volume of the convex hull of the ROC surface, for K = 2, 3 or 4; higher is better, chance is 1 / K!.

    Chance is 1/2, 1/6 or 1/24, perfect separation 1. For two classes it is the area under the convex hull of the ROC
    curve, which is at least the usual area.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of all classes; or a table of two classes alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities, or any scores whose differences mean something.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        Two classes: the positive one.
    labels : sequence, optional
        The classes of the columns.

    Returns
    -------
    float
        In [1 / K!, 1].

    Raises
    ------
    InputError
        A class without rows; more than four classes.

    Warns
    -----
    DataWarning
        Where the surface has too many points to list: the value is a lower bound.

    Notes
    -----
    The hull is that of the surface, the origin and the unit vectors. Rows that tie are taken on every side of the tie.
    Cost: that of `roc_surface`, and a convex hull. Source: Berta, Bach, Jordan (2024), section 3, there by random
    points; here exactly.

    Examples
    --------
    >>> from calibrant import volume_under_roc_surface
    >>> p = [[0.3, 0.2, 0.5], [0.05, 0.4, 0.55], [0.3, 0.5, 0.2], [0.45, 0.25, 0.3]]
    >>> round(volume_under_roc_surface([1, 1, 0, 2], p), 6)
    0.25
    """
    rows, classes = _read(y_true, y_prob, sample_weight, pos_label, labels, "volume_under_roc_surface")
    points = _points(rows, "volume_under_roc_surface")
    if not points.exact:
        warnings.warn(
            f"volume_under_roc_surface: {len(rows.scores):,} distinct rows of {len(classes)} classes have too many "
            f"threshold rules to list. The volume of {len(points.rates):,} of their points is given, a lower bound.",
            DataWarning,
            stacklevel=2,
        )
    return _hull_volume(points.rates)


def _hull_volume(rates: Floats) -> float:
    volume = float(_hull(rates).volume)
    return min(max(volume, 1 / math.factorial(rates.shape[1])), 1.0)


def _hull(rates: Floats) -> Any:
    """The hull of the points, the origin and the unit vectors."""
    from scipy.spatial import ConvexHull

    k = rates.shape[1]
    return ConvexHull(np.vstack([rates, np.zeros((1, k)), np.eye(k)]))


def _points(rows: Rows, what: str) -> Points:
    k = rows.scores.shape[1]
    if k > MOST_CLASSES:
        raise InputError(
            f"{what} is for at most {MOST_CLASSES} classes, but there are {k}: the volume at chance, 1 / {k}!, is next "
            f"to nothing, and its surface cannot be listed. "
            + ("Give the split points with gammas." if what == "roc_surface" else "Use roc_auc.")
        )
    return surface_points(rows)


def _read(
    y_true: Any, y_prob: Any, weight: Any, pos_label: Any, labels: Any, what: str
) -> tuple[Rows, tuple[Any, ...]]:
    """Distinct rows and the labels of the columns; every class has rows."""
    read = read_input(y_true, y_prob, weight, pos_label, labels, reads="score")
    if isinstance(read, ScoreTable):
        _checks.both_classes(read.total_positives, read.total_negatives, what)
        distinct = read.distinct
        scores = np.column_stack([np.zeros(len(distinct.scores)), distinct.scores])
        return Rows(scores, np.column_stack([distinct.negatives, distinct.positives])), read.classes
    rows = distinct_rows(_checks.modest(read.scores, "y_prob"), read.labels, row_weights(read))
    absent = [label for label, total in zip(read.classes, rows.counts.sum(axis=0)) if total == 0]
    if absent:
        raise InputError(
            f"y_true has no row of class {_checks.shown(absent)}: its share that is sent to itself is undefined. Leave "
            f"its column out, or add rows."
        )
    return rows, read.classes
