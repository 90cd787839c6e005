"""What a measure is given: labels and probabilities by row, or a score table.

May import NumPy, `calibrant._checks`, `calibrant.data` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Classes, Label
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows, array_of, read_binary_rows, read_class_rows
from calibrant.errors import InputError, InputTypeError

NAMES = ("y_prob", "y_true")


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
    shape = np.shape(array_of(y_prob, "y_prob"))
    if len(shape) == 2 and shape[1] > 2:
        if pos_label is not None:
            raise InputError("pos_label is for two classes; name the columns of many classes with labels=.")
        return read_class_rows(y_prob, y_true, sample_weight, labels, reads=reads, names=NAMES)
    pair = _pair(labels)
    rows = read_binary_rows(y_prob, y_true, sample_weight, pos_label, pair, reads=reads, names=NAMES)
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
        f"{what} is for two classes, but y_prob has {read.scores.shape[1]} columns. Judge one class against the rest "
        f"(y == k and column k)."
    )


def _pair(labels: Sequence[Any] | None) -> Classes | None:
    if labels is None:
        return None
    if len(labels) != 2:
        raise InputError(f"labels must name the two classes (negative, positive), but it is {_checks.shown(labels)}.")
    return (_checks._plain(labels[0]), _checks._plain(labels[1]))


def _checked_table(table: Any, sample_weight: Any, pos_label: Any, labels: Any, reads: str) -> ScoreTable:
    if not isinstance(table, ScoreTable):
        raise InputTypeError(
            f"Give labels and probabilities, (y_true, y_prob), or a ScoreTable alone; a {type(table).__name__} alone is "
            f"neither."
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
