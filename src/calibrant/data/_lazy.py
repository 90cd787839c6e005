"""What the readers of lazy frames share: columns by what they are, what cannot be used, and distinct values.

May import NumPy, narwhals, `calibrant.errors` and `calibrant.data._frames`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data._frames import column_array
from calibrant.errors import ColumnError, InputTypeError

if TYPE_CHECKING:
    import narwhals as nw

FINITE = float(np.finfo(np.float64).max)
MOST_LABELS = 10_000

# ---------------------------------------------------------------- columns


def as_named(frame: nw.LazyFrame[Any], found: Mapping[str, str], text: Collection[str] = ()) -> nw.LazyFrame[Any]:
    """Columns by what they are: the label as it is, text, and numbers as doubles; a weight of 1 where none is named."""
    import narwhals as nw

    columns = [] if "weight" in found else [nw.lit(1.0).alias("weight")]
    for place, name in found.items():
        kind = nw.String() if place in text else nw.Float64()
        columns.append((nw.col(name) if place == "label" else nw.col(name).cast(kind)).alias(place))
    return frame.select(*columns)


def no_numbers(name: Hashable, kind: Any, advice: str = "Convert it first") -> InputTypeError:
    return InputTypeError(f"column {name!r} must be numbers, but it holds {kind}. {advice}.")


def distinct(rows: nw.LazyFrame[Any], name: str, most: int) -> Any:
    """At most so many distinct values of a column.

    By a group-by, never by `unique`: for Spark, narwhals makes of that a filter over a window. It sorts all rows of the
    frame, and to plan it Spark derives 2^K conditions from one on K named columns (SPARK-33152). When that takes more
    memory than there is, the thread that plans dies, and `toArrow` waits for it without end (seen with Spark 4.3).
    """
    import narwhals as nw

    return rows.group_by(name).agg(nw.len().alias("rows")).head(most).collect().get_column(name)


# ---------------------------------------------------------------- what cannot be used


def is_absent(name: str) -> nw.Expr:
    """Whether a number is missing: null or NaN (the only one that is neither at most nor above 0)."""
    import narwhals as nw

    x = nw.col(name)
    return x.is_null() | x.is_nan().fill_null(True)


def one_if(condition: nw.Expr) -> nw.Expr:
    import narwhals as nw

    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def by_column(counts: Mapping[str, int], names: Mapping[str, Hashable]) -> str:
    """The columns with missing values and how many each has, in words."""
    return ", ".join(f"{names[place]!r} {count}" for place, count in counts.items() if count)


# ---------------------------------------------------------------- labels


def refuse_many_labels(count: int, name: Hashable) -> None:
    if count > MOST_LABELS:
        raise ColumnError(f"label column {name!r} holds more than {MOST_LABELS:,} different values: it is no label.")


def usable_labels(column: Any, usable: NDArray[np.bool_]) -> tuple[NDArray[Any], list[Any]]:
    """Of distinct labels those that are usable: as an array, and as the engine has them."""
    labels = column_array(column, "label")[usable]
    as_they_are = [value for value, kept in zip(column.to_list(), usable) if kept]
    return np.array(labels.tolist()) if labels.dtype.kind == "O" else labels, as_they_are
