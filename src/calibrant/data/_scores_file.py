"""The scores of a file that has no labels (yet).

May import NumPy, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant.data._columns import Missing, check_missing
from calibrant.data._engine import Engine, Progress
from calibrant.data._faults import blank_rows, refuse_bad_cells
from calibrant.data._source import Source, number_name, open_source, with_second_look
from calibrant.errors import InputError


class ScoresRead(NamedTuple):
    """Scores, and how many rows were left out because theirs was missing."""

    scores: Floats
    dropped: int


def read_scores(
    path: str | os.PathLike[str],
    *,
    score: str,
    missing: Missing = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
) -> ScoresRead:
    """The numbers of one column, as in `read_binary`."""
    check_missing(missing)
    with Engine(progress=progress) as engine:
        source = open_source(engine, path, separator, decimal, header)
        place = source.place(score, "score")
        source.must_be_numeric(place, "score")
        return with_second_look(engine, source, lambda source: _read(engine, source, place, missing))


def _read(engine: Engine, source: Source, place: int, missing: Missing) -> ScoresRead:
    relation, absent_sql = source.relation([place]), source.missing(place)
    engine.stage = (0.0, 0.5)
    tests = (source.unusable(place, False), absent_sql)
    counted = ", ".join(f"count(*) FILTER ({test})" for test in tests)
    rows, bad, absent = engine.rows(f"SELECT count(*), {counted} FROM {relation}")[0]
    if bad:
        refuse_bad_cells(engine, source, [place], None)
    blank = 0
    if absent:
        instead = 'leave those rows out with missing="drop" (--missing drop)'
        blank = blank_rows(engine, source, [place], {source.names[place]: absent_sql}, missing, instead)
    if rows == absent:
        raise InputError(f"{source.path!r} has no row with a score.")
    engine.stage = (0.5, 1.0)
    found = engine.arrays(f"SELECT {number_name(place)} AS n FROM {relation} WHERE NOT ({absent_sql})", [])
    return ScoresRead(np.asarray(np.ma.getdata(found["n"]), dtype=np.float64), absent - blank)
