"""Isotonic fits of many random outcomes at the same scores: what bands around an isotonic curve are made of.

May import: NumPy, `_compiled`, `isotonic`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import compiled, side_by_side

Floats = NDArray[np.float64]
BLOCK = 20


def random_fits(
    rates: Floats, rows: Floats, weight: Floats, places: NDArray[np.int64], size: int, seed: np.random.Generator
) -> Floats:
    """Fitted values at some places, (resample, place), of outcomes that are drawn with these rates.

    `rows` is how many rows a score has, `weight` their weight. The result does not depend on the number of cores.
    """
    counts = [min(BLOCK, size - first) for first in range(0, size, BLOCK)]
    children = seed.spawn(len(counts))
    whole = np.maximum(np.round(rows), 1).astype(np.int64)
    fitted = np.empty((size, len(places)))

    def run(first: int) -> None:
        for k in range(first, len(counts), 2):
            hits = children[k].binomial(whole, rates, (counts[k], len(rates))) * (weight / whole)
            for j, line in enumerate(hits):
                fitted[k * BLOCK + j] = fit_at(line, weight, places)

    side_by_side([partial(run, 0), partial(run, 1)])
    return fitted


def fit_at(hits: Floats, weight: Floats, places: NDArray[np.int64]) -> Any:
    """The isotonic fit at some places."""
    fitted = np.empty(len(hits))
    room = np.empty((3, len(hits)))
    _fit(np.ascontiguousarray(hits), weight, room[0], room[1], room[2], fitted)
    return fitted[places]


@compiled("FFF*F*F*F*")
def _fit(hits: Floats, weight: Floats, sums: Floats, totals: Floats, ends: Floats, fitted: Floats) -> None:
    """Pool adjacent violators, and write the value of each block to all of its scores."""
    top = -1
    for i in range(len(hits)):
        hit, total = hits[i], weight[i]
        while top >= 0 and sums[top] * total >= hit * totals[top]:
            hit += sums[top]
            total += totals[top]
            top -= 1
        top += 1
        sums[top] = hit
        totals[top] = total
        ends[top] = i
    first = 0
    for block in range(top + 1):
        last = int(ends[block]) + 1
        for i in range(first, last):
            fitted[i] = sums[block] / totals[block]
        first = last
