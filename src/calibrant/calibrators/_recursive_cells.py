"""Cells of recursive partitioning: distinct rows of scores with the weight of every class, and their split points.

Cells are the score table of K classes. Folds and bootstrap samples are drawn from them, so that the order of the rows
is nothing.
May import NumPy, the kernels, `calibrant.data`, `calibrant._parameters` and this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import bins
from calibrant._kernels.partition import Path, Rows, exact_weights, grow
from calibrant._kernels.partition_binary import grow_binary
from calibrant.calibrators._cross_fit import deal
from calibrant.calibrators._stepwise import pooled
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows, array_of
from calibrant.errors import FitWarning, InputError

WORK = 3e9
"""Rows times split points times classes that `auto` spends at the root."""
GRID_STEPS = {3: 50, 4: 20}
MIXTURES = 2000


class Cells(NamedTuple):
    """Distinct scores (m, K), ascending, and the weight of every class at each, (m, K)."""

    scores: Floats
    counts: Floats

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def rows(self) -> Rows:
        """One row per cell and class that occurs in it."""
        cell, label = np.nonzero(self.counts)
        return Rows(self.scores[cell], label, self.counts[cell, label])

    def with_counts(self, counts: Floats) -> Cells:
        """The cells that are left with other counts."""
        kept = counts.any(axis=1)
        return Cells(self.scores[kept], counts[kept])

    def resampled(self, rng: np.random.Generator) -> Cells:
        """As many rows drawn with replacement."""
        size = max(1, round(self.total))
        drawn = np.multiply(
            rng.multinomial(size, self.counts.ravel() / self.total), self.total / size, dtype=np.float64
        )
        return self.with_counts(exact_weights(drawn).reshape(self.counts.shape))

    def folds(self, n_folds: int, rng: np.random.Generator) -> Iterator[tuple[Cells, Cells]]:
        """For each fold, its rows and the others, every class dealt out evenly."""
        dealt = [deal(column, n_folds, rng) for column in self.counts.T]
        for fold in range(n_folds):
            inside = np.column_stack([one.inside(fold) for one in dealt])
            outside = np.column_stack([one.outside(fold) for one in dealt])
            if inside.any() and outside.any():
                weights = exact_weights(outside.ravel()).reshape(outside.shape)
                yield self.with_counts(inside), self.with_counts(weights)


def cells_of_rows(rows: ClassRows) -> Cells:
    """Cells of checked rows."""
    weights = exact_weights(np.ones(len(rows.labels)) if rows.weights is None else rows.weights)
    scores = rows.scores + 0.0
    k = scores.shape[1]
    order = np.lexsort(scores.T[::-1])
    ascending = scores[order]
    first = np.concatenate([[True], np.any(ascending[1:] != ascending[:-1], axis=1)])
    group = np.cumsum(first) - 1
    size = int(group[-1]) + 1
    counts = np.bincount(group * k + rows.labels[order], weights[order], size * k).astype(np.float64).reshape(size, k)
    return Cells(ascending[first], counts)


def cells_of_table(table: ScoreTable) -> Cells:
    """Cells of two classes; the score is that of the positive one."""
    distinct = table.distinct
    counts = np.stack([distinct.negatives, distinct.positives])  # each class in one piece of memory
    scores = np.stack([1 - distinct.scores, distinct.scores])
    return Cells(scores.T, exact_weights(counts.ravel()).reshape(counts.shape).T)


def blocks_of_rows(distinct: ScoreTable) -> Cells:
    """The blocks of the isotonic fit of rows that count once each, at the greatest score of each.

    A tree of every cut of two classes has no split inside a block.
    """
    blocks = pooled(distinct)
    hits = bins.run_sums(lambda at: distinct._at(at).positives, blocks.starts, len(distinct))
    scores = distinct.scores[blocks.ends]
    return Cells(np.stack([1 - scores, scores]).T, np.stack([blocks.ends - blocks.starts + 1 - hits, hits]).T)


def partition(cells: Cells, points: Floats | None, cycles: bool, most_leaves: int | None) -> Path:
    """Grow a tree; None stands for every cut of two classes."""
    if cells.counts.shape[1] > 2:
        return grow(cells.rows(), cells.scores if points is None else points, cycles=cycles, most_leaves=most_leaves)
    thresholds = None
    if points is not None:
        below, above = points[:, 0], points[:, 1]
        thresholds = np.where(np.abs(below + above - 1) < 1e-9, above, (1 + above - below) / 2)
    scores, positives = np.ascontiguousarray(cells.scores[:, 1]), np.ascontiguousarray(cells.counts[:, 1])
    return grow_binary(scores, positives, cells.counts.sum(axis=1), thresholds, most_leaves)


# ---------------------------------------------------------------- split points


def split_points(cells: Cells, candidates: Any) -> Floats | None:
    """The split points to try; None for every cut of two classes."""
    k = cells.scores.shape[1]
    if not isinstance(candidates, str):
        return _given_points(candidates, k)
    if k == 2:
        return None
    return cells.scores if candidates == "points" else _automatic(cells.scores)


def _given_points(candidates: Any, k: int) -> Floats:
    points = array_of(candidates, "candidates")
    if points.ndim != 2 or points.shape[1] != k or points.dtype.kind not in "fiu" or not np.isfinite(points).all():
        raise InputError(
            f"candidates must be finite split points of shape (m, {k}), a column per class, but its shape is "
            f"{points.shape}. Only differences within a row count."
        )
    return np.asarray(points, dtype=np.float64)


def _automatic(scores: Floats) -> Floats:
    """Distinct rows, thinned where there are too many, and a coarse grid, or mixtures of rows from five classes on."""
    n, k = scores.shape
    more = simplex_grid(k, GRID_STEPS[k]) if k in GRID_STEPS else _mixtures(scores)
    room = max(500, int(WORK / (n * k)) - len(more))
    if n > room:
        warnings.warn(
            f"RecursivePartitioning: of {n:,} distinct rows, {room:,} are tried as split points, beside {len(more):,} "
            f"others. candidates='points' tries all of them, which takes about {n / (room + len(more)):.0f} times as "
            f"long.",
            FitWarning,
            stacklevel=5,
        )
        scores = scores[np.linspace(0, n - 1, room).round().astype(np.int64)]
    points = np.vstack([scores, more])
    # Of equally good splits the first is taken: let it be the most central.
    return np.asarray(points[np.argsort(((points - 1 / k) ** 2).sum(axis=1), kind="stable")])


def _mixtures(scores: Floats) -> Floats:
    """Split points whose differences `gamma_1 - gamma_j` are those of rows drawn one by one, always the same."""
    n, k = scores.shape
    drawn = np.random.default_rng(0).integers(0, n, size=(min(MIXTURES, 4 * n), k - 1))
    points = np.zeros((len(drawn), k))
    for j in range(1, k):
        points[:, j] = scores[drawn[:, j - 1], j] - scores[drawn[:, j - 1], 0]
    return np.asarray(points + ((1 - points.sum(axis=1)) / k)[:, None])


def simplex_grid(n_classes: int, steps: int) -> Floats:
    """Points of the simplex whose coordinates are multiples of 1 / steps; the first coordinate varies slowest."""
    bars = np.zeros((comb(steps + n_classes - 1, n_classes - 1), n_classes), dtype=np.int64)
    rest = np.zeros((1, 0), dtype=np.int64)
    for _ in range(n_classes - 1):
        left = steps - rest.sum(axis=1)
        rest = np.column_stack(
            [np.repeat(rest, left + 1, axis=0), np.concatenate([np.arange(one + 1) for one in left])]
        )
    bars[:, :-1] = rest
    bars[:, -1] = steps - rest.sum(axis=1)
    return np.asarray(bars / steps)
