"""Venn-Abers: an interval of probabilities from two isotonic fits, one for each label a new row could have.

May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder's `_base` and `_cross_fit`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import venn_abers
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._cross_fit import columns_of
from calibrant.data import ScoreTable
from calibrant.maps import VennAbersMap


class VennAbers(BinaryCalibrator):
    """Isotonic regression with the new row in it, once as a negative (p0) and once as a positive (p1).

    The true probability of a new row lies in [p0, p1] in the sense of Venn prediction; the width says how much the rows
    at hand leave open. `predict_proba` merges them to `p1 / (1 - p0 + p1)`, which never is 0 or 1, so its log loss is
    always finite.

    Attributes
    ----------
    map_ : VennAbersMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Inductive Venn-Abers with all intervals computed beforehand: one sort and one walk, O(n log n) in all; a new score
    costs a look-up. A new score equal to a calibration score joins its ties. Source: Vovk, Petej, Fedorova (2015),
    section 5; merging: Vovk and Petej (2014), eq. 6.

    Examples
    --------
    >>> from calibrant import VennAbers
    >>> fitted = VennAbers().fit([1, 2, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 0, 1])
    >>> fitted.predict_interval([2.5])
    array([[0.25, 0.5 ]])
    >>> fitted.map_(2.5)
    0.4
    """

    map_: VennAbersMap

    def __init__(self) -> None:
        pass

    def _learn(self, table: ScoreTable) -> VennAbersMap:
        distinct = table.distinct
        warn_if_falling(distinct._auc < 0.5)
        return _steps(distinct, venn_abers.intervals(columns_of(distinct), len(distinct)))

    def predict_interval(self, scores: Any) -> Floats:
        """The pair (p0, p1) of each score.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, 2)
            p0 <= p1, both in [0, 1].
        """
        self._fitted_map()
        return self.map_.interval(scores)


def _steps(distinct: ScoreTable, found: venn_abers.Intervals) -> VennAbersMap:
    """The intervals as steps, without thresholds at which nothing changes."""
    places = found.places[1:]
    scores = distinct.scores[(places - 1) // 2]
    with np.errstate(over="ignore"):  # above the greatest float there is nothing
        thresholds = np.where(places % 2 == 1, scores, np.nextafter(scores, np.inf))
    # Where two scores are neighbouring floats, the gap between them is empty: only the later step is real.
    real = np.append(thresholds[:-1] < thresholds[1:], np.isfinite(thresholds[-1:]))
    keep = np.concatenate([[True], real])
    thresholds, lower, upper = thresholds[real], found.lower[keep], found.upper[keep]
    changes = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    first = np.concatenate([[True], changes])
    return VennAbersMap(distinct.classes, thresholds[changes], lower[first], upper[first])
