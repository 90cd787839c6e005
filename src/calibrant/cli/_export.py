"""`calibrant export`: a map as SQL, Python or ONNX, for where there is no calibrant.

May import Typer, `calibrant.maps`, `calibrant.data` and the modules of this folder, when the command runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from calibrant.cli import _options as options
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.maps import Map


class Language(StrEnum):
    """What the map is written in."""

    SQL = "sql"
    PYTHON = "python"
    ONNX = "onnx"


class Dialect(StrEnum):
    """The engine that will run the SQL."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "spark"
    SQLITE = "sqlite"


To = Annotated[
    Language,
    typer.Option("--to", metavar="LANGUAGE", help="sql, python or onnx.", show_default=False),
]
ScoreColumn = Annotated[
    str | None,
    typer.Option(
        "--score",
        callback=options.not_empty,
        metavar="NAME",
        help="With sql: the column of the scores. [default: score]",
    ),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        callback=options.not_empty,
        metavar="NAMES",
        help="With sql and many classes: their columns, in the order of the map (a,b,c), or 'p_*', the star being "
        "the class.",
        show_default=False,
    ),
]
Table = Annotated[
    str | None,
    typer.Option(
        "--table",
        callback=options.not_empty,
        metavar="TABLE",
        help="With sql and many classes: what stands after FROM. [default: scores]",
    ),
]
Kept = Annotated[
    str | None,
    typer.Option(
        "--keep",
        callback=options.not_empty,
        metavar="NAMES",
        help="With sql and many classes: more columns to give back (id,day).",
        show_default=False,
    ),
]
InDialect = Annotated[
    Dialect | None,
    typer.Option("--dialect", metavar="NAME", help="With sql: duckdb (default), postgres, spark or sqlite."),
]
ExportedFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        rich_help_panel=options.OUTPUT,
        help="The file to write. [default: standard output; onnx needs a file]",
        show_default=False,
    ),
]


def export(
    map: options.MapFile,
    to: To,
    score: ScoreColumn = None,
    scores: ScoreColumns = None,
    table: Table = None,
    keep: Kept = None,
    dialect: InDialect = None,
    output: ExportedFile = None,
    force: options.Force = False,
) -> None:
    """Write a map in another language: SQL, Python without any package, or ONNX.

    What is written gives the probabilities of the map, and refuses (NULL, an error, NaN) the scores that it refuses.
    """
    from calibrant.data._output import output_target
    from calibrant.maps import load_map

    if to is not Language.SQL and (score or dialect or scores or table or keep):
        raise InputError(
            f"--score, --scores, --table, --keep and --dialect belong to --to sql; leave them out with --to {to.value}."
        )
    record = load_map(map)
    if output is not None:
        output_target(output, force=force, inputs=[map])
    if to is Language.ONNX:
        _write_onnx(record, output, force)
    elif to is Language.PYTHON:
        _write_text(record.to_python(), output, force)
    else:
        spoken = (dialect or Dialect.DUCKDB).value
        many = _ManyClasses(scores, table, keep)
        written = (
            _expression(record, score, many, spoken) if len(record.classes) == 2 else many.query(record, score, spoken)
        )
        _write_text(written + "\n", output, force)


def _expression(record: Map, score: str | None, many: _ManyClasses, dialect: Any) -> str:
    """SQL of a map of two classes."""
    if any(many):
        raise InputError("--scores, --table and --keep are for maps of many classes; this one has two: give --score.")
    return record.to_sql(score or "score", dialect)


class _ManyClasses(NamedTuple):
    """The options for maps of K classes, as they were given."""

    scores: list[str] | None
    table: str | None
    keep: str | None

    def query(self, record: Map, score: str | None, dialect: Any) -> str:
        """SQL of a map of K classes."""
        from calibrant._checks import shown

        if score is not None or not self.scores:
            raise InputError(
                f"The map has {len(record.classes)} classes: name their columns with --scores, in the order "
                f"{shown(record.classes, 12)}; or with a star for the class, --scores 'p_*'."
            )
        columns = [name for word in self.scores for name in _columns(record, word)]
        kept = [] if self.keep is None else [name.strip() for name in self.keep.split(",")]
        return record.to_sql(columns, dialect, table=self.table or "scores", keep=kept)


def _columns(record: Map, word: str) -> list[str]:
    """Columns of a list, or of a pattern with one star."""
    if word.count("*") == 1 and "," not in word:
        return [word.replace("*", str(own)) for own in record.classes]
    return [name.strip() for name in word.split(",")]


def _write_onnx(record: Map, output: Path | None, force: bool) -> None:
    if output is None:
        raise InputError("An ONNX graph is no text: name the file to write with --output.")
    record.to_onnx(output, force=force)
    _done(output)


def _write_text(text: str, output: Path | None, force: bool) -> None:
    from calibrant.cli import _console
    from calibrant.data._output import written_beside

    if output is None:
        _console.show_raw(text.rstrip("\n"))
        return
    with written_beside(output, force=force) as beside:
        Path(beside).write_text(text, encoding="utf-8")
    _done(output)


def _done(output: Path) -> None:
    from calibrant.cli import _console

    _console.show(f"Map written to {output}.")
