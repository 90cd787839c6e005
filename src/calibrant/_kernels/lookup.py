"""How many thresholds lie at or below a number, by a table over a uniform grid instead of a binary search.

The answer is exactly that of `searchsorted(thresholds, x, side="right")`. The cell of a number never falls as the
number rises, rounding included, so a number is above every threshold of an earlier cell and below every threshold of
a later one: only the thresholds of its own cell, mostly none or one, are compared with it.

May import: NumPy, `_compiled`, `blocks`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled
from calibrant._kernels.blocks import slices

Floats = NDArray[np.float64]
NEAR = 8


class Grid(NamedTuple):
    """Thresholds, how many of them lie before each cell, origin of the grid and cells per unit."""

    thresholds: Floats
    before: NDArray[np.int32]
    low: float
    per_unit: float


def counter(thresholds: Floats, size: int) -> Callable[[Floats], NDArray[np.int64]]:
    """Of about `size` numbers, block by block: how many thresholds (ascending, finite) lie at or below each."""
    if size < MANY or len(thresholds) == 0:
        return lambda x: np.searchsorted(thresholds, x, side="right")
    table = grid(thresholds, size)
    count_in = _count_among if len(thresholds) > len(table.before) else count_below

    def count(x: Floats) -> NDArray[np.int64]:
        place = np.empty(len(x), dtype=np.int64)
        count_in(np.ascontiguousarray(x), *table, place)
        return place

    return count


def grid(thresholds: Floats, size: int) -> Grid:
    """Grid over ascending finite thresholds (one at least), for about `size` look-ups."""
    cells = 2 ** int(np.log2(min(max(8 * len(thresholds), 2**10), size, 2**22)))
    low, high = float(thresholds[0]), float(thresholds[-1])
    inside = np.zeros(cells + 1, dtype=np.int32)
    with np.errstate(all="ignore"):
        per_unit = float(np.float64(cells / 2) / np.float64(high / 2 - low / 2))
        for at in slices(len(thresholds)):
            scaled = (thresholds[at] - low) * per_unit
            cell = np.where(scaled > 0, np.minimum(scaled, cells - 1), 0).astype(np.int64)
            inside[cell[0] + 1 : cell[-1] + 2] += np.bincount(cell - cell[0]).astype(np.int32)
    return Grid(np.ascontiguousarray(thresholds), np.cumsum(inside, dtype=np.int32), low, per_unit)


def cell_of(scaled: float, last: int) -> int:
    """The cell of a number scaled to cells; NaN and what lies before the first are in the first."""
    if scaled > 0:
        return last if scaled >= last else int(scaled)
    return 0


def search(thresholds: Floats, value: float, low: int, high: int) -> int:
    """How many thresholds are at most the value, given that it is `low` at least and `high` at most."""
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled("FFJffI*", helpers=(cell_of, search))
def count_below(
    x: Floats, thresholds: Floats, before: NDArray[np.int32], low: float, per_unit: float, place: NDArray[np.int64]
) -> None:
    """Write the number of thresholds <= x, for each x."""
    last_cell, size = len(before) - 2, len(thresholds)
    for i in range(len(x)):
        value = x[i]
        scaled = (value - low) * per_unit
        cell = cell_of(scaled, last_cell)
        count, end = before[cell], before[cell + 1]
        if thresholds[min(count, size - 1)] <= value:
            count = search(thresholds, value, count + 1, end)
        place[i] = min(count, size)


@compiled("FFJffI*", helpers=(cell_of, search))
def _count_among(
    x: Floats, thresholds: Floats, before: NDArray[np.int32], low: float, per_unit: float, place: NDArray[np.int64]
) -> None:
    """The same where cells are full: the place is guessed as if a cell were evenly filled, and first sought NEAR it.

    Of many thresholds each step waits for memory; most lie beside the one before.
    """
    last_cell = len(before) - 2
    for i in range(len(x)):
        value = x[i]
        scaled = (value - low) * per_unit
        cell = cell_of(scaled, last_cell)
        count, end = before[cell], before[cell + 1]
        if count < end:
            share = scaled - cell
            guess = count + int((min(share, 0.999) if share > 0 else 0.0) * (end - count))
            if thresholds[guess] <= value:
                count, last = guess + 1, min(guess + NEAR, end)
                while count < last and thresholds[count] <= value:
                    count += 1
                end = count if count < last else end
            else:
                first, end = max(guess - NEAR, count), guess
                while end > first and thresholds[end - 1] > value:
                    end -= 1
                count = end if end > first else count
        place[i] = search(thresholds, value, count, end)
