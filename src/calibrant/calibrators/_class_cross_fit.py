"""Cross-fitting for K classes: every row's probabilities from a map that was fitted without it.

Folds are dealt class by class: of rows in memory in an order that is made from their content, so that the order in
which they are given is nothing; of rows that come block by block in the order in which they come.
May import NumPy, scikit-learn's clone, `calibrant.data`, `calibrant._parameters`, `calibrant.errors` and this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._parameters import generator
from calibrant.calibrators._auto_classes import _deal, _order
from calibrant.data._arrays import ClassRows
from calibrant.errors import DataWarning, InputError

MANY_CELLS = 2**21
"""With more cells than this two folds are enough: half of the rows make nearly the map of all."""


def folds_for(rows: ClassRows, n_folds: int) -> int:
    """Folds of the cross-fitting: those asked for, two when cells are many, none (0) when a class could not be learned.

    At least two classes must have two rows each.
    """
    return folds_of(np.bincount(rows.labels), rows.scores.size, n_folds)


def folds_of(counts: NDArray[np.int64], cells: int, n_folds: int) -> int:
    """The same, from the number of rows of each class and the number of cells."""
    if (counts >= 2).sum() < 2:
        return 0
    folds = min(n_folds, int(np.sort(counts)[-2]))
    return 2 if cells > MANY_CELLS else folds


@contextmanager
def without_signs() -> Iterator[None]:
    """No signs of misuse: they are given for all rows, not fold by fold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


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
        with without_signs():
            fitted = refit(calibrator, rows, order[fold != number])
        out[held] = fitted.map_(rows.scores[held])
    return out


# ---------------------------------------------------------------- rows that come block by block


def refit_blocks(calibrator: Any, blocks: Callable[[], Iterable[tuple[Any, ...]]]) -> Any:
    """A fresh calibrator fitted to blocks, whose labels are the indices of the columns."""
    return clone(calibrator).set_params(classes=None).fit_blocks(blocks)


def dealt(
    blocks: Iterable[tuple[Any, NDArray[np.int64], Any]], n_classes: int, n_folds: int, key: int
) -> Iterator[tuple[tuple[Any, NDArray[np.int64], Any], NDArray[np.int64]]]:
    """Every block (scores, labels, weights) with the folds of its rows, the same ones in every pass.

    The rows of a class go in groups of `n_folds`, one to each fold, in a turn that is drawn for the group. However the
    rows are cut into blocks, the folds are those that `key` gives.
    """
    seen = np.zeros(n_classes, dtype=np.int64)
    for block in blocks:
        labels = block[1]
        counts = np.bincount(labels, minlength=n_classes)
        place = np.empty(len(labels), dtype=np.int64)
        ahead = seen - (np.cumsum(counts) - counts)
        place[np.argsort(labels.astype(np.int32), kind="stable")] = np.arange(len(labels)) + np.repeat(ahead, counts)
        seen += counts
        yield block, (place + _drawn(labels, place // n_folds, key)) % n_folds


def _drawn(labels: NDArray[np.int64], group: NDArray[np.int64], key: int) -> NDArray[np.int64]:
    """A number for every class and group, as good as drawn: the finalizer of SplitMix64 (Steele et al. 2014)."""
    x = (labels.astype(np.uint64) << np.uint64(40)) + group.astype(np.uint64)
    x = (x + np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(33)).astype(np.int64)
