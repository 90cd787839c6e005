"""Cells of a file that cannot be used: where the first one is, what it holds, what to do.

Runs only once something is known to be wrong, so it may read the file again.
May import `calibrant._checks`, `calibrant.errors` and the modules of this folder that read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NoReturn

from calibrant._checks import PROBABILITY_TOLERANCE, plural
from calibrant.data._columns import MISSING_MARKERS, Missing
from calibrant.data._engine import Engine
from calibrant.data._source import ROW, Source, number_name, open_source, with_second_look
from calibrant.data._text import line_of_row
from calibrant.errors import ColumnError, InputError


def position(source: Source, row: int) -> str:
    """`data row 3 (line 4)`, as far as it is known."""
    if not source.texts:
        return f"row {row:,}"
    line = line_of_row(source.texts[0], row, source.header) if len(source.texts) == 1 else None
    return f"data row {row:,}" + ("" if line is None else f" (line {line:,})")


def place_of_numbers(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    numbers: Sequence[float],
    separator: str | None,
    decimal: str | None,
    header: bool,
) -> str:
    """Where a file has the first row with these numbers in these columns, as `position` says it."""
    with Engine() as engine:

        def look(source: Source) -> str:
            places = [source.place(name, "scores") for name in columns]
            same = " AND ".join(f"{number_name(place)} = CAST(? AS DOUBLE)" for place in places)
            rows = source.relation(places, row_numbers=True)
            row = engine.rows(f"SELECT min({ROW}) FROM {rows} WHERE {same}", list(numbers))[0][0]
            return f"a row of {source.path!r}" if row is None else position(source, row)

        return with_second_look(engine, open_source(engine, path, separator, decimal, header), look)


def refuse_bad_cells(engine: Engine, source: Source, places: Sequence[int], weight: int | None) -> NoReturn:
    """Raise for the first cell that is not a usable number."""
    tests = [
        f"CASE WHEN {source.unusable(place, place == weight)} THEN {order} END" for order, place in enumerate(places)
    ]
    cells = ", ".join(f"CAST({source.columns[place]} AS VARCHAR)" for place in places)
    row, order, *texts = engine.rows(
        f"SELECT {ROW}, coalesce({', '.join(tests)}, NULL) AS bad, {cells} FROM "
        f"{source.relation(places, row_numbers=True)} WHERE bad IS NOT NULL ORDER BY {ROW} LIMIT 1"
    )[0]
    place, text = places[order], texts[order]
    bad = source.unusable(place, place == weight)
    count = engine.rows(f"SELECT count(*) FILTER ({bad}) FROM {source.relation([place])}")[0][0]
    where = f"Column {source.names[place]!r} of {source.path!r} holds {text!r} in {position(source, row)}"
    more = "" if count == 1 else f" ({plural(count, 'cell')} in all)"
    number = _as_float(text)
    if number is not None and math.isinf(number):
        raise InputError(f"{where}, but numbers must be finite{more}. Replace or remove those cells.")
    if number is not None and place == weight and number < 0:
        raise InputError(f"{where}, but a weight cannot be negative{more}. Weights count how often a row was seen.")
    raise ColumnError(f"{where}, which is not a number{more}.{_advice(text, source)}")


def outside_sql(number: str, limits: tuple[float, float]) -> str:
    """SQL condition: the number lies outside the limits, by more than rounding explains (false for NaN and null)."""
    low, high = limits[0] - PROBABILITY_TOLERANCE, limits[1] + PROBABILITY_TOLERANCE
    return f"({number} < CAST('{low!r}' AS DOUBLE) OR ({number} > CAST('{high!r}' AS DOUBLE) AND NOT isnan({number})))"


def refuse_outside(engine: Engine, source: Source, place: int, limits: tuple[float, float], count: int) -> NoReturn:
    """Raise for the first number outside the limits."""
    row, text = engine.rows(
        f"SELECT {ROW}, CAST({source.columns[place]} AS VARCHAR) FROM {source.relation([place], row_numbers=True)} "
        f"WHERE {outside_sql(number_name(place), limits)} ORDER BY {ROW} LIMIT 1"
    )[0]
    more = "" if count == 1 else f" ({plural(count, 'cell')} in all)"
    raise InputError(
        f"Column {source.names[place]!r} of {source.path!r} holds {text!r} in {position(source, row)}, but the map "
        f"reads numbers in [{limits[0]:g}, {limits[1]:g}]{more}. Choose another column, or correct those cells."
    )


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _advice(text: str, source: Source) -> str:
    if source.kind != "text":
        return ""
    plain = text.strip().replace(",", ".")
    if source.decimal is None and text.count(",") == 1 and _as_float(plain) is not None:
        separator = source.separator
        named = "tab" if separator == "\t" else separator
        return (
            f" It looks like a decimal comma: read the file with separator={separator!r}, decimal=',' "
            f"(--separator {named!r} --decimal ',')."
        )
    if "," in text and "." in text and _as_float(text.replace(".", "").replace(",", ".")) is not None:
        return " It looks like a number with thousands separators: remove them."
    if source.decimal == "," and _as_float(text) is not None:
        return " It has a decimal point, but decimal=',' was given."
    if "\u00a0" in text:
        return " It has a blank that does not break a line (U+00A0): remove it."
    if text.strip().endswith("%"):
        return " It looks like a percentage: divide by 100 and remove the sign."
    return f" Cells that count as missing: {', '.join(marker or '(empty)' for marker in MISSING_MARKERS)}."


def refuse_missing(
    engine: Engine, source: Source, places: Sequence[int], label: int, absent: Sequence[Any], missing: Missing
) -> int:
    """Raise for rows with a missing cell, unless they are to be dropped; the number of rows that are empty throughout.

    `absent` are the cells of the label column that are missing.
    """
    column = source.columns[label]
    marks = [cell for cell in absent if cell is not None]
    listed = f" OR {column} IN ({', '.join('?' * len(marks))})" if marks else ""
    tests = {source.names[place]: source.missing(place) for place in places}
    tests[source.names[label]] = f"({column} IS NULL{listed})"
    instead = 'leave those rows out with missing="drop" (--missing drop)'
    return blank_rows(engine, source, places, tests, missing, instead, marks)


def blank_rows(
    engine: Engine,
    source: Source,
    places: Sequence[int],
    tests: dict[str, str],
    missing: str,
    instead: str,
    marks: Sequence[Any] = (),
) -> int:
    """The number of rows that are empty throughout; with `missing="error"` any other gap is refused.

    `tests` are SQL conditions by column on the numbers of `places`, `marks` the values of their parameters; `instead`
    says what else the caller could ask for.
    """
    flags = ", ".join(f"{test} AS gap{order}" for order, test in enumerate(tests.values()))
    any_gap = " OR ".join(f"gap{order}" for order in range(len(tests)))
    counts = ", ".join(f"count(*) FILTER (gap{order} AND NOT blank)" for order in range(len(tests)))
    rows_sql = f"SELECT {ROW}, ({source.empty()}) AS blank, {flags} FROM {source.relation(places, row_numbers=True)}"
    blank, rows, first, *each = engine.rows(
        f"SELECT count(*) FILTER (blank), count(*) FILTER (NOT blank), min({ROW}) FILTER (NOT blank), {counts} FROM "
        f"({rows_sql}) WHERE {any_gap}",
        marks,
    )[0]
    if missing != "error" or rows == 0:
        return int(blank)
    columns = ", ".join(f"{name!r} {count:,}" for name, count in zip(tests, each) if count)
    raise InputError(
        f"{plural(rows, 'row')} of {source.path!r} {'has' if rows == 1 else 'have'} a missing cell, the first in "
        f"{position(source, first)}; missing by column: {columns}. Fill them, or {instead}."
    )
