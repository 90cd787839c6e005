"""The rules of Gaussian classes on columns that are anything with `+` and `*`: arrays, or expressions of an engine.

May import NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations_with_replacement
from operator import add
from typing import Any

import numpy as np

from calibrant._checks import Floats


def quadratic_rule(z: Sequence[Any], means: Floats, factors: Sequence[Floats], offsets: Floats) -> list[Any]:
    """`offset_k - |F_k (z - mean_k)|^2 / 2` of columns; zeros of F are left out."""
    found = []
    for mean, factor, offset in zip(means, factors, offsets):
        centred = [column - float(zero) for column, zero in zip(z, mean)]
        lines = [[centred[j] * float(line[j]) for j in np.flatnonzero(line)] for line in factor]
        white = [reduce(add, line) for line in lines if line]
        found.append(reduce(add, (one * one * -0.5 for one in white), float(offset)))
    return found


def linear_rule(z: Sequence[Any], slopes: Floats, offsets: Floats) -> list[Any]:
    """`offset_k + slope_k' z` of columns."""
    return [
        reduce(add, (column * float(slope) for column, slope in zip(z, line)), float(offset))
        for line, offset in zip(slopes, offsets)
    ]


def triangle(whitening: Floats) -> Floats:
    """The upper triangle T with `|T x| = |W' x|`, which takes half the products: `W' = Q T`.

    The QR decomposition does not mind features of different units.
    """
    return np.asarray(np.linalg.qr(whitening.T).R)


def products(z: Sequence[Any]) -> list[Any]:
    """`z_i z_j` for i <= j."""
    return [z[i] * z[j] for i, j in combinations_with_replacement(range(len(z)), 2)]


def symmetric(sums: Floats) -> Floats:
    """Matrices (K, d, d) from the sums of `products`, (K, d (d + 1) / 2)."""
    d = (math.isqrt(8 * sums.shape[1] + 1) - 1) // 2
    result = np.empty((len(sums), d, d))
    upper = np.triu_indices(d)
    result[:, *upper] = sums
    result[:, *upper[::-1]] = sums
    return result
