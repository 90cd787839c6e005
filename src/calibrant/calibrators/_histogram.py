"""Histogram binning: the event rate of each bin.

May import NumPy, the kernels, `calibrant.maps`, `calibrant.data`, the bins of `calibrant.metrics` and this folder's
`_base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import bins, isotonic
from calibrant._parameters import Choice, Number, Rule
from calibrant.calibrators._base import BinaryCalibrator
from calibrant.data import ScoreTable
from calibrant.maps import StepMap
from calibrant.metrics._scores import bin_sums


class HistogramBinning(BinaryCalibrator):
    """The event rate of the bin that the score falls into.

    Simple, and honest on average in each bin, but neither rising nor fine: scores in one bin become equal.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins, at most 1,000,000; fewer when ties leave no more.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass of any score (switching half-way between neighbouring scores), or of equal width on [0, 1]
        for probabilities, `(lo, hi]`.

    Attributes
    ----------
    map_ : StepMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    An empty bin takes the value of the nearest bin that is not, the lower of two. Cost: one sort, O(n log n); one pass
    for bins of equal width. Source: Zadrozny and Elkan (2001), section 4.

    Examples
    --------
    >>> from calibrant import HistogramBinning
    >>> fitted = HistogramBinning(n_bins=2).fit([0.1, 0.2, 0.6, 0.7], [0, 1, 1, 1])
    >>> fitted.map_([0.15, 0.9])
    array([0.5, 1. ])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_bins": Number(1, 1_000_000, whole=True),
        "strategy": Choice(("quantile", "uniform")),
    }

    def __init__(self, n_bins: int = 15, strategy: Literal["quantile", "uniform"] = "quantile") -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    @property
    def _reads(self) -> str:
        return "probability" if self.strategy == "uniform" else "score"

    def _learn(self, table: ScoreTable) -> StepMap:
        if self.strategy == "quantile":
            return _equal_mass(table.distinct, self.n_bins)
        edges = np.linspace(0, 1, self.n_bins + 1)
        sums = bin_sums(table, edges)
        inner = np.nextafter(edges[1:-1], np.inf)  # a bin holds its upper edge
        return StepMap(table.classes, inner, _filled(sums.positives, sums.weight))


def _equal_mass(distinct: ScoreTable, n_bins: int) -> StepMap:
    by_row = distinct._labels is not None
    ends = bins.quantile_row_ends(len(distinct), n_bins) if by_row else bins.quantile_bin_ends(distinct.weight, n_bins)
    starts = np.concatenate([[0], ends[:-1] + 1])
    hits = bins.run_sums(lambda at: distinct._at(at).positives, starts, len(distinct))
    rate = hits / bins.run_sums(lambda at: distinct._at(at).weight, starts, len(distinct))
    thresholds = isotonic.switch_points(distinct.scores[ends[:-1]], distinct.scores[starts[1:]])
    return StepMap(distinct.classes, thresholds, np.minimum(rate, 1.0))


def _filled(positives: Floats, weight: Floats) -> Floats:
    """Event rates; an empty bin takes that of the nearest bin with rows, the lower of two."""
    full = np.flatnonzero(weight > 0)
    places = np.arange(len(weight))
    right = np.minimum(np.searchsorted(full, places), len(full) - 1)
    left = np.maximum(right - (full[right] > places), 0)
    nearest = np.where(np.abs(places - full[left]) <= np.abs(full[right] - places), full[left], full[right])
    return np.minimum(positives[nearest] / weight[nearest], 1.0)
