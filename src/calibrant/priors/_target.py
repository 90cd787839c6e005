"""The unlabelled rows whose prior is asked for, and the labelled reference rows they are compared with.

Both are read block by block as rows of probabilities (K, m); two classes are 1 - p and p.
May import NumPy, the kernels, `calibrant._checks` and `calibrant.data`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, array_of, read_binary_rows, read_class_rows
from calibrant.errors import InputError, InputTypeError

Part = tuple[Floats, Floats]
"""A block of rows: the probabilities of each class, shape (K, m), and weights."""


class Target(NamedTuple):
    """Probabilities of unlabelled rows, (n,) of the event or (n, K), and their weights; None where all are 1."""

    scores: Floats
    weights: Floats | None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return _n_classes(self.scores)

    def parts(self) -> Iterator[Part]:
        """The rows block by block."""
        for at in slices(len(self.scores)):
            yield _columns(self.scores[at]), np.ones(at.stop - at.start) if self.weights is None else self.weights[at]

    @property
    def effective(self) -> float:
        """Number of rows that independent rows of weight 1 would need for the same precision of a mean."""
        if self.weights is None:
            return float(len(self.scores))
        return float(self.weights.sum() ** 2 / dot(self.weights, self.weights))


class Reference(NamedTuple):
    """Probabilities of labelled rows, (m,) ascending of the event or (m, K): a sorted table, or classes by code."""

    scores: Floats
    distinct: ScoreTable | None
    labels: NDArray[np.int64] | None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return _n_classes(self.scores)

    def parts(self, label: int) -> Iterator[Part]:
        """The rows block by block, with the weight of one class on them."""
        for at in slices(len(self.scores)):
            if self.distinct is not None:
                part = self.distinct._at(at)
                weights = part.positives if label else part.negatives
            else:
                assert self.labels is not None
                weights = (self.labels[at] == label).astype(np.float64)
            yield _columns(self.scores[at]), weights


def _n_classes(scores: Floats) -> int:
    return scores.shape[1] if scores.ndim == 2 else 2


def _columns(scores: Floats) -> Floats:
    """The probabilities of each class, shape (K, m)."""
    return np.ascontiguousarray(scores.T) if scores.ndim == 2 else np.stack([1 - scores, scores])


def read_target(y_prob: Any, sample_weight: Any = None) -> Target:
    """Checked rows."""
    aligned(y_prob=y_prob, sample_weight=sample_weight)
    array = array_of(y_prob, "y_prob")
    if array.ndim == 2 and array.shape[1] > 2:
        rows = _checks.class_scores(array, "y_prob", reads="probability")
    else:
        rows = _checks.binary_scores(np.atleast_1d(array), "y_prob", reads="probability")
    if len(rows) == 0:
        raise InputError("y_prob is empty: at least one row is needed.")
    given = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    return Target(rows, _checks.weights(given, len(rows), "y_prob"))


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
    if found.n_classes != n_classes:
        raise InputError(f"reference has {found.n_classes} classes, but y_prob has {n_classes}.")
    held = [sum(float(weights.sum()) for _, weights in found.parts(c)) for c in range(n_classes)]
    absent = np.flatnonzero(np.equal(held, 0))
    if len(absent):
        raise InputError(
            f"reference holds no row of class {int(absent[0])} (counting columns from 0): every class is needed there."
        )
    return found


def _of_table(table: ScoreTable) -> Reference:
    distinct = table.distinct
    return Reference(_checks.probabilities(distinct.scores, "reference.scores"), distinct, None)


def _of_pair(y_true: Any, y_prob: Any) -> Reference:
    shape = np.shape(array_of(y_prob, "reference"))
    names = ("y_prob of the reference", "y_true of the reference")
    if len(shape) == 2 and shape[1] > 2:
        read = read_class_rows(y_prob, y_true, reads="probability", names=names)
        return Reference(read.scores, None, read.labels)
    return _of_table(ScoreTable._of_rows(read_binary_rows(y_prob, y_true, reads="probability", names=names)))
