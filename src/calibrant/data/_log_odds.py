"""Log-odds of a table of probabilities for a fit, with exact 0 and 1 moved inside.

A handful of rows at exactly 0 or 1 would ruin every unpenalised fit. In fits only, 0 becomes
`min(1 / (2N + 2), half the smallest positive p)`, and 1 its mirror image; all other scores stay as they are.
May import NumPy, the kernels and `calibrant.data._score_table`.
"""

from __future__ import annotations

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import likelihood, softmax
from calibrant.data._score_table import ScoreTable


def inner_ends(table: ScoreTable) -> tuple[float, float]:
    """What exact 0 and 1 become in fits: `min(1/(2N+2), half the smallest positive p)`, and the mirror image.

    The second value is the distance from 1.
    """
    limit = 1 / (2 * table.total_weight + 2)
    scores = table.scores
    if scores.min() > 0 and scores.max() < 1:
        return limit, limit
    above, below = scores[scores > 0], 1 - scores[scores < 1]
    low = min(limit, above.min() / 2) if len(above) else limit
    high = min(limit, below.min() / 2) if len(below) else limit
    return float(low), float(high)


def fit_log_odds(table: ScoreTable) -> Floats:
    """Log-odds of a table of probabilities, with exact 0 and 1 moved inside (in fits only)."""
    low, high = inner_ends(table)
    scores = table.scores
    z = likelihood.log_odds(scores)
    z[scores == 0] = likelihood.log_odds(np.array([low]))[0]
    z[scores == 1] = -likelihood.log_odds(np.array([high]))[0]
    return z


def fit_probabilities(table: ScoreTable) -> tuple[Floats, Floats]:
    """P and 1 - p of a table of probabilities, with exact 0 and 1 moved inside (in fits only)."""
    low, high = inner_ends(table)
    p = np.where(table.scores == 0, low, table.scores)
    complement = np.where(table.scores == 1, high, 1 - table.scores)
    tiny = float(np.finfo(np.float32).tiny)
    return np.maximum(p, tiny), np.maximum(complement, tiny)


def class_log_odds(logits: Floats) -> Floats:
    """Log-odds of every class under the softmax of its row; a constant added to a row changes nothing.

    The rest of the likeliest class is summed without it, so that nothing cancels where its probability is near 1.
    """
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    log_p = softmax.log_softmax(logits)
    with np.errstate(divide="ignore"):
        z: Floats = log_p - np.log1p(-np.exp(log_p))
    others = logits.copy()
    others[rows, top] = -np.inf
    highest = others.max(axis=1, keepdims=True)
    rest = highest[:, 0] + np.log(np.exp(others - highest).sum(axis=1))
    z[rows, top] = logits[rows, top] - rest
    return z
