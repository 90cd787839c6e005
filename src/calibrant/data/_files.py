"""Rows of a file as arrays: csv, tsv and txt, Parquet, JSON lines; gzipped, in parts, larger than memory.

Two streaming passes: the first counts rows by distinct label and finds every cell that cannot be used; the second
gives the numbers and the codes of the labels, or, of a binary file of more than `MOST_ROWS` rows, their sums by score.
Invariant: text becomes the double that Python's `float` gives, and nothing is dropped unless `missing="drop"` says so;
beyond the resulting columns, memory is bounded.
May import NumPy, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from calibrant._checks import shown
from calibrant.data._columns import (
    Columns,
    Missing,
    SummedColumns,
    binary_codes,
    check_missing,
    class_codes,
    label_apart,
)
from calibrant.data._engine import Engine, Progress
from calibrant.data._faults import refuse_bad_cells, refuse_missing
from calibrant.data._source import Source, number_name, open_source, with_second_look
from calibrant.data._summed_files import USUAL, Limits, sum_rows
from calibrant.errors import ColumnError, InputError

MOST_LABELS = 10_000
MOST_ROWS = 20_000_000
"""The most rows of a binary file that are kept as rows."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Choice:
    """Which columns of a source are read, by position."""

    scores: tuple[int, ...]
    label: int
    weight: int | None
    group: int | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.scores if self.weight is None else (*self.scores, self.weight)


def read_binary(
    path: str | os.PathLike[str],
    *,
    score: str,
    label: str,
    weight: str | None = None,
    group: str | None = None,
    pos_label: Any = None,
    missing: Missing = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
    limits: Limits = USUAL,
) -> Columns | SummedColumns:
    """Scores, 0/1 labels, weights and groups of a file, or their sums by score; `classes` is (negative, positive)."""
    check_missing(missing)
    with Engine(progress=progress) as engine:
        source = open_source(engine, path, separator, decimal, header)
        chosen = _choose(source, [(score, "score")], label, weight)
        chosen = replace(chosen, group=None if group is None else source.place(group, "group"))

        def work(source: Source) -> Columns | SummedColumns:
            cells = _distinct_labels(engine, source, chosen, missing)
            codes, classes = binary_codes([cell.label for cell in cells], pos_label, decimal)
            sql, values, lost = _complete_rows(engine, source, chosen, cells, codes, missing)
            if sum(cell.rows for cell in cells) <= MOST_ROWS:
                return _fetched(engine, sql, values, 1, weight is not None, classes, lost)
            weighted = None if weight is None else "n1"
            return sum_rows(engine, sql, values, weighted, group is not None, classes, lost, limits)

        return with_second_look(engine, source, work)


def read_many(
    path: str | os.PathLike[str],
    *,
    scores: Sequence[str],
    label: str,
    weight: str | None = None,
    classes: Sequence[Any] | None = None,
    missing: Missing = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
) -> Columns:
    """Scores (n, K), labels as indices of the K columns, and weights of a file; `classes` names the columns."""
    with Engine(progress=progress) as engine:

        def fetch(sql: str, values: list[Any], order: tuple[Any, ...], lost: int) -> Columns:
            return _fetched(engine, sql, values, len(scores), weight is not None, order, lost)

        written = separator, decimal, header
        return with_class_rows(engine, path, scores, label, weight, classes, missing, written, fetch)


def with_class_rows(
    engine: Engine,
    path: str | os.PathLike[str],
    scores: Sequence[str],
    label: str,
    weight: str | None,
    classes: Sequence[Any] | None,
    missing: Missing,
    written: tuple[str | None, str | None, bool],
    work: Callable[[str, list[Any], tuple[Any, ...], int], Result],
) -> Result:
    """What `work` makes of the rows of K classes without a missing cell: their SQL (n0, n1, ..., code) and its
    parameters, the classes of the columns, and how many rows are left out; `written` has separator, decimal and header.
    """
    check_missing(missing)
    if len(scores) < 2:
        raise InputError(f"scores must name a column per class, at least two, but it is {list(scores)!r}.")
    source = open_source(engine, path, *written)
    chosen = _choose(source, [(name, "scores") for name in scores], label, weight)

    def look(source: Source) -> Result:
        cells = _distinct_labels(engine, source, chosen, missing)
        codes, order = class_codes([cell.label for cell in cells], scores, classes, written[1])
        sql, values, lost = _complete_rows(engine, source, chosen, cells, codes, missing)
        return work(sql, values, order, lost)

    return with_second_look(engine, source, look)


