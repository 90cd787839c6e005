"""Sums of squared error and of negative log-likelihood, the logistic function and the log-odds.

Sums, not means: `sum w (p - y)^2` and `sum -w log q` with q the probability given to what happened.

May import: NumPy, `_dot`.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._dot import dot

Floats = NDArray[np.float64]
BLOCK = 2**15
LOG_FLOOR = -87.33654475055310
"""log of the smallest normal float32: the floor of log p and of log(1 - p)."""


def squared_error(p: Floats, labels: NDArray[np.uint8], weights: Floats | None) -> float:
    """Sum of w (p - y)^2."""

    def block(at: slice, room: Floats) -> float:
        gap = np.subtract(p[at], labels[at], out=room)
        return dot(gap, gap if weights is None else np.multiply(gap, weights[at]))

    return _sum_blocks(block, len(p))


def squared_error_counts(p: Floats, positives: Floats, negatives: Floats) -> float:
    """Sum of positives (1 - p)^2 + negatives p^2."""

    def block(at: slice, room: Floats) -> float:
        happened = dot(positives[at], np.square(np.subtract(1.0, p[at], out=room), out=room))
        return happened + dot(negatives[at], np.square(p[at], out=room))

    return _sum_blocks(block, len(p))


def neg_log_likelihood(p: Floats, labels: NDArray[np.uint8], weights: Floats | None) -> float:
    """Sum of -w log q, q = p for a positive and 1 - p for a negative; infinite when q = 0 happened."""

    def block(at: slice, room: Floats) -> float:
        given = np.subtract(labels[at], 1.0, out=room)
        given += p[at]
        np.abs(given, out=given)
        return _sum_of_logs(given) if weights is None else _weighted(weights[at], given)

    return 0.0 - _sum_blocks(block, len(p))


def neg_log_likelihood_counts(p: Floats, positives: Floats, negatives: Floats) -> float:
    """Sum of -positives log p - negatives log(1 - p), a count of 0 contributing nothing."""

    def block(at: slice, room: Floats) -> float:
        np.copyto(room, p[at])
        happened = _weighted(positives[at], room)
        return happened + _weighted(negatives[at], np.subtract(1.0, p[at], out=room))

    return 0.0 - _sum_blocks(block, len(p))


def _weighted(weights: Floats, given: Floats) -> float:
    """Sum of w log q, a weight of 0 contributing nothing; overwrites q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = dot(weights, np.log(given, out=given))
    if math.isnan(total):  # weight 0 met log 0
        given[weights == 0] = 0.0
        total = dot(weights, given)
    return total


def _sum_of_logs(given: Floats) -> float:
    """Sum of log q by way of products of 16, or one by one where a product comes near to vanishing."""
    half = len(given) // 16 * 8
    product, rest = given[: 2 * half], given[2 * half :]
    for _ in range(4):
        product = product[:half] * product[half:]
        half //= 2
    with np.errstate(divide="ignore"):
        if product.min(initial=1.0) < 1e-280:
            return float(np.log(given).sum())
        return float(np.log(product).sum() + np.log(rest).sum())


def _sum_blocks(block: Callable[[slice, Floats], float], size: int) -> float:
    """Sum of `block(rows, room)` over blocks that stay in the cache; `room` is scratch of the block's length.

    One thread: the steps inside a block are so short that two threads would wait for each other.
    """
    room = np.empty(min(BLOCK, size))
    return math.fsum(
        block(slice(begin, begin + BLOCK), room[: min(BLOCK, size - begin)]) for begin in range(0, size, BLOCK)
    )


def expit(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), without overflow for any z."""
    result = np.empty(z.shape)
    flat, out = z.reshape(-1), result.reshape(-1)
    room = np.empty(min(BLOCK, len(flat)))
    for begin in range(0, len(flat), BLOCK):
        part = flat[begin : begin + BLOCK]
        small = np.abs(part, out=room[: len(part)])
        np.exp(np.negative(small, out=small), out=small)
        share = np.reciprocal(np.add(small, 1.0, out=out[begin : begin + BLOCK]), out=out[begin : begin + BLOCK])
        np.multiply(share, small, out=share, where=part < 0)
    return result


def log_odds(p: Floats, floor: float = LOG_FLOOR) -> Floats:
    """Log p - log(1 - p), each logarithm floored; 1 - p is exact where p >= 1/2."""
    result = np.empty(p.shape)
    flat, out = p.reshape(-1), result.reshape(-1)
    with np.errstate(divide="ignore"):
        for begin in range(0, len(flat), BLOCK):
            part, odds = flat[begin : begin + BLOCK], out[begin : begin + BLOCK]
            np.divide(part, np.subtract(1.0, part, out=odds), out=odds)
            np.clip(np.log(odds, out=odds), floor, -floor, out=odds)
    return result
