"""Penalised logistic regression on few cells, and the gathering of rows into them: the engine of spline calibration.

Minimises `sum t log(1 + exp(X v)) - s X v + v' P v / 2`, P symmetric and not negative, by Newton steps with halving.
May import NumPy, `_compiled`, `blocks` and `likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled
from calibrant._kernels.blocks import slices
from calibrant._kernels.likelihood import expit

Floats = NDArray[np.float64]
Columns = Callable[[slice], tuple[Floats, Floats]]

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


class Gathered(NamedTuple):
    """Cells of nearby ascending z: place of the first, least and greatest z, sums of positives, negatives, w z."""

    starts: NDArray[np.int64]
    least: Floats
    greatest: Floats
    positives: Floats
    negatives: Floats
    moment: Floats


def gather(z: Floats, columns: Columns, total: float, unit: float, most: int) -> Gathered:
    """Gather ascending z in at most so many cells, cut at equal shares of the weight and at equal steps of z.

    Tails keep cells of their own by that. `columns(at)` gives positives and negatives of a slice, `total` is their sum;
    the moments are in units of `unit`. Nothing as long as z is made.
    """
    if len(z) < MANY or len(z) <= most:
        return _gather_few(z, *columns(slice(0, len(z))), unit, most)
    starts, sums = np.zeros(most + 1, dtype=np.int64), np.zeros((most + 1, 5))
    state = np.array([0.0, -1.0, -1.0, -1.0])
    cuts = (float(z[0]), _width(z), total, most // 2)
    for at in slices(len(z)):
        _add_to_cells(z[at], *columns(at), *cuts, unit, at.start, state, starts, sums.reshape(-1))
    count = int(state[3]) + 1
    return Gathered(starts[:count], *sums[:count].T.copy())


def _gather_few(z: Floats, positives: Floats, negatives: Floats, unit: float, most: int) -> Gathered:
    weight = positives + negatives
    starts = _starts(z, weight, most)
    sums = [np.add.reduceat(values, starts) for values in (positives, negatives, weight * (z / unit))]
    return Gathered(starts, z[starts], z[np.append(starts[1:], len(z)) - 1], *sums)


def _starts(z: Floats, weight: Floats, most: int) -> NDArray[np.int64]:
    if len(z) <= most:
        return np.arange(len(z))
    half = most // 2
    share = np.cumsum(weight) - weight / 2
    by_weight = np.minimum((share / weight.sum() * half).astype(np.int64), half - 1)
    by_place = np.minimum(((z - z[0]) / _width(z) * half).astype(np.int64), half - 1)
    changes = (np.diff(by_weight) != 0) | (np.diff(by_place) != 0)
    return np.flatnonzero(np.concatenate([[True], changes]))


def _width(z: Floats) -> float:
    return float(z[-1] - z[0]) or 1.0


@compiled("FFFfffifiF*I*F*")
def _add_to_cells(
    z: Floats,
    positives: Floats,
    negatives: Floats,
    low: float,
    width: float,
    total: float,
    half: int,
    unit: float,
    first: int,
    state: Floats,
    starts: NDArray[np.int64],
    sums: Floats,
) -> None:
    """Add entries to the last cell or to new ones; `state` is the weight so far, the two cuts, and the last cell."""
    reached, by_weight, by_place, top = state[0], int(state[1]), int(state[2]), int(state[3])
    for i in range(len(z)):
        weight = positives[i] + negatives[i]
        reached += weight
        share = min(int((reached - weight / 2) / total * half), half - 1)
        place = min(int((z[i] - low) / width * half), half - 1)
        if share != by_weight or place != by_place:
            top += 1
            starts[top] = first + i
            sums[5 * top] = z[i]
            by_weight, by_place = share, place
        sums[5 * top + 1] = z[i]
        sums[5 * top + 2] += positives[i]
        sums[5 * top + 3] += negatives[i]
        sums[5 * top + 4] += weight * (z[i] / unit)
    state[0], state[1], state[2], state[3] = reached, by_weight, by_place, top
