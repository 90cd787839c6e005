"""The gate: scores, probabilities, labels, weights and parameters are checked here, once, in one wording.

Everything behind this module trusts what it is given. Input is NumPy arrays (`calibrant.data` turns frames and columns
into them); output is float64 scores, uint8 labels (1 = the positive class) and float64 weights or None.
May import NumPy and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import DataWarning, InputError, InputTypeError

Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]
Label: TypeAlias = bool | int | float | str
Classes: TypeAlias = tuple[Label | None, Label]

PROBABILITY_TOLERANCE = 1e-6
ROW_SUM_TOLERANCE = 1e-4


def plural(count: int, word: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}{'es' if word.endswith('s') else 's'}"


def shown(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """A few values as a person would write them."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in list(values[: most + 1])]
    return ", ".join(map(repr, listed[:most])) + (", ..." if len(listed) > most else "")


# ---------------------------------------------------------------- numbers


def numbers(values: NDArray[Any], name: str) -> Floats:
    """The array as float64; text, objects and complex numbers are refused."""
    if values.dtype.kind in "fiub":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind == "O":
        return _numbers_of_objects(values, name)
    raise InputTypeError(
        f"{name} must be numbers, but it holds {_kind_of(values)}: {shown(np.ravel(values))}. Convert it first."
    )


def _numbers_of_objects(values: NDArray[Any], name: str) -> Floats:
    flat = np.ravel(values)
    for row, value in enumerate(flat):
        if value is not None and not isinstance(value, int | float | np.number | np.bool_):
            raise InputTypeError(f"{name} must be numbers; row {row} (counting from 0) holds {value!r}.")
    return np.array([np.nan if value is None else float(value) for value in flat]).reshape(values.shape)


def _kind_of(values: NDArray[Any]) -> str:
    names = {
        "U": "text",
        "T": "text",
        "S": "bytes",
        "c": "complex numbers",
        "M": "dates",
        "m": "durations",
        "O": "objects",
    }
    return names.get(values.dtype.kind, f"values of type {values.dtype}")


def finite(values: Floats, name: str) -> Floats:
    """The same array; missing and infinite values are refused with their count and first row."""
    if values.size == 0 or (np.isfinite(values.min()) and np.isfinite(values.max())):
        return values
    bad = ~np.isfinite(values)
    row = int(np.argwhere(bad)[0][0])
    if np.isnan(values).any():
        missing = np.isnan(values)
        row, count = int(np.argwhere(missing)[0][0]), plural(int(missing.sum()), "missing value")
        raise InputError(
            f"{name} has {count} (NaN), the first at row {row} (counting from 0). Drop or fill those rows first; "
            f'files and frames can be read with missing="drop".'
        )
    count = plural(int(bad.sum()), "infinite value")
    raise InputError(f"{name} has {count}, the first at row {row} (counting from 0). It must be finite.")


def vector(values: NDArray[Any], name: str) -> Floats:
    """Finite float64 numbers of shape (n,); a single column (n, 1) is taken as (n,)."""
    array = numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, but its shape is {array.shape}.")
    return finite(array, name)


