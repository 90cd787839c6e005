"""Cross-fitting on tables: folds of the rows, and out-of-fold probabilities.

A fold is drawn by dealing out the counts of the sorted distinct table, class by class, so that rows and table give the
same folds and the order of the rows is nothing. A weight w is dealt as `max(1, round(w))` equal pieces.
May import NumPy, scikit-learn's clone, `calibrant.data`, `calibrant._parameters` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._parameters import generator
from calibrant.data import ScoreTable
from calibrant.errors import InputError

MOST_PIECES = 5_000_000
"""Beyond so many, each cell is dealt on its own: folds differ by a few per thousand, and no list of rows is made."""


def fold_tables(table: ScoreTable, n_folds: int, rng: np.random.Generator) -> Iterator[tuple[ScoreTable, ScoreTable]]:
    """For each fold, the table of its rows and the table of all the other rows.

    Parameters
    ----------
    table : ScoreTable
        Any table; its distinct form is used.
    n_folds : int
        At most the smaller class's number of rows.
    rng : numpy.random.Generator
        Deals the rows.
    """
    distinct = table.distinct
    _enough(distinct, n_folds)
    positives = deal(distinct.positives, n_folds, rng)
    negatives = deal(distinct.negatives, n_folds, rng)
    _none_empty(positives, negatives, n_folds)
    total = distinct.positives + distinct.negatives
    for fold in range(n_folds):
        yield (
            _part(distinct, positives.inside(fold), negatives.inside(fold), total),
            _part(distinct, positives.outside(fold), negatives.outside(fold), total),
        )


class Dealt(NamedTuple):
    """Pieces of each cell in each fold, (n_folds, m), and the weight of one piece of each cell."""

    pieces: NDArray[np.int64]
    unit: Floats

    def inside(self, fold: int) -> Floats:
        """Weight of each cell in the fold."""
        return np.asarray(self.pieces[fold] * self.unit)

    def outside(self, fold: int) -> Floats:
        """Weight of each cell in the other folds."""
        return np.asarray((self.pieces.sum(axis=0) - self.pieces[fold]) * self.unit)


def deal(weight: Floats, n_folds: int, rng: np.random.Generator) -> Dealt:
    """Deal each cell's weight to folds of equal size (of many pieces: nearly equal), in pieces, at random."""
    pieces = _pieces(weight)
    unit = weight / np.maximum(pieces, 1)
    if pieces.sum() > MOST_PIECES:
        return Dealt(rng.multinomial(pieces, np.full(n_folds, 1 / n_folds)).T, unit)
    cell = np.repeat(np.arange(len(weight)), pieces)
    fold = rng.permutation(len(cell)) % n_folds
    counts = np.bincount(fold * len(weight) + cell, minlength=n_folds * len(weight))
    return Dealt(counts.reshape(n_folds, -1), unit)


def _enough(distinct: ScoreTable, n_folds: int) -> None:
    """Refuse more folds than a class has rows, before anything of that size is made."""
    for name, weight in (("positive", distinct.positives), ("negative", distinct.negatives)):
        if int(_pieces(weight).sum()) < n_folds:
            raise _too_few(name, n_folds)


def _none_empty(positives: Dealt, negatives: Dealt, n_folds: int) -> None:
    for name, dealt in (("positive", positives), ("negative", negatives)):
        if np.any(dealt.pieces.sum(axis=1) == 0):
            raise _too_few(name, n_folds)


def _too_few(name: str, n_folds: int) -> InputError:
    return InputError(
        f"There are too few {name} rows for {n_folds} folds: every fold needs at least one. Use fewer folds, "
        f"or more rows."
    )


def _part(distinct: ScoreTable, positives: Floats, negatives: Floats, total: Floats) -> ScoreTable:
    weight = positives + negatives
    keep = weight > 0
    share = weight[keep] / total[keep]
    return ScoreTable._of_counts(
        distinct.scores[keep],
        positives[keep],
        negatives[keep],
        distinct.rows[keep] * share,
        distinct.squared_weights[keep] * share,
        distinct.classes,
        ascending=True,
    )


def cross_fitted_table(calibrator: Any, table: ScoreTable, n_folds: int = 5, random_state: Any = 0) -> ScoreTable:
    """The table of out-of-fold probabilities: every row judged by a map that was fitted without its fold.

    Parameters
    ----------
    calibrator : binary calibrator
        Cloned and fitted `n_folds` times.
    table : ScoreTable
        Scores and labels.
    n_folds : int
        Number of folds; fewer are used when the smaller class has fewer rows.
    random_state : int, generator or None
        Draws the folds.

    Raises
    ------
    InputError
        Fewer than two rows in a class.
    """
    folds = min(n_folds, most_folds(table))
    if folds < 2:
        raise InputError("Cross-fitting needs at least two rows of each class.")
    parts = [
        held.with_scores(clone(calibrator)._fit_quietly(rest).map_(held.scores))
        for held, rest in fold_tables(table, folds, generator(random_state))
    ]
    together = parts[0]
    for part in parts[1:]:
        together = together + part
    return together


def most_folds(table: ScoreTable) -> int:
    """The greatest number of folds that gives each a row of either class."""
    distinct = table.distinct
    return int(min(_pieces(distinct.positives).sum(), _pieces(distinct.negatives).sum()))


def _pieces(weight: Floats) -> NDArray[np.int64]:
    """Pieces of each cell, together few enough for whole numbers of 64 bits."""
    return np.where(weight > 0, np.clip(np.rint(weight), 1.0, 2.0**60 / len(weight)), 0.0).astype(np.int64)
