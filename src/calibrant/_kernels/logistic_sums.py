"""Loss, gradient and curvature of a logistic function of one column: all that a fit with one slope needs, in one pass.

With u = x - centre, eta = level + slope u, p = 1 / (1 + exp(-eta)), t the weight of a row and s the part of it that is
positive: the sums of t log(1 + exp(-eta)), of (t p - s) (1, u) and of t p (1 - p) (1, u, u^2). The first is the loss up
to its straight part, the sum of (t - s) eta, which needs no pass. No gradient is a difference of two large sums.

May import: NumPy, `_compiled`, `_dot`, `blocks`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import compiled, in_two
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices

Floats = NDArray[np.float64]

CELL = 512
"""Rows whose columns stay in the nearest cache."""
FARTHEST = 700.0
"""An eta farther from 0 than this needs care, for exp(-eta) might overflow."""
LOG2_E, LOG_2, ROOT_2 = math.log2(math.e), math.log(2.0), math.sqrt(2.0)
EXP_TERMS = tuple(1 / math.factorial(k) for k in range(12, -1, -1))
"""Of exp r, |r| <= log(2) / 2, highest power first; the rest is below 2e-16."""
LOG_TERMS = tuple(1 / k for k in range(19, 0, -2))
"""Of log((1 + s) / (1 - s)) / (2 s) in s^2, |s| <= 0.18, highest power first."""
SHIFT = 1.5 * 2**52
"""A whole number added to it stands in its last bits."""
MANTISSA, ONE = (1 << 52) - 1, 1023 << 52
"""Bits of the mantissa; the bits of 1.0."""


class Rows(NamedTuple):
    """Rows of one column x."""

    x: Floats
    positives: Floats | NDArray[np.uint8]
    """The part of the weight that is positive, or labels that stand for `targets`."""
    totals: Floats | None
    """Weights; None: all 1."""
    targets: tuple[float, float]
    """What a positive of 0 and of 1 stand for."""
    reach: float
    """No |x - centre| is greater."""
    many: bool
    """Whether to use the compiled pass; both ways agree up to rounding."""


class LogisticSums(NamedTuple):
    """The sums named above, in that order."""

    logs: float
    gap: float
    gap_u: float
    bend: float
    bend_u: float
    bend_uu: float


def logistic_sums(rows: Rows, centre: float, level: float, slope: float) -> LogisticSums:
    """The sums over all rows; about 3 ns a row on one core, twice as much with weights."""
    if not rows.many or abs(level) + abs(slope) * rows.reach > FARTHEST:
        blocks = [_in_numpy(rows, at, centre, level, slope) for at in slices(len(rows.x))]
        return LogisticSums(*np.sum(blocks, axis=0).tolist())
    low, span = rows.targets[0], rows.targets[1] - rows.targets[0]
    totals = np.empty(0) if rows.totals is None else rows.totals
    add_up = _add_labels if rows.positives.dtype == np.uint8 else _add_parts

    def part(first: int, last: int) -> Floats:
        at, sums = slice(first, last), np.zeros(6)
        add_up(rows.x[at], rows.positives[at], totals[at], low, span, centre, level, slope, sums)
        return sums

    return LogisticSums(*np.sum(in_two(part, len(rows.x)), axis=0).tolist())


def _in_numpy(rows: Rows, at: slice, centre: float, level: float, slope: float) -> LogisticSums:
    low, high = rows.targets
    t = 1.0 if rows.totals is None else rows.totals[at]
    u = rows.x[at] - centre
    eta = level + slope * u
    e = np.exp(np.clip(-eta, -FARTHEST, FARTHEST))
    p = 1.0 / (1.0 + e)
    logs = t * (np.log1p(e) + np.maximum(-FARTHEST - eta, 0.0))
    gap = t * p - (rows.positives[at] * (high - low) + low)
    bend = t * (e * p * p)
    bend_u = bend * u
    return LogisticSums(
        float(logs.sum()), float(gap.sum()), dot(gap, u), float(bend.sum()), float(bend_u.sum()), dot(bend_u, u)
    )


def _add_up(
    x: Floats,
    positives: Floats | NDArray[np.uint8],
    totals: Floats,
    low: float,
    span: float,
    centre: float,
    level: float,
    slope: float,
    sums: Floats,
) -> None:  # pragma: no cover
    """Add up cell by cell, in loops without a branch, which run in vector registers."""
    room, spare, weighted = np.empty(CELL), np.empty(CELL), len(totals) > 0
    for begin in range(0, len(x), CELL):
        part, hits, weights = x[begin : begin + CELL], positives[begin : begin + CELL], totals[begin : begin + CELL]
        number = room[: len(part)]
        for i in range(len(part)):
            number[i] = -(level + slope * (part[i] - centre))
        exponentials(number, spare)
        gap_sum, gap_u, bend_sum, bend_u_sum, bend_uu = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(part)):
            e, u, t = number[i], part[i] - centre, weights[i] if weighted else 1.0
            number[i] = 1.0 + e
            p = 1.0 / (1.0 + e)
            gap = t * p - (hits[i] * span + low)
            bend = t * p * (e * p)
            bend_u = bend * u
            gap_sum += gap
            gap_u += gap * u
            bend_sum += bend
            bend_u_sum += bend_u
            bend_uu += bend_u * u
        sums[0] += weighted_logs(number, weights, spare) if weighted else sum_of_logs(number)
        sums[1] += gap_sum
        sums[2] += gap_u
        sums[3] += bend_sum
        sums[4] += bend_u_sum
        sums[5] += bend_uu


def exponentials(z: Floats, spare: Floats) -> None:  # pragma: no cover
    """Write exp z over z, |z| <= 700: exp z = 2^k exp r with z = k log 2 + r."""
    bits = z.view(np.int64)
    for i in range(len(z)):
        k = np.floor(z[i] * LOG2_E + 0.5)
        r, power = z[i] - k * LOG_2, 0.0
        z[i] = k + SHIFT
        for term in EXP_TERMS:
            power = power * r + term
        spare[i] = power
    for i in range(len(z)):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(len(z)):
        z[i] *= spare[i]


def sum_of_logs(numbers: Floats) -> float:  # pragma: no cover
    """Sum of log a for numbers a >= 1: of the exponents, and the logarithm of the product of the mantissas."""
    bits = numbers.view(np.int64)
    exponents, product = 0, 1.0
    for i in range(len(numbers)):
        exponents += bits[i] >> 52
        bits[i] = (bits[i] & MANTISSA) | ONE
    for i in range(len(numbers)):
        product *= numbers[i]
    return math.log(product) + (exponents - 1023 * len(numbers)) * LOG_2


def weighted_logs(numbers: Floats, weights: Floats, spare: Floats) -> float:  # pragma: no cover
    """Sum of w log a for numbers a >= 1: of the exponents, and a series in each mantissa."""
    bits = numbers.view(np.int64)
    for i in range(len(numbers)):
        spare[i] = (bits[i] >> 52) - 1022.5
        bits[i] = (bits[i] & MANTISSA) | ONE
    total = 0.0
    for i in range(len(numbers)):
        s = (numbers[i] - ROOT_2) / (numbers[i] + ROOT_2)
        power = 0.0
        for term in LOG_TERMS:
            power = power * s * s + term
        total += weights[i] * (spare[i] * LOG_2 + 2.0 * s * power)
    return total


HELPERS = (exponentials, sum_of_logs, weighted_logs)
_add_labels = compiled("FBFfffffF*", regroup=True, helpers=HELPERS)(_add_up)
_add_parts = compiled("FFFfffffF*", regroup=True, helpers=HELPERS)(_add_up)
