"""Weights of a mixture of forecasts that minimise its log loss.

Maximises `f(w) = sum_i n_i log(sum_c w_c q_ic) + sum_c a_c log w_c` over the simplex, a_c > 0, by Newton steps along
the simplex with halving; q_ic is the probability that forecast c gave to what was observed in cell i, n_i its
weight. The objective is concave and self-concordant, so a dozen steps end it. May import NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_STEPS = 100
DONE = 1e-9


def mixture_weights(chosen: Floats, counts: Floats, prior: Floats) -> Floats:
    """Weights (C,) from probabilities of what was observed (m, C), their counts (m,) and prior counts (C,)."""
    possible = chosen.max(axis=1) > 0
    chosen, counts = chosen[possible], counts[possible]
    weights = np.full(len(prior), 1 / len(prior))
    value = _value(chosen, counts, prior, weights)
    for _ in range(MAX_STEPS):
        step, gain = _newton_step(chosen, counts, prior, weights)
        if gain < DONE:
            break
        weights, value, moved = _halved(chosen, counts, prior, weights, value, step)
        if not moved:
            break
    return weights


def _value(chosen: Floats, counts: Floats, prior: Floats, weights: Floats) -> float:
    return float(counts @ np.log(chosen @ weights) + prior @ np.log(weights))


def _newton_step(chosen: Floats, counts: Floats, prior: Floats, weights: Floats) -> tuple[Floats, float]:
    """The step that keeps the sum, and the gain it promises."""
    ratio = chosen / (chosen @ weights)[:, None]
    gradient = ratio.T @ counts + prior / weights
    curvature = (ratio.T * counts) @ ratio + np.diag(prior / weights**2)
    size = len(weights)
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = curvature
    system[:size, size] = system[size, :size] = 1.0
    solved = np.linalg.solve(system, np.append(gradient, 0.0))
    step = solved[:size]
    return step, float(gradient @ step) / 2


def _halved(
    chosen: Floats, counts: Floats, prior: Floats, weights: Floats, value: float, step: Floats
) -> tuple[Floats, float, bool]:
    """The longest of the full step, its half, ... that stays inside the simplex and raises the value."""
    length = 1.0
    falling = step < 0
    if falling.any():
        length = min(1.0, 0.99 * float((weights[falling] / -step[falling]).min()))
    for _ in range(50):
        new = weights + length * step
        new /= new.sum()
        better = _value(chosen, counts, prior, new)
        if better > value:
            return new, better, True
        length /= 2
    return weights, value, False
