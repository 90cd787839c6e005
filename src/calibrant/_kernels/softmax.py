"""Softmax, floored logarithms and the temperature of K classes.

`softmax(L)_k = exp(L_k) / sum_j exp(L_j)`, invariant to a constant added to a row. May import NumPy only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOG_FLOOR = float(np.log(np.float64(np.finfo(np.float32).tiny)))
BETA_RANGE = 16.0


def softmax(logits: Floats) -> Floats:
    """Row-wise softmax of (n, K) logits, without overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = logits - logits.max(axis=1, keepdims=True)
        np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def log_floored(p: Floats) -> Floats:
    """Log p with a floor at the log of the smallest normal float32."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LOG_FLOOR)


def log_softmax(logits: Floats) -> Floats:
    """Row-wise log of the softmax."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def fit_temperature(logits: Floats, labels: NDArray[np.int64], weights: Floats) -> tuple[float, int]:
    """Beta = 1/T of least cross-entropy, and an outcome: 0 found, -1 at the lower bound, 1 at the upper bound.

    The derivative `sum_i w_i (sum_k L_ik softmax(beta L_i)_k - L_iy)` rises with beta, so its root is bracketed on
    log(beta * range) in [-16, 16] and found by Newton steps that fall back to bisection.
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    spread = -float(shifted.min())
    if spread == 0:
        return 1.0, -1
    unit = shifted / spread
    chosen = unit[np.arange(len(unit)), labels]
    low, high = -BETA_RANGE, BETA_RANGE
    if _slope(unit, chosen, weights, np.exp(low))[0] >= 0:
        return float(np.exp(low)) / spread, -1
    if _slope(unit, chosen, weights, np.exp(high))[0] <= 0:
        return float(np.exp(high)) / spread, 1
    return _root(unit, chosen, weights, low, high, float(np.log(spread))) / spread, 0


def _root(unit: Floats, chosen: Floats, weights: Floats, low: float, high: float, start: float) -> float:
    at = min(max(start, low + 1e-3), high - 1e-3)
    for _ in range(200):
        beta = float(np.exp(at))
        slope, curvature = _slope(unit, chosen, weights, beta)
        low, high = (at, high) if slope < 0 else (low, at)
        step = -slope / (curvature * beta) if curvature > 0 else np.inf
        new = at + step
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - at) < 1e-14 or high - low < 1e-15:
            return float(np.exp(new))
        at = new
    return float(np.exp(at))


def _slope(unit: Floats, chosen: Floats, weights: Floats, beta: float) -> tuple[float, float]:
    """First and second derivative of the cross-entropy in beta."""
    q = softmax(beta * unit)
    mean = np.einsum("ij,ij->i", q, unit)
    second = np.einsum("ij,ij,ij->i", q, unit, unit)
    return float(weights @ (mean - chosen)), float(weights @ (second - mean**2))


def log1p_floored(p: Floats) -> Floats:
    """log(1 - p) with a floor at the log of the smallest normal float32."""
    with np.errstate(divide="ignore"):
        result: Floats = np.maximum(np.log1p(-p), LOG_FLOOR)
    return result
