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
Bytes = NDArray[np.uint8]
BLOCK = 2**13
PIECE = 2**15
Stack = tuple[NDArray[np.int64], Floats, Floats]
"""Last index, sum of positives and total weight of each block."""


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
    if size < MANY:
        return _blocks(*_pool_few(positives, weights))
    return _blocks(*_pool_many(size, _join_weights(positives, weights)))


def pool_counts(positives: Floats, negatives: Floats) -> Blocks:
    """The same, given positives and negatives, whose sum is never held for all scores at once."""
    size = len(negatives)
    most = float(positives.max(initial=0.0)) + float(negatives.max(initial=0.0))
    if size < MANY or not 1e-100 < most < 1e100:
        return pool_adjacent(positives, positives + negatives)
    return _blocks(*_pool_many(size, _join_counts(positives, negatives)))


def pool_rows(labels: Bytes) -> Blocks:
    """The same, given the labels of rows whose scores strictly ascend."""
    size = len(labels)
    if size < MANY:
        return pool_adjacent(labels.astype(np.float64), np.ones(size))
    return _blocks(*_pool_many(size, _join_rows(labels)))


def _blocks(ends: NDArray[np.int64], hits: Floats, totals: Floats) -> Blocks:
    values = hits / totals
    while len(values) > 1 and np.any(values[1:] <= values[:-1]):  # means that differ by less than a float can say
        first = np.flatnonzero(np.concatenate(([True], values[1:] > values[:-1])))
        ends = ends[np.append(first[1:], len(ends)) - 1]
        hits, totals = np.add.reduceat(hits, first), np.add.reduceat(totals, first)
        values = hits / totals
    return Blocks(np.concatenate(([0], ends[:-1] + 1))[: len(ends)], ends, values)


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
    """Join falling neighbours three times over, then pool the twentieth that is left one by one."""
    ends = np.arange(len(weights))
    for _ in range(3 if len(weights) else 0):
        rises = positives[1:] * weights[:-1] > positives[:-1] * weights[1:]
        starts = np.flatnonzero(np.concatenate(([True], rises)))
        ends = np.append(ends[starts[1:] - 1], ends[-1])
        positives, weights = np.add.reduceat(positives, starts), np.add.reduceat(weights, starts)
    size = len(weights)
    places, hits, totals = [0] * size, [0.0] * size, [0.0] * size
    count = _pool.function(positives.tolist(), weights.tolist(), places, hits, totals)
    return ends[places[:count]], np.array(hits[:count]), np.array(totals[:count])


def _pool_many(size: int, join: Callable[[slice, Stack], int]) -> Stack:
    """Pool pieces, whose room stays in the cache, then the blocks of all pieces together.

    `join` joins falling neighbours of a piece of the rows for the first time, and says how many are left.
    """

    def half(first: int, last: int) -> list[Stack]:
        room = np.empty(PIECE, dtype=np.int64), np.empty(PIECE), np.empty(PIECE)
        return [_pool_piece(slice(begin, min(begin + PIECE, last)), join, room) for begin in range(first, last, PIECE)]

    pieces = [piece for some in in_two(half, size) for piece in some]
    ends, hits, totals = (np.concatenate(columns) for columns in zip(*pieces))
    places = np.empty(len(ends), dtype=np.int64)
    count = int(_pool(hits, totals, places, hits, totals))
    return ends[places[:count]], hits[:count], totals[:count]


def _pool_piece(at: slice, join: Callable[[slice, Stack], int], room: Stack) -> Stack:
    """Join falling neighbours three times over, which leaves a twentieth of them, then pool the rest in place."""
    places, hits, totals = room
    count = join(at, room)
    ends = places[:count] + at.start
    for step in (_join, _join, _pool):
        count = int(step(hits[:count], totals[:count], *room))
        ends = ends[places[:count]]
    return ends, hits[:count].copy(), totals[:count].copy()


def _join_weights(positives: Floats, weights: Floats) -> Callable[[slice, Stack], int]:
    return lambda at, room: int(_join(positives[at], weights[at], *room))


def _join_counts(positives: Floats, negatives: Floats) -> Callable[[slice, Stack], int]:
    def join(at: slice, room: Stack) -> int:
        weights = np.add(positives[at], negatives[at], out=room[2][: at.stop - at.start])
        return int(_join(positives[at], weights, *room))

    return join


def _join_rows(labels: Bytes) -> Callable[[slice, Stack], int]:
    return lambda at, room: int(_join_labels(labels[at], *room))


@compiled("BI*F*F*")
def _join_labels(labels: Bytes, ends: NDArray[np.int64], hits: Floats, totals: Floats) -> int:
    """Join the negatives before the first positive row, and each run of positives with the negatives after it."""
    top, start = -1, 0
    hit, before = np.int64(0), np.int64(-1)
    for i in range(len(labels)):
        label = np.int64(labels[i])
        rises = label > before
        before = label
        top += 1 if rises else 0
        start = i if rises else start
        hit = label if rises else hit + label
        ends[top] = i
        hits[top] = hit
        totals[top] = i - start + 1
    return top + 1


@compiled("FFI*F*F*")
def _join(positives: Floats, weights: Floats, ends: NDArray[np.int64], hits: Floats, totals: Floats) -> int:
    """Join each run of entries whose means do not rise: they are in one block, whatever else is.

    No step waits for a branch, of which the loop of `_pool` takes a wrong one at every other row.
    """
    top = -1
    hit, total, hit_before, total_before = 0.0, 0.0, -1.0, 1.0
    for i in range(len(weights)):
        p, w = positives[i], weights[i]
        rises = p * total_before > hit_before * w
        hit_before, total_before = p, w
        hit = p if rises else hit + p
        total = w if rises else total + w
        top += 1 if rises else 0
        ends[top] = i
        hits[top] = hit
        totals[top] = total
    return top + 1


@compiled("FFI*F*F*")
def _pool(
    positives: Sequence[float],
    weights: Sequence[float],
    ends: MutableSequence[int],
    hits: MutableSequence[float],
    totals: MutableSequence[float],
) -> int:
    """Write the last entry and the sums of each block as a stack, which may lie over the input; return its height."""
    top = -1
    for i in range(len(weights)):
        hit, total = positives[i], weights[i]
        while top >= 0 and hits[top] * total >= hit * totals[top]:
            hit += hits[top]
            total += totals[top]
            top -= 1
        top += 1
        ends[top] = i
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
