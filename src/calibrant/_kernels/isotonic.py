"""Least-squares non-decreasing fit by pooling adjacent violators, and the maps that come out of it.

Block k of the fit holds the mean of its rows; block means strictly increase. Means are compared as cross-products,
so that counts whose means are equal (1/3 and 2/6) always pool.

May import: NumPy, and `_compiled` when there are many rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Blocks(NamedTuple):
    """The blocks of a non-decreasing fit: index of the first and last score (int64) and mean of each."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    values: Floats


def pool_adjacent(positives: Floats, weights: Floats) -> Blocks:
    """Pool adjacent violators, given the sum of positives and the total weight at each ascending score."""
    starts, hits, totals = _pool(positives.tolist(), weights.tolist())
    first = np.array(starts, dtype=np.int64)
    last = np.concatenate((first[1:] - 1, np.array([len(weights) - 1], dtype=np.int64)))[: len(first)]
    return Blocks(first, last, np.array(hits) / np.array(totals))


def _pool(positives: Sequence[float], weights: Sequence[float]) -> tuple[list[int], list[float], list[float]]:
    starts: list[int] = []
    hits: list[float] = []
    totals: list[float] = []
    for i in range(len(weights)):
        start, hit, total = i, positives[i], weights[i]
        while totals and hits[-1] * total >= hit * totals[-1]:
            start = starts.pop()
            hit += hits.pop()
            total += totals.pop()
        starts.append(start)
        hits.append(hit)
        totals.append(total)
    return starts, hits, totals


def apply_steps(x: Floats, thresholds: Floats, values: Floats) -> Floats:
    """Step function: `values[k]`, k being the number of thresholds <= x."""
    return values[np.searchsorted(thresholds, x, side="right")]


def apply_lines(x: Floats, knots: Floats, values: Floats) -> Floats:
    """Straight lines between knots, constant outside them; exact at the knots, monotone where the values are."""
    if len(knots) == 1:
        return np.full(x.shape, values[0])
    place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    left, right, low, high = knots[place], knots[place + 1], values[place], values[place + 1]
    inside = np.clip(x, left, right)
    with np.errstate(over="ignore", invalid="ignore"):
        share = (inside - left) / (right - left)
        wide = np.isinf(right - left)
        share = np.where(wide, (inside / 2 - left / 2) / (right / 2 - left / 2), share)
    between = np.clip(low + share * (high - low), np.minimum(low, high), np.maximum(low, high))
    return np.where(share >= 1.0, np.where(inside >= right, high, between), between)


def switch_points(upper_of_lower: Floats, lower_of_upper: Floats) -> Floats:
    """Half-way point t between neighbouring scores a < b, with a < t <= b whatever their distance."""
    a, b = upper_of_lower, lower_of_upper
    with np.errstate(over="ignore"):
        middle = a + (b - a) / 2
    middle = np.where(np.isinf(middle), a / 2 + b / 2, middle)
    return np.where(middle <= a, b, middle)
