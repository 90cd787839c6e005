"""Rows of a large file added up by score in the engine, so that memory does not grow with the rows.

Invariant: the sums are those of the rows with weight above 0. With more distinct scores than `most` they are those of
cells (see `_cells`), whose number is known before: the scores are counted, to a few per cent, in the pass that finds
their ends.
May import NumPy, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Classes
from calibrant.data._cells import ONE, ZERO, Cells, Ends, cells_between, mean_scores, warn_of_cells
from calibrant.data._columns import MAX_DISTINCT, SummedColumns, Sums
from calibrant.data._engine import Engine
from calibrant.errors import InputError

MOST_GROUPS = 10_000
SURELY_MORE = 1.3
"""How far beyond the limit an approximate count is, before the exact group-by is not even tried."""


class Limits(NamedTuple):
    """The most scores (with groups: pairs of score and group) to bring back, and what to do for more of them."""

    most: int
    advice: str


USUAL = Limits(MAX_DISTINCT, "")


def sum_rows(
    engine: Engine,
    rows: str,
    values: list[Any],
    weight: str | None,
    grouped: bool,
    classes: Classes,
    dropped: int,
    limits: Limits,
) -> SummedColumns:
    """The sums of a query of rows with columns n0 (the score), `weight`, code and, where grouped, grp."""
    if weight is not None:
        rows = f"{rows} AND {weight} > 0"
    engine.rows("SET preserve_insertion_order = false")
    engine.stage = (0.4, 0.6)
    count, n_groups, ends = _overview(engine, rows, values, grouped)
    if not count:
        _checks.weight_total(0.0, 0.0)
    engine.stage = (0.6, 1.0)
    found, cells = {}, None
    if count <= SURELY_MORE * limits.most:
        found = engine.arrays(f"{_sums_sql(rows, 'n0', weight, grouped)} LIMIT {limits.most + 1}", values)
    if not found or len(found["rows"]) > limits.most:
        cells = cells_between(ends, max(limits.most // n_groups, 6))
        found = engine.arrays(_sums_sql(rows, _cell_sql(cells), weight, grouped), values)
        warn_of_cells(len(found["rows"]), limits.most, cells.width, limits.advice)
    groups = np.ma.getdata(found["grp"]) if grouped else None
    return SummedColumns(_as_sums(found, cells, classes), dropped, groups)


def _overview(engine: Engine, rows: str, values: list[Any], grouped: bool) -> tuple[int, int, Ends]:
    """About how many scores (or pairs of score and group), how many groups, and the ends of the scores."""
    what = (
        "approx_count_distinct(hash(n0, grp)), approx_count_distinct(grp)"
        if grouped
        else "approx_count_distinct(n0), 1"
    )
    found = engine.rows(
        f"SELECT {what}, min(n0), max(n0), min(n0) FILTER (n0 > 0), max(n0) FILTER (n0 < 1) FROM ({rows})", values
    )[0]
    if found[1] > MOST_GROUPS:
        raise InputError(
            f"The column of groups holds about {found[1]:,} different values in a file of many rows: name one with at "
            f"most {MOST_GROUPS:,}."
        )
    return int(found[0]), max(int(found[1]), 1), Ends(*found[2:])


def _sums_sql(rows: str, key: str, weight: str | None, grouped: bool) -> str:
    group = ", grp" if grouped else ""
    moment = "" if key == "n0" else f", sum(n0 * {weight or '1.0'}) AS moment"
    if weight is None:
        sums = f"count(*) AS rows, count(*) FILTER (code = 1) AS hit{moment}"
    else:
        squares = f"sum({weight}) AS weight, sum({weight} * {weight}) AS square"
        sums = f"count(*) AS rows, sum({weight} * code) AS hit, {squares}{moment}"
    return f"SELECT {key} + 0.0 AS key, {sums}{group} FROM ({rows}) GROUP BY {key} + 0.0{group}"


def _cell_sql(cells: Cells) -> str:
    """SQL of the number of a score's cell."""
    if cells.unit is not None:
        size = f"ln(1.0 + abs(n0) / {cells.unit!r}::DOUBLE)"
        scale = f"(CASE WHEN n0 < 0 THEN -{size} ELSE {size} END)"
        return f"round({_place(scale, cells)})"
    inner = f"least(greatest(n0, {cells.low!r}::DOUBLE), {cells.high!r}::DOUBLE)"
    place = _place(f"ln({inner} / (1.0 - {inner}))", cells)
    return f"(CASE WHEN n0 <= 0 THEN {ZERO} WHEN n0 >= 1 THEN {ONE} ELSE round({place}) END)"


def _place(scale: str, cells: Cells) -> str:
    return f"({scale} - ({cells.left!r})::DOUBLE) / {cells.width!r}::DOUBLE"


def _as_sums(found: dict[str, Any], cells: Cells | None, classes: Classes) -> Sums:
    numbers = {name: np.ma.getdata(found[name]).astype(np.float64) for name in found if name != "grp"}
    rows, hit = numbers["rows"], numbers["hit"]
    weight, square = numbers.get("weight", rows), numbers.get("square", rows)
    _checks.weight_total(float(weight.sum()), float(rows.sum()))
    scores = numbers["key"] if cells is None else mean_scores(cells, numbers["key"], numbers["moment"], weight)
    return Sums(scores + 0.0, hit, np.maximum(weight - hit, 0.0), rows, square, classes)
