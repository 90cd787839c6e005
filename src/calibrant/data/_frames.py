"""Columns of dataframes: any frame that narwhals reads, and single columns of the usual libraries.

Invariant: a column becomes float64 or whole numbers, bool, or objects; a missing value is NaN among numbers and None
among objects. No dataframe library is imported here, and only the named columns of a lazy frame are computed.
May import NumPy, narwhals, `calibrant._checks`, `calibrant.errors` and `calibrant.data._columns`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant.data._columns import Columns, check_missing, column_index, label_apart
from calibrant.errors import ColumnError, InputError, InputTypeError, MissingDependencyError

if TYPE_CHECKING:
    import narwhals as nw

# ---------------------------------------------------------------- one column


def column_array(values: Any, name: str) -> NDArray[Any]:
    """A column or matrix of pandas, Polars, PyArrow, torch, narwhals, NumPy or lists as a NumPy array."""
    values = getattr(values, "to_native", lambda: values)()
    step = _step_to_compute(values)
    if step is not None:
        raise _of_an_engine(values, name, step)
    if isinstance(values, np.ma.MaskedArray):
        values = np.array(values.tolist(), dtype=object)
    if isinstance(values, np.ndarray):
        return _tidy(np.asarray(values))  # np.asarray: a matrix would keep two dimensions
    if hasattr(values, "detach"):
        return _of_tensor(values)
    if isinstance(values, str | bytes | dict):
        raise InputTypeError(f"{name} must hold one value per row, but it is {type(values).__name__}: {values!r:.60}.")
    parts = frame_columns(values)
    if parts is not None:
        return _stacked([column_array(part, name) for part in parts], name)
    if hasattr(values, "to_numpy"):
        return _of_series(values)
    return _of_sequence(values, name)


def _step_to_compute(values: Any) -> str | None:
    """What brings the rows of a lazy frame into memory; None for anything else."""
    if hasattr(values, "to_numpy"):
        return None
    steps = {"toPandas": ".toPandas()", "collect": ".collect()", "fetchnumpy": ".df()"}
    return next((step for name, step in steps.items() if callable(getattr(values, name, None))), None)


def _of_an_engine(values: Any, name: str, step: str) -> InputTypeError:
    """Why a lazy frame is no array, and what takes it."""
    return InputTypeError(
        f"{name} is a lazy {type(values).__name__}, whose rows stay in an engine. To fit or to measure let the engine "
        f"add them up: table = ScoreTable.from_frame(frame, score=..., label=...), then fit_table(table) or "
        f"measure(table). To apply a map: apply_frame(frame, columns). Or compute it first with "
        f"{step}, if it fits into memory."
    )


def _of_tensor(values: Any) -> NDArray[Any]:
    tensor = values.detach().cpu()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:
        return np.asarray(tensor.float().numpy())


def frame_columns(values: Any) -> list[Any] | None:
    """The columns of a frame (pandas, Polars, PyArrow); None for anything else."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return [values.iloc[:, place] for place in range(len(values.columns))]
    if hasattr(values, "get_columns"):
        return list(values.get_columns())
    if hasattr(values, "column_names") and hasattr(values, "columns"):
        return list(values.columns)
    return None


def text_names(values: Any) -> list[str] | None:
    """The names of the columns of a frame, when all are text; None for anything else."""
    values = getattr(values, "to_native", lambda: values)()
    if frame_columns(values) is None:
        return None
    names = list(values.columns if hasattr(values, "iloc") or hasattr(values, "get_columns") else values.column_names)
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else None


def _stacked(parts: list[NDArray[Any]], name: str) -> NDArray[Any]:
    if not parts:
        raise InputError(f"{name} is a frame without columns.")
    return np.stack(parts, axis=1)


