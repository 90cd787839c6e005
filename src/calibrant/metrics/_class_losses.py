"""Estimates of the proper scores of K classes: means of the losses of rows.

Invariant: the mean over rows that come in parts is the sum of the means over the parts, and so is its interval.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import intervals
from calibrant.data._arrays import ClassRows
from calibrant.errors import InputError
from calibrant.metrics._design import cluster_codes
from calibrant.metrics._influence import clustered_variance
from calibrant.metrics._inputs import row_weights
from calibrant.metrics._intervals import Estimate
from calibrant.metrics._scores import brier_score, log_loss


@dataclass(frozen=True)
class MeanLoss:
    """A weighted mean over rows, and the sums that its variance is made of; those of two sets of rows add.

    `squares`, `cross` and `spread` are the sums of w^2, of w^2 (x - mean) and of w^2 (x - mean)^2.
    """

    rows: int
    weight: float
    mean: float
    squares: float
    cross: float
    spread: float

    @classmethod
    def of(cls, weights: Floats, loss: Floats) -> MeanLoss:
        """The mean of independent rows; where it is not finite it has no variance."""
        total = float(weights.sum())
        mean = float((weights * loss).sum() / total)
        square = weights**2
        if not math.isfinite(mean):
            return cls(len(loss), total, mean, float(square.sum()), 0.0, 0.0)
        apart = loss - mean
        sums = (float(part.sum()) for part in (square, square * apart, square * apart**2))
        return cls(len(loss), total, mean, *sums)

    def __add__(self, other: MeanLoss) -> MeanLoss:
        """The mean over the rows of both."""
        weight = self.weight + other.weight
        mean = (self.weight * self.mean + other.weight * other.mean) / weight
        moved = [one._about(mean) for one in (self, other)]
        cross, spread = (sum(parts) for parts in zip(*moved))
        return MeanLoss(self.rows + other.rows, weight, mean, self.squares + other.squares, cross, spread)

    def _about(self, mean: float) -> tuple[float, float]:
        """`cross` and `spread` about another mean."""
        step = mean - self.mean
        return self.cross - step * self.squares, self.spread - 2 * step * self.cross + step**2 * self.squares

    @property
    def variance(self) -> float:
        """Squared standard error."""
        return self.spread / self.weight**2 * self.rows / max(self.rows - 1, 1)

    def estimate(self, level: float, *, positive: bool) -> Estimate:
        """The mean with its interval; `positive` for a loss, which is normal on the log scale."""
        return _with_ends(self.mean, self.variance, level, positive)


def class_estimate(
    measure: Any, reads: Sequence[Any], level: float, groups: Any, sample_weight: Any, options: dict[str, Any]
) -> Estimate:
    """Estimate of one forecast, or of the difference of two."""
    if measure not in (brier_score, log_loss) or not all(isinstance(read, ClassRows) for read in reads):
        columns = next(read.scores.shape[1] for read in reads if isinstance(read, ClassRows))
        raise InputError(
            f"{measure.__name__} has an interval for two classes only, and there are {columns} columns. Take "
            f"brier_score or log_loss, or judge one class against the rest (y == k and column k)."
        )
    losses = [row_losses(measure, read, **options) for read in reads]
    weights = row_weights(reads[0])
    loss = losses[0] if len(losses) == 1 else losses[0] - losses[1]
    found = MeanLoss.of(weights, loss)
    if groups is None or not math.isfinite(found.mean):
        return found.estimate(level, positive=len(losses) == 1)
    cluster = cluster_codes(groups, sample_weight, len(loss))
    variance = clustered_variance(weights, loss - found.mean, cluster)
    return _with_ends(found.mean, variance, level, positive=len(losses) == 1)


def _with_ends(value: float, variance: float, level: float, positive: bool) -> Estimate:
    if not math.isfinite(value):
        return Estimate(value, value, value, level, "mean of independent losses")
    half = intervals.normal_quantile(level) * math.sqrt(variance)
    if positive and value > 0:
        ends = value * math.exp(-half / value), value * math.exp(half / value)
    else:
        ends = value - half, value + half
    return Estimate(value, *ends, level, "mean of independent losses")


def row_losses(measure: Any, rows: ClassRows, eps: float | None = None) -> Floats:
    """The Brier score or the log loss of every row."""
    chosen = np.take_along_axis(rows.scores, rows.labels[:, None], axis=1)[:, 0]
    if measure is brier_score:
        return np.asarray(np.einsum("ij,ij->i", rows.scores, rows.scores) - chosen**2 + (1 - chosen) ** 2)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.maximum(chosen, eps or 0.0)))
