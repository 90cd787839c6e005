"""Feature matrices in: finite numbers for the Gaussian models, category codes for the categorical one.

Rows are kept in the type they came in; what a model works on is made block by block.
May import NumPy, SciPy's test for sparse matrices, the kernels, `calibrant._checks`, `calibrant.data` and
`calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from calibrant import _checks
from calibrant._checks import Floats, plural, shown
from calibrant._kernels._dot import dot
from calibrant._kernels.generative import JointCodes, join
from calibrant.data._arrays import array_of
from calibrant.errors import InputError, InputTypeError

MOST_CODES = 2**20
LARGEST = 1e100

Categories = tuple[NDArray[Any], ...]


def matrix(X: Any, name: str = "X") -> NDArray[Any]:
    """Rows and features, checked: two dimensions, nothing missing or infinite. Arrays are not copied."""
    array = two_dimensional(X, name)
    check_values(array, name)
    return array


def checked_blocks(rows: NDArray[Any], parts: Iterable[slice]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Blocks of rows as `two_dimensional` gives them, each checked when its turn comes, so that memory is read once."""
    unchecked = rows.dtype.kind == "f" and rows.flags.c_contiguous
    if not unchecked:
        check_values(rows, "X")
    for part in parts:
        if unchecked and not _plainly_modest(rows[part]):
            check_values(rows, "X")
            unchecked = False
        yield part, rows[part]


def two_dimensional(X: Any, name: str) -> NDArray[Any]:
    """Rows and features, one or more of each, their values not looked at yet."""
    if issparse(X):
        raise InputTypeError(f"{name} is a sparse matrix: give a dense array, for example {name}.toarray().")
    array = array_of(X, name)
    if array.ndim != 2:
        raise InputError(
            f"{name} must have two dimensions (rows, features), but its shape is {array.shape}. Expected 2D array, got "
            f"{array.ndim}D array instead. Reshape your data: .reshape(-1, 1) for one feature, .reshape(1, -1) for one "
            f"row."
        )
    if 0 in array.shape:
        what = "row" if array.shape[0] == 0 else "feature"
        raise InputError(
            f"{name} is empty: found array with {array.shape[0]} sample(s) and {array.shape[1]} feature(s) "
            f"(shape={array.shape}) while a minimum of 1 is required. At least one {what} is needed."
        )
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} holds complex numbers. Give their parts as features.")
    return array


def check_values(array: NDArray[Any], name: str) -> None:
    """Refuse missing and infinite numbers, and those whose squares overflow."""
    if array.dtype.kind == "f" and not _plainly_modest(array):
        _checks.finite(array, name)
        _not_too_large(array, name)
    elif array.dtype.kind == "O":
        _nothing_missing(array, name)


def _plainly_modest(array: NDArray[Any]) -> bool:
    """Whether one pass tells that all is finite and of modest size: by the sum of squares. False tells nothing."""
    if array.itemsize not in (4, 8) or not (array.flags.c_contiguous or array.flags.f_contiguous):
        return False
    with np.errstate(all="ignore"):
        return dot(array.ravel(order="K"), array.ravel(order="K")) < LARGEST


def _not_too_large(array: NDArray[Any], name: str) -> None:
    if max(-float(array.min()), float(array.max())) > LARGEST:
        raise InputError(
            f"{name} holds numbers beyond 1e100, whose squares overflow: divide that feature by a constant."
        )


def _nothing_missing(array: NDArray[Any], name: str) -> None:
    missing = np.asarray((array == np.array(None, dtype=object)) | (array != array))
    if missing.any():
        row, feature = map(int, np.argwhere(missing)[0])
        raise InputError(
            f"{name} has {plural(int(missing.sum()), 'missing value')} (None or NaN), the first in feature {feature} "
            f"at row {row} (counting from 0). Give missing values a category of their own, or drop those rows."
        )


def numeric(block: NDArray[Any], name: str = "X") -> Floats:
    """A checked block as float64; text names the feature and the way out."""
    if block.dtype.kind in "USO":
        _refuse_text(block, name)
    return _checks.numbers(block, name)


