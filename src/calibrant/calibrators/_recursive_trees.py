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
from calibrant.maps import AverageMap, ClassIdentityMap, IdentityMap, Map, TowardMap, TreeMap

SHARES = np.linspace(0.0, 1.0, 21)
MOST_SIZES = 16
REPEATED_UP_TO, REPEATS = 5000, 3


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
    """

    n_leaves: NDArray[np.int64]
    shrinkage: Floats
    log_loss: Floats

    @property
    def best(self) -> tuple[int, float]:
        """The number of leaves and the shrinkage of least loss; of equals, the fewest leaves."""
        g, j = np.unravel_index(int(np.argmin(self.log_loss)), self.log_loss.shape)
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


def paths_of(cells: Cells, recipe: Recipe, most_leaves: int | None, rng: np.random.Generator) -> list[Path]:
    """The tree of the cells, or trees of bootstrap samples of them."""
    samples = [cells] if recipe.n_trees == 1 else [cells.resampled(rng) for _ in range(recipe.n_trees)]
    return [partition(sample, recipe.points, recipe.cycles, most_leaves) for sample in samples]


def target_map(cells: Cells, recipe: Recipe) -> Map:
    """What the trees are shrunk to."""
    k = len(recipe.classes)
    if recipe.toward == "identity":
        mix = 1 / (cells.total + 1)
        return IdentityMap(recipe.classes, mix) if k == 2 else ClassIdentityMap(recipe.classes, mix)
    structured = AffineLogit() if k == 2 else StructuredMatrixScaling()
    rows = cells.rows()
    fitted: Map = (TemperatureScaling(mix=True) if recipe.toward == "temperature" else structured).fit(*rows).map_
    return replace(fitted, classes=recipe.classes)


def joined(trees: list[TreeMap], target: Map | None, share: float) -> Map:
    """One map of the trees, a share of the way to the target."""
    mean = trees[0] if len(trees) == 1 else AverageMap(trees[0].classes, tuple(trees))
    return mean if target is None else TowardMap(mean.classes, share, (mean, target))


# ---------------------------------------------------------------- cross-validation


def cross_validated(
    cells: Cells, recipe: Recipe, sizes: NDArray[np.int64], shares: Floats, n_folds: int, rng: np.random.Generator
) -> PartitionChoice:
    """Out-of-fold loss of every number of leaves and every shrinkage; few rows are divided several times.

    Cost: `n_folds` times that of the fit, three times where rows are few.
    """
    losses = np.zeros((len(sizes), len(shares)))
    weight = 0.0
    for _ in range(REPEATS if len(cells.scores) <= REPEATED_UP_TO else 1):
        for held, rest in cells.folds(n_folds, rng):
            losses += _held_losses(held, rest, recipe, sizes, shares, rng)
            weight += held.total
    return PartitionChoice(sizes, shares, losses / weight)


def _held_losses(
    held: Cells, rest: Cells, recipe: Recipe, sizes: NDArray[np.int64], shares: Floats, rng: np.random.Generator
) -> Floats:
    paths = paths_of(rest, recipe, int(sizes[-1]), rng)
    goal = None
    if recipe.toward is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = target_map(rest, recipe)(held.scores if len(recipe.classes) > 2 else held.scores[:, 1])
        goal = softmax.log_floored(np.column_stack([1 - answer, answer]) if answer.ndim == 1 else answer)
    losses = np.empty((len(sizes), len(shares)))
    for g, most in enumerate(sizes):
        trees = [tree_map(path, splits_within(path, int(most)), recipe) for path in paths]
        mean = softmax.log_floored(np.mean([tree.rows(held.scores) for tree in trees], axis=0))
        for j, share in enumerate(shares):
            logs = mean if goal is None else softmax.log_softmax((1 - share) * mean + share * goal)
            losses[g, j] = -float((held.counts * logs).sum())
    return losses


def sizes_to_try(path: Path) -> NDArray[np.int64]:
    """Numbers of leaves along a path: all of them, or a few spread evenly in the logarithm."""
    leaves = curve_of(path).n_leaves
    if len(leaves) <= MOST_SIZES:
        return leaves
    wanted = np.geomspace(1, len(leaves), MOST_SIZES).round().astype(np.int64) - 1
    return np.asarray(leaves[np.unique(wanted)])
