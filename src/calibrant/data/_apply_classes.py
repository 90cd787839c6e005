"""A file with a column more for every class: blocks of rows through a map of K classes, every other cell as it was.

The rows are staged in the engine once, which spills to disk where memory ends; blocks of their numbers go through the
map and come back; then both are written side by side. What holds for the cells of the other columns is said in
`_apply`.
Invariant: the output appears whole or not at all; memory is bounded by the block and by the number of columns, not by
the rows.
May import NumPy, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read and write files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from calibrant._checks import Floats
from calibrant.data._apply import compression, output_kind, refuse_taken, text_options, typed_names, typed_options
from calibrant.data._columns import check_missing
from calibrant.data._engine import Engine, Progress, files_sql, name_sql, text_sql
from calibrant.data._faults import blank_rows, outside_sql, refuse_bad_cells, refuse_outside
from calibrant.data._output import output_target, written_beside
from calibrant.data._source import Kind, Source, number_name, open_source, with_second_look

BLOCK_CELLS = 2**21
"""Numbers of a block: 16 MB for the scores, and a few times that within the map."""
LEAST_MEMORY = 512
"""Megabytes that the engine may keep of the staged rows, or one for each column; the rest waits in its folder."""
STAGED, MADE = '"calibrant staged"', '"calibrant made"'

RowsMap = Callable[[Floats], Floats]


@dataclass(frozen=True)
class _Job:
    """What is to be written: the output's kind, where the scores are, the new columns, and the map."""

    kind: Kind
    out: str
    places: tuple[int, ...]
    new_columns: tuple[str, ...]
    map: RowsMap
    missing: str
    limits: tuple[float, float] | None


def apply_rows(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    rows_map: RowsMap,
    columns: Sequence[str],
    new_columns: Sequence[str],
    limits: tuple[float, float] | None = None,
    force: bool = False,
    missing: Literal["error", "keep"] = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
) -> int:
    """Write `path` with the new columns at the end to `out`; the number of rows written.

    `rows_map` gives probabilities (n, len(new_columns)) of scores (n, len(columns)) or raises InputError, which names
    the row; of one column, scores outside `limits` are refused before. With `missing="keep"` the new cells of a row
    that misses a score are empty. Otherwise as `apply_sql`.
    """
    check_missing(missing, ("error", "keep"))
    kind = output_kind(out)
    target = output_target(out, force=force)
    with written_beside(out, force=force) as beside, Engine(target.parent, progress) as engine:
        source = open_source(engine, path, separator, decimal, header)
        places = tuple(source.place(name, "scores") for name in columns)
        for place in places:
            source.must_be_numeric(place, "scores")
        for name in new_columns:
            refuse_taken(source, name)
        job = _Job(kind, os.fspath(out), places, tuple(new_columns), rows_map, missing, limits)
        return with_second_look(engine, source, lambda source: _write(engine, source, job, beside, progress))


def _write(engine: Engine, source: Source, job: _Job, beside: Path, progress: Progress | None) -> int:
    if job.kind != "text" and not _keeps_lines(source, job):
        typed_names(source, job.kind)
    megabytes = max(LEAST_MEMORY, len(source.columns) + len(job.places) + len(job.new_columns))
    engine.rows(f"SET memory_limit = '{megabytes}MB'")
    engine.stage = (0.0, 0.3)
    rows = _stage(engine, source, job, "")
    if _gaps(engine, job):
        blank = _refuse_unusable(engine, source, job)
        rows = _stage(engine, source, job, f"WHERE NOT ({source.empty()})") if blank else rows
    if job.limits is not None:
        outside = outside_sql("n0", job.limits)
        beyond = engine.rows(f"SELECT count(*) FROM {STAGED} WHERE {outside}")[0][0]
        if beyond:
            refuse_outside(engine, source, job.places[0], job.limits, beyond)
    _map_blocks(engine, job, rows, progress)
    engine.stage = (0.8, 1.0)
    select, options = _output(source, job)
    written = engine.rows(f"COPY ({select}) TO {text_sql(str(beside))} ({options})")[0][0]
    return int(written) - int(job.kind == "text" and source.header)


# ---------------------------------------------------------------- staging


def _keeps_lines(source: Source, job: _Job) -> bool:
    return job.kind == "json" and source.kind == "json"


def _stage(engine: Engine, source: Source, job: _Job, kept: str) -> int:
    """The rows and their numbers (n0, n1, ...) as a table of the engine; how many."""
    engine.rows(f"DROP TABLE IF EXISTS {STAGED}")
    if _keeps_lines(source, job):
        select = _lines(source, job)
    else:
        numbers = [f"{number_name(place)} AS n{order}" for order, place in enumerate(job.places)]
        cells = [f"{column} AS v{place}" for place, column in enumerate(source.columns)]
        select = f"SELECT {', '.join([*cells, *numbers])} FROM {source.relation(job.places)} {kept}"
    return int(engine.rows(f"CREATE TEMP TABLE {STAGED} AS {select}")[0][0])


