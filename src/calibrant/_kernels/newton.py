"""Logistic likelihoods brought to their optimum by Newton steps.

Minimises sum_i [t_i log(1 + exp(eta_i)) - s_i eta_i] with eta = b_0 + sum_j b_j x_j, t the weight of a row and s the
part of it that is positive (any value in [0, t], so Platt's targets too). Columns are standardised inside, so any
scale works; the answer is in the units given. Outcome codes instead of exceptions.

May import: NumPy, and `_compiled` when there are many rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.likelihood import expit, log_odds

Floats = NDArray[np.float64]
OK, SEPARABLE, SINGULAR = 0, 1, 2
BLOCK = 2**14
MAX_STEPS = 60


class LogisticFit(NamedTuple):
    """Coefficients (intercept first), whether they are the optimum, loss there without penalty, outcome code."""

    coefficients: Floats
    converged: bool
    loss: float
    outcome: int


class _Standard(NamedTuple):
    """Column j is used as (ldexp(x, power_j) - mean_j) / deviation_j."""

    powers: NDArray[np.int64]
    means: Floats
    deviations: Floats


def fit_logistic(
    columns: tuple[Floats, ...],
    soft_positives: Floats,
    totals: Floats | None,
    *,
    start: Floats | None = None,
    ridge: Floats | None = None,
) -> LogisticFit:
    """Fit a logistic regression with an intercept by Newton steps with halving."""
    weights = np.ones(len(soft_positives)) if totals is None else totals
    standard = _standardise(columns, weights)
    if standard is None:
        return LogisticFit(np.zeros(len(columns) + 1), False, np.inf, SINGULAR)
    units = [
        (np.ldexp(x, power) - mean) / deviation
        for x, power, mean, deviation in zip(columns, standard.powers, standard.means, standard.deviations)
    ]
    design = np.stack([np.ones(len(weights)), *units])
    back = _back_transform(standard)
    penalty = np.zeros_like(back) if ridge is None else back.T @ (ridge[:, None] * back)
    covariance = (design * weights) @ design.T / weights.sum() + penalty / weights.sum()
    if np.linalg.eigvalsh(covariance)[0] < 1e-13 * len(back):
        return LogisticFit(np.zeros(len(back)), False, np.inf, SINGULAR)
    begin: Floats = np.zeros(len(back)) if start is None else np.linalg.solve(back, start)
    gamma, converged, loss = _newton(design, soft_positives, weights, penalty, begin)
    return LogisticFit(back @ gamma, converged, loss, OK if converged else SEPARABLE)


def _standardise(columns: tuple[Floats, ...], weights: Floats) -> _Standard | None:
    powers, means, deviations = [], [], []
    for x in columns:
        used = x[weights > 0]
        if used.min() == used.max():
            return None
        power = min(-int(np.frexp(np.abs(used).max())[1]), 1023)
        scaled = np.ldexp(x, power)
        mean = float(np.dot(scaled, weights) / weights.sum())
        deviation = float(np.sqrt(np.dot(weights, (scaled - mean) ** 2) / weights.sum()))
        if not deviation > 0:
            return None
        powers.append(power)
        means.append(mean)
        deviations.append(deviation)
    return _Standard(np.array(powers, dtype=np.int64), np.array(means), np.array(deviations))


def _back_transform(standard: _Standard) -> Floats:
    size = len(standard.powers) + 1
    back = np.eye(size)
    back[0, 1:] = -standard.means / standard.deviations
    np.fill_diagonal(back[1:, 1:], np.ldexp(1.0 / standard.deviations, standard.powers))
    return back


def _newton(
    design: Floats, soft: Floats, weights: Floats, penalty: Floats, begin: Floats
) -> tuple[Floats, bool, float]:
    gamma = begin
    loss, gradient, curvature = _pass(design, soft, weights, penalty, gamma)
    for _ in range(MAX_STEPS):
        if np.linalg.eigvalsh(curvature)[0] < 1e-14 * weights.sum():
            return gamma, False, loss
        step = np.linalg.solve(curvature, gradient)
        size = float(np.abs(step).max())
        share = 1.0
        while share > 1e-10:
            trial = gamma - share * step
            after = _pass(design, soft, weights, penalty, trial)
            if after[0] <= loss + 1e-13 * abs(loss):
                break
            share /= 2
        gamma = trial
        loss, gradient, curvature = after
        if size <= 1e-9 * (1.0 + float(np.abs(gamma).max())):
            return gamma, True, loss - 0.5 * float(gamma @ penalty @ gamma)
    return gamma, False, loss


def _pass(
    design: Floats, soft: Floats, weights: Floats, penalty: Floats, gamma: Floats
) -> tuple[float, Floats, Floats]:
    loss = 0.5 * float(gamma @ penalty @ gamma)
    gradient = penalty @ gamma
    curvature = penalty.copy()
    for first in range(0, len(soft), BLOCK):
        part = slice(first, first + BLOCK)
        rows = design[:, part]
        eta = gamma @ rows
        p = expit(eta)
        w = weights[part]
        loss += float(np.dot(w, np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))) - np.dot(soft[part], eta))
        gradient = gradient + rows @ (w * p - soft[part])
        curvature = curvature + (rows * (w * p * expit(-eta))) @ rows.T
    return loss, gradient, curvature


def fit_logistic_rows(
    scores: Floats, labels: NDArray[np.uint8], weights: Floats | None, low_target: float, high_target: float
) -> LogisticFit:
    """Fit one slope and an intercept to rows, label 1 standing for `high_target` and 0 for `low_target`."""
    targets = np.where(labels == 1, high_target, low_target)
    return fit_logistic((scores,), targets if weights is None else weights * targets, weights)


def fit_affine_logit_rows(
    p: Floats,
    labels: NDArray[np.uint8],
    weights: Floats | None,
    low_target: float,
    high_target: float,
    low_clip: float,
    high_clip: float,
) -> LogisticFit:
    """Fit on the log-odds of p, with p = 0 read as `low_clip` and p = 1 as `high_clip`."""
    moved = np.where(p == 0.0, low_clip, np.where(p == 1.0, high_clip, p))
    return fit_logistic_rows(log_odds(moved), labels, weights, low_target, high_target)


def fit_temperature_binary(z: Floats, positives: Floats, negatives: Floats) -> tuple[float, int]:
    """Inverse temperature beta at which sum z [(t) expit(beta z) - s] is 0, and 0, or -1 / +1 at a bound."""
    half = float(np.abs(z).max()) if len(z) else 0.0
    if half == 0.0:
        return 1.0, -1
    u = z / half / 2
    totals = positives + negatives
    low, high = -16.0, 16.0
    if _slope(u, positives, totals, np.exp(low))[0] >= 0:
        return float(np.exp(low) / half / 2), -1
    if _slope(u, positives, totals, np.exp(high))[0] <= 0:
        return float(np.exp(high) / half / 2), 1
    t = 0.0
    for _ in range(100):
        value, rise = _slope(u, positives, totals, np.exp(t))
        low, high = (t, high) if value < 0 else (low, t)
        new = t - value / rise if rise > 0 else np.inf
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - t) <= 1e-15 * max(1.0, abs(t)):
            break
        t = new
    return float(np.exp(new) / half / 2), 0


def _slope(u: Floats, positives: Floats, totals: Floats, beta: float) -> tuple[float, float]:
    """Derivative of the loss by beta, and its own derivative by log beta."""
    p = expit(beta * u)
    q = expit(-beta * u)
    value = float(np.dot(u, (totals - positives) * p - positives * q))
    return value, beta * float(np.dot(u * u, totals * p * q))
