"""Additive statistics: what a generative classifier needs of its rows, as sums.

Invariant: `s(a) + s(b) = s(a and b)`, and `s(weights)` is linear in the weights, so that a statistic can also be moved
along a signed correction. A record is frozen and free of rows; it adds (`+`), scales (`*`) and pickles.
May import NumPy, `calibrant._checks` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant.errors import InputError

Sums = TypeVar("Sums")


def merge(parts: Iterable[Sums]) -> Sums:
    """The sum of statistics (or of steps) of several blocks.

    Parameters
    ----------
    parts : iterable
        Records that add: at least one. They are added in order and not kept.

    Returns
    -------
    record
        The statistics of all the rows; the order of the parts does not matter, up to rounding.

    Raises
    ------
    InputError
        When there is no part, or parts of different classes or features.

    Examples
    --------
    >>> from calibrant.generative import GaussianNaiveBayes, merge
    >>> model = GaussianNaiveBayes()
    >>> parts = [model.block_statistics([[0.0], [1.0]], [0, 1], [0, 1]), model.block_statistics([[3.0]], [1], [0, 1])]
    >>> merge(parts).counts
    array([1., 2.])
    """
    parts = iter(parts)
    try:
        first = next(parts)
    except StopIteration:
        raise InputError("merge needs at least one part, but there is none.") from None
    return reduce(add, parts, first)


@dataclass(frozen=True, eq=False)
class CategoricalStatistics:
    """Weight of each class, and of each category of each feature in each class.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        Weight of the rows of each class.
    cells : tuple of ndarray of shape (number of categories, K)
        One table per feature; its columns add up to `counts`.
    categories : tuple of ndarray
        The categories of each feature, sorted. Merging takes their union.
    """

    counts: Floats
    cells: tuple[Floats, ...]
    categories: tuple[NDArray[Any], ...]

    def __add__(self, other: Self) -> Self:
        _same_shape(self.counts, other.counts, len(self.cells), len(other.cells))
        if self.categories is other.categories:
            cells = tuple(map(add, self.cells, other.cells))
            return replace(self, counts=self.counts + other.counts, cells=cells)
        union = tuple(_union(j, *pair) for j, pair in enumerate(zip(self.categories, other.categories)))
        return self._over(union) + other._over(union)

    def __mul__(self, factor: float) -> Self:
        return replace(self, counts=self.counts * factor, cells=tuple(table * factor for table in self.cells))

    def _over(self, categories: tuple[NDArray[Any], ...]) -> Self:
        """The same sums over more categories; the new ones have weight 0."""
        cells = []
        for table, mine, all_of_them in zip(self.cells, self.categories, categories):
            wider = np.zeros((len(all_of_them), table.shape[1]))
            wider[np.searchsorted(all_of_them, mine)] = table
            cells.append(wider)
        return replace(self, cells=tuple(cells), categories=categories)


def _union(feature: int, mine: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    if np.array_equal(mine, others):
        return mine
    if (mine.dtype.kind in "US") != (others.dtype.kind in "US"):
        raise InputError(f"Feature {feature} holds text in one part and numbers in another: code it in one way.")
    if mine.dtype.kind in "US":
        return np.union1d(mine, others)
    return np.arange(min(mine[0], others[0]), max(mine[-1], others[-1]) + 1)


@dataclass(frozen=True, eq=False)
class MomentStatistics:
    """Weight of each class, sums and sums of squares about an origin.

    The origin keeps the digits of features far from 0; sums about different origins add exactly like others, because
    the second is moved to the origin of the first.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        The point that the sums are taken about.
    counts : ndarray of shape (K,)
        Weight of the rows of each class.
    sums : ndarray of shape (K, d)
        Sum of `x - origin`.
    squares : ndarray of shape (K, d, d), (K, d) or (d,)
        Sum of products, of squares, or of squares whatever the class.
    """

    origin: Floats
    counts: Floats
    sums: Floats
    squares: Floats

    def __add__(self, other: Self) -> Self:
        _same_shape(self.counts, other.counts, len(self.origin), len(other.origin))
        other = other.about(self.origin)
        return replace(
            self,
            counts=self.counts + other.counts,
            sums=self.sums + other.sums,
            squares=self.squares + other.squares,
        )

    def __mul__(self, factor: float) -> Self:
        return replace(self, counts=self.counts * factor, sums=self.sums * factor, squares=self.squares * factor)

    def about(self, origin: Floats) -> Self:
        """The same rows, summed about another origin."""
        if origin is self.origin or np.array_equal(origin, self.origin):
            return self
        shift = self.origin - origin
        counts, sums = self.counts[:, None], self.sums
        if self.squares.ndim == 3:
            cross = sums[:, :, None] * shift
            change = cross + cross.transpose(0, 2, 1) + counts[:, :, None] * np.multiply.outer(shift, shift)
        else:
            change = 2 * sums * shift + counts * shift**2
            change = change.sum(axis=0) if self.squares.ndim == 1 else change
        return replace(self, origin=origin, sums=sums + counts * shift, squares=self.squares + change)

    def total_squares(self) -> Floats:
        """Sum of squares of each feature over all classes, (d,)."""
        if self.squares.ndim == 3:
            return np.asarray(np.einsum("kjj->j", self.squares))
        return self.squares if self.squares.ndim == 1 else np.asarray(self.squares.sum(axis=0))


def _same_shape(mine: Floats, others: Floats, features: int, other_features: int) -> None:
    if len(mine) != len(others) or features != other_features:
        raise InputError(
            f"Statistics of {len(mine)} classes and {features} features cannot be added to those of {len(others)} "
            f"classes and {other_features} features: use the same classes and columns for every block."
        )


@dataclass(frozen=True, eq=False)
class RiskStep:
    """Sums over rows: how a model does on them, and the correction of its statistics.

    Attributes
    ----------
    correction : statistics, or None
        `sum_i w_i (s(x_i, y_i) - sum_y h(y | x_i) s(x_i, y))`: minus the gradient of the summed log loss in log-linear
        weights. None where rows are only judged.
    weight : float
        Weight of the rows.
    error_sum, soft_error_sum, log_loss_sum : float
        Weighted sums of wrong decisions, of `1 - h(y_i | x_i)` and of `-log h(y_i | x_i)`.
    """

    correction: Any
    weight: float
    error_sum: float
    soft_error_sum: float
    log_loss_sum: float

    def __add__(self, other: Self) -> Self:
        correction = None if self.correction is None else self.correction + other.correction
        return type(self)(
            correction,
            self.weight + other.weight,
            self.error_sum + other.error_sum,
            self.soft_error_sum + other.soft_error_sum,
            self.log_loss_sum + other.log_loss_sum,
        )

    @property
    def error(self) -> float:
        """Share of wrong decisions."""
        return self.error_sum / self.weight

    @property
    def soft_error(self) -> float:
        """Mean probability that is not on the true class."""
        return self.soft_error_sum / self.weight

    @property
    def log_loss(self) -> float:
        """Mean log loss, natural logarithm."""
        return self.log_loss_sum / self.weight
