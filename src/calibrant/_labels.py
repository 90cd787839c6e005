"""Labels at the gate: which value is the event, which column is whose, and the codes 0, 1, ... of every row.

Columns are matched to classes by position. Names are read for one thing only: to refuse columns that are named after
the classes and stand in another order.
May import NumPy, `calibrant._numbers` and `calibrant.errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._numbers import finite, kind_of, plural, shown
from calibrant.errors import InputError, InputTypeError

Bytes: TypeAlias = NDArray[np.uint8]
Label: TypeAlias = bool | int | float | str
Classes: TypeAlias = tuple[Label | None, Label]

MOST_SHOWN = 12
SAMPLE = 2**13
"""Rows that show whether there are few different labels."""


def label_classes(values: Sequence[Any], pos_label: Label | None = None, name: str = "y") -> Classes:
    """The pair (negative, positive) that codes these distinct label values.

    0/1, bool, -1/1, 1/2 and any two numbers: the greater is positive. Text needs `pos_label`. One value alone is
    never guessed, unless it is 0, 1 or a bool.
    """
    found = sorted({plain_label(value) for value in values}, key=lambda value: (isinstance(value, str), value))
    if len(found) > 2:
        raise InputError(
            f"{name} must hold two classes, but it holds {len(found) if len(found) < 50 else 'many'} different values: "
            f"{shown(found)}. {_many_values_advice(found)}"
        )
    if pos_label is not None:
        _one_label(plain_label(pos_label))
        return _classes_by_name(found, plain_label(pos_label), name)
    if any(isinstance(value, str) for value in found):
        raise InputError(
            f"{name} holds text ({shown(found)}): say which one is the event with pos_label, for example "
            f"pos_label={found[-1]!r}."
        )
    if set(found) <= {0, 1}:
        return (False, True) if found and all(isinstance(value, bool) for value in found) else (0, 1)
    if len(found) == 1:
        raise InputError(
            f"{name} holds a single value, {found[0]!r}, and it cannot be told whether it is the event. "
            f"Give pos_label, or code the labels as 0 and 1."
        )
    return (found[0], found[1])


def _one_label(positive: Any) -> None:
    if not isinstance(positive, bool | int | float | str) or positive != positive:
        raise InputTypeError(f"pos_label must be one label (a number, bool or text), but it is {positive!r}.")


def _many_values_advice(found: list[Any]) -> str:
    if all(isinstance(value, float) or value in (0, 1) for value in found) and found[0] >= 0 and found[-1] <= 1:
        return (
            "They look like probabilities: labels come first in measures, (y_true, y_prob), and last in fit(scores, y)."
        )
    return "Keep the rows of two classes, or use a method for many classes."


def plain_label(value: Any) -> Any:
    """A label as a Python scalar; whole floats become int, so that 1.0 and 1 are one label."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _classes_by_name(found: list[Any], positive: Any, name: str) -> Classes:
    if positive not in found:
        if len(found) == 2:
            raise InputError(f"pos_label is {positive!r}, but {name} holds {shown(found)}. Use one of those.")
        if set(found) <= {0, 1} and positive in (0, 1):
            return (1 - positive, positive)
        return (found[0] if found else None, positive)
    positive = found[found.index(positive)]
    others = [value for value in found if value != positive]
    if not others:
        return (1 - positive, positive) if not isinstance(positive, str) and positive in (0, 1) else (None, positive)
    return (others[0], positive)


def binary_labels(
    values: NDArray[Any], pos_label: Label | None = None, classes: Classes | None = None, name: str = "y"
) -> tuple[Bytes, Classes]:
    """Labels coded as 0 and 1, and the pair (negative, positive) that codes them."""
    values = _label_vector(values, name)
    if values.dtype.kind in "fiu":
        return _numeric_labels(values, pos_label, classes, name)
    if values.dtype.kind == "b" and classes is None and pos_label is None:
        return np.ascontiguousarray(values).view(np.uint8), (False, True)
    found, codes = _distinct_labels(values, name)
    pair = _known_classes(found, classes, name) or label_classes(found, pos_label, name)
    lookup = np.array([plain_label(value) == pair[1] for value in found], dtype=np.uint8)
    return lookup[codes], pair


