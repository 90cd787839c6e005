"""The folds of a classifier's rows, from whatever scikit-learn takes as `cv`.

Invariant: every split that leaves here holds row numbers that are there, and a training part of two classes or more.
What makes out-of-fold scores look better than they are is said in a warning.
May import scikit-learn's model selection, NumPy, `calibrant._parameters`, `calibrant._checks` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from calibrant._checks import plural
from calibrant._parameters import Either, Instance, Number, Rule, optional
from calibrant.errors import DataWarning, InputError

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


@dataclass(frozen=True)
class Splits(Rule):
    """An iterable of pairs of row numbers."""

    def accepts(self, value: object) -> bool:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | dict)

    def describe(self) -> str:
        return "an iterable of splits (pairs of training and test row numbers)"

    def refused(self) -> tuple[object, ...]:
        return ("five", {})


CV = optional(Either((Number(2, whole=True), Instance(("split", "get_n_splits"), "a splitter"), Splits())))


def splits_of(cv: Any, X: Any, labels: NDArray[Any], groups: Any) -> list[Split]:
    """The splits of the rows: training rows and test rows of each fold.

    Raises
    ------
    InputError
        More folds than a class has rows, a splitter that cannot split these rows, splits that are no pairs of row
        numbers, a training part of one class.
    """
    most = int(np.unique(labels, return_counts=True)[1].max())
    if isinstance(cv, int | np.integer) and cv > most:
        raise InputError(
            f"cv={cv} folds need {cv} rows of a class, but the largest class has {plural(most, 'row')}: use fewer "
            f"folds, or more rows."
        )
    try:
        listed = not hasattr(cv, "split") and isinstance(cv, Iterable)
        given = list(cv if listed else check_cv(cv, labels, classifier=True).split(X, labels, groups))
    except (ValueError, TypeError) as reason:
        raise InputError(f"cv={cv!r:.80} cannot split these {len(labels):,} rows: {reason}") from reason
    if not given:
        raise InputError("cv gives no split: give at least one pair of training and test row numbers.")
    return [_checked(split, number, labels) for number, split in enumerate(given)]


def _checked(split: Any, number: int, labels: NDArray[Any]) -> Split:
    """Training and test rows of one split, as row numbers."""
    if not isinstance(split, Iterable) or isinstance(split, str) or len(pair := list(split)) != 2:
        raise InputError(f"Split {number} of cv (counting from 0) is no pair of training and test row numbers.")
    train, test = (_row_numbers(part, which, number, len(labels)) for part, which in zip(pair, ("training", "test")))
    if len(np.unique(labels[train])) < 2:
        raise InputError(
            f"The training part of split {number} of cv (counting from 0) holds one class only, so no model can be "
            f"fitted to it. Shuffle, or use a splitter that keeps the classes together (StratifiedKFold)."
        )
    return train, test


def _row_numbers(part: Any, which: str, number: int, n_rows: int) -> Rows:
    rows = np.asarray(part)
    where = f"The {which} part of split {number} of cv (counting from 0)"
    if rows.dtype.kind == "b" and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.size == 0:
        raise InputError(f"{where} is empty or no list: give row numbers.")
    if rows.dtype.kind not in "iu" or rows.min() < -n_rows or rows.max() >= n_rows:
        raise InputError(f"{where} must hold row numbers from 0 to {n_rows - 1}.")
    return np.where(rows < 0, rows + n_rows, rows).astype(np.intp)


def warn_of_splits(splits: list[Split], labels: NDArray[Any]) -> None:
    """Say that test rows are training rows too, or of a class that the training rows lack."""
    shared = sum(int(np.isin(test, train).sum()) for train, test in splits)
    if shared:
        _warn(
            f"{plural(shared, 'row')} of the test parts of cv {'is' if shared == 1 else 'are'} in the training part of "
            f"the same split too: the model has seen them, so their scores look better than they are. Take them out "
            f"of one of the two."
        )
    lacking = [set(labels[test].tolist()) - set(labels[train].tolist()) for train, test in splits]
    number = next((number for number, classes in enumerate(lacking) if classes), None)
    if number is not None:
        names = ", ".join(sorted(map(repr, lacking[number])))
        _warn(
            f"The training part of split {number} of cv (counting from 0) lacks {names}, which its test part holds: "
            f"its model gives those rows a score that no model of all classes gives, and neither the map nor "
            f"evaluation_ can be trusted. Shuffle, or use a splitter that keeps the classes together (StratifiedKFold)."
        )


def check_maps_of_parts(splits: list[Split], labels: NDArray[Any]) -> None:
    """Refuse a test part of one class, where each is to have a map of its own."""
    for number, (_, test) in enumerate(splits):
        if len(np.unique(labels[test])) < 2:
            raise InputError(
                f"The test part of split {number} of cv (counting from 0) holds one class only, so with ensemble=True "
                f"no map can be fitted to it. Use fewer folds, ensemble=False, or a splitter that keeps the classes "
                f"together (StratifiedKFold)."
            )


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=6)
