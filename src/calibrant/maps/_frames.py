"""A frame with the probabilities of a map as new columns.

The rows of an eager frame (pandas, Polars, PyArrow) go through the map itself, and so do the parts of a Dask frame,
which plans a call sooner than an expression. Other lazy frames get expressions and stay in their engine.
Invariant: a row that the map would refuse has null there, or NaN where the library has no other null.
May import NumPy, narwhals, `calibrant._checks`, `calibrant.data._columns`, `_class_formula`, `_expression`, `_formula`,
`_tree` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import ROW_SUM_TOLERANCE, Floats, shown
from calibrant.data._columns import column_index
from calibrant.errors import ColumnError, InputError, InputTypeError
from calibrant.maps._base import Map
from calibrant.maps._class_formula import class_formula, new_names, refuse_one_name, score_names
from calibrant.maps._expression import column_expression, with_class_columns
from calibrant.maps._formula import reach
from calibrant.maps._tree import RowMap


def frame_with_map(record: Map, frame: Any, columns: str | Sequence[str], prefix: str) -> Any:
    """The frame with a column `prefix` for a map of one column, else with a column for every class."""
    import narwhals as nw

    native: Any = nw.to_native(frame, pass_through=True)
    if nw.dependencies.is_dask_dataframe(native):
        parts: Any = native
        names, new = _places(record, list(parts.columns), columns, prefix, folds=False)
        _refuse_times(nw.from_native(parts._meta).schema, names)
        made = parts._meta.assign(**{name: np.zeros(0) for name in new})
        return parts.map_partitions(partial(frame_with_map, record, columns=columns, prefix=prefix), meta=made)
    wrapped: Any = nw.from_native(native)
    schema = wrapped.collect_schema()
    # SQL engines take names that differ in capitals for one.
    folds = isinstance(wrapped, nw.LazyFrame) and not wrapped.implementation.is_polars()
    names, new = _places(record, schema.names(), columns, prefix, folds)
    _refuse_times(schema, names)
    if not isinstance(wrapped, nw.LazyFrame):
        made = _eager(record, wrapped, names, new)
    elif isinstance(columns, str):
        made = wrapped.with_columns(**{new[0]: column_expression(record, names[0])})
    else:
        made = with_class_columns(record, wrapped, names, new)
    return made.to_native()


def _places(
    record: Map, there: list[str], columns: str | Sequence[str], prefix: str, folds: bool
) -> tuple[list[str], list[str]]:
    """The names of the columns of scores and of the new ones; `folds` where capitals do not tell names apart."""
    if not isinstance(prefix, str) or not prefix:
        raise InputError(f"prefix must be text, the name of the new column or its beginning, but it is {prefix!r}.")
    if len(record.classes) == 2 and isinstance(columns, str):
        names, new = [columns], [prefix]
    elif len(record.classes) == 2 and not _takes_two_columns(record, columns):
        raise _one_column_is_enough(record, columns)
    else:
        names, new = score_names(record, columns), new_names(record, prefix)
    found = [there[column_index(there, name, "columns")] for name in names]
    same = str.lower if folds else str
    known = {same(name): name for name in there if isinstance(name, str)}
    taken = [known[same(name)] for name in new if same(name) in known]
    if taken:
        raise ColumnError(f"The frame has a column {taken[0]!r} already: give another prefix.")
    refuse_one_name(new, folds)
    return found, new


def _refuse_times(schema: Any, names: list[str]) -> None:
    """Refuse dates and times, which engines would turn into numbers."""
    for name in names:
        if schema[name].is_temporal():
            raise InputTypeError(f"Column {name!r} holds dates or times ({schema[name]}), not scores.")


def _takes_two_columns(record: Map, columns: Any) -> bool:
    """Whether a map of two classes is of a kind that reads a column for each of them, and has got two."""
    known = class_formula.dispatch(type(record)) is not class_formula.dispatch(object)
    return known and not isinstance(record, RowMap) and isinstance(columns, Sequence) and len(columns) == 2


def _one_column_is_enough(record: Map, columns: Any) -> InputError:
    return InputError(
        f"This map {record.kind!r} of two classes ({shown(record.classes)}) reads one column, the scores of the second "
        f'class: give its name as text, as in record.apply_frame(frame, "p"), not {columns!r}.'
    )


# ---------------------------------------------------------------- eager frames


def _eager(record: Map, wrapped: Any, names: list[str], new: list[str]) -> Any:
    """The frame with the map at its rows."""
    import narwhals as nw

    given = wrapped.select(*(nw.col(name).cast(nw.Float64()) for name in names))
    rows = np.column_stack([given.get_column(name).to_numpy() for name in names])
    usable = _usable(record, rows)
    made = np.full((len(rows), len(new)), np.nan)
    if usable.any():
        made[usable] = _mapped(record, rows[usable])
    columns = [
        nw.new_series(name, np.ascontiguousarray(made[:, k]), nw.Float64(), backend=wrapped.implementation)
        for k, name in enumerate(new)
    ]
    wrapped = wrapped.with_columns(*columns)
    if usable.all():
        return wrapped
    return wrapped.with_columns(nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in new)


def _mapped(record: Map, rows: Floats) -> Floats:
    """Probabilities of usable rows, in as many columns as there are new ones."""
    if rows.shape[1] == 1:
        return np.asarray(record(rows[:, 0]))[:, None]
    found = np.asarray(record(rows))
    return np.column_stack([1 - found, found]) if found.ndim == 1 else found


def _usable(record: Map, rows: Floats) -> NDArray[np.bool_]:
    """Whether the map accepts each row, as it decides itself."""
    low, high = reach(record)
    usable = np.asarray(np.all((rows >= low) & (rows <= high), axis=1))
    if rows.shape[1] == 1 or record.reads == "score":
        return usable
    with np.errstate(over="ignore", invalid="ignore"):
        if record.reads == "logit":
            return np.asarray(usable & np.isfinite(rows.max(axis=1) - rows.min(axis=1)))
        return np.asarray(usable & (np.abs(np.clip(rows, 0.0, 1.0).sum(axis=1) - 1) <= ROW_SUM_TOLERANCE))
