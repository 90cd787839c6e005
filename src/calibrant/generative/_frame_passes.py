"""Passes over the rows of a lazy frame: sums of statistics and of steps, each one query in the engine.

`s = sum_i psi(x_i) w_i'`: a pass writes psi, the rule of the model, its softmax and the residuals as expressions of the
columns and asks for the sums; so the rows are read once and only the sums come back. The residuals of a row add up to
zero over the classes, and those of the last class are not asked for. Categories that make few combinations are counted
in one query; all passes then work on the counts in memory.
May import NumPy, narwhals, `calibrant.errors` and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._checks import Floats
from calibrant.data._frames import column_array
from calibrant.errors import InputError, InputTypeError
from calibrant.generative._frames import LazyRows, Names, read_frame
from calibrant.generative._rows import Labelled
from calibrant.generative._statistics import RiskStep

if TYPE_CHECKING:
    import narwhals as nw

MOST_SUMS = 1_000
"""The most sums of one query: Spark takes seconds to plan as many, and minutes to plan twice as many."""
MOST_COUNTED = 2**18
"""Combinations of categories and classes up to this many are counted once and brought into memory."""


def rows_of_frame(frame: Any, names: Names, categorical: bool, classes: Any = None) -> Labelled | FramePasses:
    """The rows of a frame, in memory or as passes over a lazy one; `classes` None takes those that occur."""
    found = read_frame(frame, names, categorical, classes)
    if isinstance(found, Labelled):
        return found
    return _counted(found) or FramePasses(found)


def _counted(found: LazyRows) -> Labelled | None:
    """Rows of categories as their distinct combinations and weights; None where these may be many, and for numbers."""
    import narwhals as nw

    categories = found.layout
    if not isinstance(categories, tuple) or len(found.classes) * math.prod(map(len, categories)) > MOST_COUNTED:
        return None
    keys = [f"x{j}" for j in range(len(categories))]
    table = found.rows.group_by(*keys, "own").agg(nw.col("weight").sum()).collect()
    columns = [column_array(table.get_column(key), key) for key in keys]
    numbers = [column if column.dtype.kind != "f" else column.astype(np.int64) for column in columns]
    kinds = {one.dtype.kind in "OU" for one in numbers}
    features = np.stack([one.astype(object) for one in numbers] if kinds == {True, False} else numbers, axis=1)
    codes = column_array(table.get_column("own"), "own").astype(np.intp)
    return Labelled(features, codes, column_array(table.get_column("weight"), "weight"), found.classes)


class FramePasses:
    """Labelled rows of a lazy frame, as `Rows` holds those in memory: statistics, and the step of a model."""

    def __init__(self, found: LazyRows) -> None:
        self.classes = found.classes
        self._found = found

    def statistics(self, model: Any) -> Any:
        """Statistics of all rows under their labels."""
        import narwhals as nw

        layout, classes = self._found.layout, range(len(self.classes))
        rows, z = _columns(self._found.rows, layout)
        psi = [*z, *model._products_of_columns(z)]
        _not_too_many(len(classes) * (1 + len(psi)), len(classes), len(layout), model)
        own, weight = nw.col("own"), nw.col("weight")
        members = {f"r{k}": nw.when(own == k).then(weight).otherwise(nw.lit(0.0)) for k in classes}
        return model._of_sums(layout, _sums(rows.with_columns(**members), psi, len(classes), {})[0])

    def step(self, model: Any, correct: bool = True) -> RiskStep:
        """The step of all rows."""
        layout, weighted = model._layout, self._found.weighted
        _same_kinds(self._found.layout, layout)
        rows, z = _columns(self._found.rows, layout)
        rows = _judged(rows, model._joint_of_columns(z), weighted)
        if not correct:
            return RiskStep(None, *_sums(rows, [], 0, _verdict(weighted))[1])
        psi = [*z, *(model._products_of_columns(z) if model._squares_move else [])]
        sums, told = _sums(rows, psi, len(self.classes) - 1, _verdict(weighted))
        return RiskStep(model._of_sums(layout, np.column_stack([sums, -sums.sum(axis=1)])), *told)


def _columns(rows: nw.LazyFrame[Any], layout: Any) -> tuple[nw.LazyFrame[Any], list[Any]]:
    """Rows with the columns that statistics are sums of: numbers from the origin, or 1 and 0 for each category.

    Sums of products with 1 and 0 take engines less time than sums under conditions.
    """
    import narwhals as nw

    x = [nw.col(f"x{j}") for j in range(len(layout))]
    if isinstance(layout, tuple):
        found = [(column == value).cast(nw.Float64()) for column, known in zip(x, layout) for value in known.tolist()]
    else:
        found = [column - float(zero) for column, zero in zip(x, layout)]
    named = {f"z{place}": column for place, column in enumerate(found)}
    return rows.select("own", "weight", **named), [nw.col(name) for name in named]


def _not_too_many(n_sums: int, n_classes: int, n_features: int, model: Any) -> None:
    if n_sums > MOST_SUMS:
        advice = "rare categories joined" if model._categorical else "GaussianNaiveBayes"
        raise InputError(
            f"The query would ask for {n_sums:,} sums ({n_classes} classes and {n_features} features), and more than "
            f"{MOST_SUMS:,} are not asked of an engine. Use fewer features, {advice}, or read the rows in blocks with "
            f"RiskBasedCalibration.fit_blocks."
        )


def _same_kinds(found: Any, known: Any) -> None:
    """Refuse text where numbers were, and the other way round."""
    for j, (mine, other) in enumerate(zip(found, known) if isinstance(known, tuple) else ()):
        if (mine.dtype.kind == "U") != (other.dtype.kind == "U"):
            kinds = ("text", "numbers") if mine.dtype.kind == "U" else ("numbers", "text")
            raise InputTypeError(f"Feature {j} holds {kinds[0]}, but the model was fitted with {kinds[1]}.")


# ---------------------------------------------------------------- the rule and the residuals


def _judged(rows: nw.LazyFrame[Any], joint: Sequence[Any], weighted: bool) -> nw.LazyFrame[Any]:
    """The rows with their residuals r0, r1, ... but the last, and what `_verdict` reads."""
    import narwhals as nw

    classes = range(len(joint))
    own, top, total, off = (nw.col(name) for name in ("own", "top", "total", "off"))
    levels, shares = [nw.col(f"l{k}") for k in classes], [nw.col(f"e{k}") for k in classes]
    rows = rows.with_columns(**{f"l{k}": level for k, level in enumerate(joint)})
    rows = rows.with_columns(top=nw.max_horizontal(*levels))
    rows = rows.with_columns(**{f"e{k}": (levels[k] - top).exp() for k in classes})
    others = [nw.when(own == k).then(nw.lit(0.0)).otherwise(shares[k]) for k in classes]
    rows = rows.with_columns(
        total=reduce(add, shares),
        off=reduce(add, others),
        mine=nw.coalesce(*(nw.when(own == k).then(levels[k]) for k in classes)) - top,
        first=nw.coalesce(*(nw.when(levels[k] == top).then(nw.lit(k)) for k in classes)),
    )
    residuals = [nw.when(own == k).then(off).otherwise(0.0 - shares[k]) / total for k in classes[:-1]]
    residuals = [residual * nw.col("weight") for residual in residuals] if weighted else residuals
    return rows.with_columns(**{f"r{k}": residual for k, residual in enumerate(residuals)})


def _verdict(weighted: bool) -> dict[str, Any]:
    """Sums of weight, error, soft error and log loss."""
    import narwhals as nw

    one = nw.col("weight") if weighted else nw.lit(1.0)
    total = nw.col("total")
    return {
        "weight": nw.col("weight").sum(),
        "error": nw.when(nw.col("first") == nw.col("own")).then(nw.lit(0.0)).otherwise(one).sum(),
        "soft": (nw.col("off") / total * one).sum(),
        "loss": ((total.log() - nw.col("mine")) * one).sum(),
    }


def _sums(
    rows: nw.LazyFrame[Any], psi: Sequence[Any], n_classes: int, more: dict[str, Any]
) -> tuple[Floats, list[float]]:
    """The sums of `r_k` (first line) and of `psi_j r_k`, of shape (1 + psi, classes), and more sums."""
    import narwhals as nw

    residuals = [nw.col(f"r{k}") for k in range(n_classes)]
    terms = [*residuals, *(number * residual for number in psi for residual in residuals)]
    asked = {f"s{place}": term.sum() for place, term in enumerate(terms)} | more
    found = rows.select(**asked)
    table = found.collect(engine="streaming") if found.implementation.is_polars() else found.collect()
    numbers = [float(table.get_column(name).to_list()[0] or 0.0) for name in asked]
    return np.array(numbers[: len(terms)]).reshape(-1, max(n_classes, 1)), numbers[len(terms) :]
