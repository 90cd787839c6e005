"""The two isotonic fits of Venn-Abers at every place a new score can have, in O(n).

A new row with label 1 at place s shifts the cumulative diagram of the rows from s on by (1, 1). The fitted value at s
is the slope of the line that touches both the lower hull of the points left of s (shifted by (-1, -1)) and the lower
hull of the points from s on. Both touching points only ever move to the right as s does, so one walk finds all lines.
Label 0 is the mirror image. Of m scores there are 2m + 1 places, below score 0, at score 0, between 0 and 1, at score
1, ..., above the last; but values change at few of them, and only those are kept.
May import NumPy, `_compiled` and `blocks`.
"""

from collections.abc import Callable, Iterator, MutableSequence, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled
from calibrant._kernels.blocks import BLOCK, slices

Floats = NDArray[np.float64]
Columns = Callable[[slice], tuple[Floats, Floats]]


class Intervals(NamedTuple):
    """Places, the first of them 0, with p0 and p1 from each up to the next."""

    places: NDArray[np.int64]
    lower: Floats
    upper: Floats


def intervals(columns: Columns, size: int) -> Intervals:
    """The intervals of ascending scores; `columns(at)` gives the positives and negatives of a slice of them."""

    def rows(begin: int, end: int) -> tuple[Floats, Floats]:
        positives, negatives = columns(slice(begin, end))
        return positives, positives + negatives

    def mirrored(begin: int, end: int) -> tuple[Floats, Floats]:
        positives, weights = rows(size - end, size - begin)
        return (weights - positives)[::-1], weights[::-1]

    room = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1, dtype=np.int64)
    above, upper = _label_one(rows, *room)
    mirror, rest = _label_one(mirrored, *room)
    below = 2 * size + 1 - np.append(mirror[1:], 2 * size + 1)[::-1]
    lower = np.clip(1 - rest[::-1], 0.0, 1.0)
    places = np.union1d(below, above)
    upper = upper[np.searchsorted(above, places, side="right") - 1]
    lower = lower[np.searchsorted(below, places, side="right") - 1]
    return Intervals(places, np.minimum(lower, upper), upper)


def _label_one(
    rows: Callable[[int, int], tuple[Floats, Floats]], x: Floats, y: Floats, links: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    """The places at which the value changes, and the value from there on."""
    _add_up(rows, x, y)
    places, values, before = [], [], np.nan
    for first, out in _slopes(x, y, links):
        np.clip(out, 0.0, 1.0, out=out)
        changes = np.flatnonzero(np.diff(out, prepend=before))
        places.append(first + changes)
        values.append(out[changes])
        before = float(out[-1])
    return np.concatenate(places), np.concatenate(values)


def _add_up(rows: Callable[[int, int], tuple[Floats, Floats]], x: Floats, y: Floats) -> None:
    """Write the weight x and the positives y of all rows before each."""
    last = len(x) - 1
    x[0] = y[0] = 0.0
    for at in slices(last):
        begin, end = at.start, at.stop
        y[begin + 1 : end + 1], x[begin + 1 : end + 1] = rows(begin, end)
        for sums in (x, y):
            sums[begin : end + 1] = np.cumsum(sums[begin : end + 1])


def _slopes(x: Floats, y: Floats, links: NDArray[np.int64]) -> Iterator[tuple[int, Floats]]:
    """Places in blocks, with the slopes of the touching lines there."""
    number = 2 * len(x) - 1
    if len(x) < MANY:
        plain: tuple[list[float], list[float], list[int]] = (x.tolist(), y.tolist(), [0] * len(x))
        out = [0.0] * number
        _followers.function(*plain)
        _bridges.function(*plain, [-1, 0, 0], 0, out)
        yield 0, np.array(out)
        return
    _followers(x, y, links)
    state = np.array([-1, 0, 0], dtype=np.int64)
    room = np.empty(BLOCK)
    for at in slices(number):
        first, values = at.start, room[: at.stop - at.start]
        _bridges(x, y, links, state, first, values)
        yield first, values


@compiled("FFI*")
def _followers(x: Sequence[float], y: Sequence[float], links: MutableSequence[int]) -> None:
    """Write to `links[k + 1]` the next vertex after k of the lower hull of the points from k on."""
    last = len(x) - 1
    for k in range(last - 1, -1, -1):
        j = k + 1
        while j < last:
            n = links[j + 1]
            if (y[j] - y[k]) * (x[n] - x[j]) < (y[n] - y[j]) * (x[j] - x[k]):
                break
            j = n
        links[k + 1] = j


@compiled("FFI*I*iF*")
def _bridges(
    x: Sequence[float],
    y: Sequence[float],
    links: MutableSequence[int],
    state: MutableSequence[int],
    first: int,
    out: MutableSequence[float],
) -> None:
    """Write the slope of the touching line at places from `first` on; `state` is top, at and right.

    `links` holds the followers, and before them, as a stack, the lower hull of the points so far. Of the points 0..s
    the stack takes places up to s at most, and from then on only followers of points from s on are read, which begin
    at s + 1.
    """
    last = len(x) - 1
    top, at, right = state[0], state[1], state[2]
    for k in range(len(out)):
        place = first + k
        s = (place + 1) // 2
        if place % 2 == 0:  # between: point s joins the left side too
            while top > 0:
                j, i = links[top], links[top - 1]
                if (y[j] - y[i]) * (x[s] - x[j]) < (y[s] - y[j]) * (x[j] - x[i]):
                    break
                top -= 1
            top += 1
            links[top] = s
            at = min(at, top)
        right = max(right, s)
        while True:
            a = links[at]
            while right < last:
                n = links[right + 1]
                dx, dy = x[right] - x[a] + 1, y[right] - y[a] + 1
                if dy * (x[n] - x[right]) < (y[n] - y[right]) * dx:
                    break
                right = n
            dx, dy = x[right] - x[a] + 1, y[right] - y[a] + 1
            if at == top:
                break
            n = links[at + 1]
            if (y[n] - y[a]) * dx > dy * (x[n] - x[a]):
                break
            at += 1
        out[k] = dy / dx
    state[0], state[1], state[2] = top, at, right
