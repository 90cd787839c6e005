"""The gate: scores, probabilities, labels, weights and parameters are checked here, once, in one wording.

Everything behind this module trusts what it is given. Input is NumPy arrays (`calibrant.data` turns frames and columns
into them); output is float64 scores, uint8 labels (1 = the positive class) and float64 weights or None. Numbers and
labels have a file each beside this one; their checks are used from here.
May import NumPy, `calibrant._numbers`, `calibrant._labels` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._labels import Bytes as Bytes
from calibrant._labels import Classes as Classes
from calibrant._labels import Label as Label
from calibrant._labels import binary_labels as binary_labels
from calibrant._labels import both_classes as both_classes
from calibrant._labels import class_in_name as class_in_name
from calibrant._labels import class_labels as class_labels
from calibrant._labels import class_names as class_names
from calibrant._labels import columns_in_order as columns_in_order
from calibrant._labels import distinct_labels as distinct_labels
from calibrant._labels import label_classes as label_classes
from calibrant._labels import plain_label as plain_label
from calibrant._labels import text_of_bytes as text_of_bytes
from calibrant._numbers import Floats as Floats
from calibrant._numbers import finite as finite
from calibrant._numbers import modest as modest
from calibrant._numbers import numbers as numbers
from calibrant._numbers import plural as plural
from calibrant._numbers import same_length as same_length
from calibrant._numbers import shown as shown
from calibrant._numbers import vector as vector
from calibrant.errors import DataWarning, InputError

PROBABILITY_TOLERANCE = 1e-6
ROW_SUM_TOLERANCE = 1e-4
LARGEST = float(np.finfo(np.float64).max)


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
    weight_total(total, int(np.count_nonzero(array)), n_rows)
    return array


def weight_total(total: float, n_weighted: float, n_rows: int | None = None) -> None:
    """Refuse a sum of row weights that cannot be used, and warn of one far below the number of rows."""
    if total == 0:
        raise InputError("sample_weight is zero in every row: no row is left to learn from or to judge.")
    total_weight(total, "sample_weight")
    if total < 0.5 * n_weighted:
        rows = plural(round(n_weighted) if n_rows is None else n_rows, "row")
        warnings.warn(
            f"The weights add up to {total:.6g} over {rows}. Weights are read as frequencies (a row of weight 2 counts "
            f"twice), so this is treated as {total:.6g} rows of evidence. Multiply them by a constant if they are "
            f"relative weights.",
            DataWarning,
            stacklevel=5,
        )


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
    if array.size and float(array.max()) / 2 - float(array.min()) / 2 < LARGEST / 2:
        return
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
    _rows_sum_to_one(sums, name)
    return array if np.all(sums == 1) else array / sums[:, None]


def _rows_sum_to_one(sums: Floats, name: str) -> None:
    off = np.abs(sums - 1)
    if off.size == 0 or off.max() <= ROW_SUM_TOLERANCE:
        return
    row = int(np.argmax(off > ROW_SUM_TOLERANCE))
    wrong = int((off > ROW_SUM_TOLERANCE).sum())
    raise InputError(
        f"The probabilities of a row of {name} must sum to 1, but {plural(wrong, 'row')} "
        f"{'does' if wrong == 1 else 'do'} not: row {row} (counting from 0) sums to {sums[row]:.6g}. Give all "
        f"classes, or divide each row by its sum if that is what you mean."
    )


def class_scores(values: NDArray[Any], name: str, *, reads: str = "score", keep_float32: bool = False) -> NDArray[Any]:
    """Scores of K >= 2 classes, (n, K); `reads` as in `binary_scores`.

    `keep_float32` makes no copy of a float32 array: it is checked, and its rows of probabilities are not divided by
    their sum (the log-softmax of a fit does so).
    """
    kept = keep_float32 and values.dtype == np.float32
    array = values if kept else numbers(values, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} must have shape (n, K) with a column per class, but its shape is {array.shape}.")
    array = finite(array, name)
    if reads == "logit":
        _within_range(array, name)
    if reads != "probability":
        return array
    if not kept:
        return probability_rows(array, name)
    array = probabilities(array, name)
    _rows_sum_to_one(array.sum(axis=1, dtype=np.float64), name)
    return array
