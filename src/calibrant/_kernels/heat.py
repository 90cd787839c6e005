"""Gaussian smoothing on [0, 1] with reflection at both ends.

Reflected Gaussian smoothing is the heat flow of an insulated rod: it multiplies the cosine term k by
`exp(-(pi k sigma)^2 / 2)`. So a smoothed residual at any sigma costs one inverse cosine transform.
May import: NumPy, `blocks`, SciPy's transforms inside the functions below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.blocks import BLOCK

Floats = NDArray[np.float64]
Residuals = Callable[[slice], tuple[Floats, Floats]]


def cosine_terms(size: int, residuals: Residuals, cells: int) -> Floats:
    """Cosine transform of residuals; each is shared by the two cell middles next to it."""
    from scipy.fft import dct

    grid, step = np.zeros(cells), max(BLOCK, 4 * cells)
    for begin in range(0, size, step):
        place, residual = residuals(slice(begin, min(begin + step, size)))
        place = place * cells
        place -= 0.5
        np.clip(place, 0.0, cells - 1.0, out=place)
        left = np.minimum(place.astype(np.int64), cells - 2)
        place -= left
        place *= residual
        grid += np.bincount(left, residual - place, cells)
        grid[1:] += np.bincount(left, place, cells)[:-1]
    return np.asarray(dct(grid, type=2))


def smoothed_size(terms: Floats, sigma: float) -> float:
    """Integral over [0, 1] of the absolute value of the smoothed residual."""
    from scipy.fft import idct

    cells = len(terms)
    reach = min(cells, int(np.ceil(9 / (np.pi * sigma))) + 1)
    kept = np.zeros(cells)
    kept[:reach] = terms[:reach] * np.exp(-0.5 * (np.pi * sigma * np.arange(reach)) ** 2)
    return float(np.abs(idct(kept, type=2)).sum())


def fixed_point(size: int, residuals: Residuals, most_cells: int = 2**20) -> float:
    """The sigma at which the smoothed size is sigma itself: size falls with sigma, so there is one.

    `residuals` gives the places in [0, 1] and the residuals of a slice of so many.
    """
    cells = 2**10
    while True:
        terms = cosine_terms(size, residuals, cells)
        sigma = _meeting(terms) if terms.any() else 0.0  # residuals may cancel in a cell: a finer grid tells
        if sigma * cells >= 64 or cells >= most_cells:
            return sigma
        cells = min(most_cells, max(2 * cells, 2 ** int(np.ceil(np.log2(64 / max(sigma, 1e-9))))))


def _meeting(terms: Floats) -> float:
    low, high = 0.0, 1.0
    while high - low > 1e-9 * max(high, 1e-6):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed_size(terms, middle) > middle else (low, middle)
    return high if low > 0 else 0.0
