"""From paths to maps: trees of a prefix of the splits, averages of them, and the choice by cross-validation.

May import NumPy, the kernels, `calibrant.maps` and this folder.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats, Label
from calibrant._kernels import softmax
from calibrant._kernels.partition import Path
from calibrant.calibrators._logistic import AffineLogit
from calibrant.calibrators._matrix_scaling import StructuredMatrixScaling
from calibrant.calibrators._recursive_cells import Cells, partition
from calibrant.calibrators._temperature import TemperatureScaling
from calibrant.errors import CalibrantWarning
from calibrant.maps import AverageMap, ClassIdentityMap, CorrectedMap, IdentityMap, Map, TreeMap
from calibrant.maps._tree import rows_of

SHARES = np.linspace(0.0, 1.0, 21)
MOST_SIZES = 16
PULL = 10.0
"""Rows, divided as the target says, that every leaf is given before its correction is computed."""
REPEATED_UP_TO, REPEATS = 5000, 3
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class PartitionCurve:
    """How the calibration loss falls as leaves are added.

    Attributes
    ----------
    n_leaves : ndarray of shape (S + 1,)
        Leaves before the first split, and after each.
    log_loss : ndarray of shape (S + 1,)
        Mean cross-entropy of the leaf means on the calibration rows, natural logarithm; it never rises.
    gains : ndarray of shape (S + 1,)
        Objective of each split; 0 for the root.
    """

    n_leaves: NDArray[np.int64]
    log_loss: Floats
    gains: Floats


@dataclass(frozen=True, eq=False)
class PartitionChoice:
    """Out-of-fold losses of what was tried, and what was chosen.

    Attributes
    ----------
    n_leaves : ndarray of shape (G,)
        Numbers of leaves that were tried.
    shrinkage : ndarray of shape (J,)
        Shrinkages that were tried.
    log_loss : ndarray of shape (G, J)
        Mean out-of-fold cross-entropy.
    standard_error : ndarray of shape (G, J)
        Standard error of its difference to the least one, from the folds.
    careful : bool
        Whether the largest shrinkage within one standard error of the least loss is taken, instead of the least loss.
    """

    n_leaves: NDArray[np.int64]
    shrinkage: Floats
    log_loss: Floats
    standard_error: Floats
    careful: bool

    @property
    def best(self) -> tuple[int, float]:
        """The number of leaves and the shrinkage that are taken; of equals, the fewest leaves."""
        losses = self.log_loss
        if self.careful:
            near = losses <= losses.min() + self.standard_error
            column = int(np.flatnonzero(near.any(axis=0))[-1])
            losses = np.where(np.arange(losses.shape[1]) == column, losses, np.inf)
        g, j = np.unravel_index(int(np.argmin(losses)), losses.shape)
        return int(self.n_leaves[g]), float(self.shrinkage[j])


class Recipe(NamedTuple):
    """How trees are made of cells."""

    classes: tuple[Label | None, ...]
    points: Floats | None
    cycles: bool
    smoothing: float | None
    toward: str | None
    n_trees: int


def curve_of(path: Path) -> PartitionCurve:
    """Leaves, loss and objective after every split."""
    size = path.counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = -np.where(path.counts > 0, path.counts * np.log(path.counts / size), 0.0).sum(axis=1)
    kept = [split.children[split.children >= 0] for split in path.splits]
    change = [loss[children].sum() - loss[split.node] for split, children in zip(path.splits, kept)]
    leaves = np.cumsum([1, *(len(children) - 1 for children in kept)])
    losses = np.minimum.accumulate(loss[0] + np.cumsum([0.0, *change])) / size[0, 0]
    return PartitionCurve(leaves, losses, np.array([0.0, *(split.gain for split in path.splits)]))


def splits_within(path: Path, most_leaves: int) -> int:
    """How many of the first splits give at most so many leaves."""
    return int(np.searchsorted(curve_of(path).n_leaves, most_leaves, side="right")) - 1


def tree_map(path: Path, n_splits: int, recipe: Recipe) -> TreeMap:
    """The tree of the first splits; leaves from left to right."""
    splits = path.splits[:n_splits]
    split_of = {split.node: s for s, split in enumerate(splits)}
    leaves: list[int] = []
    stack = [0]
    while stack:
        node = stack.pop()
        if node in split_of:
            stack.extend(int(child) for child in splits[split_of[node]].children[::-1] if child >= 0)
        else:
            leaves.append(node)
    place = {-1: -1, **split_of, **{node: len(splits) + leaf for leaf, node in enumerate(leaves)}}
    children = np.array([place[int(child)] for split in splits for child in split.children])
    points = np.array([split.point for split in splits]).ravel()
    values = smoothed(path.counts[leaves], float(path.counts[0].sum()), recipe.smoothing)
    return TreeMap(recipe.classes, points, children, values)


def smoothed(counts: Floats, total: float, smoothing: float | None) -> Floats:
    """Probabilities of leaves: `(1 - e) mean + e / K`, e = 1 / (N + 1), or `(c_k + s) / (n + K s)`."""
    size, k = counts.sum(axis=1, keepdims=True), counts.shape[1]
    if smoothing is None:
        e = 1 / (total + 1)
        return np.asarray((1 - e) * counts / size + e / k)
    return np.asarray((counts + smoothing) / (size + k * smoothing))


# ---------------------------------------------------------------- averages and targets


class Grown(NamedTuple):
    """A path, and the cells it was grown on."""

    cells: Cells
    path: Path


def grown(cells: Cells, recipe: Recipe, most_leaves: int | None, rng: np.random.Generator) -> list[Grown]:
    """The tree of the cells, or trees of bootstrap samples of them."""
    samples = [cells] if recipe.n_trees == 1 else [cells.resampled(rng) for _ in range(recipe.n_trees)]
    return [Grown(sample, partition(sample, recipe.points, recipe.cycles, most_leaves)) for sample in samples]


def target_map(cells: Cells, recipe: Recipe) -> Map:
    """The smooth map that the trees correct."""
    k = len(recipe.classes)
    if recipe.toward == "identity":
        mix = 1 / (cells.total + 1)
        return IdentityMap(recipe.classes, mix) if k == 2 else ClassIdentityMap(recipe.classes, mix)
    structured = AffineLogit() if k == 2 else StructuredMatrixScaling()
    rows = cells.rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        fitted: Map = (TemperatureScaling(mix=True) if recipe.toward == "temperature" else structured).fit(*rows).map_
    return replace(fitted, classes=recipe.classes)


def answers(made: Map, scores: Floats) -> Floats:
    """Probabilities (n, K) of a map at the scores of cells."""
    return rows_of(made, scores if scores.shape[1] > 2 else scores[:, 1])


def correction(one: Grown, n_splits: int, recipe: Recipe, target: Map) -> TreeMap:
    """How much more of each class a leaf holds than the target says, `(c_k + s q_k / n) / (q_k + s q_k / n)`.

    q_k is the sum of the target's probabilities in the leaf, n its weight, s = `PULL`. The leaves of the tree hold
    these factors, divided by their sum.
    """
    tree = tree_map(one.path, n_splits, recipe)
    leaf = tree.leaf_of(one.cells.scores)
    counts, expected = np.zeros(tree.leaves.shape), np.zeros(tree.leaves.shape)
    np.add.at(counts, leaf, one.cells.counts)
    np.add.at(expected, leaf, one.cells.counts.sum(axis=1, keepdims=True) * answers(target, one.cells.scores))
    pull = PULL / expected.sum(axis=1, keepdims=True)
    factors = (counts + pull * expected) / np.maximum(expected * (1 + pull), TINY)
    return TreeMap(recipe.classes, tree.points, tree.children, factors / factors.sum(axis=1, keepdims=True))


def trees_of(found: list[Grown], most_leaves: int, recipe: Recipe, target: Map | None) -> list[TreeMap]:
    """The trees, cut back to so many leaves: their leaf values, or their corrections of a target."""
    cut = [(one, splits_within(one.path, most_leaves)) for one in found]
    if target is None:
        return [tree_map(one.path, n_splits, recipe) for one, n_splits in cut]
    return [correction(one, n_splits, recipe, target) for one, n_splits in cut]


def joined(trees: list[TreeMap], target: Map | None, shrinkage: float) -> Map:
    """One map of the trees and the target."""
    classes = trees[0].classes
    if target is not None:
        return CorrectedMap(classes, shrinkage, (target, *trees))
    return trees[0] if len(trees) == 1 else AverageMap(classes, tuple(trees))


# ---------------------------------------------------------------- cross-validation


class Trials(NamedTuple):
    """What is tried by cross-validation: numbers of leaves, shrinkages; in how many folds."""

    sizes: NDArray[np.int64]
    shares: Floats
    n_folds: int
    careful: bool


def cross_validated(cells: Cells, recipe: Recipe, trials: Trials, rng: np.random.Generator) -> PartitionChoice:
    """Out-of-fold loss of every number of leaves and every shrinkage; few rows are divided several times.

    Cost: `n_folds` times that of the fit, three times where rows are few.
    """
    found = []
    for _ in range(REPEATS if len(cells.scores) <= REPEATED_UP_TO else 1):
        for held, rest in cells.folds(trials.n_folds, rng):
            found.append((held.total, _held_losses(held, rest, recipe, trials, rng)))
    weights = np.array([weight for weight, _ in found])
    by_fold = np.array([losses for _, losses in found])
    means = by_fold.sum(axis=0) / weights.sum()
    best = np.unravel_index(int(np.argmin(means)), means.shape)
    differences = (by_fold - by_fold[:, best[0], best[1]][:, None, None]) / weights[:, None, None]
    errors = differences.std(axis=0) / np.sqrt(max(trials.n_folds - 1, 1))
    return PartitionChoice(trials.sizes, trials.shares, means, errors, trials.careful)


def _held_losses(held: Cells, rest: Cells, recipe: Recipe, trials: Trials, rng: np.random.Generator) -> Floats:
    """Total loss on the rows held out, for every number of leaves and shrinkage."""
    found = grown(rest, recipe, int(trials.sizes[-1]), rng)
    target = None if recipe.toward is None else target_map(rest, recipe)
    losses = np.empty((len(trials.sizes), len(trials.shares)))
    for g, most in enumerate(trials.sizes):
        trees = trees_of(found, int(most), recipe, target)
        if target is None:
            made = joined(trees, None, 0.0)
            losses[g] = -(held.counts * softmax.log_floored(answers(made, held.scores))).sum()
            continue
        start = softmax.log_floored(answers(target, held.scores))
        step = np.mean([softmax.log_floored(tree.rows(held.scores)) for tree in trees], axis=0)
        for j, share in enumerate(trials.shares):
            losses[g, j] = -(held.counts * softmax.log_softmax(start + (1 - share) * step)).sum()
    return losses


def sizes_to_try(path: Path) -> NDArray[np.int64]:
    """Numbers of leaves along a path: all of them, or a few spread evenly in the logarithm."""
    leaves = curve_of(path).n_leaves
    if len(leaves) <= MOST_SIZES:
        return leaves
    wanted = np.geomspace(1, len(leaves), MOST_SIZES).round().astype(np.int64) - 1
    return np.asarray(leaves[np.unique(wanted)])
