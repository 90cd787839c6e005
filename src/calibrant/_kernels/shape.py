"""What lies beyond a logistic line: its standard error, its loss, and the terms of a cubic, block by block.

The terms are the square and the cube of u, the column z limited to [low, high] and standardised, each orthogonal to
what is before it: 1, z, and the square. By weighted Gram-Schmidt, done twice: once leaves errors of the size of what
was taken away, a second time those of what is left, as least squares would. Where u takes too few values, what is left
of a power is its rounding, which is no term. A weight of None stands for ones.

May import: NumPy, `_dot`, `blocks`, `likelihood`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant._kernels.likelihood import expit

Floats = NDArray[np.float64]
ROUNDING = 1e-12
"""What is left of a power, as a share of it, when it is rounding."""


class _Axis(NamedTuple):
    """A column less its mean, and the sum of its squares."""

    column: Floats
    centre: float
    squares: float


def slope_error(z: Floats, weight: Floats | None, intercept: float, slope: float) -> float:
    """Standard error of the slope of a logistic line."""
    information = np.empty_like(z)
    for at in slices(len(z)):
        p = expit(intercept + slope * z[at])
        np.multiply(p, 1 - p, out=information[at])
        information[at] *= 1.0 if weight is None else weight[at]
    mean = dot(information, z) / float(information.sum())
    spread = sum(dot(information[at], (z[at] - mean) ** 2) for at in slices(len(z)))
    return float(1 / np.sqrt(spread))


def identity_loss(z: Floats, positives: NDArray[np.uint8] | Floats, weight: Floats | None) -> float:
    """Minus the log-likelihood of rows whose log-odds are z."""
    loss = 0.0
    for at in slices(len(z)):
        logs = np.maximum(z[at], 0.0)
        logs += np.log(1.0 + np.exp(-np.abs(z[at])))
        loss += float(logs.sum()) if weight is None else dot(weight[at], logs)
        loss -= dot(positives[at].astype(np.float64), z[at])
    return loss


def terms(z: Floats, weight: Floats | None, low: float, high: float) -> list[Floats | None]:
    """The square and the cube; None for one of which nothing is left."""
    centre = _mean(z, weight, low, high)
    deviation = np.sqrt(_squares(z, weight, centre, low, high) / _total(z, weight))
    if deviation == 0.0:
        return [None, None]
    mean = _mean(z, weight, -np.inf, np.inf)
    axes = [_Axis(z, mean, _squares(z, weight, mean, -np.inf, np.inf))]
    found: list[Floats | None] = []
    for power in (2, 3):
        column = np.empty_like(z)
        for at in slices(len(z)):
            u = np.clip(z[at], low, high)
            u -= centre
            u /= deviation
            np.multiply(u, u, out=column[at])
            if power == 3:
                column[at] *= u
        axis = _left_of(column, axes, weight)
        found.append(None if axis is None else column)
        axes += [] if axis is None else [axis]
    return found


def _left_of(column: Floats, axes: list[_Axis], weight: Floats | None) -> _Axis | None:
    """Take from a column, in place, its mean and its parts along the axes; None where no more than rounding is left."""
    whole = _squares(column, weight, 0.0)
    for _ in range(2):
        shares = _shares(column, axes, weight)
        for at in slices(len(column)):
            for axis, share in zip(axes, shares[1:]):
                part = axis.column[at] - axis.centre
                part *= share
                column[at] -= part
            column[at] -= shares[0]
    left = _squares(column, weight, 0.0)
    return _Axis(column, 0.0, left) if left > ROUNDING**2 * whole else None


def _shares(column: Floats, axes: list[_Axis], weight: Floats | None) -> list[float]:
    """The mean of a column, and the slope of its part along each axis."""
    sums = [0.0] * (len(axes) + 1)
    for at in slices(len(column)):
        weighted = column[at] if weight is None else column[at] * weight[at]
        sums[0] += float(weighted.sum())
        for j, axis in enumerate(axes, start=1):
            sums[j] += dot(weighted, axis.column[at] - axis.centre)
    return [part / size for part, size in zip(sums, (_total(column, weight), *(axis.squares for axis in axes)))]


def _total(column: Floats, weight: Floats | None) -> float:
    return float(len(column)) if weight is None else float(weight.sum())


def _mean(column: Floats, weight: Floats | None, low: float, high: float) -> float:
    """Mean of a column limited to [low, high]; a second look at what lies beside the first leaves no rounding of it."""
    mean = 0.0
    for _ in range(2):
        beside = 0.0
        for at in slices(len(column)):
            part = np.clip(column[at], low, high)
            part -= mean
            beside += float(part.sum()) if weight is None else dot(part, weight[at])
        mean += beside / _total(column, weight)
    return mean


def _squares(column: Floats, weight: Floats | None, centre: float, low: float = -np.inf, high: float = np.inf) -> float:
    """Sum of the squares of a column limited to [low, high], less the centre."""
    total = 0.0
    for at in slices(len(column)):
        part = np.clip(column[at], low, high)
        part -= centre
        total += dot(part, part if weight is None else part * weight[at])
    return total
