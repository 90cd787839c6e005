"""Sums over bins of probabilities: equal width and equal mass.

Probability p is in bin j of equal width when edges[j] < p <= edges[j + 1]; 0 is in the first bin.

May import: NumPy, and `_compiled` when there are many rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class BinSums(NamedTuple):
    """Sums over each bin, float64: weight, weight of positives, weighted p, number of rows, squared weights."""

    weight: Floats
    positives: Floats
    sum_p: Floats
    rows: Floats
    squared_weights: Floats


def uniform_bin(p: Floats, edges: Floats) -> NDArray[np.int64]:
    """Index of the bin of each probability."""
    return np.maximum(np.searchsorted(edges, p, side="left") - 1, 0)


def uniform_bin_sums(
    p: Floats, positives: Floats, negatives: Floats, rows: Floats, squared_weights: Floats, edges: Floats
) -> BinSums:
    """Sums over bins of equal width, from counted probabilities."""
    place = uniform_bin(p, edges)
    weight = positives + negatives
    columns = (weight, positives, weight * p, rows, squared_weights)
    sums = (np.bincount(place, weights=column, minlength=len(edges) - 1).astype(np.float64) for column in columns)
    return BinSums(*sums)


def uniform_bin_sums_rows(p: Floats, labels: NDArray[np.uint8], weights: Floats | None, edges: Floats) -> BinSums:
    """Sums over bins of equal width, from rows."""
    w = np.ones(len(p)) if weights is None else weights
    hits = w * labels
    return uniform_bin_sums(p, hits, w - hits, np.where(w > 0, 1.0, 0.0), w * w, edges)


def quantile_bin_ends(weight: Floats, n_bins: int) -> NDArray[np.int64]:
    """Last index of each equal-mass bin: bin j of B ends where the cumulative weight first reaches j N / B."""
    reached = np.cumsum(weight)
    # Weights such as 0.1 do not add up exactly; a share of 1e-12 of the total is not a row.
    targets = np.arange(1, n_bins + 1) * (reached[-1] / n_bins) - 1e-12 * reached[-1]
    ends = np.searchsorted(reached, targets, side="left")
    ends[-1] = len(weight) - 1
    return np.unique(ends).astype(np.int64)
