"""`calibrant apply` for K classes: a file, a map, and the file with one more column per class.

May import `calibrant.maps`, `calibrant.data`, and the modules of this folder; not scikit-learn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant.cli import _console
from calibrant.cli._class_checks import checked_scores
from calibrant.cli._class_reading import ClassRequest, ScoreColumns, score_columns
from calibrant.data._apply_classes import apply_rows
from calibrant.data._columns import label_values, pos_label_like
from calibrant.data._output import output_target
from calibrant.errors import InputError
from calibrant.maps import Map, load_map


def run_class_apply(
    map_path: Path,
    request: ClassRequest,
    *,
    output: Path,
    prefix: str,
    force: bool,
    moved: tuple[float | None, float | None] = (None, None),
) -> None:
    """Apply a map of K classes out of core."""
    if any(share is not None for share in moved):
        raise InputError(
            "--prevalence and --fitted-prevalence are for maps of two classes. For many classes see adjust_prior in "
            "Python, which takes the shares of all of them."
        )
    record = load_map(map_path)
    output_target(output, force=force, inputs=[map_path, request.file.path])
    columns = columns_of_map(record, score_columns(request), map_path)
    _may_normalize(request, record)
    new = [f"{prefix}_{own}" for own in record.classes]
    file = request.file
    with _console.working(f"Calibrating {file.path.name}") as progress:
        rows = apply_rows(
            file.path,
            output,
            rows_map=lambda scores: record(checked_scores(request, columns, scores, record.reads)),
            columns=columns,
            new_columns=new,
            force=force,
            **file.how(progress),
        )
    _console.show(
        f"{_checks.plural(rows, 'row')} written to {output}, with the {len(new)} new columns {_checks.shown(new, 4)}."
    )


def columns_of_map(record: Map, columns: ScoreColumns, map_path: Path | None) -> tuple[str, ...]:
    """The columns in the order of the classes of the map; columns and map must have the same classes."""
    if len(record.classes) == 2:
        raise InputError(f"{str(map_path)!r} is a map of two classes: give the column of its scores with --score.")
    known = [str(own) for own in record.classes]
    given = [str(_as_label(record, own)) for own in columns.classes]
    if sorted(given) != sorted(known):
        raise InputError(
            f"The map {str(map_path)!r} is of other classes than the columns. The map: "
            f"{_checks.shown(record.classes, 12)}. The columns of --scores: {_checks.shown(columns.classes, 12)}. Name "
            f"the class of each column, in their order, with --classes."
        )
    return tuple(columns.names[given.index(own)] for own in known)


def _as_label(record: Map, name: str) -> Any:
    """The class as the map writes its labels: `1` for "1" where they are numbers."""
    return pos_label_like(label_values(list(record.classes)), name)


def _may_normalize(request: ClassRequest, record: Map) -> None:
    if request.normalize and record.reads != "probability":
        raise InputError(f"--normalize is for probabilities, but this map reads {record.reads}s: leave it out.")


def mapped(request: ClassRequest, record: Map, columns: ScoreColumns, scores: Any, map_path: Path) -> Any:
    """What the map makes of scores whose columns are in the order of the file, in that order again."""
    wanted = columns_of_map(record, columns, map_path)
    _may_normalize(request, record)
    place = np.array([columns.names.index(name) for name in wanted])
    out = np.empty(np.shape(scores))
    out[:, place] = record(checked_scores(request, wanted, scores[:, place], record.reads))
    return _checks.class_scores(out, "scores", reads="probability")
