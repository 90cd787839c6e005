"""Tables whose scores were added up in cells, because too many of them are different: what the cells must keep."""

from __future__ import annotations

import numpy as np

import calibrant as ca
from calibrant.errors import DataWarning


def wide(kind, n=4000):
    """Scores and labels with exact ends, scores next to an end, and tiny or huge scores."""
    rng = np.random.default_rng(4)
    z = rng.normal(-2, 3, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    p[:5], p[5:9], p[9:12] = 0.0, 1.0, [1e-300, 1e-20, 1 - 2**-53]
    y[:5], y[5:9], y[9:12] = 0, 1, [0, 0, 1]
    return {"probability": p, "score": z, "tiny": z * 1e-30, "huge": z * 1e300}[kind], y


def assert_within_bounds(table, scores, y, caught, kind):
    """Counts and means of the rows of `wide` are kept, and measures within the step that the warning names; gives it.

    `caught` are the warnings; the table was made with `max_distinct=500`.
    """
    exact = ca.ScoreTable.from_arrays(scores, y)
    message = next(str(one.message) for one in caught if one.category is DataWarning)
    h = float(message.split("more than ")[2].split(" ")[0]) * 1.1  # two digits were printed
    assert len(table) <= 500
    assert (table.n_rows, table.total_positives) == (exact.n_rows, exact.total_positives)
    np.testing.assert_allclose(table.scores @ table.weight, scores.sum(), rtol=1e-9)
    shared = np.sum(table.positives * table.negatives) / (exact.total_positives * exact.total_negatives)
    assert abs(ca.roc_auc(table) - ca.roc_auc(exact)) <= shared / 2
    if kind == "probability":
        assert abs(ca.log_loss(table) - ca.log_loss(exact)) <= h
        assert abs(ca.brier_score(table) - ca.brier_score(exact)) <= h / 2
        ends = table.distinct
        assert ends.scores[[0, -1]].tolist() == [0, 1]
        assert (ends.negatives[0], ends.positives[-1]) == (5, 4)
    return h
