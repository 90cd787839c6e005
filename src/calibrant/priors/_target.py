"""The unlabelled rows whose prior is asked for, and the labelled reference rows they are compared with.

Both become columns of probabilities (n, K); two classes are the columns 1 - p and p.
May import NumPy, `calibrant._checks` and `calibrant.data`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, array_of, read_binary_rows, read_class_rows
from calibrant.errors import InputError, InputTypeError


class Target(NamedTuple):
    """Probabilities (n, K) of unlabelled rows, and their weights."""

    rows: Floats
    weights: Floats

    @property
    def effective(self) -> float:
        """Number of rows that independent rows of weight 1 would need for the same precision of a mean."""
        return float(self.weights.sum() ** 2 / np.einsum("i,i->", self.weights, self.weights))


class Reference(NamedTuple):
    """Probabilities (m, K) of labelled rows, and the weight of each class on them, (m, K)."""

    rows: Floats
    counts: Floats


def two_columns(p: Floats) -> Floats:
    """Probabilities of the other class and of the event."""
    return np.column_stack([1 - p, p])


def read_target(y_prob: Any, sample_weight: Any = None) -> Target:
    """Checked rows."""
    aligned(y_prob=y_prob, sample_weight=sample_weight)
    array = array_of(y_prob, "y_prob")
    if array.ndim == 2 and array.shape[1] > 2:
        rows = _checks.class_scores(array, "y_prob", reads="probability")
    else:
        rows = two_columns(_checks.binary_scores(np.atleast_1d(array), "y_prob", reads="probability"))
    if len(rows) == 0:
        raise InputError("y_prob is empty: at least one row is needed.")
    given = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    weights = _checks.weights(given, len(rows), "y_prob")
    return Target(rows, np.ones(len(rows)) if weights is None else weights)


def read_reference(reference: Any, n_classes: int) -> Reference:
    """A score table, or the pair (y_true, y_prob), of labelled rows."""
    if isinstance(reference, ScoreTable):
        found = _of_table(reference)
    elif isinstance(reference, tuple) and len(reference) == 2:
        found = _of_pair(*reference)
    else:
        raise InputTypeError(
            f"reference must be labelled rows: a ScoreTable, or the pair (y_true, y_prob), not a "
            f"{type(reference).__name__}."
        )
    if found.rows.shape[1] != n_classes:
        raise InputError(f"reference has {found.rows.shape[1]} classes, but y_prob has {n_classes}.")
    absent = np.flatnonzero(found.counts.sum(axis=0) == 0)
    if len(absent):
        raise InputError(
            f"reference holds no row of class {int(absent[0])} (counting columns from 0): every class is needed there."
        )
    return found


def _of_table(table: ScoreTable) -> Reference:
    distinct = table.distinct
    p = _checks.probabilities(distinct.scores, "reference.scores")
    return Reference(two_columns(p), np.column_stack([distinct.negatives, distinct.positives]))


def _of_pair(y_true: Any, y_prob: Any) -> Reference:
    shape = np.shape(array_of(y_prob, "reference"))
    names = ("y_prob of the reference", "y_true of the reference")
    if len(shape) == 2 and shape[1] > 2:
        read = read_class_rows(y_prob, y_true, reads="probability", names=names)
        return Reference(read.scores, np.eye(shape[1])[read.labels])
    return _of_table(ScoreTable._of_rows(read_binary_rows(y_prob, y_true, reads="probability", names=names)))
