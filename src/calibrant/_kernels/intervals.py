"""Limits of intervals: normal and binomial quantiles, and a squared error found by inverting its null distribution.

A sum of debiased squares, T = sum_b (x_b^2 - a_b) with x_b normal of variance a_b, has cumulants (t its expectation)
t, 2 sum a^2 + 4 m t and 8 sum a^3 + 24 m^2 t when all of t sits where a_b = m. Its distribution is taken as a gamma
with these cumulants, which is exact for equal a_b at t = 0, and the interval holds every t that T does not reject.

May import: NumPy, SciPy's special functions inside the functions below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VANISHING = 1e-200
LOW_LUCK = 0.1
"""A T below this quantile of its null distribution narrows the interval no further."""


def normal_quantile(level: float) -> float:
    """The z with `level` between -z and z."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def binomial_limits(hits: Floats, total: Floats, level: float) -> tuple[Floats, Floats]:
    """Clopper-Pearson limits of a rate, entry by entry; counts need not be whole; [0, 1] where the total is 0."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    hits, misses = np.maximum(hits, 0.0), np.maximum(total - hits, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = betaincinv(np.where(hits > 0, hits, 1.0), misses + 1, tail)
        high = betaincinv(hits + 1, np.where(misses > 0, misses, 1.0), 1 - tail)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


# ---------------------------------------------------------------- a squared error


class Spread(NamedTuple):
    """What the distribution of T needs: sums of a^2 and a^3, the sum of a, and the largest a."""

    total: float
    squares: float
    cubes: float
    largest: float


def spread_of(a: Floats) -> Spread:
    """The sums over the bins."""
    return Spread(float(a.sum()), float((a**2).sum()), float((a**3).sum()), float(a.max(initial=0.0)))


def share_below(value: float, truth: float, spread: Spread) -> float:
    """P(T <= value) when its expectation is `truth`."""
    from scipy.special import gammainc

    variance = 2 * spread.squares + 4 * spread.largest * truth
    third = 8 * spread.cubes + 24 * spread.largest**2 * truth
    if variance <= VANISHING:
        return float(value >= truth)
    scale = third / (2 * variance)
    shape = variance / scale**2
    place = (value - truth) / scale + shape
    return float(gammainc(shape, place)) if place > 0 else 0.0


def value_at(share: float, truth: float, spread: Spread) -> float:
    """The quantile of T when its expectation is `truth`."""
    from scipy.special import gammaincinv

    variance = 2 * spread.squares + 4 * spread.largest * truth
    if variance <= VANISHING:
        return truth
    scale = (8 * spread.cubes + 24 * spread.largest**2 * truth) / (2 * variance)
    shape = variance / scale**2
    return truth + scale * (float(gammaincinv(shape, share)) - shape)


def square_limits(value: float, below: Spread, above: Spread, level: float) -> tuple[float, float]:
    """Both ends of the interval of a squared error; `below` serves the lower end, `above` the upper."""
    tail = (1 - level) / 2
    low = 0.0
    if share_below(value, 0.0, below) > 1 - tail:
        low = _crossing(lambda t: share_below(value, t, below) - (1 - tail), 0.0, value)
    seen = max(value, value_at(LOW_LUCK, 0.0, above))
    start = max(seen, above.largest)
    return low, _crossing(lambda t: share_below(seen, t, above) - tail, 0.0, start) if start > 0 else 0.0


def noncentral_limits(statistic: float, degrees: float, level: float) -> tuple[float, float]:
    """Interval of the noncentrality of a chi-squared statistic."""
    from scipy.special import chdtri, chndtr

    tail = (1 - level) / 2
    low, seen = 0.0, max(statistic, float(chdtri(degrees, 1 - LOW_LUCK)))
    if float(chndtr(statistic, degrees, 0.0)) > 1 - tail:
        low = _crossing(lambda t: float(chndtr(statistic, degrees, t)) - (1 - tail), 0.0, statistic)
    return low, _crossing(lambda t: float(chndtr(seen, degrees, t)) - tail, 0.0, seen)


def _crossing(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero; the upper end is moved out until it is below."""
    for _ in range(200):
        if excess(high) <= 0:
            break
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if high - low <= 1e-10 * high or not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def smallest(enough: Callable[[float], bool], start: float) -> float:
    """The least number of rows that is enough, to one part in a thousand; `enough` must stay true once it is."""
    low, high = 0.0, max(start, 1.0)
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e15:
            return math.inf
    while high - low > max(0.5, 1e-3 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
