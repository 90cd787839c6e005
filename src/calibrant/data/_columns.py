"""What every source of rows has in common: the columns it gives, how they are found by name, what counts as missing.

Invariant: labels leave this module as codes of classes, whatever they were in the source; text that reads as a number
is a number, and a marker of a missing cell is never a class unless the caller names it.
May import NumPy, `calibrant._checks` and `calibrant.errors`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Classes, Floats, Label, label_classes, shown
from calibrant.errors import ColumnError, InputError

Missing = Literal["error", "drop"]

MAX_DISTINCT = 5_000_000
"""The most distinct scores of a table that an engine adds up, unless its maker says otherwise."""

MISSING_MARKERS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "-NaN", "NaT"),
    *("NULL", "Null", "null", "None", "?", "."),
)
BLANKS = " \t\r\n\u00a0\ufeff"


@dataclass(frozen=True)
class Columns:
    """Rows of a source: float64 scores of shape (n,) or (n, K), label codes, weights, and what the codes stand for.

    Binary: labels are uint8, 1 for `classes[1]`. K classes: labels are int64 indices into `classes`.
    `dropped` counts the rows left out because a cell was missing; `groups` is the text of a further column, if asked.
    """

    scores: Floats
    labels: NDArray[Any]
    weights: Floats | None
    classes: tuple[Label | None, ...]
    dropped: int
    groups: NDArray[Any] | None = None


class Sums(NamedTuple):
    """What rows add up to at each score, in no order."""

    scores: Floats
    positives: Floats
    negatives: Floats
    rows: Floats
    squared_weights: Floats
    classes: Classes


@dataclass(frozen=True)
class SummedColumns:
    """Rows of a source added up by score, or by score and group; the rest as in `Columns`."""

    sums: Sums
    dropped: int
    groups: NDArray[Any] | None = None


def check_missing(missing: str, allowed: Sequence[str] = ("error", "drop")) -> None:
    """Refuse another word than those allowed."""
    if missing not in allowed:
        words = " or ".join(f'"{word}"' for word in allowed)
        raise InputError(f"missing must be {words}, but it is {missing!r}.")


def label_apart(label: Hashable, others: Sequence[tuple[Hashable, str]]) -> None:
    """Refuse the label's own column as a score or weight: it would be judged against itself."""
    for name, argument in others:
        if name == label and name is not None:
            raise ColumnError(f"{argument} and label are the same column, {label!r}: name two different columns.")


def column_index(names: Sequence[Hashable], wanted: Hashable, argument: str, hint: str = "") -> int:
    """Position of a column: the exact name, or the only one that equals it but for blanks around."""
    exact = [place for place, name in enumerate(names) if name == wanted]
    trimmed = [place for place, name in enumerate(names) if _trimmed(name) == _trimmed(wanted)]
    found = exact or trimmed
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(str(place + 1) for place in found)
        raise ColumnError(f"{argument}={wanted!r} names {len(found)} columns (numbers {places}): rename all but one.")
    listed = shown(names, 20) if names else "none"
    close = difflib.get_close_matches(str(wanted).strip().lower(), [str(name).strip().lower() for name in names], 1)
    guess = next((name for name in names if close and str(name).strip().lower() == close[0]), None)
    advice = "" if guess is None else f" Did you mean {guess!r}?"
    raise ColumnError(f"{argument}={wanted!r} is not a column. The columns are: {listed}.{advice}{hint}")


def _trimmed(name: Hashable) -> Hashable:
    return name.strip(BLANKS) if isinstance(name, str) else name


# ---------------------------------------------------------------- labels


def label_values(raw: Sequence[Any], pos_label: Any = None, decimal: str | None = None) -> list[Any]:
    """The label that each distinct cell stands for; None for a missing one.

    Text is trimmed; when all of it reads as numbers, or as true and false, it is that.
    """
    named = pos_label.strip(BLANKS) if isinstance(pos_label, str) else None
    cells = [_cell(value, named) for value in raw]
    texts = [cell for cell in cells if isinstance(cell, str)]
    for read in (lambda text: number_of_text(text, decimal), _bool_of_text):
        if texts and all(read(text) is not None for text in texts):
            return [read(cell) if isinstance(cell, str) else cell for cell in cells]
    return cells


def _cell(value: Any, named: str | None) -> Any:
    """A cell without what does not matter: None when missing, text trimmed, numbers as bool, int or float."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        text = value.strip(BLANKS)
        return None if text in MISSING_MARKERS and text != named else text
    if value is None or isinstance(value, bool | int):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() else number


def number_of_text(text: str, decimal: str | None = None) -> int | float | None:
    """The number that a text is, whole ones as int; None when it is none."""
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _bool_of_text(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def pos_label_like(values: Sequence[Any], pos_label: Any, decimal: str | None = None) -> Any:
    """`pos_label` in the type of the labels: the command line gives "1" where the labels are numbers."""
    kinds = {isinstance(value, str) for value in values if value is not None}
    if kinds == {False} and isinstance(pos_label, str):
        text = pos_label.strip(BLANKS)
        if all(isinstance(value, bool) for value in values if value is not None) and _bool_of_text(text) is not None:
            return _bool_of_text(text)
        number = number_of_text(text, decimal)
        return pos_label if number is None else number
    if kinds == {True} and pos_label is not None:
        return str(pos_label).strip(BLANKS)
    return pos_label


def binary_codes(
    raw: Sequence[Any], pos_label: Any = None, decimal: str | None = None
) -> tuple[list[int | None], tuple[Label | None, Label]]:
    """Code of each distinct cell (0, 1, None when missing), and the classes (negative, positive)."""
    values = label_values(raw, pos_label, decimal)
    present = [value for value in values if value is not None]
    classes = label_classes(present, pos_label_like(values, pos_label, decimal))
    return [None if value is None else int(value == classes[1]) for value in values], classes


def class_codes(
    raw: Sequence[Any], columns: Sequence[str], classes: Sequence[Any] | None = None, decimal: str | None = None
) -> tuple[list[int | None], tuple[Label, ...]]:
    """Index of the class of each distinct cell (None when missing), and the classes in the order of the columns.

    Without `classes`, labels are 0..K-1, or the names of the columns themselves.
    """
    values = label_values(raw, None, decimal)
    present = {value for value in values if value is not None}
    order: tuple[Any, ...]
    if classes is not None:
        order = tuple(pos_label_like(values, value, decimal) for value in classes)
    elif all(isinstance(value, int) and 0 <= value < len(columns) for value in present):
        order = tuple(range(len(columns)))
    else:
        order = tuple(columns)
    if len(order) != len(columns):
        raise InputError(
            f"classes must name each of the {len(columns)} score columns once, but it is {shown(order, 12)}."
        )
    strange = sorted(present - set(order), key=str)
    if strange:
        raise InputError(
            f"The labels hold {shown(strange)}, which is not among the classes of the score columns. The labels: "
            f"{shown(sorted(present, key=str), 12)}. The classes of the columns: {shown(order, 12)}. Name the label of "
            f"each column, in their order, with classes= (--classes)."
        )
    return [None if value is None else order.index(value) for value in values], order