def _label_vector(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{name} must hold one label per row, shape (n,), but its shape is {values.shape}.")
    if values.size == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if values.dtype.kind not in "fiubUSTO":
        raise InputTypeError(f"{name} must hold labels (numbers, bool or text), but it holds {kind_of(values)}.")
    if values.dtype.kind == "O":
        _labels_only(values, name)
    return text_of_bytes(values)


def text_of_bytes(values: NDArray[Any]) -> NDArray[Any]:
    """An array of bytes as text; any other as it is."""
    return np.strings.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values


def _labels_only(values: NDArray[Any], name: str) -> None:
    """Refuse objects that are not numbers, bool, text or missing."""
    for kind in set(map(type, values)):
        if not issubclass(kind, (bool, int, float, str, np.number, np.bool_, type(None))):
            row = next(row for row, value in enumerate(values) if type(value) is kind)
            raise InputTypeError(
                f"{name} must hold labels (numbers, bool or text), but row {row} (counting from 0) holds "
                f"{values[row]!r} of type {kind.__name__}. Convert the labels first."
            )


def _numeric_labels(
    values: NDArray[Any], pos_label: Label | None, classes: Classes | None, name: str
) -> tuple[Bytes, Classes]:
    """Numbers, without sorting: their least and greatest value must be the only two."""
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high)):
        finite(values.astype(np.float64), name)
    positive = values == high
    next_to_it = values.dtype.kind in "iu" and int(high) - int(low) <= 1  # no whole number lies between
    if not next_to_it and not np.all(positive | (values == low)):
        label_classes(list(np.unique(values)[:50]), pos_label, name)
    found = [low] if low == high else [low, high]
    pair = _known_classes(found, classes, name) or label_classes(found, pos_label, name)
    coded = positive if plain_label(high) == pair[1] else values == pair[1]
    return coded.view(np.uint8), pair


def _known_classes(found: Sequence[Any], classes: Classes | None, name: str) -> Classes | None:
    """The given coding, once every value found belongs to it."""
    if classes is None:
        return None
    strange = [plain_label(value) for value in found if plain_label(value) not in classes]
    if strange:
        raise InputError(f"{name} holds {shown(strange)}, but the classes are {shown(classes)}.")
    return classes


def _distinct_labels(values: NDArray[Any], name: str) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values and the index of each row's value; missing values are refused."""
    if values.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in values], dtype=bool)
        if missing.any():
            count = plural(int(missing.sum()), "missing value")
            row = int(np.argmax(missing))
            raise InputError(
                f"{name} has {count}, the first at row {row} (counting from 0). Drop those rows first; files and "
                f'frames can be read with missing="drop".'
            )
        kinds = {isinstance(value, str) for value in values}
        if len(kinds) > 1:
            raise InputTypeError(f"{name} mixes text and numbers: {shown(list(dict.fromkeys(values)))}.")
    found, codes = _coded(values)
    return list(found), codes