def same_length(**arrays: NDArray[Any] | None) -> int:
    """The common length; arrays of different lengths and empty ones are refused."""
    lengths = {name: len(array) for name, array in arrays.items() if array is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {plural(length, 'row')}" for name, length in lengths.items())
        raise InputError(f"The lengths differ: {listed}. Every row needs one value of each.")
    length = next(iter(lengths.values()))
    if length == 0:
        raise InputError(f"{next(iter(lengths))} is empty: at least one row is needed.")
    return length


def total_weight(total: float, name: str) -> None:
    """Refuse a sum of weights that is not a number of rows, and whose products would vanish or overflow."""
    if not total <= 1e100:
        raise InputError(f"{name} adds up to more than 1e100: divide it by a constant first.")
    if total < 1e-100:
        raise InputError(f"{name} adds up to less than 1e-100: multiply it by a constant first.")


def weights(values: NDArray[Any] | None, n_rows: int, beside: str = "scores") -> Floats | None:
    """Row weights (frequencies): finite, not negative, not all zero; None stays None."""
    if values is None:
        return None
    if values.ndim == 0:
        raise InputError("sample_weight must have one value per row, not a single number.")
    array = vector(values, "sample_weight")
    same_length(**{beside: np.empty(n_rows), "sample_weight": array})
    if array.min() < 0:
        row = int(np.argmax(array < 0))
        count = plural(int((array < 0).sum()), "negative value")
        raise InputError(
            f"sample_weight has {count}, the first ({array[row]}) at row {row} (counting from 0). "
            f"Weights count how often a row was seen and cannot be negative."
        )
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if total == 0:
        raise InputError("sample_weight is zero in every row: no row is left to learn from or to judge.")
    total_weight(total, "sample_weight")
    if total < 0.5 * np.count_nonzero(array):
        warnings.warn(
            f"The weights add up to {total:.6g} over {plural(n_rows, 'row')}. Weights are read as frequencies (a row "
            f"of weight 2 counts twice), so this is treated as {total:.6g} rows of evidence. Multiply them by a "
            f"constant if they are relative weights.",
            DataWarning,
            stacklevel=4,
        )
    return array


# ---------------------------------------------------------------- scores and probabilities


def binary_scores(values: NDArray[Any], name: str, *, reads: str = "score") -> Floats:
    """Scores of the positive class, (n,): from (n,), (n, 1) or the two columns of `predict_proba`.

    `reads` is "score" (any real number), "probability" or "logit"; two columns of logits give their difference.
    """
    array = numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 2:
        return _positive_column(finite(array, name), name, reads)
    if array.ndim == 2 and array.shape[1] > 2:
        raise InputError(
            f"{name} has {array.shape[1]} columns, but this is a binary method: give the scores of the positive class, "
            f"or use a method for many classes (for example OneVsRest)."
        )
    if array.ndim == 0 or array.ndim > 2:
        raise InputError(f"{name} must have shape (n,), (n, 1) or (n, 2), but its shape is {array.shape}.")
    array = vector(array, name)
    return probabilities(array, name) if reads == "probability" else array


def _positive_column(array: Floats, name: str, reads: str) -> Floats:
    if reads == "logit":
        _within_range(array, name)
        return array[:, 1] - array[:, 0]
    if reads == "probability":
        array = probability_rows(array, name)
    return np.ascontiguousarray(array[:, 1])


def _within_range(array: Floats, name: str) -> None:
    """Refuse rows of logits that are farther apart than a float can say."""
    with np.errstate(over="ignore"):
        apart = np.isinf(array.max(axis=1, initial=-np.inf) - array.min(axis=1, initial=np.inf))
    if len(array) and apart.any():
        raise InputError(
            f"The logits of a row of {name} are too far apart to subtract, the first at row {int(np.argmax(apart))} "
            f"(counting from 0): divide all of them by a constant first."
        )


def probabilities(array: Floats, name: str) -> Floats:
    """Probabilities in [0, 1]; rounding beyond an end by up to 1e-6 is set to the end."""
    if array.size == 0:
        return array
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return array
    if low < -PROBABILITY_TOLERANCE or high > 1 + PROBABILITY_TOLERANCE:
        raise InputError(_out_of_range(array, name))
    return np.clip(array, 0.0, 1.0)


def _out_of_range(array: Floats, name: str) -> str:
    outside = (array < -PROBABILITY_TOLERANCE) | (array > 1 + PROBABILITY_TOLERANCE)
    where = np.argwhere(outside)[0]
    count = int(outside.any(axis=1).sum()) if array.ndim == 2 else int(outside.sum())
    first = array[tuple(where)]
    text = (
        f"{name} must be probabilities in [0, 1], but {plural(count, 'row')} {'is' if count == 1 else 'are'} outside: "
        f"the first is {first:.6g} at row {int(where[0])} (counting from 0)."
    )
    if outside.mean() <= 0.2 and np.all(array[outside] == first):
        return f"{text} All of them are {first:.6g}: perhaps a code for a missing value; drop those rows."
    if array.min() >= 0 and array.max() <= 100:
        return f"{text} If they are percentages, divide them by 100; if they are logits, use from_logits=True."
    if outside.mean() > 0.2 or array.min() < -0.5:
        return (
            f"{text} They look like logits or margins: use from_logits=True, or PlattScaling, or calibrate them first."
        )
    return f"{text} Correct or drop those rows; if the scores are logits, use from_logits=True."


def probability_rows(array: Floats, name: str) -> Floats:
    """Rows of class probabilities (n, K) that sum to 1 (within 1e-4; such rows are divided by their sum)."""
    array = probabilities(finite(array, name), name)
    sums = array.sum(axis=1)
    off = np.abs(sums - 1)
    if array.size and off.max() > ROW_SUM_TOLERANCE:
        row = int(np.argmax(off > ROW_SUM_TOLERANCE))
        wrong = int((off > ROW_SUM_TOLERANCE).sum())
        raise InputError(
            f"The probabilities of a row of {name} must sum to 1, but {plural(wrong, 'row')} "
            f"{'does' if wrong == 1 else 'do'} not: row {row} (counting from 0) sums to {sums[row]:.6g}. Give all "
            f"classes, or divide each row by its sum if that is what you mean."
        )
    return array if np.all(sums == 1) else array / sums[:, None]


def class_scores(values: NDArray[Any], name: str, *, reads: str = "score") -> Floats:
    """Scores of K >= 2 classes, (n, K); `reads` as in `binary_scores`."""
    array = numbers(values, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} must have shape (n, K) with a column per class, but its shape is {array.shape}.")
    array = finite(array, name)
    if reads == "logit":
        _within_range(array, name)
    return probability_rows(array, name) if reads == "probability" else array


# ---------------------------------------------------------------- labels


def label_classes(values: Sequence[Any], pos_label: Label | None = None, name: str = "y") -> Classes:
    """The pair (negative, positive) that codes these distinct label values.

    0/1, bool, -1/1, 1/2 and any two numbers: the greater is positive. Text needs `pos_label`. One value alone is
    never guessed, unless it is 0, 1 or a bool.
    """
    found = sorted({_plain(value) for value in values}, key=lambda value: (isinstance(value, str), value))
    if len(found) > 2:
        raise InputError(
            f"{name} must hold two classes, but it holds {len(found) if len(found) < 50 else 'many'} different values: "
            f"{shown(found)}. Keep the rows of two classes, or use a method for many classes."
        )
    if pos_label is not None:
        return _classes_by_name(found, _plain(pos_label), name)
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


def _plain(value: Any) -> Any:
    """A label as a Python scalar; whole floats become int, so that 1.0 and 1 are one label."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
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
    lookup = np.array([_plain(value) == pair[1] for value in found], dtype=np.uint8)
    return lookup[codes], pair


def _label_vector(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{name} must hold one label per row, shape (n,), but its shape is {values.shape}.")
    if values.size == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if values.dtype.kind not in "fiubUSTO":
        raise InputTypeError(f"{name} must hold labels (numbers, bool or text), but it holds {_kind_of(values)}.")
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
    if not np.all(positive | (values == low)):
        label_classes(list(np.unique(values)[:50]), pos_label, name)
    found = [low] if low == high else [low, high]
    pair = _known_classes(found, classes, name) or label_classes(found, pos_label, name)
    coded = positive if _plain(high) == pair[1] else values == pair[1]
    return coded.view(np.uint8), pair


def _known_classes(found: Sequence[Any], classes: Classes | None, name: str) -> Classes | None:
    """The given coding, once every value found belongs to it."""
    if classes is None:
        return None
    strange = [_plain(value) for value in found if _plain(value) not in classes]
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
    found, codes = np.unique(values, return_inverse=True)
    return list(found), codes


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
    found, codes = _distinct_labels(_label_vector(values, name), name)
    plain = [_plain(value) for value in found]
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
    if isinstance(values, str) or not hasattr(values, "__iter__") or not hasattr(values, "__len__"):
        raise InputTypeError(f"{argument} must be a list of the labels of the columns, but it is {values!r}.")
    names = tuple(_plain(value) for value in values)
    fine = all(isinstance(label, bool | int | float | str) and label == label for label in names)
    if not fine or len(set(names)) != len(names) or len(names) != n_classes:
        raise InputError(
            f"{argument} must name each of the {n_classes} columns once (numbers, bool or text), but it is "
            f"{shown(names, 12)}."
        )
    return names


def both_classes(positives: float, negatives: float, what: str) -> None:
    """Refuse rows of one class only."""
    if positives > 0 and negatives > 0:
        return
    only = "positive" if positives > 0 else "negative"
    raise InputError(
        f"y holds only the {only} class (with weight above zero): {what} needs rows of both classes. "
        f"Add rows, or check pos_label."
    )