def _refuse_text(block: NDArray[Any], name: str) -> None:
    for feature in range(block.shape[1]):
        for value in block[:, feature]:
            if isinstance(value, str | bytes):
                raise InputTypeError(
                    f"{name} must be numbers, but feature {feature} (counting from 0) holds text ({value!r}). Encode "
                    f"it first (for example with OneHotEncoder), or use CategoricalNaiveBayes when all features are "
                    f"categories."
                )


# ---------------------------------------------------------------- categories


def whole_or_text(block: NDArray[Any], feature: int) -> NDArray[Any]:
    """One column as int64 or text; missing values and numbers that are not whole are refused."""
    column = block[:, feature]
    if column.dtype.kind == "O":
        column = _plain_objects(column, feature)
    column = _checks.text_of_bytes(column)
    if column.dtype.kind in "UT":
        return column.astype(np.str_)
    if column.dtype.kind not in "fiub":
        raise InputTypeError(f"Feature {feature} must hold whole numbers or text, but its type is {column.dtype}.")
    return _whole(column, feature)


def _plain_objects(column: NDArray[Any], feature: int) -> NDArray[Any]:
    text = {isinstance(value, str) for value in column}
    if len(text) > 1:
        raise InputTypeError(f"Feature {feature} mixes text and numbers: {shown(list(dict.fromkeys(column)))}.")
    if text == {True}:
        return column.astype(np.str_)
    return _checks.numbers(column, f"Feature {feature}")


def _whole(column: NDArray[Any], feature: int) -> NDArray[np.int64]:
    if column.dtype.kind in "bi":
        return column.astype(np.int64, copy=False)
    values = column.astype(np.float64, copy=False)
    broken = values != np.floor(values)
    if broken.any():
        raise InputError(
            f"Feature {feature} holds {values[broken][0]:.6g}, which is not a category: cut it into bins first (for "
            f"example with KBinsDiscretizer), or use GaussianNaiveBayes."
        )
    if np.abs(values).max() > 2**53:
        raise InputError(f"Feature {feature} holds whole numbers beyond 2^53: number its categories from 0.")
    return values.astype(np.int64)


def find_categories(column: NDArray[Any], name: str) -> NDArray[Any]:
    """The categories of one column: all whole numbers from 0 (or the least) to the greatest; text as it occurs."""
    if column.dtype.kind == "U":
        return np.unique(column)
    low, high = min(int(column.min()), 0), int(column.max())
    if high - low >= MOST_CODES:
        raise InputError(
            f"{name} holds whole numbers from {low} to {high}. They are read as codes of categories, and "
            f"more than {MOST_CODES:,} are not kept: number its categories from 0, or turn them into text."
        )
    return np.arange(low, max(high, 0) + 1)


def encode(block: NDArray[Any], categories: Categories) -> tuple[JointCodes, dict[int, Any]]:
    """Joint codes of a block, and the first value of each feature that is not among its categories.

    A value that is not gets the last cell of its feature, `len(categories)`.
    """
    columns, strange = [], {}
    for feature, known in enumerate(categories):
        column = whole_or_text(block, feature)
        if (column.dtype.kind == "U") != (known.dtype.kind == "U"):
            kinds = ("text", "numbers") if column.dtype.kind == "U" else ("numbers", "text")
            raise InputTypeError(f"Feature {feature} holds {kinds[0]}, but the model was fitted with {kinds[1]}.")
        codes = column - known[0] if known.dtype.kind != "U" else np.searchsorted(known, column)
        absent = (codes < 0) | (codes >= len(known))
        if known.dtype.kind == "U":
            absent |= known[np.minimum(codes, len(known) - 1)] != column
        if absent.any():
            strange[feature] = column[absent][0].item()
            codes = np.where(absent, len(known), codes)
        columns.append(codes.astype(np.intp, copy=False))
    return join(columns, [len(known) + 1 for known in categories]), strange
