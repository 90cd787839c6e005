"""Logistic likelihoods brought to their optimum by Newton steps.

Minimises sum_i [t_i log(1 + exp(eta_i)) - s_i eta_i] with eta = b_0 + sum_j b_j x_j, t the weight of a row and s the
part of it that is positive (any value in [0, t], so Platt's targets too). Columns are centred and put in units of
their deviation inside, so any scale works; the answer is in the units given. Many rows start from the fit to a sample
of them, so that about three passes over all rows end it. Outcome codes instead of exceptions.

May import: NumPy, `_design`, `_dot`, `blocks`, `logistic_sums`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels import logistic_sums
from calibrant._kernels._design import (
    SAMPLE,
    Rows,
    back_transform,
    correlations,
    in_range,
    separable,
    sum_rows,
    symmetric,
    thin,
)
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import BLOCK, slices

Floats = NDArray[np.float64]
OK, SEPARABLE, SINGULAR = 0, 1, 2
MAX_STEPS = 200
ROUGH = 1e-2
"""A last step of a fit to a sample, whose own error is as large."""
FLAT = 1e-13
"""A curvature (per unit weight, in standard units) or an eigenvalue of correlations that is none."""


class LogisticFit(NamedTuple):
    """Coefficients (intercept first), whether they are the optimum, loss there without penalty, outcome code.

    Code 1: no finite optimum (separable rows). Code 2: the columns are not independent (one is constant). With both,
    the coefficients are those of the intercept alone.
    """

    coefficients: Floats
    converged: bool
    loss: float
    outcome: int


class _At(NamedTuple):
    """Loss, gradient and curvature at one point."""

    loss: float
    gradient: Floats
    curvature: Floats


def fit_logistic(
    columns: tuple[Floats, ...],
    positives: NDArray[np.uint8] | Floats,
    totals: Floats | None,
    *,
    targets: tuple[float, float] = (0.0, 1.0),
    start: Floats | None = None,
    ridge: Floats | None = None,
) -> LogisticFit:
    """Fit a logistic regression with an intercept by Newton steps with halving.

    `positives` is the positive part of the weights `totals` (None: all 1), or labels, which stand for `targets`.
    `ridge` adds 0.5 ridge_j b_j^2. Time O(n d^2) for each pass, memory O(1) beyond the columns.
    """
    if totals is not None:
        if positives.dtype == np.uint8:
            hits = totals * positives
            positives, targets = hits * targets[1] + (totals - hits) * targets[0], (0.0, 1.0)
        if not totals.all():
            used = totals > 0
            columns, positives, totals = tuple(x[used] for x in columns), positives[used], totals[used]
    return _fit(columns, positives, totals, targets, start, ridge)


def _fit(
    columns: tuple[Floats, ...],
    positives: NDArray[np.uint8] | Floats,
    totals: Floats | None,
    targets: tuple[float, float],
    start: Floats | None,
    ridge: Floats | None,
) -> LogisticFit:
    rows = sum_rows(in_range(columns, totals), positives, totals, targets)
    deviations: Floats = np.sqrt(np.diag(rows.moments)[1:] / rows.weight)
    deviations[(rows.columns.reach == 0.0) | (deviations == 0.0)] = 1.0
    back = back_transform(rows.columns, deviations)
    penalty = np.zeros_like(back) if ridge is None else back.T @ (ridge[:, None] * back)
    begin: Floats = np.zeros(len(back))
    begin[0] = _intercept(rows)
    if np.linalg.eigvalsh(correlations(rows, deviations) + penalty / rows.weight)[0] < FLAT:
        return _intercept_alone(rows, begin, SINGULAR)
    if ridge is None and len(columns) == 1 and separable(rows):
        return _intercept_alone(rows, begin, SEPARABLE)
    if start is not None:
        begin = np.linalg.solve(back, start).astype(np.float64)
    elif rows.size >= 8 * SAMPLE:
        few = thin(rows)
        first = _first_step(rows, deviations, penalty, begin)
        guess = _newton(few, deviations, penalty * (few.weight / rows.weight), first, ROUGH)
        begin = guess.coefficients if guess.converged else begin
    fit = _newton(rows, deviations, penalty, begin, 1e-7)
    if not fit.converged:
        return _intercept_alone(rows, np.eye(len(back))[0] * _intercept(rows), SEPARABLE)
    return fit._replace(coefficients=back @ fit.coefficients)


def _intercept(rows: Rows) -> float:
    share = min(max(float(rows.cross[0]) / rows.weight, 1e-300), 1.0 - 1e-16)
    return math.log(share) - math.log1p(-share)


def _first_step(rows: Rows, deviations: Floats, penalty: Floats, begin: Floats) -> Floats:
    """The Newton step from slopes of 0, where all p are the same: the sums of the rows tell it without a pass."""
    share = float(rows.cross[0]) / rows.weight
    scale = np.concatenate(([1.0], 1.0 / deviations))
    curvature = share * (1.0 - share) * rows.moments * np.outer(scale, scale) + penalty
    gradient = (share * rows.moments[0] - rows.cross) * scale + penalty @ begin
    step: Floats = np.linalg.solve(curvature, gradient) if 0.0 < share < 1.0 else np.zeros_like(begin)
    return np.asarray(begin - step, dtype=np.float64)


def _intercept_alone(rows: Rows, coefficients: Floats, outcome: int) -> LogisticFit:
    loss = _pass(rows, np.ones(len(coefficients) - 1), coefficients).loss
    return LogisticFit(coefficients, False, loss, outcome)


def _newton(rows: Rows, deviations: Floats, penalty: Floats, gamma: Floats, tolerance: float) -> LogisticFit:
    """Newton steps in standard units; a step that raises the loss is halved.

    The last step is one below the tolerance; the error left after it is of the order of the square of the tolerance.
    """
    at = _penalised(rows, deviations, penalty, gamma)
    # A row far out makes a unit of which the curvature of all others is an invisible part: look at theirs.
    units = np.concatenate(([1.0], deviations / np.maximum(rows.columns.bulk, deviations * 1e-100)))
    for _ in range(MAX_STEPS):
        bends = np.diag(at.curvature)
        if np.any(bends * units * units < FLAT * rows.weight):
            break
        scale = 1.0 / np.sqrt(bends)
        balanced = at.curvature * (scale[:, None] * scale)
        across = float(balanced[0, -1])
        least = 1.0 - abs(across) if len(gamma) == 2 else np.linalg.eigvalsh(balanced)[0]
        if least < FLAT:
            break
        step = scale * np.linalg.solve(balanced, scale * at.gradient)
        if np.all(np.abs(step) <= tolerance * (1.0 + np.abs(gamma))):
            gamma = gamma - step
            loss = at.loss - 0.5 * float(step @ at.gradient) - 0.5 * float(gamma @ penalty @ gamma)
            return LogisticFit(gamma, True, loss, OK)
        for _ in range(40):
            after = _penalised(rows, deviations, penalty, gamma - step)
            if after.loss <= at.loss + 1e-13 * abs(at.loss) + 1e-14 * rows.weight:
                break
            step = step / 2
        else:
            break
        gamma, at = gamma - step, after
    return LogisticFit(gamma, False, at.loss, SEPARABLE)


def _penalised(rows: Rows, deviations: Floats, penalty: Floats, gamma: Floats) -> _At:
    at = _pass(rows, deviations, gamma)
    pull = penalty @ gamma
    return _At(at.loss + 0.5 * float(gamma @ pull), at.gradient + pull, at.curvature + penalty)


def _pass_of_one_column(rows: Rows, deviation: float, gamma: Floats) -> _At:
    level, slope = gamma[0], gamma[1] / deviation
    found = logistic_sums.logistic_sums(rows.one_column, float(rows.columns.centres[0]), float(level), float(slope))
    straight = level * (rows.weight - rows.cross[0]) + slope * (rows.moments[0, 1] - rows.cross[1])
    across = found.bend_u / deviation
    curvature = np.array([[found.bend, across], [across, found.bend_uu / deviation / deviation]])
    return _At(found.logs + float(straight), np.array([found.gap, found.gap_u / deviation]), curvature)


def _pass(rows: Rows, deviations: Floats, gamma: Floats) -> _At:
    """One pass over the rows: loss, gradient and curvature in standard units."""
    width, (low, high) = len(gamma), rows.targets
    scale = np.concatenate(([1.0], 1.0 / deviations))
    slopes = gamma * scale
    wide = abs(slopes[0]) + float(np.abs(slopes[1:]) @ rows.columns.reach) > 700.0
    if width == 2 and not wide:  # far out its straight part would hide the rest of the loss
        return _pass_of_one_column(rows, float(deviations[0]), gamma)
    # Sums of p u less those of s u, known already, lose no digits that matter unless a row lies far out.
    near = not wide and bool(np.all(rows.columns.reach <= 100.0 * rows.columns.bulk))
    loss = 0.0 if wide else dot(slopes, rows.moments[0] - rows.cross)
    sums, squares = np.zeros(width), np.zeros((width, width))
    room = np.empty((width + 3, min(BLOCK, rows.size)))
    for at in slices(rows.size):
        p, w, spare, soft, *units = room[:, : at.stop - at.start]
        p.fill(-slopes[0])
        for unit, x, centre, slope in zip(units, rows.columns.values, rows.columns.centres, slopes[1:]):
            np.subtract(x[at], centre, out=unit)
            p -= np.multiply(unit, slope, out=spare)
        totals = None if rows.totals is None else rows.totals[at]
        if not near:
            np.multiply(rows.positives[at], high - low, out=soft)
            soft += low
        if wide:
            loss += _cut(p, soft, totals)
        loss += _bend(p, w, spare, totals, wide)
        if not near:
            p -= soft
        sums[0] += p.sum()
        squares[0, 0] += w.sum()
        for j, unit in enumerate(units, start=1):
            sums[j] += dot(p, unit)
            weighted = np.multiply(w, unit, out=spare)
            squares[j, 0] += weighted.sum()
            for k in range(1, j + 1):
                squares[j, k] += dot(weighted, units[k - 1])
    if near:
        sums -= rows.cross
    return _At(loss, sums * scale, symmetric(squares) * np.outer(scale, scale))


def _cut(p: Floats, soft: Floats, totals: Floats | None) -> float:
    """Cut -eta at 700, where e might overflow; return the sum of t max(eta, 0) - s eta, which is the loss out there."""
    share = np.where(p < 0.0, soft - (1.0 if totals is None else totals), soft)
    loss = dot(share, p)
    np.minimum(p, 700.0, out=p)
    return loss


def _bend(p: Floats, w: Floats, spare: Floats, totals: Floats | None, wide: bool) -> float:
    """From -eta in p, write t p and t p (1 - p); return what the loss has beyond its straight part.

    With e = exp(-eta) and p = 1 / (1 + e), 1 - p = e p holds to full relative accuracy. The straight part is t eta -
    s eta, whose sum needs no pass, and the rest t log(1 + e); or, when `wide`, what `_cut` returns, and the rest
    t log(1 + exp(-|eta|)).
    """
    np.exp(p, out=w)
    if wide:
        np.exp(np.negative(np.abs(p, out=spare), out=spare), out=spare)
        spare += 1.0
    else:
        np.add(w, 1.0, out=spare)
    logs = _sum_of_logs(spare, totals, p)
    np.reciprocal(np.add(w, 1.0, out=p), out=p)
    w *= p
    w *= p
    if totals is not None:
        p *= totals
        w *= totals
    return logs


def _sum_of_logs(numbers: Floats, totals: Floats | None, room: Floats) -> float:
    """Sum of t log a for numbers a >= 1; unweighted by way of products of 16 where these do not overflow."""
    if totals is not None:
        return dot(totals, np.log(numbers, out=room))
    half = len(numbers) // 16 * 8
    with np.errstate(over="ignore"):
        product = np.multiply(numbers[:half], numbers[half : 2 * half], out=room[:half])
        for _ in range(3):
            half //= 2
            product = np.multiply(product[:half], product[half : 2 * half], out=product[:half])
    total = float(np.log(product, out=product).sum())
    if math.isinf(total):
        return float(np.log(numbers, out=room).sum())
    return total + float(np.log(numbers[len(numbers) // 16 * 16 :]).sum())
