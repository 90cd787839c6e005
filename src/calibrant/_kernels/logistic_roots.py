"""Logistic fits of one number: the temperature of two classes, and the shift of log-odds.

Both are roots of a function that rises, found by Newton steps inside a bracket.

May import: NumPy, `_compiled`, `_design`, `_dot`, `logistic_sums`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY
from calibrant._kernels._design import SAMPLE
from calibrant._kernels._dot import dot
from calibrant._kernels.logistic_sums import Rows, logistic_sums

Floats = NDArray[np.float64]
Positives = Floats | NDArray[np.uint8]


def fit_temperature_binary(z: Floats, positives: Positives, totals: Floats | None) -> tuple[float, int]:
    """Inverse temperature beta at which sum z [t expit(beta z) - s] is 0, and 0, or -1 / +1 at a bound.

    `positives` is s, or labels, and `totals` t (None: all 1). The sum rises with beta; its root is looked for where
    beta times the range of the logits, 2 max |z|, is between exp(-16) (below: no signal, code -1) and exp(16) (above:
    separable, code 1).
    """
    largest = max(float(z.max(initial=0.0)), -float(z.min(initial=0.0)))
    if largest == 0.0:
        return 1.0, -1
    if not 1e-100 < largest < 1e100:  # whose squares a float cannot hold
        beta, code = fit_temperature_binary(z / largest, positives, totals)
        return beta / largest, code
    rows = _rows(z, positives, totals, largest)
    bounds = math.exp(-16.0) / largest / 2, math.exp(16.0) / largest / 2
    for code, bound, (end, doubt) in zip((-1, 1), bounds, _ends(rows, largest)):
        sure = abs(end) > doubt
        if (end if sure else logistic_sums(rows, 0.0, 0.0, bound).gap_u) * code <= 0:
            return bound, code
    beta, every = 1 / largest / 2, len(z) // SAMPLE
    if every >= 8:
        beta = _best_beta(_thinned(rows, every), beta, bounds, 1e-2)
    return _best_beta(rows, beta, bounds, 1e-7), 0


def _rows(z: Floats, positives: Positives, totals: Floats | None, reach: float) -> Rows:
    if totals is not None and positives.dtype == np.uint8:
        positives = positives * totals
    return Rows(z, positives, totals, (0.0, 1.0), reach, len(z) >= MANY)


def _ends(rows: Rows, largest: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The slope at beta 0 and at infinity, and how far from them those at the bounds can be, rounding included.

    |expit(b z) - 1/2| <= b |z| / 4 with |z| <= largest; and |z| |expit(b z) - [z > 0]| <= 1 / (e b).
    """
    z, totals = rows.x, rows.totals
    if totals is None:
        straight, either, weight = float(z.sum()), float(np.abs(z).sum()), float(len(z))
    else:
        straight, either, weight = dot(totals, z), dot(totals, np.abs(z)), float(totals.sum())
    hits, unit = dot(rows.positives, z), 2 * largest * weight
    near, far = unit * (1e-13 + math.exp(-16.0) / 16), unit * (1e-13 + math.exp(-17.0))
    return (straight / 2 - hits, near), ((straight + either) / 2 - hits, far)


def _thinned(rows: Rows, every: int) -> Rows:
    totals = None if rows.totals is None else rows.totals[::every].copy()
    return rows._replace(x=rows.x[::every].copy(), positives=rows.positives[::every].copy(), totals=totals)


def _best_beta(rows: Rows, beta: float, bounds: tuple[float, float], tolerance: float) -> float:
    """Root of the slope; the error left is of the order of the square of the tolerance."""
    low, high = bounds
    for _ in range(100):
        found = logistic_sums(rows, 0.0, 0.0, beta)
        low, high = (beta, high) if found.gap_u < 0 else (low, beta)
        new = beta - found.gap_u / found.bend_uu if found.bend_uu > 0 else math.inf
        if low <= new <= high and abs(new - beta) <= tolerance * beta:
            return new
        beta = new if low < new < high else math.sqrt(low * high)
        if high <= low * (1.0 + 1e-15):
            break
    return beta


def fit_shift(z: Floats, positives: Positives, totals: Floats | None) -> float:
    """Root a of sum t expit(z + a) = sum of the positives, as above; |z| is at most 100.

    The error left is of the order of the square of the last step.
    """
    rows = _rows(z, positives, totals, 100.0)
    labels = rows.positives.dtype == np.uint8  # counting is faster than adding bytes
    hits = float(np.count_nonzero(rows.positives) if labels else rows.positives.sum())
    total = float(len(z) if totals is None else totals.sum())
    base = math.log(hits) - math.log(total - hits)
    low, high = base - float(z.max()), base - float(z.min())
    every = len(z) // SAMPLE
    start = _best_shift(_thinned(rows, every), 0.0, (low, high), 1e-2) if every >= 8 else 0.0
    return _best_shift(rows, start, (low, high), 1e-7)


def _best_shift(rows: Rows, start: float, bracket: tuple[float, float], tolerance: float) -> float:
    low, high = bracket
    at = min(max(start, low), high)
    for _ in range(100):
        found = logistic_sums(rows, 0.0, at, 1.0)
        low, high = (low, at) if found.gap > 0 else (at, high)
        new = at - found.gap / found.bend if found.bend > 0 else math.inf
        if low <= new <= high and abs(new - at) <= tolerance * max(1.0, abs(at)):
            return new
        at = new if low < new < high else (low + high) / 2
        if high - low <= 1e-15 * max(1.0, abs(at)):
            break
    return at
