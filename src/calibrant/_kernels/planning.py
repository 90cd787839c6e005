"""Whether rows that are still to be collected would show a squared calibration error below a limit: by simulation.

Samples of calibrated rows are drawn bin by bin from fixed uniform numbers, so that the same rows are asked for each
time and the share of samples that show it rises smoothly with their number.
May import: NumPy, `intervals`, SciPy's special functions inside the functions below.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.intervals import LOW_LUCK

Floats = NDArray[np.float64]
SAMPLES = 2000
FINE = 64


class Samples:
    """Calibrated samples with given probabilities in bins of equal mass."""

    def __init__(self, p: Floats, samples: int = SAMPLES) -> None:
        self.p = p
        self.uniform = np.random.default_rng(0).random((samples, len(p)))

    def share_shown(self, rows: float, limit: float, tail: float) -> float:
        """Share of the samples whose interval ends below the limit."""
        from scipy.special import gammainc

        n_bins = len(self.p)
        size = rows / n_bins
        events = _binomial(self.uniform, size, self.p)
        rate = events / size
        own, model = rate * (1 - rate) * size / max(size - 1, 1.0), self.p * (1 - self.p) + 0 * rate
        value = ((rate - self.p) ** 2 - own / size).mean(axis=1)
        smooth = (events + 0.5 / n_bins) / (size + 1 / n_bins)
        parts = np.stack([own, model, np.maximum(own, smooth * (1 - smooth))]) / rows
        chosen = (parts**2).sum(axis=2).argmax(axis=0)
        a = np.take_along_axis(parts, chosen[None, :, None], axis=0)[0]
        squares, cubes, largest = (a**2).sum(axis=1), (a**3).sum(axis=1), a.max(axis=1)
        value = np.maximum(value, _quantile(squares, cubes))
        variance = 2 * squares + 4 * largest * limit
        scale = (8 * cubes + 24 * largest**2 * limit) / (2 * variance)
        place = (value - limit) / scale + variance / scale**2
        below = gammainc(variance / scale**2, np.maximum(place, 0.0))
        return float((below <= tail).mean())


def bin_means(prevalence: float, spread: float, n_bins: int) -> tuple[Floats, float]:
    """Mean probability of each bin when log-odds are normal with this deviation, and the AUC of such a forecast."""
    from scipy.special import expit, ndtri

    z = spread * ndtri((np.arange(FINE * n_bins) + 0.5) / (FINE * n_bins))
    low, high = -40.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if expit(z + middle).mean() < prevalence else (low, middle)
    p = expit(z + low)
    below = np.cumsum(1 - p) - (1 - p) / 2
    area = float((p * below).sum() / (p.sum() * (1 - p).sum()))
    return np.asarray(p.reshape(n_bins, FINE).mean(axis=1)), area


def spread_of_auc(prevalence: float, auc: float, n_bins: int) -> float:
    """The deviation of the log-odds at which a calibrated forecast has this AUC."""
    low, high = 0.0, 20.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if bin_means(prevalence, middle, n_bins)[1] < auc else (low, middle)
    return (low + high) / 2


def _quantile(squares: Floats, cubes: Floats) -> Floats:
    """The low quantile of the null distribution that no value goes below."""
    from scipy.special import gammaincinv

    scale = 2 * cubes / squares
    shape = 2 * squares / scale**2
    return np.asarray(scale * (gammaincinv(shape, LOW_LUCK) - shape))


def _binomial(uniform: Floats, size: float, p: Floats) -> Floats:
    """Binomial counts from uniform numbers, by the cumulative distribution of each bin."""
    from scipy.special import bdtr

    count = max(round(size), 1)
    counts = np.empty_like(uniform)
    for b, rate in enumerate(p):
        spread = np.sqrt(count * rate * (1 - rate))
        first = int(max(0.0, np.floor(count * rate - 6 * spread - 6)))
        last = int(min(float(count), np.ceil(count * rate + 6 * spread + 20)))
        places = np.arange(first, last + 1)
        steps = bdtr(places.astype(np.float64), count, rate)
        counts[:, b] = places[np.minimum(np.searchsorted(steps, uniform[:, b]), len(places) - 1)]
    return counts