def _choose(source: Source, scores: Sequence[tuple[str, str]], label: str, weight: str | None) -> _Choice:
    label_apart(label, [*scores, (weight, "weight")])
    places = tuple(source.place(name, argument) for name, argument in scores)
    chosen = _Choice(places, source.place(label, "label"), None if weight is None else source.place(weight, "weight"))
    for place, argument in zip(chosen.numbers, [*(argument for _, argument in scores), "weight"]):
        source.must_be_numeric(place, argument)
    return chosen


# ---------------------------------------------------------------- first pass


@dataclass(frozen=True)
class _Cell:
    """A distinct cell of the label column: its rows, and how many of them miss a number."""

    label: Any
    rows: int
    incomplete: int


def _distinct_labels(engine: Engine, source: Source, chosen: _Choice, missing: Missing) -> list[_Cell]:
    """The distinct cells of the label column, once every number is known to be usable."""
    incomplete = " OR ".join(source.missing(place) for place in chosen.numbers)
    bad = " OR ".join(source.unusable(place, place == chosen.weight) for place in chosen.numbers)
    label = source.columns[chosen.label]
    engine.stage = (0.0, 0.5)
    found = engine.rows(
        f"SELECT {label}, count(*), count(*) FILTER ({incomplete}), count(*) FILTER ({bad}) FROM "
        f"{source.relation(chosen.numbers)} GROUP BY {label} ORDER BY count(*) DESC, {label} LIMIT {MOST_LABELS + 1}"
    )
    if not found:
        raise InputError(f"{source.path!r} has {'a header but ' if source.kind == 'text' else ''}no rows.")
    if any(row[3] for row in found):
        refuse_bad_cells(engine, source, chosen.numbers, chosen.weight)
    if len(found) > MOST_LABELS:
        raise ColumnError(
            f"label={source.names[chosen.label]!r} holds more than {MOST_LABELS:,} different values "
            f"({shown([row[0] for row in found])}): it does not look like a label. Choose another column."
        )
    return [_Cell(*row[:3]) for row in found]


# ---------------------------------------------------------------- second pass


def _complete_rows(
    engine: Engine,
    source: Source,
    chosen: _Choice,
    cells: Sequence[_Cell],
    codes: Sequence[int | None],
    missing: Missing,
) -> tuple[str, list[Any], int]:
    """SQL of the rows without a missing cell (n0, n1, ..., code, grp), its parameters, and how many are left out."""
    absent = [cell.label for cell, code in zip(cells, codes) if code is None]
    lost = sum(cell.rows if code is None else cell.incomplete for cell, code in zip(cells, codes))
    if lost:
        lost -= refuse_missing(engine, source, chosen.numbers, chosen.label, absent, missing)
    if lost == sum(cell.rows for cell in cells):
        raise InputError(f"{source.path!r} has no row without a missing value.")
    code_sql, values = _code_sql(source.columns[chosen.label], cells, codes)
    numbers = [f"{number_name(place)} AS n{order}" for order, place in enumerate(chosen.numbers)]
    complete = " AND ".join(["code IS NOT NULL", *(f"NOT isnan(n{order})" for order in range(len(numbers)))])
    group = "" if chosen.group is None else f", coalesce(CAST({source.columns[chosen.group]} AS VARCHAR), '') AS grp"
    rows = f"SELECT {', '.join(numbers)}, {code_sql} AS code{group} FROM {source.relation(chosen.numbers)}"
    return f"SELECT * FROM ({rows}) WHERE {complete}", values, lost


def _code_sql(column: str, cells: Sequence[_Cell], codes: Sequence[int | None]) -> tuple[str, list[Any]]:
    """SQL of a row's label code, and the values of its parameters."""
    branches, values = [], []
    for code in sorted({code for code in codes if code is not None}):
        those = [cell.label for cell, own in zip(cells, codes) if own == code]
        branches.append(f"WHEN {column} IN ({', '.join('?' * len(those))}) THEN {code}")
        values += those
    kind = "UTINYINT" if len(branches) < 3 else "SMALLINT"
    return f"CAST(CASE {' '.join(branches)} END AS {kind})", values


def _fetched(
    engine: Engine, sql: str, values: list[Any], n_scores: int, weighted: bool, classes: tuple[Any, ...], dropped: int
) -> Columns:
    engine.stage = (0.5, 1.0)
    arrays = {name: np.ma.getdata(found) for name, found in engine.arrays(sql, values).items()}
    if n_scores == 1:
        scores, labels = arrays["n0"], arrays["code"].astype(np.uint8, copy=False)
    else:
        scores = np.stack([arrays[f"n{order}"] for order in range(n_scores)], axis=1)
        labels = arrays["code"].astype(np.int64)
    return Columns(scores, labels, arrays[f"n{n_scores}"] if weighted else None, classes, dropped, arrays.get("grp"))
