"""Numbers at the gate: any array as finite float64, with the words for what is wrong.

May import NumPy and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, InputTypeError

Floats: TypeAlias = NDArray[np.float64]
MOST = 1e100


def plural(count: int, word: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}{'es' if word.endswith('s') else 's'}"


def shown(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """A few values as a person would write them."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in list(values[: most + 1])]
    return ", ".join(map(repr, listed[:most])) + (", ..." if len(listed) > most else "")


def numbers(values: NDArray[Any], name: str) -> Floats:
    """The array as float64; text, objects and complex numbers are refused."""
    if values.dtype.kind in "fiub":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind == "O":
        return _numbers_of_objects(values, name)
    raise InputTypeError(
        f"{name} must be numbers, but it holds {kind_of(values)}: {shown(np.ravel(values))}. Convert it first."
    )


def _numbers_of_objects(values: NDArray[Any], name: str) -> Floats:
    flat = np.ravel(values)
    for row, value in enumerate(flat):
        if value is not None and not isinstance(value, int | float | np.number | np.bool_):
            raise InputTypeError(f"{name} must be numbers; row {row} (counting from 0) holds {value!r}.")
    return np.array([np.nan if value is None else float(value) for value in flat]).reshape(values.shape)


def kind_of(values: NDArray[Any]) -> str:
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
    if values.ndim == 0:
        raise InputError(f"{name} must be finite, but it is {float(values)}.")
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


def modest(values: Floats, name: str) -> Floats:
    """The same finite numbers; those whose sums and differences could overflow are refused."""
    if values.size and np.abs(values).max() > MOST:
        raise InputError(f"{name} has a value beyond {MOST:g}: divide all of them by a constant first.")
    return values


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
