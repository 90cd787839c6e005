"""What a measure is given: labels and probabilities by row, or a score table.

May import NumPy, `calibrant._checks`, `calibrant.data` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Classes, Label
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows, array_of, read_binary_rows, read_class_rows
from calibrant.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from calibrant.data._class_frames import LazyClasses


def read_input(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
    *,
    reads: str = "probability",
) -> ScoreTable | ClassRows:
    """The score table of two classes, or the rows of K >= 3 classes."""
    if y_prob is None:
        return _checked_table(y_true, sample_weight, pos_label, labels, reads)
    if isinstance(y_true, ScoreTable) or isinstance(y_prob, ScoreTable):
        raise InputTypeError("A ScoreTable holds scores and labels: give it alone, measure(table).")
    names = ("y_prob" if reads == "probability" else "y_score", "y_true")
    shape = np.shape(array_of(y_prob, names[0]))
    if len(shape) == 2 and shape[1] > 2:
        if pos_label is not None:
            raise InputError("pos_label is for two classes; name the columns of many classes with labels=.")
        names_of_columns = None if labels is None else _checks.class_names(labels, shape[1], "labels")
        return read_class_rows(y_prob, y_true, sample_weight, names_of_columns, reads=reads, names=names)
    pair = _pair(labels, pos_label)
    rows = read_binary_rows(y_prob, y_true, sample_weight, pos_label, pair, reads=reads, names=names)
    return ScoreTable._of_rows(rows)


def binary_input(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    *,
    reads: str = "probability",
    what: str = "This measure",
) -> ScoreTable:
    """The score table; many classes are refused."""
    read = read_input(y_true, y_prob, sample_weight, pos_label, reads=reads)
    if isinstance(read, ScoreTable):
        return read
    raise InputError(
        f"{what} is for two classes, but there are {read.scores.shape[1]} columns of scores. Judge one class against "
        f"the rest (y == k and column k)."
    )


def class_rows(y_true: Any, y_prob: Any, sample_weight: Any, labels: Sequence[Any] | None, what: str) -> ClassRows:
    """Checked rows of three or more classes."""
    read = read_input(y_true, y_prob, sample_weight, None, labels)
    if isinstance(read, ClassRows):
        return read
    raise InputError(
        f"{what} is for three or more columns of probabilities; two classes have one score table: "
        f"ScoreTable.from_arrays(y_prob, y_true)."
    )


class FrameColumns(NamedTuple):
    """Names of the columns of a frame, and what to do with missing cells."""

    scores: Sequence[Hashable] | None
    label: Hashable | None
    weight: Hashable | None
    missing: str


def class_input(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Sequence[Any] | None, columns: FrameColumns, what: str
) -> ClassRows | LazyClasses:
    """Rows of three or more classes: of arrays, or of a frame whose columns are named."""
    named = [name for name in ("scores", "label", "weight") if getattr(columns, name) is not None]
    if not named and y_prob is not None:
        return class_rows(y_true, y_prob, sample_weight, labels, what)
    if y_prob is not None:
        raise InputError(f"Give {what} either labels and probabilities, or a frame and {named[0]}= of its columns.")
    if columns.scores is None or columns.label is None:
        raise InputError(
            f"{what} of a frame needs the names of its columns: scores= (a list, one per class) and label=. Of arrays "
            f"it needs labels and probabilities: {what}(y_true, y_prob)."
        )
    if sample_weight is not None:
        raise InputError("The weights of a frame are a column of it: name it with weight=.")
    from calibrant.data._class_frames import LazyClasses, read_class_frame

    read = read_class_frame(y_true, columns.scores, columns.label, columns.weight, labels, columns.missing)
    rows = read if isinstance(read, LazyClasses) else class_rows(read.labels, read.scores, read.weights, labels, what)
    if all(isinstance(name, str) for name in columns.scores):
        _checks.columns_in_order([str(name) for name in columns.scores], rows.classes, "scores=")
    return rows


def _pair(labels: Sequence[Any] | None, pos_label: Label | None) -> Classes | None:
    """(negative, positive) out of the labels of the two columns."""
    if labels is None:
        return None
    negative, positive = _checks.class_names(labels, 2, "labels")
    if pos_label is not None and pos_label != positive:
        raise InputError(
            f"labels says that the positive class is {positive!r}, the second; pos_label says {pos_label!r}. "
            f"Give one of the two."
        )
    return (negative, positive)


def _checked_table(table: Any, sample_weight: Any, pos_label: Any, labels: Any, reads: str) -> ScoreTable:
    if not isinstance(table, ScoreTable):
        raise InputTypeError(
            f"Give labels and probabilities, (y_true, y_prob), or a ScoreTable alone; a {type(table).__name__} alone "
            f"is neither."
        )
    if sample_weight is not None or pos_label is not None or labels is not None:
        raise InputError(
            "A ScoreTable holds its weights and labels already: sample_weight, pos_label and labels are for rows."
        )
    if reads != "probability":
        return table
    inside = _checks.probabilities(table.scores, "table.scores")
    return table if inside is table.scores else table.with_scores(inside)


def row_weights(rows: ClassRows) -> Any:
    """Weights of the rows; ones when there are none."""
    return np.ones(len(rows.labels)) if rows.weights is None else rows.weights
