"""Columns taken block by block, so that what is computed on the way stays in the cache.

May import: NumPy.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Owner = TypeVar("Owner")
BLOCK = 2**14


def slices(last: int, first: int = 0) -> list[slice]:
    """Slices of at most BLOCK entries from the first up to the last."""
    return [slice(begin, min(begin + BLOCK, last)) for begin in range(first, last, BLOCK)]


def by_block(method: Callable[[Owner, Floats], Floats]) -> Callable[[Owner, Floats], Floats]:
    """A method that turns a column into another, entry by entry, made to hold no more than a block on its way."""

    @wraps(method)
    def whole(owner: Owner, column: Floats) -> Floats:
        if len(column) <= BLOCK:
            return method(owner, column)
        result = np.empty(len(column))
        for at in slices(len(column)):
            result[at] = method(owner, column[at])
        return result

    return whole


def sums_between(starts: NDArray[np.int64], size: int, columns: Callable[[slice], Sequence[Floats]]) -> Floats:
    """Sums of some columns from each start to the next, shape (columns, starts); the first start is 0.

    `columns` computes them for a slice of the `size` entries.
    """
    parts = []
    first = np.searchsorted(starts, [at.start for at in slices(size)], side="right") - 1
    last = np.searchsorted(starts, [at.stop for at in slices(size)], side="left")
    for at, begin, end in zip(slices(size), first, last):
        within = np.maximum(starts[begin:end] - at.start, 0)
        parts.append([np.add.reduceat(column, within) for column in columns(at)])
    sums = np.zeros((len(parts[0]), len(starts)))
    for part, begin, end in zip(parts, first, last):
        sums[:, begin:end] += part
    return sums
