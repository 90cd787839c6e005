"""What the charts draw, as plain numbers: bins of reliability, counts of scores, the bin sweep, the ROC curve.

Every record is a few hundred numbers at most, whatever the number of rows. The ROC curve is thinned, but keeps the
corners of its convex hull.
May import NumPy, the kernels, `calibrant.data` and `calibrant.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import isotonic
from calibrant.data import ScoreTable
from calibrant.metrics import reliability_bands, reliability_curve, roc_curve

N_BINS = 10
N_BARS = 20
ROC_POINTS = 240
SWEEP_BINS = (5, 10, 15, 20, 30, 50)
SCALES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

Strategy = Literal["uniform", "quantile"]
STRATEGIES: tuple[Strategy, Strategy] = ("uniform", "quantile")


@dataclass(frozen=True)
class Bin:
    """One bin `low < p <= high`: rows, mean prediction, event rate and its exact 95 % limits; None when empty."""

    low: float
    high: float
    rows: float
    weight: float
    mean_predicted: float | None
    observed_rate: float | None
    gap: float | None
    rate_low: float | None
    rate_high: float | None


@dataclass(frozen=True)
class Reliability:
    """Bins of the probabilities, and counts of rows on the scale of the diagram for the histogram under it."""

    bins: tuple[Bin, ...]
    bar_edges: tuple[float, ...]
    bar_weights: tuple[float, ...]
    outside_scale: float


@dataclass(frozen=True)
class Scale:
    """The axis that both diagrams share, and the kind of bins that both use."""

    low: float
    high: float
    strategy: Strategy


@dataclass(frozen=True)
class SweepRow:
    """The calibration error of one side with one kind of bins; `bins_used` can be fewer than asked."""

    side: str
    strategy: str
    values: tuple[float, ...]
    bins_used: tuple[int, ...]


@dataclass(frozen=True)
class Roc:
    """Points of a ROC curve (thinned), and the corners of its convex hull."""

    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]
    hull_false_positive_rate: tuple[float, ...]
    hull_true_positive_rate: tuple[float, ...]
    points_of_curve: int


# ---------------------------------------------------------------- reliability


def shared_scale(tables: list[ScoreTable]) -> Scale:
    """Equal-width bins where they show something, else equal-mass bins on a closer scale."""
    if not tables or any(_spread_over_bins(table) for table in tables):
        return Scale(0.0, 1.0, "uniform")
    shown = [value for table in tables for value in _drawn_values(table)]
    low, high = min(shown), max(shown)
    for top in SCALES:
        if high <= top:
            return Scale(0.0, top, "quantile")
        if low >= 1 - top:
            return Scale(1 - top, 1.0, "quantile")
    return Scale(0.0, 1.0, "quantile")


def _spread_over_bins(table: ScoreTable) -> bool:
    """Whether at least two bins of equal width hold 5 % of the events or of the other rows."""
    curve = reliability_curve(table, n_bins=N_BINS)
    events = np.nan_to_num(curve.observed_rate) * curve.weight
    others = curve.weight - events
    held = (events >= 0.05 * table.total_positives) & (events > 0) | (others >= 0.05 * table.total_negatives)
    return int(held.sum()) >= 2


def _drawn_values(table: ScoreTable) -> list[float]:
    curve = reliability_curve(table, n_bins=N_BINS, strategy="quantile")
    kept = curve.weight > 0
    return [*curve.mean_predicted[kept].tolist(), *curve.observed_rate[kept].tolist()]


def reliability(table: ScoreTable, scale: Scale) -> Reliability:
    """Bins and histogram of a table of probabilities."""
    curve = reliability_curve(table, n_bins=N_BINS, strategy=scale.strategy)
    bands = reliability_bands(table, n_bins=N_BINS, strategy=scale.strategy)
    kept = np.cumsum(curve.weight > 0) - 1
    listed = tuple(
        Bin(
            float(curve.edges[b]),
            float(curve.edges[b + 1]),
            float(curve.rows[b]),
            float(curve.weight[b]),
            *_rates(float(curve.mean_predicted[b]), float(curve.observed_rate[b]), float(curve.weight[b])),
            *((float(bands.low[kept[b]]), float(bands.high[kept[b]])) if curve.weight[b] > 0 else (None, None)),
        )
        for b in range(len(curve.weight))
    )
    edges = np.linspace(scale.low, scale.high, N_BARS + 1)
    weights, outside = _bars(table, edges)
    return Reliability(listed, tuple(edges.tolist()), tuple(weights.tolist()), outside)


def _rates(mean: float, rate: float, weight: float) -> tuple[float | None, float | None, float | None]:
    return (mean, rate, rate - mean) if weight > 0 else (None, None, None)


def _bars(table: ScoreTable, edges: Floats) -> tuple[Floats, float]:
    """Weight in each bar of the scale, and the weight beyond its ends."""
    scores, weight = table.scores, table.weight
    inside = (scores >= edges[0]) & (scores <= edges[-1])
    place = np.clip(np.searchsorted(edges, scores[inside], side="left") - 1, 0, len(edges) - 2)
    bars = np.zeros(len(edges) - 1)
    bars += np.bincount(place, weights=weight[inside], minlength=len(bars))
    return bars, float(weight[~inside].sum())


def sweep(table: ScoreTable, side: str) -> tuple[SweepRow, ...]:
    """The calibration error at every number and kind of bins."""
    rows = []
    for strategy in STRATEGIES:
        curves = [reliability_curve(table, n_bins=n, strategy=strategy) for n in SWEEP_BINS]
        errors = tuple(curve.calibration_error() for curve in curves)
        rows.append(SweepRow(side, strategy, errors, tuple(int((curve.weight > 0).sum()) for curve in curves)))
    return tuple(rows)


# ---------------------------------------------------------------- ranking


def roc(table: ScoreTable) -> Roc:
    """The ROC curve of any scores, thinned to a few hundred points that keep the hull."""
    curve = roc_curve(table)
    corners = _hull_corners(table.distinct)
    kept = _thinned(curve.false_positive_rate, curve.true_positive_rate, corners)
    few = corners if len(corners) <= ROC_POINTS else np.intersect1d(kept, corners)
    x, y = curve.false_positive_rate, curve.true_positive_rate
    return Roc(_rounded(x[kept]), _rounded(y[kept]), _rounded(x[few]), _rounded(y[few]), len(x))


def _hull_corners(distinct: ScoreTable) -> NDArray[np.int64]:
    """Places on the ROC curve of the ends of the isotonic blocks, from (0, 0) to (1, 1)."""
    ends = isotonic.pool_adjacent(distinct.positives, distinct.weight).ends
    return np.concatenate([[0], (len(distinct.scores) - 1 - ends[:-1])[::-1], [len(distinct.scores)]]).astype(np.int64)


def _thinned(x: Floats, y: Floats, corners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Both ends, points at equal steps along the curve, and the corners of the hull (thinned likewise)."""
    if len(x) <= 2 * ROC_POINTS:
        return np.arange(len(x))
    along = x + y
    steps = np.searchsorted(along, np.linspace(0, 2, ROC_POINTS))
    if len(corners) > ROC_POINTS:
        wanted = np.searchsorted(along[corners], np.linspace(0, 2, ROC_POINTS))
        corners = corners[np.minimum(wanted, len(corners) - 1)]
    return np.unique(np.concatenate([[0, len(x) - 1], np.minimum(steps, len(x) - 1), corners])).astype(np.int64)


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(np.round(values, 6).tolist())
