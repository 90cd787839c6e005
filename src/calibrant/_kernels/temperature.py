"""The temperature of K classes.

The derivative of the cross-entropy in beta, `sum_i w_i (sum_k L_ik softmax(beta L_i)_k - L_iy)`, rises with beta, so
its root is bracketed on log(beta * range of the logits) in [-16, 16] and found by Newton steps that fall back to
bisection.
May import NumPy and the kernels beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from calibrant._kernels.class_blocks import ClassBlocks, Rows

FOUND, NO_SIGNAL, TOO_SHARP = 0, -1, 1
BETA_RANGE = 16.0
MAX_STEPS = 200
ENOUGH = 3e-9
"""A Newton step in log beta after which the next would be lost in rounding."""
LONGEST = 2.0
"""The longest step in log beta."""
SLOW = 60
"""Newton steps after which only halving is trusted."""
SAMPLE = 2**12
"""Rows of a sample at least; problems of eight times as many start from the temperature of every eighth row."""


def fit_temperature(rows: Rows) -> tuple[float, int]:
    """Beta = 1/T of least cross-entropy, and an outcome: found, or at the lower (no signal) or upper bound."""
    spread = _reach(rows)
    if spread == 0:
        return 1.0, NO_SIGNAL
    start = 0.0
    if rows.size >= 8 * SAMPLE:
        beta, outcome = fit_temperature(rows.thinned(8))
        start = math.log(beta) if outcome == FOUND else 0.0
    ends = (-BETA_RANGE - math.log(spread), BETA_RANGE - math.log(spread))
    return _root(_slope(rows), ends, start)


def _root(slope: Callable[[float], tuple[float, float]], ends: tuple[float, float], start: float) -> tuple[float, int]:
    """The root in log beta; an end is tried only when the search has come to it."""
    low, high = ends
    at = min(max(start, low), high)
    for number in range(MAX_STEPS):
        first, second = slope(math.exp(at))
        if at == ends[0] and first >= 0:
            return math.exp(at), NO_SIGNAL
        if at == ends[1] and first <= 0:
            return math.exp(at), TOO_SHARP
        if first == 0 == second and at < ends[1]:  # all softmax mass has gone to the labels
            at = ends[1]
            continue
        low, high = (at, high) if first < 0 else (low, at)
        step = -first / second if second > 0 else math.copysign(LONGEST, -first)
        new = at + min(max(step, -LONGEST), LONGEST)
        if abs(step) < ENOUGH or high - low < 1e-15:
            return math.exp(min(max(new, low), high)), FOUND
        if not low < new < high or number > SLOW:
            new = _aside(new, low, high, ends)
        at = new
    return math.exp(at), FOUND


def _aside(new: float, low: float, high: float, ends: tuple[float, float]) -> float:
    """Where to go when the step leaves the bracket: to an end that was not tried, or to the middle."""
    if new >= high == ends[1]:
        return high
    if new <= low == ends[0]:
        return low
    return (low + high) / 2


def _reach(rows: Rows) -> float:
    """The widest range of a row's logits."""
    return -rows.least(lambda logs: float(logs.min()))


def _slope(rows: Rows) -> Callable[[float], tuple[float, float]]:
    """First and second derivative of the cross-entropy, the first in beta and times it, the second in log beta."""

    def work(beta: float, part: ClassBlocks, first: int, last: int) -> tuple[float, float]:
        logs = part.block(first, last)
        scaled = beta * logs
        q = np.exp(scaled)
        total = q.sum(axis=0)
        q *= scaled
        mean = q.sum(axis=0) / total
        q *= scaled
        spread = q.sum(axis=0) / total - mean**2
        mean -= scaled[part.labels[first:last], np.arange(last - first)]
        weight = part.weight(first, last)
        if weight is None:
            return float(mean.sum()), float(spread.sum())
        return float(weight @ mean), float(weight @ spread)

    return lambda beta: rows.sums(partial(work, beta))
