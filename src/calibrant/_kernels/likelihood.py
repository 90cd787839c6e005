"""Sums of squared error and of negative log-likelihood, the logistic function and the log-odds.

Sums, not means: `sum w (p - y)^2` and `sum -w log q` with q the probability given to what happened.

May import: NumPy, and `_compiled` when there are many rows.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LOG_FLOOR = -87.33654475055310
"""log of the smallest normal float32: the floor of log p and of log(1 - p)."""


def squared_error(p: Floats, labels: NDArray[np.uint8], weights: Floats | None) -> float:
    """Sum of w (p - y)^2."""
    gap = p - labels
    return float(np.dot(gap, gap) if weights is None else np.dot(weights, gap * gap))


def squared_error_counts(p: Floats, positives: Floats, negatives: Floats) -> float:
    """Sum of positives (1 - p)^2 + negatives p^2."""
    return float(np.dot(positives, np.square(1.0 - p)) + np.dot(negatives, np.square(p)))


def neg_log_likelihood(p: Floats, labels: NDArray[np.uint8], weights: Floats | None) -> float:
    """Sum of -w log q, q = p for a positive and 1 - p for a negative; infinite when q = 0 happened."""
    given = np.where(labels == 1, p, 1.0 - p)
    if weights is not None:
        given[weights == 0] = 1.0
    with np.errstate(divide="ignore"):
        logs = np.log(given)
    return -float(logs.sum() if weights is None else np.dot(weights, logs)) + 0.0


def neg_log_likelihood_counts(p: Floats, positives: Floats, negatives: Floats) -> float:
    """Sum of -positives log p - negatives log(1 - p), a count of 0 contributing nothing."""
    with np.errstate(divide="ignore"):
        happened = np.dot(positives, np.log(np.where(positives > 0, p, 1.0)))
        did_not = np.dot(negatives, np.log1p(-np.where(negatives > 0, p, 0.0)))
    return -float(happened + did_not) + 0.0


def expit(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), without overflow for any z."""
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


def log_odds(p: Floats, floor: float = LOG_FLOOR) -> Floats:
    """Log p - log(1 - p), each logarithm floored; 1 - p is exact where p >= 1/2."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p / (1.0 - p)), floor, -floor)
