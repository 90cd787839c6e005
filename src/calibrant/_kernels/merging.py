"""Two ascending tables merged into one in a single pass, where a new sort would cost far more.

Equal scores become one entry, the sum of both. Rows whose scores all differ stay rows.

May import: NumPy, `_compiled`, `ranking`.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled, side_by_side
from calibrant._kernels.ranking import Distinct, Ordered, distinct_counts, distinct_rows

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]


MUCH_SHORTER = 16
"""Into a table that many times as long, a part is not merged: a sum of many parts is sorted once, at its end."""


def pays(a: int, b: int) -> bool:
    """Whether two tables of these lengths are merged, rather than sorted when that is asked for."""
    return MUCH_SHORTER * min(a, b) >= max(a, b)


def merge(a: Distinct | Ordered, b: Distinct | Ordered) -> Distinct | Ordered:
    """The table of both tables together."""
    a, b = (a, b) if len(a.scores) >= len(b.scores) else (b, a)
    many = len(a.scores) + len(b.scores) >= MANY
    if isinstance(a, Ordered) and isinstance(b, Ordered):
        if many:
            return _merge_rows(a, b)
        return distinct_rows(np.concatenate([a.scores, b.scores]), np.concatenate([a.labels, b.labels]), None)
    return (_merge_many if many else _merge_few)(_counted(a), _counted(b))


def _merge_rows(a: Ordered, b: Ordered) -> Distinct | Ordered:
    plan = _plan(a.scores, b.scores)
    scores, hits, misses = np.empty(plan.size), np.empty(plan.size, np.uint8), np.empty(plan.size, np.uint8)
    plan.run(_merge_bytes, (*a, 1 - a.labels), (*b, 1 - b.labels), (scores, hits, misses))
    if plan.size == len(a.scores) + len(b.scores):
        return Ordered(scores, hits)
    return Distinct(scores, hits.astype(np.float64), misses.astype(np.float64))


def _merge_few(a: Distinct, b: Distinct) -> Distinct:
    pairs = [*zip(a[:3], b[:3]), *(zip(_squares(a), _squares(b)) if _weighted(a, b) else ())]
    return distinct_counts(*(np.concatenate(pair) for pair in pairs))


def _merge_many(a: Distinct, b: Distinct) -> Distinct:
    plan = _plan(a.scores, b.scores)
    scores, *sums = np.empty((5 if _weighted(a, b) else 3, plan.size))
    plan.run(_merge_sums, a[:3], b[:3], (scores, *sums[:2]))
    if _weighted(a, b):
        plan.run(_merge_sums, (a.scores, *_squares(a)), (b.scores, *_squares(b)), (scores, *sums[2:]))
    return Distinct(scores, *sums)


def _counted(table: Distinct | Ordered) -> Distinct:
    if isinstance(table, Distinct):
        return table
    return Distinct(table.scores, table.labels.astype(np.float64), (1 - table.labels).astype(np.float64))


def _weighted(a: Distinct, b: Distinct) -> bool:
    return a.rows is not None or b.rows is not None


def _squares(table: Distinct) -> tuple[Floats, Floats]:
    """Number of rows, and sum of the squared weights."""
    if table.rows is not None and table.squared_weights is not None:
        return table.rows, table.squared_weights
    weight = table.positives + table.negatives
    return weight, weight


class _Plan(NamedTuple):
    """Where two ascending columns are cut, so that each part is merged on its own core, and where the parts go."""

    of_a: list[slice]
    of_b: list[slice]
    out: list[slice]

    @property
    def size(self) -> int:
        """How many different scores there are."""
        return int(self.out[-1].stop)

    def run(self, kernel: Any, a: Sequence[Any], b: Sequence[Any], out: Sequence[Any]) -> None:
        """Merge the columns of a and b, the scores first, into those of `out`."""
        tasks = []
        for places in zip(*self):
            columns = [column[at] for table, at in zip((a, b, out), places) for column in table]
            tasks.append(partial(kernel, *columns))
        side_by_side(tasks)


def _plan(a: Floats, b: Floats) -> _Plan:
    half = len(a) // 2
    cuts = [(0, 0), (half, int(np.searchsorted(b, a[half]))), (len(a), len(b))]
    of_a, of_b = ([slice(first, last) for first, last in pairwise(ends)] for ends in zip(*cuts))
    counts = side_by_side([partial(_count_different, a[x], b[y]) for x, y in zip(of_a, of_b)])
    ends = np.cumsum([0, *counts])
    return _Plan(of_a, of_b, [slice(first, last) for first, last in pairwise(ends)])


@compiled("FF")
def _count_different(a: Floats, b: Floats) -> int:
    i, j, at = 0, 0, 0
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        i += 1 if x <= y else 0
        j += 1 if y <= x else 0
        at += 1
    return at + (len(a) - i) + (len(b) - j)


def _merge_two(
    a: Floats,
    a_first: Any,
    a_second: Any,
    b: Floats,
    b_first: Any,
    b_second: Any,
    scores: Floats,
    first: Any,
    second: Any,
) -> None:
    """Write the merged scores and, for each, the sums of two columns."""
    i, j, at = 0, 0, 0
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        left, right = (1 if x <= y else 0), (1 if y <= x else 0)
        scores[at] = min(x, y)
        first[at] = a_first[i] * left + b_first[j] * right
        second[at] = a_second[i] * left + b_second[j] * right
        i += left
        j += right
        at += 1
    for k in range(i, len(a)):
        scores[at + k - i], first[at + k - i], second[at + k - i] = a[k], a_first[k], a_second[k]
    for k in range(j, len(b)):
        scores[at + k - j], first[at + k - j], second[at + k - j] = b[k], b_first[k], b_second[k]


_merge_sums = compiled("FFFFFFF*F*F*")(_merge_two)
_merge_bytes = compiled("FBBFBBF*B*B*")(_merge_two)
