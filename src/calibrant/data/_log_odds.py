"""Log-odds of a table of probabilities for a fit, with exact 0 and 1 moved inside.

A handful of rows at exactly 0 or 1 would ruin every unpenalised fit. In a fit 0 becomes
`min(1 / (2N + 2), half the smallest positive p)`, and 1 its mirror image; all other scores stay as they are. The map
accepts any p and reads one beyond these ends as the end, so that it says of an exact 0 what the fit learned there.
May import NumPy, the kernels and `calibrant.data._score_table`.
"""

from __future__ import annotations

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import likelihood, softmax
from calibrant.data._score_table import ScoreTable


def inner_ends(table: ScoreTable) -> tuple[float, float]:
    """What exact 0 and 1 become in fits: `min(1/(2N+2), half the smallest positive p)`, and the mirror image.

    The second value is the distance from 1. Every score strictly inside (0, 1) lies between the two.
    """
    limit = 1 / (2 * table.total_weight + 2)
    low, high = smallest_inside(table.scores)
    return min(limit, low / 2), min(limit, high / 2)


def smallest_inside(p: Floats) -> tuple[float, float]:
    """The smallest positive p and the smallest positive 1 - p; infinity where there is none."""
    low, high = float(p.min()), 1 - float(p.max())
    if low <= 0:
        low = float(np.min(p, where=p > 0, initial=np.inf))
    if high <= 0:
        high = 1 - float(np.max(p, where=p < 1, initial=-np.inf))
    return low, high


def log_odds_ends(table: ScoreTable) -> tuple[float, float]:
    """The log-odds that a map fitted to this table reads at most: those of `inner_ends`."""
    low, high = inner_ends(table)
    return float(likelihood.log_odds(np.array([low]))[0]), -float(likelihood.log_odds(np.array([high]))[0])


def fit_log_odds(table: ScoreTable) -> Floats:
    """Log-odds of a table of probabilities, with exact 0 and 1 moved inside (in fits only)."""
    z = likelihood.log_odds(table.scores)
    np.clip(z, *log_odds_ends(table), out=z)
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
    rest = np.log(np.exp(others - highest).sum(axis=1))
    z[rows, top] = (logits[rows, top] - highest[:, 0]) - rest
    return z
