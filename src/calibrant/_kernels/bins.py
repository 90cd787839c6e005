"""Sums over bins of probabilities: equal width and equal mass; and over runs of entries.

Probability p is in bin j of equal width when edges[j] < p <= edges[j + 1]; 0 is in the first bin.

May import: NumPy, and `_compiled` when there are many rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled, in_two

Floats = NDArray[np.float64]
BLOCK = 2**15


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
    columns = (p, positives, negatives, rows, squared_weights)
    block: Callable[..., Floats] = _few_counts if len(p) < MANY else _many_counts
    return _add_blocks(lambda begin, end: block(*(c[begin:end] for c in columns), edges), len(p), len(edges) - 1)


def _few_counts(
    p: Floats, positives: Floats, negatives: Floats, rows: Floats, squared_weights: Floats, edges: Floats
) -> Floats:
    weight = positives + negatives
    place = uniform_bin(p, edges)
    columns = (weight, positives, weight * p, rows, squared_weights)
    return np.stack([np.bincount(place, weights=column, minlength=len(edges) - 1) for column in columns])


def _many_counts(*columns_and_edges: Floats) -> Floats:
    *columns, edges = columns_and_edges
    sums = np.zeros(5 * (len(edges) - 1))
    _sum_counts(*(np.ascontiguousarray(column) for column in columns), edges, sums)
    return sums.reshape(-1, 5).T


def uniform_bin_sums_rows(p: Floats, labels: NDArray[np.uint8], weights: Floats | None, edges: Floats) -> BinSums:
    """Sums over bins of equal width, from rows."""
    if len(p) < MANY:
        w = np.ones(len(p)) if weights is None else weights
        hits = w * labels
        return uniform_bin_sums(p, hits, w - hits, np.where(w > 0, 1.0, 0.0), w * w, edges)
    if weights is not None:

        def weighted_block(begin: int, end: int) -> Floats:
            w = weights[begin:end]
            hits = w * labels[begin:end]
            return _many_counts(p[begin:end], hits, w - hits, np.sign(w), w * w, edges)

        return _add_blocks(weighted_block, len(p), len(edges) - 1)
    flat = np.ascontiguousarray(p)
    n_bins = len(edges) - 1

    def block(begin: int, end: int) -> Floats:
        counts, sums = np.zeros(4 * n_bins, dtype=np.int64), np.zeros(4 * n_bins)
        _sum_rows(flat[begin:end], labels[begin:end], edges, counts, sums)
        by_bin = counts.reshape(4, n_bins).sum(axis=0)
        weight, hits = (by_bin & 0xFFFFFFFF).astype(np.float64), (by_bin >> 32).astype(np.float64)
        return np.stack((weight, hits, sums.reshape(4, n_bins).sum(axis=0), weight, weight))

    return _add_blocks(block, len(p), n_bins)


def _add_blocks(block: Callable[[int, int], Floats], size: int, n_bins: int) -> BinSums:
    step = max(BLOCK, 4 * n_bins)

    def part(first: int, last: int) -> Floats:
        sums = np.zeros((5, n_bins))
        for begin in range(first, last, step):
            sums += block(begin, min(begin + step, last))
        return sums

    return BinSums(*np.sum(in_two(part, size), axis=0))


@compiled("FFFFFFF*")
def _sum_counts(
    p: Floats,
    positives: Floats,
    negatives: Floats,
    rows: Floats,
    squared_weights: Floats,
    edges: Floats,
    sums: Floats,
) -> None:
    """Add counts to the five sums of each bin, which lie side by side.

    The bin is taken from p times the number of bins, and near an edge set right, for it may be one off there.
    """
    n_bins = len(edges) - 1
    near = 1e-9 + 1e-15 * n_bins
    for i in range(len(p)):
        value = p[i]
        j = int(value * n_bins)
        if abs(value * n_bins - j - 0.5) > 0.5 - near:
            j = min(j, n_bins - 1)
            j = max(j + (1 if value > edges[j + 1] else 0) - (1 if value <= edges[j] else 0), 0)
        at = 5 * j
        weight = positives[i] + negatives[i]
        sums[at] += weight
        sums[at + 1] += positives[i]
        sums[at + 2] += weight * value
        sums[at + 3] += rows[i]
        sums[at + 4] += squared_weights[i]


@compiled("FBFI*F*")
def _sum_rows(p: Floats, labels: NDArray[np.uint8], edges: Floats, counts: NDArray[np.int64], sums: Floats) -> None:
    """Add rows to the bins: rows in the low half of `counts`, positives in its high half, p in `sums`.

    Four sets of bins take turns, so that a row need not wait for the one before to be stored; bins as above.
    """
    n_bins = len(edges) - 1
    near = 1e-9 + 1e-15 * n_bins
    for i in range(len(p)):
        value = p[i]
        j = int(value * n_bins)
        if abs(value * n_bins - j - 0.5) > 0.5 - near:
            j = min(j, n_bins - 1)
            j = max(j + (1 if value > edges[j + 1] else 0) - (1 if value <= edges[j] else 0), 0)
        j += (i & 3) * n_bins
        counts[j] += 1 + (np.int64(labels[i]) << 32)
        sums[j] += value


def quantile_bin_ends(weight: Floats, n_bins: int) -> NDArray[np.int64]:
    """Last index of each equal-mass bin: bin j of B ends where the cumulative weight first reaches j N / B."""
    reached = np.cumsum(weight)
    # Weights such as 0.1 do not add up exactly; a share of 1e-12 of the total is not a row.
    targets = np.arange(1, n_bins + 1) * (reached[-1] / n_bins) - 1e-12 * reached[-1]
    ends = np.searchsorted(reached, targets, side="left")
    ends[-1] = len(weight) - 1
    return np.unique(ends).astype(np.int64)


def quantile_row_ends(size: int, n_bins: int) -> NDArray[np.int64]:
    """The same for rows that count once each."""
    targets = np.arange(1, n_bins + 1) * (size / n_bins) - 1e-12 * size
    ends = np.maximum(np.ceil(targets) - 1, 0).astype(np.int64)
    ends[-1] = size - 1
    return np.unique(ends)


def run_sums(part: Callable[[slice], Floats], starts: NDArray[np.int64], size: int) -> Floats:
    """Sums of runs of entries that begin at `starts`, given their values slice by slice: no long column is made."""
    sums = np.zeros(len(starts))
    for begin in range(0, size, BLOCK):
        end = min(begin + BLOCK, size)
        first, last = np.searchsorted(starts, (begin, end - 1), side="right") - 1
        inner = np.maximum(starts[first : last + 1] - begin, 0)
        sums[first : last + 1] += np.add.reduceat(part(slice(begin, end)), inner)
    return sums
