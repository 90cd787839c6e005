"""From whatever the caller holds (lists, NumPy, pandas, Polars, PyArrow, torch) to checked arrays.

Objects with an index (pandas) are used by position, and two of them with different indexes are refused.
May import NumPy, `calibrant._checks`, `calibrant.errors` and the column reader of `calibrant.data._frames`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Bytes, Classes, Floats, Label
from calibrant.data._frames import column_array, text_names
from calibrant.errors import InputError, InputTypeError


class BinaryRows(NamedTuple):
    """Checked rows of a binary problem."""

    scores: Floats
    labels: Bytes
    weights: Floats | None
    classes: Classes

    def copied(self) -> BinaryRows:
        """The same rows, which a change of the arrays they came from leaves as they are."""
        weights = None if self.weights is None else self.weights.copy()
        return BinaryRows(self.scores + 0.0, self.labels.copy(), weights, self.classes)

    def present(self) -> BinaryRows:
        """The rows with weight above zero: the others are absent, for every later step."""
        if self.weights is None or self.weights.min() > 0:
            return self
        kept = self.weights > 0
        return BinaryRows(self.scores[kept], self.labels[kept], self.weights[kept], self.classes)


class ClassRows(NamedTuple):
    """Checked rows of a problem with K classes: labels are the indices of the columns."""

    scores: Floats
    labels: NDArray[np.int64]
    weights: Floats | None
    classes: tuple[Label, ...]

    def present(self) -> ClassRows:
        """The rows with weight above zero: the others are absent, for every later step."""
        if self.weights is None or self.weights.min() > 0:
            return self
        kept = self.weights > 0
        return ClassRows(self.scores[kept], self.labels[kept], self.weights[kept], self.classes)


def array_of(values: Any, name: str) -> NDArray[Any]:
    """One column or matrix as a NumPy array."""
    if type(values) is np.ndarray and values.dtype.kind != "O":
        return values
    if values is None:
        raise InputError(f"{name} is None. Expected array-like (array or non-string sequence), got None.")
    if isinstance(values, set | frozenset):
        raise InputTypeError(f"{name} is a set, which has no order: give a list or an array, one value per row.")
    try:
        return column_array(values, name)
    except OverflowError:
        raise InputError(f"{name} holds a whole number that is too large for a float.") from None


def n_columns(values: Any) -> int:
    """Columns of a matrix; 1 for one column, 0 for nothing."""
    if values is None:
        return 0
    shape = np.shape(array_of(values, "y_prob"))
    return int(shape[1]) if len(shape) == 2 else 1


def aligned(**named: Any) -> None:
    """Refuse pandas objects whose indexes differ: rows are matched by position, and these would not match."""
    indexes = {name: value.index for name, value in named.items() if hasattr(getattr(value, "index", None), "equals")}
    if len(indexes) < 2:
        return
    (first, index), *others = indexes.items()
    for name, other in others:
        if len(other) == len(index) and not index.equals(other):
            raise InputError(
                f"The pandas indexes of {first} and {name} differ, so their rows may not belong together. Rows are "
                f"matched by position: align them first (for example with .loc or .reset_index(drop=True))."
            )


def named_in_order(values: Any, classes: Sequence[Any], name: str, *, fitted: bool = False) -> None:
    """Refuse a frame whose columns are named after the classes and stand in another order."""
    names = None if type(values) is np.ndarray else text_names(values)
    if names is not None:
        _checks.columns_in_order(names, classes, name, fitted=fitted)


def read_binary_rows(
    scores: Any,
    y: Any,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    classes: Classes | None = None,
    *,
    reads: str = "score",
    names: tuple[str, str] = ("scores", "y"),
) -> BinaryRows:
    """Scores (n,), labels coded 0/1 and weights, all checked; rows of weight 0 are left out."""
    aligned(**{names[0]: scores, names[1]: y, "sample_weight": sample_weight})
    array = _checks.binary_scores(array_of(scores, names[0]), names[0], reads=reads)
    labels = array_of(y, names[1])
    _checks.same_length(**{names[0]: array, names[1]: np.atleast_1d(labels)})
    coded, pair = _checks.binary_labels(labels, pos_label, classes, names[1])
    named_in_order(scores, pair, names[0])
    weights = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    return BinaryRows(array, coded, _checks.weights(weights, len(array), names[0]), pair).present()


def read_class_rows(
    scores: Any,
    y: Any,
    sample_weight: Any = None,
    classes: Sequence[Any] | None = None,
    *,
    reads: str = "score",
    names: tuple[str, str] = ("scores", "y"),
    keep_float32: bool = False,
) -> ClassRows:
    """Scores (n, K), labels as indices of the columns and weights, all checked; rows of weight 0 are left out.

    `keep_float32` leaves float32 scores as they are, for fits that read them block by block.
    """
    aligned(**{names[0]: scores, names[1]: y, "sample_weight": sample_weight})
    array = _checks.class_scores(array_of(scores, names[0]), names[0], reads=reads, keep_float32=keep_float32)
    labels = array_of(y, names[1])
    _checks.same_length(**{names[0]: array, names[1]: np.atleast_1d(labels)})
    coded, found = _checks.class_labels(labels, array.shape[1], classes, names[1])
    named_in_order(scores, found, names[0])
    weights = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    return ClassRows(array, coded, _checks.weights(weights, len(array), names[0]), found).present()


def read_counts(scores: Any, positives: Any, negatives: Any) -> tuple[Floats, Floats, Floats]:
    """Scores with the weight of positives and of negatives at each, without those of weight zero."""
    aligned(scores=scores, positives=positives, negatives=negatives)
    columns = {
        name: _checks.vector(array_of(values, name), name)
        for name, values in (("scores", scores), ("positives", positives), ("negatives", negatives))
    }
    _checks.same_length(**columns)
    for name in ("positives", "negatives"):
        if columns[name].min() < 0:
            row = int(np.argmax(columns[name] < 0))
            raise InputError(f"{name} must not be negative: row {row} (counting from 0) is {columns[name][row]:g}.")
    with np.errstate(over="ignore"):
        total = columns["positives"] + columns["negatives"]
        grand_total = float(total.sum())
    if grand_total == 0:
        raise InputError("positives and negatives are zero throughout: there is no row to learn from.")
    _checks.total_weight(grand_total, "positives and negatives together")
    kept = total > 0
    return columns["scores"][kept], columns["positives"][kept], columns["negatives"][kept]


def joint_classes(a: Classes, b: Classes) -> Classes:
    """The coding of two tables together; an unknown negative label takes the other's."""
    if a[1] == b[1] and (a[0] == b[0] or a[0] is None or b[0] is None):
        return b if a[0] is None else a
    raise InputError(
        f"These tables code their labels differently: {a} and {b} (negative, positive). Build both with the same "
        f"labels and pos_label before adding them."
    )
