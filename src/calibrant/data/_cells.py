"""Cells of equal width: how more distinct scores than a table may hold are added up, with a bound on what moves.

Scores in [0, 1] are cut in log-odds, others in sign(x) log(1 + |x| / u), u = min(1, max |x|). Exact 0 and 1 stay apart,
and every cell keeps its exact mean score. Invariant: so no score moves by more than the width h on that scale, no log
loss by more than h, no Brier score by more than h / 2, and the AUC by no more than half the share of pairs that share a
cell.
May import NumPy, `calibrant._checks`, `calibrant._parameters` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant._parameters import Number, check_parameters
from calibrant.errors import DataWarning

MORE = " Give a larger max_distinct where the memory allows it."
"""The advice to whoever can."""
ZERO, ONE = -1.0, -2.0
"""The cells of the scores 0 and 1."""


LEAST = 10


def check_most(owner: str, max_distinct: object) -> None:
    """Refuse a limit that leaves no room for cells."""
    check_parameters(owner, {"max_distinct": max_distinct}, {"max_distinct": Number(LEAST, whole=True)})


class Ends(NamedTuple):
    """The least and the greatest score, the least above 0 and the greatest below 1 (None where there is none)."""

    first: float
    last: float
    low: float | None
    high: float | None


class Cells(NamedTuple):
    """Where cells lie: number `round((scale(x) - left) / width)`; `unit` is None for log-odds.

    Log-odds are taken of x kept in [low, high]; scores of 0 and 1 have cells of their own, `ZERO` and `ONE`.
    """

    left: float
    width: float
    low: float
    high: float
    unit: float | None


def cells_between(ends: Ends, most: int) -> Cells:
    """At most `most` cells between the ends."""
    if ends.first >= 0 and ends.last <= 1:
        low, high = (0.5 if end is None else end for end in (ends.low, ends.high))
        left, right = (float(np.log(end) - np.log1p(-end)) for end in (low, high))
        unit = None
    else:
        unit = min(1.0, max(abs(ends.first), abs(ends.last)))
        low, high = ends.first, ends.last
        left, right = (float(np.sign(end) * np.log1p(abs(end) / unit)) for end in (low, high))
    return Cells(left, (right - left) / max(most - 4, 1), low, high, unit)


def mean_scores(cells: Cells, number: Floats, moment: Floats, weight: Floats) -> Floats:
    """The mean score of each cell, kept within the scores that there are, as rounding may not."""
    inner = np.clip(moment / weight, cells.low, cells.high)
    if cells.unit is not None:
        return inner
    return np.where(number == ZERO, 0.0, np.where(number == ONE, 1.0, inner))


def warn_of_cells(cells: int, most: int, width: float, advice: str) -> None:
    """Say that a table is not exact, and by how much."""
    warnings.warn(
        f"There are more than {most:,} distinct scores: they were added up to {cells:,} cells, each with its mean "
        f"score, so this table is not exact. No score has moved by more than {width:.2g} on its log-odds (outside "
        f"[0, 1]: relative to 1 + |score|).{advice}",
        DataWarning,
        stacklevel=6,
    )
