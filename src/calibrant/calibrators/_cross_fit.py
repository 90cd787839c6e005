"""Cross-fitting on tables: folds of the rows, and out-of-fold probabilities.

A fold is drawn by dealing out the counts of the sorted distinct table, class by class, so that rows and table give the
same folds and the order of the rows is nothing. A weight w is dealt as `max(1, round(w))` equal pieces.
May import NumPy, scikit-learn's clone, `calibrant.data`, `calibrant._parameters` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._checks import Bytes, Floats
from calibrant._parameters import generator
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows
from calibrant.errors import InputError

LISTED = 2**15
LISTED_IN_A_CELL = 16
"""Up to so many pieces in all, or in a cell on average, they are listed and shuffled: that is faster then."""
MOST_DRAWN = 10**9
"""NumPy draws from fewer pieces than this; of more, each cell is dealt on its own and folds differ by 0.01 %."""


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
    if distinct._labels is not None:
        yield from _fold_tables_of_rows(distinct, distinct._labels, n_folds, rng)
        return
    positives = deal(distinct.positives, n_folds, rng)
    negatives = deal(distinct.negatives, n_folds, rng)
    _none_empty(positives, negatives, n_folds)
    total = distinct.positives + distinct.negatives
    for fold in range(n_folds):
        yield (
            _part(distinct, positives.inside(fold), negatives.inside(fold), total),
            _part(distinct, positives.outside(fold), negatives.outside(fold), total),
        )


def _fold_tables_of_rows(
    distinct: ScoreTable, labels: Bytes, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[ScoreTable, ScoreTable]]:
    """The same of rows with a score each, which are dealt whole."""
    fold = np.empty(len(labels), dtype=np.min_scalar_type(n_folds))
    for label in (1, 0):
        of_class = np.flatnonzero(labels == label)
        fold[of_class] = rng.permutation(len(of_class)) % n_folds
    for number in range(n_folds):
        inside = fold == number
        parts = [(distinct.scores[kept], labels[kept]) for kept in (inside, ~inside)]
        held, rest = (
            ScoreTable._of_rows(BinaryRows(*part, None, distinct.classes), ascending=True, in_order=False)
            for part in parts
        )
        yield held, rest


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
    """Deal each cell's weight to folds of equal size, in pieces, at random."""
    pieces = _pieces(weight)
    unit = weight / np.maximum(pieces, 1)
    total = int(pieces.sum())
    if total <= max(LISTED, LISTED_IN_A_CELL * len(weight)):
        cell = np.repeat(np.arange(len(weight)), pieces)
        fold = rng.permutation(len(cell)) % n_folds
        counts = np.bincount(fold * len(weight) + cell, minlength=n_folds * len(weight))
        return Dealt(counts.reshape(n_folds, -1), unit)
    if total < MOST_DRAWN:
        return Dealt(_drawn(pieces, n_folds, rng), unit)
    return Dealt(rng.multinomial(pieces, np.full(n_folds, 1 / n_folds)).T, unit)


def _drawn(pieces: NDArray[np.int64], n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fold after fold drawn without replacement from what is left: as if piece by piece, but in time of the cells."""
    dealt = np.empty((n_folds, len(pieces)), dtype=np.int64)
    left, total = pieces.copy(), int(pieces.sum())
    for fold in range(n_folds):
        size = (total + n_folds - 1 - fold) // n_folds
        dealt[fold] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= dealt[fold]
    return dealt


def _enough(distinct: ScoreTable, n_folds: int) -> None:
    """Refuse more folds than a class has rows, before anything of that size is made."""
    for name, pieces in zip(("positive", "negative"), _numbers_of_pieces(distinct)):
        if pieces < n_folds:
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
    given = (vars(distinct).get("rows"), vars(distinct).get("squared_weights"))  # none where each row counts once
    rows, squares = (None if sums is None else sums[keep] * (weight[keep] / total[keep]) for sums in given)
    sums = distinct.scores[keep], positives[keep], negatives[keep]
    return ScoreTable._of_counts(*sums, rows, squares, distinct.classes, ascending=True)


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
    return min(_numbers_of_pieces(table.distinct))


def columns_of(distinct: ScoreTable) -> Callable[[slice], tuple[Floats, Floats]]:
    """Positives and negatives of a part of a table, of which no more is made than the part."""

    def part(at: slice) -> tuple[Floats, Floats]:
        entries = distinct._at(at)
        return entries.positives, entries.negatives

    return part


def _numbers_of_pieces(distinct: ScoreTable) -> tuple[int, int]:
    """Positive and negative pieces of a table."""
    if distinct._labels is not None:
        return int(distinct.total_positives), int(distinct.total_negatives)
    return int(_pieces(distinct.positives).sum()), int(_pieces(distinct.negatives).sum())


def _pieces(weight: Floats) -> NDArray[np.int64]:
    """Pieces of each cell, together few enough for whole numbers of 64 bits."""
    return np.where(weight > 0, np.clip(np.rint(weight), 1.0, 2.0**60 / len(weight)), 0.0).astype(np.int64)
