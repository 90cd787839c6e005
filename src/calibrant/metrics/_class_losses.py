"""Estimates of the proper scores of K classes: means of the losses of rows.

May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    losses = [_losses(measure, read, **options) for read in reads]
    weights = row_weights(reads[0])
    loss = losses[0] if len(losses) == 1 else losses[0] - losses[1]
    value = float((weights * loss).sum() / weights.sum())
    if not math.isfinite(value):
        return Estimate(value, value, value, level, "mean of independent losses")
    cluster = np.arange(len(loss)) if groups is None else cluster_codes(groups, sample_weight, len(loss))
    half = intervals.normal_quantile(level) * math.sqrt(clustered_variance(weights, loss - value, cluster))
    if len(losses) == 1 and value > 0:
        ends = value * math.exp(-half / value), value * math.exp(half / value)
    else:
        ends = value - half, value + half
    return Estimate(value, *ends, level, "mean of independent losses")


def _losses(measure: Any, rows: ClassRows, eps: float | None = None) -> Floats:
    chosen = np.take_along_axis(rows.scores, rows.labels[:, None], axis=1)[:, 0]
    if measure is brier_score:
        return np.asarray(np.einsum("ij,ij->i", rows.scores, rows.scores) - chosen**2 + (1 - chosen) ** 2)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.maximum(chosen, eps or 0.0)))