def _lines(source: Source, job: _Job) -> str:
    """Each line of JSON as it is, and its numbers."""
    pointers = ["/" + source.names[place].replace("~", "~0").replace("/", "~1") for place in job.places]
    numbers = [f"TRY_CAST(json->>{text_sql(pointer)} AS DOUBLE) AS n{order}" for order, pointer in enumerate(pointers)]
    lines = f"read_json_objects({files_sql(source.files)}, format='newline_delimited')"
    return f"SELECT CAST(json AS VARCHAR) AS line, {', '.join(numbers)} FROM {lines}"


def _gaps(engine: Engine, job: _Job) -> bool:
    """Whether any score is not a finite number."""
    odd = " OR ".join(f"n{order} IS NULL OR NOT isfinite(n{order})" for order in range(len(job.places)))
    return bool(engine.rows(f"SELECT EXISTS (SELECT 1 FROM {STAGED} WHERE {odd})")[0][0])


def _refuse_unusable(engine: Engine, source: Source, job: _Job) -> int:
    """Raise for a cell that is no number, and for a missing one unless it is to be kept; rows empty throughout."""
    bad = " OR ".join(source.unusable(place) for place in job.places)
    if engine.rows(f"SELECT EXISTS (SELECT 1 FROM {source.relation(job.places)} WHERE {bad})")[0][0]:
        refuse_bad_cells(engine, source, job.places, None)
    tests = {source.names[place]: source.missing(place) for place in job.places}
    instead = 'keep those rows, the new cells empty, with missing="keep" (--missing keep)'
    return blank_rows(engine, source, job.places, tests, job.missing, instead)


# ---------------------------------------------------------------- blocks


def _map_blocks(engine: Engine, job: _Job, rows: int, progress: Progress | None) -> None:
    """The new columns (m0, m1, ...) as a second table, in the order of the rows."""
    made = [f"m{order} DOUBLE" for order in range(len(job.new_columns))]
    engine.rows(f"CREATE OR REPLACE TEMP TABLE {MADE} ({', '.join(made)})")
    size = max(1, BLOCK_CELLS // len(job.places))
    numbers = ", ".join(f"n{order}" for order in range(len(job.places)))
    for start in range(0, rows, size):
        block = engine.arrays(f"SELECT {numbers} FROM {STAGED} WHERE rowid >= {start} AND rowid < {start + size}")
        scores = np.column_stack([np.ma.filled(column, np.nan) for column in block.values()])
        engine.insert(MADE, _mapped(job, scores))
        if progress is not None:
            progress(0.3 + 0.5 * min(1.0, (start + size) / rows))


def _mapped(job: _Job, scores: Floats) -> dict[str, Any]:
    """Columns of probabilities; NaN where a score is missing."""
    whole = np.isfinite(scores).all(axis=1)
    made = np.full((len(scores), len(job.new_columns)), np.nan)
    if whole.any():
        made[whole] = job.map(scores[whole])
    return {f"m{order}": np.ascontiguousarray(made[:, order]) for order in range(made.shape[1])}


# ---------------------------------------------------------------- output


def _output(source: Source, job: _Job) -> tuple[str, str]:
    """The rows as they are to be written, and how."""
    joined = f"{STAGED} POSITIONAL JOIN {MADE}"
    if _keeps_lines(source, job):
        return _json_members(job, joined), (
            f"FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01', COMPRESSION {compression(job.out)}"
        )
    if job.kind == "text":
        return _text_rows(source, job, joined), text_options(source, job.out)
    names = [*typed_names(source, job.kind), *job.new_columns]
    columns = [f"v{place}" for place in range(len(source.columns))] + _made(job)
    cells = ", ".join(f"{column} AS {name_sql(name)}" for column, name in zip(columns, names))
    return f"SELECT {cells} FROM {joined}", typed_options(job.kind, job.out)


def _made(job: _Job) -> list[str]:
    return [f"m{order}" for order in range(len(job.new_columns))]


def _text_rows(source: Source, job: _Job, joined: str) -> str:
    cells = [f"CAST(v{place} AS VARCHAR)" for place in range(len(source.columns))]
    made = [f"CAST({column} AS VARCHAR)" for column in _made(job)]
    if source.decimal == ",":
        made = [f"replace({cell}, '.', ',')" for cell in made]
    labels = [f"t{order}" for order in range(len(cells) + len(made))]
    body = ", ".join(f"{cell} AS {label}" for cell, label in zip([*cells, *made], labels))
    names = [*source.names, *job.new_columns]
    head = ", ".join(f"{text_sql(name)} AS {label}" for name, label in zip(names, labels))
    return (f"SELECT {head} UNION ALL " if source.header else "") + f"SELECT {body} FROM {joined}"


def _json_members(job: _Job, joined: str) -> str:
    """Each line with the new members before its last brace."""
    members = [text_sql(json.dumps(name, ensure_ascii=False) + ": ") for name in job.new_columns]
    values = [f"coalesce(CAST({column} AS VARCHAR), 'null')" for column in _made(job)]
    added = " || ', ' || ".join(f"{member} || {value}" for member, value in zip(members, values))
    comma = "CASE WHEN rtrim(start) = '{' THEN '' ELSE ', ' END"
    return (
        f"SELECT start || {comma} || {added} || '}}' FROM "
        f"(SELECT rtrim(left(rtrim(line), -1)) AS start, * FROM {joined})"
    )
