"""`calibrant apply`: a file, a map, and the file with one more column.

A map is applied as SQL, where the rows are read; one whose SQL is long (thousands of steps) goes over blocks of rows
instead, which is then many times as fast.
May import `calibrant.maps`, `calibrant.data`, and the modules of this folder; neither scikit-learn nor Numba.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.cli import _console
from calibrant.cli._reading import Request, named_column
from calibrant.data._apply import apply_sql
from calibrant.data._apply_classes import apply_rows
from calibrant.data._output import output_target
from calibrant.errors import InputError
from calibrant.maps import Map, load_map
from calibrant.maps._sql import sql_of

LONG = 20_000
"""Characters of SQL, about 300 steps, from which on blocks of rows are faster."""


def run_apply(
    map_path: Path,
    request: Request,
    *,
    output: Path,
    column: str,
    force: bool,
    moved: tuple[float | None, float | None] = (None, None),
) -> None:
    """Apply a map out of core; `moved` is the prevalence it was fitted at and the one to move to."""
    record = load_map(map_path)
    if len(record.classes) > 2:
        raise InputError(
            f"--score is for maps of two classes, but this map {record.kind!r} has {len(record.classes)}: name the "
            f"columns of their scores with --scores."
        )
    record = _at_prevalence(record, *moved)
    sql = sql_of(record, "x")  # a map without SQL is refused before anything is read
    output_target(output, force=force, inputs=[map_path, request.path])
    score = named_column(request, "score", request.score)
    with _console.working(f"Calibrating {request.path.name}") as progress:
        options: dict[str, Any] = {
            "limits": (0.0, 1.0) if record.reads == "probability" else None,
            "force": force,
            **request.how(progress),
        }
        apply = _by_blocks if len(sql) > LONG else _by_sql
        rows = apply(record, request.path, output, score, column, options)
    _console.show(f"{rows:,} row{'' if rows == 1 else 's'} written to {output}, with the new column {column!r}.")


def _by_sql(record: Map, path: Path, output: Path, score: str, column: str, options: dict[str, Any]) -> int:
    names: dict[str, Any] = {"column": score, "new_column": column}
    return apply_sql(path, output, expression_of=lambda x: sql_of(record, x), **names, **options)


def _by_blocks(record: Map, path: Path, output: Path, score: str, column: str, options: dict[str, Any]) -> int:
    names: dict[str, Any] = {"columns": [score], "new_columns": [column]}
    return apply_rows(path, output, rows_map=lambda scores: record(scores[:, 0])[:, None], **names, **options)


def _at_prevalence(record: Map, fitted: float | None, wanted: float | None) -> Map:
    """The map for another prevalence, where one is asked for."""
    if fitted is None and wanted is None:
        return record
    if fitted is None or wanted is None:
        raise InputError(
            "--prevalence and --fitted-prevalence belong together: the share of events to move to, and the share where "
            "the map was fitted (calibrant fit prints it)."
        )
    from calibrant.priors import shift_map

    return shift_map(record, fitted, wanted)