def _of_series(values: Any) -> NDArray[Any]:
    """A pandas, Polars or PyArrow column."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") in ("i", "u", "f", "b") and not isinstance(dtype, np.dtype):
        missing = np.asarray(values.isna(), dtype=bool)
        if missing.any() and dtype is not None and dtype.kind != "b":
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        return _tidy(np.asarray(values.to_numpy(dtype=object if missing.any() else None)))
    if hasattr(values, "null_count") and hasattr(values, "type"):
        if hasattr(values.type, "value_type") and hasattr(values.type, "index_type"):
            values = values.cast(values.type.value_type)  # to_numpy puts a neighbour's value where one is missing
        return _tidy(np.asarray(values.to_numpy(zero_copy_only=False)))
    try:
        return _tidy(np.asarray(values.to_numpy()))
    except Exception:  # a kind that NumPy has not, each library with its own error: whole numbers of 128 bits
        return _tidy(np.array(values.to_list(), dtype=object))


def _of_sequence(values: Any, name: str) -> NDArray[Any]:
    if not hasattr(values, "__array__") and not isinstance(values, Sequence):
        try:
            values = list(values)
        except TypeError:
            values = [] if values is None else values
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in values):
            array = np.asarray(values, dtype=object)
    except ValueError as reason:
        raise InputError(f"{name} is not a regular array: its rows have different lengths.") from reason
    return _tidy(array)


def _tidy(array: NDArray[Any]) -> NDArray[Any]:
    """Objects as numbers or bool where they are that; missing ones as NaN or None."""
    if array.dtype.kind != "O":
        return array
    flat = array.ravel()
    missing = np.fromiter((_is_missing(value) for value in flat), dtype=bool, count=len(flat))
    present = flat[~missing]
    if all(isinstance(value, bool | np.bool_) for value in present) and len(present):
        if not missing.any():
            return array.astype(bool)
    elif all(isinstance(value, Number) and not isinstance(value, complex) for value in present):
        numbers = np.full(len(flat), np.nan)
        numbers[~missing] = [float(value) for value in present]
        return numbers.reshape(array.shape)
    tidy = flat.copy()
    tidy[missing] = None
    return tidy.reshape(array.shape)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
    except ArithmeticError:  # a signalling NaN of decimal, which cannot be compared
        return True


# ---------------------------------------------------------------- a frame


def read_frame(
    frame: Any,
    *,
    score: Hashable,
    label: Hashable,
    weight: Hashable | None = None,
    pos_label: Any = None,
    missing: str = "error",
) -> Columns:
    """The rows of two or three columns of a frame, eager or lazy."""
    wanted = {"score": score, "label": label} | ({} if weight is None else {"weight": weight})
    label_apart(label, [(name, argument) for argument, name in wanted.items() if argument != "label"])
    rows = complete_rows(frame, wanted, missing)
    codes, classes = _checks.binary_labels(rows.labels, pos_label, None, f"label column {label!r}")
    return Columns(rows.numbers["score"], codes, rows.numbers.get("weight"), classes, rows.dropped)


class CompleteRows(NamedTuple):
    """Finite numbers by their argument, labels, and how many rows were left out for a missing cell."""

    numbers: dict[str, _checks.Floats]
    labels: NDArray[Any]
    dropped: int


def complete_rows(frame: Any, wanted: dict[str, Hashable], missing: str) -> CompleteRows:
    """The wanted columns of a frame: the one called "label", and numbers."""
    check_missing(missing)
    columns = _named_columns(frame, wanted)
    numeric = {place: _numeric(columns[place], wanted[place]) for place in wanted if place != "label"}
    labels = np.asarray(columns["label"])
    gaps = {place: np.isnan(values) for place, values in numeric.items()} | {"label": _gaps(labels)}
    absent = np.logical_or.reduce(list(gaps.values()))
    dropped = int(absent.sum())
    if dropped and missing == "error":
        raise InputError(_missing_cells(gaps, wanted, absent))
    if dropped:
        numeric, labels = {place: values[~absent] for place, values in numeric.items()}, labels[~absent]
    if len(labels) == 0:
        raise InputError(f"The frame has no rows{' without a missing value' if dropped else ''}.")
    return CompleteRows(numeric, _plain_kind(labels), dropped)


def _named_columns(frame: Any, wanted: dict[str, Hashable]) -> dict[str, NDArray[Any]]:
    """The wanted columns as arrays."""
    if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "iloc") and hasattr(frame, "columns"):
        names = list(frame.columns)
        places = {argument: column_index(names, name, argument) for argument, name in wanted.items()}
        return {argument: column_array(frame.iloc[:, place], argument) for argument, place in places.items()}
    return _through_narwhals(frame, wanted)


def lazy_frame(frame: Any) -> nw.LazyFrame[Any] | None:
    """The frame where its rows stay in an engine; None for any other, also one that names two columns alike."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        wrapped: Any = nw.from_native(frame, pass_through=True)
    except DuplicateError:
        return None
    return wrapped if isinstance(wrapped, nw.LazyFrame) else None


def _through_narwhals(frame: Any, wanted: dict[str, Hashable]) -> dict[str, NDArray[Any]]:
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        wrapped = nw.from_native(frame)
        names = wrapped.collect_schema().names()
    except (TypeError, NarwhalsError) as reason:
        if isinstance(reason, TypeError):
            raise InputTypeError(
                f"frame must be a dataframe (pandas, Polars, PyArrow, DuckDB, ...), but it is {type(frame).__name__}. "
                f"For arrays use from_arrays, for a path from_file."
            ) from reason
        raise ColumnError(f"The columns of the frame cannot be read: {' '.join(str(reason).split())}") from reason
    found = {argument: names[column_index(names, name, argument)] for argument, name in wanted.items()}
    narrow = wrapped.select(*dict.fromkeys(found.values()))
    try:
        eager = narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
    except ImportError as reason:
        raise MissingDependencyError(
            f"Collecting this lazy frame needs {reason.name}: python -m pip install {reason.name}"
        ) from reason
    return {argument: column_array(eager.get_column(name), argument) for argument, name in found.items()}


def _numeric(values: NDArray[Any], name: Hashable) -> _checks.Floats:
    numbers = _checks.numbers(values, f"column {name!r}")
    infinite = np.isinf(numbers)
    if infinite.any():
        raise InputError(
            f"column {name!r} has {_checks.plural(int(infinite.sum()), 'infinite value')}, the first at row "
            f"{int(np.argmax(infinite))} (counting from 0). Replace or remove them."
        )
    return numbers


def _gaps(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    return np.isnan(values) if values.dtype.kind in "fMm" else np.zeros(len(values), dtype=bool)


def _plain_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all bool once the missing ones are gone, as bool."""
    return _tidy(labels) if labels.dtype.kind == "O" else labels


def _missing_cells(gaps: dict[str, NDArray[np.bool_]], wanted: dict[str, Hashable], absent: NDArray[np.bool_]) -> str:
    each = ", ".join(f"{wanted[place]!r} {int(gap.sum())}" for place, gap in gaps.items() if gap.any())
    return (
        f"{_checks.plural(int(absent.sum()), 'row')} of the frame {'has' if absent.sum() == 1 else 'have'} a missing "
        f"value, the first at row {int(np.argmax(absent))} (counting from 0); missing by column: {each}. Fill them, or "
        f'leave those rows out with missing="drop".'
    )
