"""Gaussian smoothing on [0, 1] with reflection at both ends.

Reflected Gaussian smoothing is the heat flow of an insulated rod: it multiplies the cosine term k by
`exp(-(pi k sigma)^2 / 2)`. So a smoothed residual at any sigma costs one inverse cosine transform.
May import: NumPy, SciPy's transforms inside the functions below.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cosine_terms(p: Floats, residual: Floats, cells: int) -> Floats:
    """Cosine transform of residuals that lie at p; each is shared by the two cell middles next to it."""
    from scipy.fft import dct

    place = np.clip(p * cells - 0.5, 0.0, cells - 1.0)
    left = np.minimum(place.astype(np.int64), cells - 2)
    share = place - left
    grid = np.bincount(left, residual * (1 - share), cells) + np.bincount(left + 1, residual * share, cells)
    return np.asarray(dct(grid, type=2))


def smoothed_size(terms: Floats, sigma: float) -> float:
    """Integral over [0, 1] of the absolute value of the smoothed residual."""
    from scipy.fft import idct

    cells = len(terms)
    reach = min(cells, int(np.ceil(9 / (np.pi * sigma))) + 1)
    kept = np.zeros(cells)
    kept[:reach] = terms[:reach] * np.exp(-0.5 * (np.pi * sigma * np.arange(reach)) ** 2)
    return float(np.abs(idct(kept, type=2)).sum())


def fixed_point(p: Floats, residual: Floats, most_cells: int = 2**20) -> float:
    """The sigma at which the smoothed size is sigma itself: size falls with sigma, so there is one."""
    cells = 2**10
    while True:
        terms = cosine_terms(p, residual, cells)
        sigma = _meeting(terms)
        if sigma * cells >= 64 or cells >= most_cells:
            return sigma
        cells = min(most_cells, max(2 * cells, 2 ** int(np.ceil(np.log2(64 / max(sigma, 1e-9))))))


def _meeting(terms: Floats) -> float:
    low, high = 0.0, 1.0
    while high - low > 1e-9 * max(high, 1e-6):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed_size(terms, middle) > middle else (low, middle)
    return high if low > 0 else 0.0