def _coded(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """As `np.unique` with its inverse: where there are few values, they are looked up instead of sorting all."""
    if values.dtype.kind in "iu" and int(values.max()) - int(values.min()) < SAMPLE:
        return _coded_by_table(values)
    found = np.unique(values[:: max(len(values) // SAMPLE, 1)])
    if len(values) < 8 * SAMPLE or 8 * len(found) > SAMPLE:
        return np.unique(values, return_inverse=True)
    codes, strange = _places(values, found)
    if len(strange):
        found = np.unique(np.concatenate([found, values[strange]]))
        codes, _ = _places(values, found)
    return found, codes


def _coded_by_table(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The same for whole numbers in a narrow range."""
    wide = np.int64 if values.dtype.kind == "i" else np.uint64
    codes = np.subtract(values, values.min(), dtype=wide).view(np.intp)
    present = np.bincount(codes) > 0
    if not present.all():
        codes = (np.cumsum(present) - 1)[codes]
    return (np.flatnonzero(present).astype(wide) + values.min()).astype(values.dtype), codes


def _places(values: NDArray[Any], found: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Place of each value among those found, and the rows of the values that are not there."""
    codes = np.empty(len(values), dtype=np.intp)
    strange = []
    for begin in range(0, len(values), SAMPLE):
        part = values[begin : begin + SAMPLE]
        place = np.minimum(np.searchsorted(found, part), len(found) - 1)
        codes[begin : begin + SAMPLE] = place
        strange.append(begin + np.flatnonzero(found[place] != part))
    return codes, np.concatenate(strange)


def distinct_labels(values: NDArray[Any], name: str = "y") -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct labels, sorted, in the labels' own type, and the index of each row's label."""
    array = _label_vector(values, name)
    if array.dtype.kind == "f":
        array = finite(array.astype(np.float64), name)
    found, codes = _distinct_labels(array, name)
    return np.array(found, dtype=array.dtype), codes


def class_labels(
    values: NDArray[Any], n_classes: int, classes: Sequence[Any] | None = None, name: str = "y"
) -> tuple[NDArray[np.int64], tuple[Label, ...]]:
    """Labels coded against K columns: indices 0..K-1, and the labels of the columns in order.

    Integers 0..K-1 need no `classes`; other labels need them, unless all K occur (then they are sorted, as in
    scikit-learn).
    """
    values = _label_vector(values, name)
    if classes is None and values.dtype.kind in "iu" and values.min() >= 0 and values.max() < n_classes:
        return values.astype(np.int64), tuple(range(n_classes))
    found, codes = _distinct_labels(values, name)
    plain = [plain_label(value) for value in found]
    if any(isinstance(value, float) and not np.isfinite(value) for value in plain):
        finite(np.asarray(values, dtype=np.float64), name)
    names = _column_names(plain, n_classes, classes, name)
    index = {value: column for column, value in enumerate(names)}
    strange = [value for value in plain if value not in index]
    if strange:
        raise InputError(
            f"{name} holds {shown(strange)}, which is not among the classes of the columns: {shown(names)}."
        )
    return np.array([index[value] for value in plain], dtype=np.int64)[codes], names


def _column_names(found: list[Any], n_classes: int, classes: Sequence[Any] | None, name: str) -> tuple[Label, ...]:
    if classes is not None:
        return class_names(classes, n_classes)
    if all(isinstance(value, int) and 0 <= value < n_classes for value in found):
        return tuple(range(n_classes))
    if len(found) == n_classes:
        return tuple(found)
    raise InputError(
        f"The scores have {n_classes} columns, but {name} holds {plural(len(found), 'class')} ({shown(found, 12)}): "
        f"which column is which cannot be told. Give the labels of the columns, in order, with classes= "
        f"(labels= in measures)."
    )


def class_names(values: Any, n_classes: int, argument: str = "classes") -> tuple[Label, ...]:
    """The labels of the columns, in order: one for each, all different."""
    listed = hasattr(values, "__iter__") and hasattr(values, "__len__") and getattr(values, "shape", None) != ()
    if isinstance(values, str) or not listed:
        raise InputTypeError(f"{argument} must be a list of the labels of the columns, but it is {values!r}.")
    names = tuple(plain_label(value) for value in values)
    fine = all(isinstance(label, bool | int | float | str) and label == label for label in names)
    if not fine or len(set(names)) != len(names) or len(names) != n_classes:
        raise InputError(
            f"{argument} must name each of the {n_classes} columns once (numbers, bool or text), but it is "
            f"{shown(names, 12)}."
        )
    return names


# ---------------------------------------------------------------- names of columns


def columns_in_order(names: Sequence[str], classes: Sequence[Any], what: str, *, fitted: bool = False) -> None:
    """Refuse columns that are named after the classes and stand in another order; other names say nothing.

    With `fitted`, the classes are those of a map, which cannot be given in another order any more.
    """
    order = _named_order(names, classes)
    away = [] if order is None else [place for place, own in enumerate(order) if own != plain_label(classes[place])]
    if order is None or not away:
        return
    many = len(order) > MOST_SHOWN
    first = away[0] if many else 0
    raise InputError(
        f"The columns of {what} are named after the classes, but stand in another order. The columns"
        f"{f' from number {first + 1} on' if many else ''}: {shown(names[first:], MOST_SHOWN)}. The classes: "
        f"{shown(classes[first:], MOST_SHOWN)}. Columns are matched by position and never reordered: put them in the "
        f"order of the classes{'' if fitted else _or_name_them(order)}."
    )


def _or_name_them(order: Sequence[Label]) -> str:
    if len(order) == 2:
        return " (negative, positive)"
    listed = (
        f"[{shown(order, MOST_SHOWN)}]" if len(order) <= MOST_SHOWN else "a list of the classes as the columns stand"
    )
    return f", or give classes={listed} (labels= in measures)"


def _named_order(names: Sequence[str], classes: Sequence[Any]) -> tuple[Label, ...] | None:
    """The class that each column is named after; None when one is named otherwise.

    What stands before and after the class is the same in all names. There is one way at most to read them so.
    """
    of_text = {str(plain_label(own)): plain_label(own) for own in classes}
    if not len(set(names)) == len(names) == len(classes) == len(of_text):
        return None
    for before, after in _ends(names[0], of_text):
        if all(class_in_name(name, before, after) in of_text for name in names):
            found = [class_in_name(name, before, after) for name in names]
            return tuple(of_text[str(text)] for text in found) if len(set(found)) == len(found) else None
    return None


def _ends(name: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What stands before and after each of these texts in a name."""
    for text in texts:
        for found in re.finditer(f"(?={re.escape(text)})", name):
            yield name[: found.start()], name[found.start() + len(text) :]


def class_in_name(name: str, before: str, after: str) -> str | None:
    """What stands in the name of a column between two texts, without blanks around; None where nothing does."""
    if len(name) <= len(before) + len(after) or not (name.startswith(before) and name.endswith(after)):
        return None
    return name[len(before) : len(name) - len(after)].strip()


def both_classes(positives: float, negatives: float, what: str) -> None:
    """Refuse rows of one class only."""
    if positives > 0 and negatives > 0:
        return
    only = "positive" if positives > 0 else "negative"
    raise InputError(
        f"y holds one class: only the {only} class has weight above zero. {what} needs rows of both classes. "
        f"Add rows, or check pos_label."
    )
