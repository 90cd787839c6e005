"""Frozen maps of recursive partitioning: a tree of splits, an average of maps, a map corrected leaf by leaf.

A row p goes, at the split with point gamma, to the child of the class with the largest `p_k - gamma_k` (the first of
several); where no calibration row ever went, to the best of the other children. A leaf holds its probabilities.
May import NumPy, the kernels, `calibrant.maps._base` and `_records`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import softmax
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, ClassMap, Map, matrix, number, parts, vector
from calibrant.maps._records import StepMap

FARTHEST_POINT = 1e300
"""Of a split point; sums of two must be numbers."""


@dataclass(frozen=True, eq=False)
class RowMap(Map):
    """A map of K >= 2 columns of probabilities; for two classes it takes and gives those of the positive one."""

    @property
    def reads(self) -> str:
        return "probability"

    @abstractmethod
    def rows(self, scores: Floats) -> Floats:
        """Probabilities (n, K) of checked probabilities (n, K)."""

    def positive(self, scores: Floats) -> Floats:
        """Two classes: probabilities (n,) of the positive class."""
        return np.ascontiguousarray(self.rows(np.column_stack([1 - scores, scores]))[:, 1])

    def __call__(self, scores: Any) -> Any:
        """Calibrated probabilities: (n,) for two classes, (n, K) otherwise."""
        face = _BinaryFace if len(self.classes) == 2 else _ClassFace
        return face(self.classes, self)(scores)


@dataclass(frozen=True, eq=False)
class _BinaryFace(BinaryMap):
    record: RowMap

    @property
    def reads(self) -> str:
        return self.record.reads

    def _apply(self, scores: Floats) -> Floats:
        return self.record.positive(scores)


@dataclass(frozen=True, eq=False)
class _ClassFace(ClassMap):
    record: RowMap

    @property
    def reads(self) -> str:
        return self.record.reads

    def _apply_rows(self, scores: Floats) -> Floats:
        return self.record.rows(scores)


# ---------------------------------------------------------------- the tree


@dataclass(frozen=True, eq=False)
class TreeMap(RowMap):
    """A tree of splits with S split points and L leaves.

    Attributes
    ----------
    points : ndarray of shape (S * K,)
        The split points one after the other; the first is the root, and a split comes after its parent.
    children : ndarray of shape (S * K,)
        For every split and class: a split s as s, a leaf l as S + l, no child as -1.
    leaves : ndarray of shape (L, K)
        Probabilities; rows sum to 1.
    """

    kind: ClassVar[str] = "tree"
    points: Floats = vector(-FARTHEST_POINT, FARTHEST_POINT)
    children: Floats = vector(-1)
    leaves: Floats = matrix(0, 1)

    def _validate(self) -> None:
        k, n_leaves = len(self.classes), len(self.leaves)
        if self.leaves.shape[1:] != (k,) or len(self.points) != len(self.children) or len(self.points) % k:
            raise InputError("there must be a number for every split and class, and for every leaf and class.")
        if np.abs(self.leaves.sum(axis=1) - 1).max() > 1e-9:
            raise InputError("the probabilities of every one of the leaves must sum to 1.")
        n_splits = len(self.points) // k
        if np.any(self.children != np.round(self.children)) or np.any(self.children.reshape(-1, k).max(axis=1) < 0):
            raise InputError("children must be whole numbers, and every split must have one child or more.")
        named = np.sort(self.children[self.children >= 0])
        if not np.array_equal(named, np.arange(1, n_splits + n_leaves) if n_splits else []):
            raise InputError("children: every split but the first, and every leaf, must be the child of one split.")
        parents = np.repeat(np.arange(n_splits), k)
        inner = (self.children >= 0) & (self.children < n_splits)
        if np.any(self.children[inner] <= parents[inner]) or (n_splits == 0 and n_leaves != 1):
            raise InputError("children: a split must come after the split that it is a child of.")

    @cached_property
    def split_points(self) -> Floats:
        """The split points, (S, K)."""
        return self.points.reshape(-1, len(self.classes))

    def leaf_of(self, scores: Floats) -> NDArray[np.int64]:
        """Index of the leaf of every row of checked probabilities (n, K). Cost: O(K) per row and split on its way."""
        n_splits, k = self.split_points.shape
        children = self.children.astype(np.int64).reshape(-1, k)
        leaf = np.zeros(len(scores), dtype=np.int64)
        waiting = {0: np.arange(len(scores))}
        for s in range(n_splits):
            rows = waiting.pop(s)
            lead = scores[rows] - self.split_points[s]
            lead[:, children[s] < 0] = -np.inf
            goes = lead.argmax(axis=1)
            for k, child in enumerate(children[s]):
                if child >= n_splits:
                    leaf[rows[goes == k]] = child - n_splits
                elif child >= 0:
                    waiting[int(child)] = rows[goes == k]
        return leaf

    def rows(self, scores: Floats) -> Floats:
        return np.asarray(self.leaves[self.leaf_of(scores)])

    def positive(self, scores: Floats) -> Floats:
        return self.as_steps._apply(scores)

    @cached_property
    def as_steps(self) -> StepMap:
        """Two classes: the same map as a step function of the probability of the positive class."""
        below, above = self.split_points[:, 0], self.split_points[:, 1]
        ends = np.unique(np.where(np.abs(below + above - 1) < 1e-9, above, (1 + above - below) / 2))
        inside = np.append(ends, np.nextafter(ends[-1], np.inf) if len(ends) else 0.5)
        values = self.leaves[self.leaf_of(np.column_stack([1 - inside, inside])), 1]
        return StepMap(self.classes, np.nextafter(ends, np.inf), values)


# ---------------------------------------------------------------- averages


def rows_of(part: Map, scores: Floats) -> Floats:
    """Probabilities (n, K) of a part, whatever it gives for two classes."""
    p = part(scores)
    return np.column_stack([1 - p, p]) if p.ndim == 1 else np.asarray(p)


@dataclass(frozen=True, eq=False)
class AverageMap(RowMap):
    """The mean of the probabilities of several maps."""

    kind: ClassVar[str] = "average"
    maps: tuple[Map, ...] = parts()

    def _validate(self) -> None:
        _same_classes(self, self.maps)

    def rows(self, scores: Floats) -> Floats:
        return np.asarray(np.mean([rows_of(part, scores) for part in self.maps], axis=0))

    def positive(self, scores: Floats) -> Floats:
        return np.asarray(np.mean([part(scores) for part in self.maps], axis=0))


@dataclass(frozen=True, eq=False)
class CorrectedMap(RowMap):
    """A map whose probabilities are corrected by factors, `q * (geometric mean of the factors)^(1 - shrinkage)`.

    Rows are divided by their sum, so that only the ratios of the factors of a row count.

    Attributes
    ----------
    shrinkage : float
        0 corrects in full, 1 not at all.
    maps : tuple
        First the map that is corrected, then one or more that give the factors.
    """

    kind: ClassVar[str] = "corrected"
    shrinkage: float = number(0, 1)
    maps: tuple[Map, ...] = parts()

    def _validate(self) -> None:
        _same_classes(self, self.maps)
        if len(self.maps) < 2:
            raise InputError("there must be a map to correct, and a map of factors.")

    def rows(self, scores: Floats) -> Floats:
        return self._combined([rows_of(part, scores) for part in self.maps])

    def positive(self, scores: Floats) -> Floats:
        given = [part(scores) for part in self.maps]
        return np.ascontiguousarray(self._combined([np.column_stack([1 - p, p]) for p in given])[:, 1])

    def _combined(self, given: list[Floats]) -> Floats:
        first, *factors = (softmax.log_floored(p) for p in given)
        return softmax.softmax(first + (1 - self.shrinkage) * np.mean(factors, axis=0))


def _same_classes(whole: Map, maps: tuple[Map, ...]) -> None:
    if any(part.classes != whole.classes or part.reads != "probability" for part in maps):
        raise InputError("every part must read probabilities and have the classes of the whole.")
