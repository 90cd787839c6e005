"""Loss, gradient and curvature of a logistic function of one column: all that a fit with one slope needs, in one pass.

With u = x - centre, eta = level + slope u, p = 1 / (1 + exp(-eta)), t the weight of a row and s the part of it that is
positive: the sums of t log(1 + exp(eta)) - s eta, of (t p - s) (1, u) and of t p (1 - p) (1, u, u^2). No sum is taken
as a difference of two large ones, and no eta overflows.

May import: NumPy, `_compiled`, `_dot`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import compiled, in_two
from calibrant._kernels._dot import dot

Floats = NDArray[np.float64]

FARTHEST = 700.0
"""Beyond it exp(-eta) is cut, and the loss goes on as a line."""
LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
ROOT_2 = 1.4142135623730951
SHIFT = 6755399441055744.0
"""1.5 * 2^52: a whole number added to it stands in its last bits."""
MANTISSA = (1 << 52) - 1
ONE = 1023 << 52
"""The bits of 1.0."""


class Rows(NamedTuple):
    """Rows of one column x."""

    x: Floats
    positives: Floats | NDArray[np.uint8]
    """The part of the weight that is positive, or labels that stand for `targets`."""
    totals: Floats | None
    """Weights; None: all 1."""
    targets: tuple[float, float]
    """What a positive of 0 and of 1 stand for."""
    many: bool
    """Whether to use the compiled pass; both ways agree up to rounding."""


class LogisticSums(NamedTuple):
    """The sums named above, in that order."""

    loss: float
    gap: float
    gap_u: float
    bend: float
    bend_u: float
    bend_uu: float


def logistic_sums(rows: Rows, centre: float, level: float, slope: float) -> LogisticSums:
    """The sums over all rows; about 3 ns a row on one core, twice as much with weights."""
    if not rows.many:
        return _in_numpy(rows, centre, level, slope)
    low, span = rows.targets[0], rows.targets[1] - rows.targets[0]
    totals = np.empty(0) if rows.totals is None else rows.totals
    add_up = _add_labels if rows.positives.dtype == np.uint8 else _add_parts

    def part(first: int, last: int) -> Floats:
        sums = np.zeros(6)
        at = slice(first, last)
        add_up(rows.x[at], rows.positives[at], totals[at], low, span, centre, level, slope, sums)
        return sums

    return LogisticSums(*np.sum(in_two(part, len(rows.x)), axis=0).tolist())


def _in_numpy(rows: Rows, centre: float, level: float, slope: float) -> LogisticSums:
    low, high = rows.targets
    soft = rows.positives * (high - low) + low
    t = 1.0 if rows.totals is None else rows.totals
    u = rows.x - centre
    eta = level + slope * u
    e = np.exp(-np.clip(eta, -FARTHEST, FARTHEST))
    p = 1.0 / (1.0 + e)
    loss = t * (np.log1p(e) + np.maximum(-FARTHEST - eta, 0.0)) + (t - soft) * eta
    gap = t * p - soft
    bend = t * (e * p * p)
    bend_u = bend * u
    return LogisticSums(
        float(loss.sum()), float(gap.sum()), dot(gap, u), float(bend.sum()), float(bend_u.sum()), dot(bend_u, u)
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
    """Add up blocks that stay in the nearest cache, in loops without a branch, which run in vector registers.

    exp(z) = 2^k q(r), z = k log 2 + r, with q the series to r^12, whose rest is below 2e-16. log(1 + e) is k log 2 and
    the logarithm of the mantissa: one of their product for rows without weights, else a series in each row.
    """
    size, weighted = 512, len(totals) > 0
    room, spare, weight = np.empty(size), np.empty(size), np.ones(size)
    bits = room.view(np.int64)
    for begin in range(0, len(x), size):
        count = min(size, len(x) - begin)
        part = x[begin : begin + count]
        hits = positives[begin : begin + count]
        if weighted:
            weight[:count] = totals[begin : begin + count]
        for i in range(count):
            z = min(max(-(level + slope * (part[i] - centre)), -700.0), 700.0)
            k = np.floor(z * LOG2_E + 0.5)
            r = z - k * LOG_2
            room[i] = k + SHIFT
            q = r * (1 / 479001600) + 1 / 39916800
            q = q * r + 1 / 3628800
            q = q * r + 1 / 362880
            q = q * r + 1 / 40320
            q = q * r + 1 / 5040
            q = q * r + 1 / 720
            q = q * r + 1 / 120
            q = q * r + 1 / 24
            q = q * r + 1 / 6
            q = q * r + 0.5
            q = q * r + 1.0
            spare[i] = q * r + 1.0
        for i in range(count):
            bits[i] = (bits[i] + 1023) << 52
        loss, gap_sum, gap_u, bend_sum, bend_u_sum, bend_uu = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(count):
            e = spare[i] * room[i]
            room[i] = 1.0 + e
            p = 1.0 / (1.0 + e)
            u = part[i] - centre
            eta = level + slope * u
            t = weight[i]
            soft = hits[i] * span + low
            gap = t * p - soft
            bend = t * p * (e * p)
            bend_u = bend * u
            loss += (t - soft) * eta + t * max(-700.0 - eta, 0.0)
            gap_sum += gap
            gap_u += gap * u
            bend_sum += bend
            bend_u_sum += bend_u
            bend_uu += bend_u * u
        sums[1] += gap_sum
        sums[2] += gap_u
        sums[3] += bend_sum
        sums[4] += bend_u_sum
        sums[5] += bend_uu
        if weighted:
            for i in range(count):
                spare[i] = (bits[i] >> 52) - 1023
                bits[i] = (bits[i] & MANTISSA) | ONE
            for i in range(count):
                s = (room[i] - ROOT_2) / (room[i] + ROOT_2)
                z = s * s
                q = z * (1 / 19) + 1 / 17
                q = q * z + 1 / 15
                q = q * z + 1 / 13
                q = q * z + 1 / 11
                q = q * z + 1 / 9
                q = q * z + 1 / 7
                q = q * z + 1 / 5
                q = q * z + 1 / 3
                loss += weight[i] * ((spare[i] + 0.5) * LOG_2 + 2.0 * s * (q * z + 1.0))
        else:
            exponents = np.int64(0)
            for i in range(count):
                exponents += bits[i] >> 52
                bits[i] = (bits[i] & MANTISSA) | ONE
            product = 1.0
            for i in range(count):
                product *= room[i]
            loss += math.log(product) + (exponents - 1023 * count) * LOG_2
        sums[0] += loss


_add_labels = compiled("FBFfffffF*", regroup=True)(_add_up)
_add_parts = compiled("FFFfffffF*", regroup=True)(_add_up)
