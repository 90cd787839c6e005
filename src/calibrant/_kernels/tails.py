"""Probabilities beyond a value: chi-squared and binomial.

May import: NumPy, SciPy's special functions inside the functions below.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def chi_squared_tail(statistic: float, degrees_of_freedom: float) -> float:
    """Probability that a chi-squared variable is at least the statistic."""
    from scipy.special import gammaincc

    return float(gammaincc(degrees_of_freedom / 2, max(statistic, 0.0) / 2))


def chi_squared_quantile(level: float, degrees_of_freedom: float) -> float:
    """The value that a chi-squared variable exceeds with probability 1 - level."""
    from scipy.special import gammainccinv

    return 2 * float(gammainccinv(degrees_of_freedom / 2, 1 - level))


def binomial_at_least(hits: Floats, total: Floats, rate: float) -> Floats:
    """P(Binomial(total, rate) >= hits), entry by entry; 1 where nothing was hit."""
    from scipy.special import betainc

    inside = np.maximum(hits, 1.0)
    return np.where(hits > 0, betainc(inside, np.maximum(total - inside, 0.0) + 1, rate), 1.0)


def binomial_at_most(hits: Floats, total: Floats, rate: float) -> Floats:
    """P(Binomial(total, rate) <= hits), entry by entry."""
    return binomial_at_least(total - hits, total, 1 - rate)


def binomial_upper(hits: Floats, total: Floats, delta: float) -> Floats:
    """The rate that a Clopper-Pearson bound of level 1 - delta says is not exceeded; 1 where there is no trial."""
    from scipy.special import betaincinv

    misses = np.maximum(total - hits, 0.0)
    bound = betaincinv(hits + 1, np.where(misses > 0, misses, 1.0), 1 - delta)
    return np.where(misses > 0, bound, 1.0)
