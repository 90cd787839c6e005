"""The same rows at another prevalence: events count more or less, and probabilities move with them.

May import `calibrant.priors`, `calibrant.data` and `calibrant._checks`.
"""

from __future__ import annotations

import numpy as np

from calibrant import _checks
from calibrant.data import ScoreTable
from calibrant.priors import adjust_prior
from calibrant.priors._shift import event_share


def at_prevalence(table: ScoreTable, prevalence: float, *, move_scores: bool = True) -> ScoreTable:
    """The table as it would be at another prevalence, had the scores of each class stayed as they are.

    The total weight stays. Probabilities are moved too (`adjust_prior`), unless `move_scores` is false.
    """
    share = event_share(prevalence, "prevalence", open_ends=True)
    _checks.both_classes(table.total_positives, table.total_negatives, "Another prevalence")
    distinct, old = table.distinct, table.prevalence
    up, down = share / old, (1 - share) / (1 - old)
    positives, negatives = distinct.positives * up, distinct.negatives * down
    scale = (distinct.positives * up**2 + distinct.negatives * down**2) / distinct.weight
    scores = distinct.scores
    if move_scores:
        scores = np.asarray(adjust_prior(_checks.probabilities(scores, "scores"), old, share))
    squares = distinct.squared_weights * scale
    return ScoreTable._of_counts(scores, positives, negatives, distinct.rows, squares, table.classes).distinct
