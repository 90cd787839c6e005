"""Penalised logistic regression on few cells: the engine of spline calibration.

Minimises `sum t log(1 + exp(X v)) - s X v + v' P v / 2`, P symmetric and not negative, by Newton steps with halving.
May import NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.likelihood import expit

Floats = NDArray[np.float64]

MAX_STEPS = 50


def fit_penalised(design: Floats, positives: Floats, totals: Floats, penalty: Floats, start: Floats) -> Floats:
    """The coefficients of least penalised loss; `positives` is the positive part of each cell's weight `totals`."""
    at = start
    loss = _loss(design, positives, totals, penalty, at)
    for _ in range(MAX_STEPS):
        p = expit(design @ at)
        gradient = design.T @ (totals * p - positives) + penalty @ at
        curvature = (design.T * (totals * p * (1 - p))) @ design + penalty
        step: Floats = np.asarray(np.linalg.lstsq(curvature, gradient, rcond=1e-14)[0], dtype=np.float64)
        decrement = float(gradient @ step)
        if decrement <= 1e-12 * (1 + abs(loss)):
            break
        at, loss, moved = _halved(design, positives, totals, penalty, at, loss, step)
        if not moved:
            break
    return at


def _halved(
    design: Floats, positives: Floats, totals: Floats, penalty: Floats, at: Floats, loss: float, step: Floats
) -> tuple[Floats, float, bool]:
    """The first of the full step, its half, its quarter, ... that lowers the loss."""
    for halving in range(40):
        new = at - step * 0.5**halving
        lower = _loss(design, positives, totals, penalty, new)
        if lower < loss:
            return new, lower, True
    return at, loss, False


def _loss(design: Floats, positives: Floats, totals: Floats, penalty: Floats, at: Floats) -> float:
    eta = design @ at
    return float(totals @ np.logaddexp(0, eta) - positives @ eta + at @ penalty @ at / 2)


def cells(z: Floats, weight: Floats, most: int) -> NDArray[np.intp]:
    """Cell of each ascending z: cut at equal shares of the weight and at equal steps of z, so tails keep cells too."""
    if len(z) <= most:
        return np.arange(len(z))
    half = most // 2
    share = np.cumsum(weight) - weight / 2
    by_weight = np.minimum((share / weight.sum() * half).astype(np.intp), half - 1)
    by_place = np.minimum(((z - z[0]) / (z[-1] - z[0]) * half).astype(np.intp), half - 1)
    changes = (np.diff(by_weight) != 0) | (np.diff(by_place) != 0)
    return np.concatenate([[0], np.cumsum(changes)])
