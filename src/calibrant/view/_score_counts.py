"""The histogram under a reliability diagram, as a record.

May import NumPy, `calibrant.data` and `calibrant._checks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._checks import Floats
from calibrant.data import ScoreTable

Scale = Literal["probability", "log-odds"]
BARS = 25


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Histogram of the scores: `weights[k]` of the rows lie between `edges[k]` and `edges[k + 1]`."""

    edges: Floats
    weights: Floats


def score_counts(table: ScoreTable, scale: Scale) -> ScoreCounts:
    """Histogram of a table of probabilities, in bars of equal width on the scale."""
    distinct = table.distinct
    if scale == "probability":
        edges = np.linspace(0, 1, BARS + 1)
    else:
        first, last = (float(np.log(p) - np.log1p(-p)) for p in _ends(distinct))
        edges = 1 / (1 + np.exp(-np.linspace(first, last, BARS + 1)))
    place = np.clip(np.searchsorted(edges, distinct.scores, side="left") - 1, 0, BARS - 1)
    return ScoreCounts(edges, np.bincount(place, distinct.weight, BARS).astype(np.float64))


def _ends(distinct: ScoreTable) -> tuple[float, float]:
    """Where the scores begin and end on log-odds, but for ten rows (or one in twenty) on either side."""
    inner = (distinct.scores > 0) & (distinct.scores < 1)
    p, mass = distinct.scores[inner], np.cumsum(distinct.weight[inner])
    if not len(p):
        return 0.25, 0.75
    few = min(10.0, mass[-1] / 20)
    low = float(p[np.searchsorted(mass, few)])
    high = float(p[min(int(np.searchsorted(mass, mass[-1] - few)), len(p) - 1)])
    return (low, high) if low < high else (low / 2, (1 + high) / 2)
