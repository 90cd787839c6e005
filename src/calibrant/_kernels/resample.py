"""Resamples of a score table: random counts in its cells, and the measures of many resamples at once.

Neighbouring scores are put into cells first (none at up to `CELLS` distinct scores): each holds at most a small share
of the positives, of the negatives and of the range of the log-odds, so that only the order within a cell is lost. A
count is Poisson with the observed one as its mean; `scale` is the mean weight of a row, by weight. A resample is a
line of each matrix. Results do not depend on the number of cores.

May import: NumPy, SciPy's sparse matrices inside a function, `_compiled`, `likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import side_by_side
from calibrant._kernels.likelihood import expit

Floats = NDArray[np.float64]
CELLS = 4096
BLOCK = 20
"""Resamples that are drawn together."""
Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
Measure = Callable[[Floats, Floats], Floats]


class Cells(NamedTuple):
    """First index of each cell, and the weight of positives and negatives, the mean weight of a row, in each."""

    starts: NDArray[np.int64]
    positives: Floats
    negatives: Floats
    scale: Floats


def cells(z: Floats, positives: Floats, negatives: Floats, squared_weights: Floats, most: int = CELLS) -> Cells:
    """Cells of ascending scores with log-odds z."""
    starts = np.arange(len(z)) if len(z) <= most else _cell_starts(z, positives, negatives, most // 3)
    hits, misses, squares = (np.add.reduceat(column, starts) for column in (positives, negatives, squared_weights))
    return Cells(starts, hits, misses, squares / (hits + misses))


def _cell_starts(z: Floats, positives: Floats, negatives: Floats, parts: int) -> NDArray[np.int64]:
    changes = np.zeros(len(z) - 1, dtype=bool)
    for share in (_shares(positives), _shares(negatives), (z - z[0]) / (z[-1] - z[0])):
        changes |= np.diff((share * parts).astype(np.int64)) != 0
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _shares(weight: Floats) -> Floats:
    """Share of the weight below the middle of each entry."""
    return np.asarray((np.cumsum(weight) - weight / 2) / weight.sum())


def cell_means(found: Cells, weight: Floats, values: Floats) -> Floats:
    """Weighted mean of some values in each cell; 0 where there is no weight."""
    total = np.add.reduceat(weight, found.starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.add.reduceat(np.where(weight > 0, weight * values, 0.0), found.starts)
        return np.where(total > 0, sums / total, 0.0)


# ---------------------------------------------------------------- drawing


def draw_counts(found: Cells) -> Draw:
    """Independent Poisson counts in every cell."""
    kept = [np.flatnonzero(counts > 0) for counts in (found.positives, found.negatives)]
    scales = [found.scale[places] for places in kept]
    means = [counts[places] / scale for counts, places, scale in zip((found.positives, found.negatives), kept, scales)]

    def draw(rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        drawn = np.zeros((2, size, len(found.scale)))
        for part, places, scale, mean in zip(drawn, kept, scales, means):
            part[:, places] = rng.poisson(mean, (size, len(mean))) * scale
        return drawn[0], drawn[1]

    return draw


def draw_clusters(
    cell: NDArray[np.int64], n_cells: int, labels: NDArray[np.uint8], weights: Floats, cluster: NDArray[np.int64]
) -> Draw:
    """Whole clusters of rows, each as often as Poisson with mean 1 says."""
    from scipy.sparse import csr_array

    lines = cell + n_cells * (1 - labels.astype(np.int64))
    n_clusters = int(cluster.max()) + 1
    matrix = csr_array((weights, (lines, cluster)), shape=(2 * n_cells, n_clusters))

    def draw(rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        times = rng.poisson(1.0, (size, n_clusters)).astype(np.float64)
        counts = np.asarray((matrix @ times.T).T)
        return np.ascontiguousarray(counts[:, :n_cells]), np.ascontiguousarray(counts[:, n_cells:])

    return draw


def resampled(
    draw: Draw, classes: tuple[bool, bool], measures: Sequence[Measure], size: int, seed: np.random.Generator
) -> Floats:
    """Values of the measures, (value, resample), on `size` resamples.

    One that lacks a class which the rows have (`classes`: positives, negatives) is drawn again.
    """
    counts = [min(BLOCK, size - first) for first in range(0, size, BLOCK)]
    children = seed.spawn(len(counts))

    def block(rng: np.random.Generator, count: int) -> Floats:
        hits, misses = draw(rng, count)
        for _ in range(100):
            poor = (classes[0] & (hits.sum(axis=1) == 0)) | (classes[1] & (misses.sum(axis=1) == 0))
            if not poor.any():
                break
            again = draw(rng, int(poor.sum()))
            hits[poor], misses[poor] = again
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.vstack([measure(hits, misses) for measure in measures])

    def run(first: int) -> list[Floats]:
        return [block(rng, count) for rng, count in zip(children[first::2], counts[first::2])]

    even, odd = side_by_side([partial(run, 0), partial(run, 1)])
    blocks = [(odd if k % 2 else even)[k // 2] for k in range(len(counts))]
    return np.concatenate(blocks, axis=1)


# ---------------------------------------------------------------- measures of many resamples


def mean_of(of_positive: Floats, of_negative: Floats) -> Measure:
    """Weighted mean of a loss, given its mean in each cell."""

    def measure(hits: Floats, misses: Floats) -> Floats:
        total = np.einsum("rm,m->r", hits, of_positive) + np.einsum("rm,m->r", misses, of_negative)
        return np.asarray(total / (hits.sum(axis=1) + misses.sum(axis=1)))

    return measure


def area(hits: Floats, misses: Floats) -> Floats:
    """Area under the ROC curve."""
    below = np.cumsum(misses, axis=1)
    pairs = np.einsum("rm,rm->r", hits, below - 0.5 * misses)
    return np.asarray(pairs / (below[:, -1] * hits.sum(axis=1)))


def precision(hits: Floats, misses: Floats) -> Floats:
    """Average precision."""
    found = np.cumsum(hits[:, ::-1], axis=1)
    taken = found + np.cumsum(misses[:, ::-1], axis=1)
    share = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    return np.asarray(np.einsum("rm,rm->r", hits[:, ::-1], share) / found[:, -1])


def line(z: Floats, intercept: float, slope: float, steps: int = 4) -> Measure:
    """Slope and intercept on the log-odds, by Newton steps from the fit of all rows."""
    centre = float(z.mean())
    unit = z - centre

    def measure(hits: Floats, misses: Floats) -> Floats:
        weight = hits + misses
        a, b = np.full(len(hits), intercept + slope * centre), np.full(len(hits), slope)
        for _ in range(steps):
            p = expit(a[:, None] + b[:, None] * unit)
            gap, bend = hits - weight * p, weight * p * (1 - p)
            g0, g1 = gap.sum(axis=1), np.einsum("rm,m->r", gap, unit)
            h0, h1 = bend.sum(axis=1), np.einsum("rm,m->r", bend, unit)
            h2 = np.einsum("rm,m->r", bend, unit**2)
            determinant = h0 * h2 - h1 * h1
            rise = (h0 * g1 - h1 * g0) / determinant
            a, b = a + (h2 * g0 - h1 * g1) / determinant, b + rise
        b[~(np.abs(rise) <= 0.01 * (1 + np.abs(b)))] = np.nan  # still moving: no finite slope, as far as one can see
        return np.stack([b, a - b * centre])

    return measure


def shift(z: Floats, start: float, steps: int = 3) -> Measure:
    """Intercept at slope one, by Newton steps."""

    def measure(hits: Floats, misses: Floats) -> Floats:
        weight, a = hits + misses, np.full(len(hits), start)
        for _ in range(steps):
            p = expit(a[:, None] + z)
            a = a + (hits - weight * p).sum(axis=1) / (weight * p * (1 - p)).sum(axis=1)
        return a

    return measure
