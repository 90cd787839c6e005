"""Cross-fitting for K classes: every row's probabilities from a map that was fitted without it.

Folds are dealt class by class in an order of the rows that is made from their content, so that the order in which they
are given is nothing.
May import NumPy, scikit-learn's clone, `calibrant.data`, `calibrant._parameters`, `calibrant.errors` and this folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._parameters import generator
from calibrant.calibrators._auto_classes import _deal, _order
from calibrant.data._arrays import ClassRows
from calibrant.errors import InputError

MANY_CELLS = 2**21
"""With more cells than this two folds are enough: half of the rows make nearly the map of all."""


def folds_for(rows: ClassRows, n_folds: int) -> int:
    """Folds of the cross-fitting: those asked for, two when cells are many, none (0) when a class could not be learned.

    At least two classes must have two rows each.
    """
    counts = np.bincount(rows.labels)
    if (counts >= 2).sum() < 2:
        return 0
    folds = min(n_folds, int(np.sort(counts)[-2]))
    return 2 if rows.scores.size > MANY_CELLS else folds


def refit(calibrator: Any, rows: ClassRows, kept: Any = slice(None)) -> Any:
    """A fresh calibrator fitted to some rows, whose labels are the indices of the columns."""
    made = clone(calibrator).set_params(classes=None)
    weights = None if rows.weights is None else rows.weights[kept]
    return made.fit(rows.scores[kept], rows.labels[kept], weights)


def cross_fitted_probabilities(calibrator: Any, rows: ClassRows, n_folds: int = 5, random_state: Any = 0) -> Floats:
    """Out-of-fold probabilities (n, K), in the order of the rows.

    Parameters
    ----------
    calibrator : calibrator of K classes
        Cloned and fitted `n_folds` times.
    rows : ClassRows
        Checked rows, of the scores that the calibrator reads.
    n_folds : int
        At least two, at most the number of rows.
    random_state : int, generator or None
        Draws the folds.
    """
    if not 2 <= n_folds <= len(rows.labels):
        raise InputError(f"Cross-fitting needs two folds or more, and a row in each; {n_folds} were asked for.")
    order = _order(rows)
    fold = _deal(rows.labels[order], n_folds, generator(random_state))
    out = np.empty(rows.scores.shape)
    for number in range(n_folds):
        held = order[fold == number]
        out[held] = refit(calibrator, rows, order[fold != number]).map_(rows.scores[held])
    return out
