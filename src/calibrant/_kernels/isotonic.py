"""Least-squares non-decreasing fit by pooling adjacent violators, and the maps that come out of it.

Block k of the fit holds the mean of its rows; block means strictly increase. Means are compared as cross-products,
so that counts whose means are equal (1/3 and 2/6) always pool.

May import: NumPy, `_compiled`, `lookup`.
"""

from collections.abc import Callable, MutableSequence, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled, in_two
from calibrant._kernels.lookup import count_below, grid

Floats = NDArray[np.float64]
BLOCK = 2**13


Stack = tuple[NDArray[np.int64], Floats, Floats]


class Blocks(NamedTuple):
    """The blocks of a non-decreasing fit: index of the first and last score (int64) and mean of each."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    values: Floats


def pool_adjacent(positives: Floats, weights: Floats) -> Blocks:
    """Pool adjacent violators, given the sum of positives and the total weight at each ascending score."""
    size = len(weights)
    largest = float(weights.max(initial=0.0))
    if largest and not 1e-100 < largest < 1e100:  # products of sums must neither vanish nor overflow
        power = -int(np.frexp(largest)[1])
        positives, weights = np.ldexp(positives, power), np.ldexp(weights, power)
    starts, hits, totals = (_pool_many if size >= MANY else _pool_few)(positives, weights)
    values = hits / totals
    while len(values) > 1 and np.any(values[1:] <= values[:-1]):  # means that differ by less than a float can say
        first = np.flatnonzero(np.concatenate(([True], values[1:] > values[:-1])))
        starts, hits, totals = starts[first], np.add.reduceat(hits, first), np.add.reduceat(totals, first)
        values = hits / totals
    return Blocks(starts, np.append(starts[1:], size)[: len(starts)] - 1, values)


class Pooled(NamedTuple):
    """The blocks of one range of scores: lowest and highest score, sum of positives and total weight of each."""

    lowest: Floats
    highest: Floats
    positives: Floats
    weights: Floats


def pool_part(scores: Floats, positives: Floats, weights: Floats) -> Pooled:
    """The blocks of a part of the rows: ascending distinct scores, as one engine or file of many has them."""
    starts, ends, _ = pool_adjacent(positives, weights)
    sums = (np.add.reduceat(column, starts) for column in (positives, weights))
    return Pooled(scores[starts], scores[ends], *sums)


def pool_parts(parts: Sequence[Pooled]) -> Pooled:
    """The blocks of all rows from those of parts whose ranges of scores follow one another and do not touch.

    Exact: a block of a part is a block, or a piece of one, of the whole fit, so only blocks are left to pool.
    Cost: time and memory in the number of blocks, about the cube root of the rows.
    """
    lowest, highest, positives, weights = (np.concatenate(columns) for columns in zip(*parts))
    starts, ends, _ = pool_adjacent(positives, weights)
    sums = (np.add.reduceat(column, starts) for column in (positives, weights))
    return Pooled(lowest[starts], highest[ends], *sums)


def _pool_few(positives: Floats, weights: Floats) -> Stack:
    size = len(weights)
    starts, hits, totals = [0] * size, [0.0] * size, [0.0] * size
    count = _pool.function(positives.tolist(), weights.tolist(), starts, hits, totals)
    return np.array(starts[:count], dtype=np.int64), np.array(hits[:count]), np.array(totals[:count])


def _pool_many(positives: Floats, weights: Floats) -> Stack:
    """Pool the halves side by side, then their blocks together."""

    def pool_part(hits_in: Floats, totals_in: Floats) -> Stack:
        size = len(hits_in)
        starts, hits, totals = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
        count = _pool(hits_in, totals_in, starts, hits, totals)
        return starts[:count], hits[:count], totals[:count]

    parts = in_two(lambda first, last: (first, pool_part(positives[first:last], weights[first:last])), len(weights))
    if len(parts) == 1:
        return parts[0][1]
    starts = np.concatenate([stack[0] + first for first, stack in parts])
    merged = pool_part(*(np.concatenate([stack[k] for _, stack in parts]) for k in (1, 2)))
    return starts[merged[0]], merged[1], merged[2]


@compiled("FFI*F*F*")
def _pool(
    positives: Sequence[float],
    weights: Sequence[float],
    starts: MutableSequence[int],
    hits: MutableSequence[float],
    totals: MutableSequence[float],
) -> int:
    """Write the blocks as a stack; return how many there are."""
    top = -1
    for i in range(len(weights)):
        start, hit, total = i, positives[i], weights[i]
        while top >= 0 and hits[top] * total >= hit * totals[top]:
            start = starts[top]
            hit += hits[top]
            total += totals[top]
            top -= 1
        top += 1
        starts[top] = start
        hits[top] = hit
        totals[top] = total
    return top + 1


def apply_steps(x: Floats, thresholds: Floats, values: Floats) -> Floats:
    """Step function: `values[k]`, k being the number of thresholds <= x."""
    return _apply(x, thresholds, lambda _, place: values.take(place))


def apply_lines(x: Floats, knots: Floats, values: Floats) -> Floats:
    """Straight lines between knots, constant outside them; exact at the knots, monotone where the values are."""
    if len(knots) == 1:
        return np.full(x.shape, values[0])
    with np.errstate(over="ignore"):
        # Halves where the distance of two knots would overflow; elsewhere the knots as they are.
        unit = np.where(np.isinf(np.diff(knots)), 0.5, 1.0)
    width = knots[1:] * unit - knots[:-1] * unit
    rise = np.diff(values)
    low, high = np.minimum(values[1:], values[:-1]), np.maximum(values[1:], values[:-1])

    def between(part: Floats, place: NDArray[np.int64]) -> Floats:
        k = np.clip(place - 1, 0, len(width) - 1)
        inside = np.clip(part, knots[k], knots[k + 1])
        share = (inside * unit[k] - knots[k] * unit[k]) / width[k]
        line = np.clip(values[k] + share * rise[k], low[k], high[k])
        return np.where(inside >= knots[k + 1], values[k + 1], line)

    return _apply(x, knots, between)


def _apply(x: Floats, thresholds: Floats, read: Callable[[Floats, NDArray[np.int64]], Floats]) -> Floats:
    """`read(x, k)` with k the number of thresholds <= x, in blocks that stay in the cache."""
    size = len(x)
    if size < MANY or len(thresholds) == 0:
        return read(x, np.searchsorted(thresholds, x, side="right"))
    flat = np.ascontiguousarray(x)
    table = grid(thresholds, size)
    result = np.empty(size)

    def part(first: int, last: int) -> None:
        place = np.empty(BLOCK, dtype=np.int64)
        for begin in range(first, last, BLOCK):
            end = min(begin + BLOCK, last)
            count_below(flat[begin:end], *table, place)
            result[begin:end] = read(flat[begin:end], place[: end - begin])

    in_two(part, size)
    return result


def switch_points(upper_of_lower: Floats, lower_of_upper: Floats) -> Floats:
    """Half-way point t between neighbouring scores a < b, with a < t <= b whatever their distance."""
    a, b = upper_of_lower, lower_of_upper
    with np.errstate(over="ignore"):
        middle = a + (b - a) / 2
    middle = np.where(np.isinf(middle), a / 2 + b / 2, middle)
    return np.where(middle <= a, b, middle)
