"""The score table of a lazy frame (Polars, DuckDB, Spark, Dask), added up by score in its engine.

Three queries: the distinct labels with everything that cannot be used; of more rows than `max_distinct` about how many
scores there are, from a sample; and one group-by of the scores. Where there are more than `max_distinct`, cells are
added up (see `_cells` for what that may change): instead where the sample is sure of it, else after the group-by has
found out.
May import NumPy, narwhals, `calibrant._checks`, `calibrant.errors` and `_cells`, `_columns`, `_frames`
and `_lazy` beside this file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Label
from calibrant.data import _lazy
from calibrant.data._cells import MORE, ONE, ZERO, Cells, Ends, cells_between, mean_scores, warn_of_cells
from calibrant.data._columns import MAX_DISTINCT, Sums, check_missing, column_index, label_apart
from calibrant.data._frames import column_array, lazy_frame
from calibrant.data._lazy import is_absent, one_if
from calibrant.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw

SAMPLE = 20_000
"""Distinct scores of a sample that decides."""
SURELY_MORE = 1.3
"""How far beyond the limit the estimate is, before the exact group-by is not even tried."""


def read_lazy(
    frame: Any,
    names: Mapping[str, Hashable | None],
    *,
    pos_label: Any,
    missing: str,
    max_distinct: int,
) -> Sums | None:
    """The sums by score; None for an eager frame, and for one whose rows must be seen to say what is wrong with them.

    `names` are those of the columns: score, label and weight.
    """
    check_missing(missing)
    rows = _plain_rows(frame, {place: name for place, name in names.items() if name is not None})
    if rows is None:
        return None
    found = _labels_and_faults(rows)
    labels = column_array(found.get_column("label"), "label")
    total = {name: int(sum(found.get_column(name).to_list())) for name in ("rows", "absent", "wrong")}
    known = np.array([value is not None and value == value for value in labels.tolist()], dtype=bool)
    if total["wrong"] or (total["absent"] and missing == "error") or not known.any():
        _refuse_what_is_large(total)
        return None
    _lazy.refuse_many_labels(len(labels), names["label"])
    values, as_they_are = _lazy.usable_labels(found.get_column("label"), known)
    codes, classes = _checks.binary_labels(values, pos_label, None, f"label column {names['label']!r}")
    positive = [value for value, code in zip(as_they_are, codes) if code]
    weighted = names["weight"] is not None
    return added_up(_complete(rows, positive), total["rows"], classes, max_distinct, weighted)


def _plain_rows(frame: Any, wanted: dict[str, Hashable]) -> nw.LazyFrame[Any] | None:
    """The rows as columns score, label and weight; None where the frame is not lazy, or a number is no number yet."""
    import narwhals as nw

    wrapped = lazy_frame(frame)
    if wrapped is None:
        return None
    schema = wrapped.collect_schema()
    names = schema.names()
    label_apart(wanted["label"], [(name, argument) for argument, name in wanted.items() if argument != "label"])
    found = {argument: names[column_index(names, name, argument)] for argument, name in wanted.items()}
    if not all(schema[name].is_numeric() for argument, name in found.items() if argument != "label"):
        return None
    return _lazy.as_named(wrapped, found).with_columns(score=nw.col("score") + 0.0)


def _labels_and_faults(rows: nw.LazyFrame[Any]) -> Any:
    """For every distinct label: its rows, those with a missing value, and those with a number that cannot be used."""
    import narwhals as nw

    score, weight = nw.col("score"), nw.col("weight")
    infinite = (score.abs() > _lazy.FINITE) | (weight > _lazy.FINITE) | (weight < 0)
    absent = is_absent("score") | is_absent("weight") | nw.col("label").is_null()
    flags = rows.select("label", absent=one_if(absent), wrong=one_if(~absent & infinite))
    added = flags.group_by("label").agg(nw.len().alias("rows"), nw.col("absent").sum(), nw.col("wrong").sum())
    return added.head(_lazy.MOST_LABELS + 1).collect()


def _refuse_what_is_large(total: dict[str, int]) -> None:
    """Refuse what cannot be used, where the rows are too many to be looked at one by one."""
    if total["rows"] <= MAX_DISTINCT:
        return
    count = total["wrong"] or total["absent"]
    rows, one = _checks.plural(count, "row"), count == 1
    if total["wrong"]:
        raise InputError(
            f"{rows} of the frame {'holds' if one else 'hold'} an infinite score or a weight below 0. Remove such rows "
            f"first."
        )
    raise InputError(
        f"{rows} of the frame {'has' if one else 'have'} a missing value. Fill them, or leave those rows out with "
        f'missing="drop".'
    )


def _complete(rows: nw.LazyFrame[Any], positive: list[Any]) -> nw.LazyFrame[Any]:
    """Complete rows of weight above 0, as score, hit (weight of a positive), weight and square."""
    import narwhals as nw

    weight = nw.col("weight")
    kept = rows.filter(~(is_absent("score") | is_absent("weight") | nw.col("label").is_null()) & (weight > 0))
    hit = nw.col("label").is_in(positive) if positive else nw.lit(False)
    return kept.select("score", "weight", hit=nw.when(hit).then(weight).otherwise(nw.lit(0.0)), square=weight * weight)


def added_up(
    rows: nw.LazyFrame[Any], most_rows: int, classes: tuple[Label | None, Label], max_distinct: int, weighted: bool
) -> Sums:
    """The sums by score of rows as `_complete` makes them, of which there are at most `most_rows`.

    Where every row counts once, the engine adds up two columns instead of four.
    """
    import narwhals as nw

    added = ("hit", "weight", "square") if weighted else ("hit",)
    sums = (nw.len().alias("rows"), *(nw.col(name).sum() for name in added))
    table, cells = None, None
    if most_rows <= max_distinct or not surely_more(rows, max_distinct):
        table = rows.group_by("score").agg(*sums).head(max_distinct + 1).collect()
    if table is None or len(table) > max_distinct:
        placed, cells = _in_cells(rows, max_distinct)
        moved = placed.with_columns(moment=nw.col("weight") * nw.col("score"))
        table = moved.group_by("cell").agg(nw.col("moment").sum(), *sums).collect()
        warn_of_cells(len(table), max_distinct, cells.width, MORE)
    numbers = {name: column_array(table.get_column(name), name).astype(np.float64) for name in table.columns}
    hit, count = numbers["hit"], numbers["rows"]
    weight, square = numbers.get("weight", count), numbers.get("square", count)
    scores = mean_scores(cells, numbers["cell"], numbers["moment"], weight) if cells else numbers["score"]
    _checks.weight_total(float(weight.sum()), float(count.sum()))
    return Sums(scores + 0.0, hit, np.maximum(weight - hit, 0.0), count, square, classes)


def surely_more(rows: nw.LazyFrame[Any], most: int) -> bool:
    """Whether a sample of the distinct scores says that there are more than `most`, by far.

    The sample is drawn by value, so that a score is in it with all of its rows or not at all: those for which the
    fraction of |x| a, a irrational, lies in a window. Multiples of a step spread evenly over it (Weyl 1916). Scores
    with a product too great for an exact fraction, or too small for a whole one, are not counted, which errs on the
    side of the exact group-by.
    """
    import narwhals as nw

    share = max(SAMPLE / most, 0.002)
    if share > 0.5:
        return False
    product = nw.col("score").abs() * (2**30 * 0.6180339887498949)
    fraction = product % 1.0
    inside = (product < 2.0**40) & (fraction >= 0.25) & (fraction < 0.25 + share)
    limit = SURELY_MORE * share * most
    return len(_lazy.distinct(_drawn(rows, inside), "score", round(limit) + 2).drop_nulls()) > limit


def _drawn(rows: nw.LazyFrame[Any], inside: nw.Expr) -> nw.LazyFrame[Any]:
    """The scores inside; in Spark with null for all others.

    Spark moves a filter below the columns that it reads, and writes out what they are made of for each mention: of K
    classes K^2 terms.
    """
    import narwhals as nw

    if rows.implementation.is_spark_like():
        return rows.select(score=nw.when(inside).then(nw.col("score")))
    return rows.filter(inside).select("score")


def _in_cells(rows: nw.LazyFrame[Any], most: int) -> tuple[nw.LazyFrame[Any], Cells]:
    """The rows with the number of their cell, and where the cells lie."""
    import narwhals as nw

    x = nw.col("score")
    inside = {"low": nw.when(x > 0).then(x).min(), "high": nw.when(x < 1).then(x).max()}
    ends = rows.select(x.min().alias("first"), x.max().alias("last"), **inside).collect()
    cells = cells_between(Ends(*(ends.get_column(name).to_list()[0] for name in Ends._fields)), most)
    if cells.unit is None:
        inner = x.clip(cells.low, cells.high)
        inside_cell = (((inner / (1.0 - inner)).log() - cells.left) / cells.width).round(0)
        ones = nw.when(x >= 1).then(nw.lit(ONE)).otherwise(inside_cell)
        cell = nw.when(x <= 0).then(nw.lit(ZERO)).otherwise(ones)
    else:
        size = (1.0 + x.abs() / cells.unit).log()
        scale = nw.when(x < 0).then(0.0 - size).otherwise(size)
        cell = ((scale - cells.left) / cells.width).round(0)
    return rows.with_columns(cell=cell), cells
