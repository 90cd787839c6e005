"""A file with one more column: streamed through the engine, rows in their order, every other cell as it was.

Text columns stay text to the character (`007` stays `007`, an empty cell in quotes stays one); a cell may lose quotes
that it does not need, line ends become line feeds, and lines that are empty throughout are left out. A line of JSON is
kept as it is, the new member added at its end.
Invariant: the output appears whole or not at all, and only after every score was found to be usable.
May import `calibrant.errors` and the modules of this folder that read and write files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calibrant.data._columns import check_missing
from calibrant.data._engine import Engine, Progress, files_sql, name_sql, text_sql
from calibrant.data._faults import blank_rows, outside_sql, refuse_bad_cells, refuse_outside
from calibrant.data._output import output_target, written_beside
from calibrant.data._source import Kind, Source, kind_by_name, number_name, open_source, with_second_look
from calibrant.errors import ColumnError, InputError

NUMBER = '"calibrant score"'
RESULT = '"calibrant result"'


@dataclass(frozen=True)
class _Job:
    """What is to be written: the output's kind, and where in the source the scores are."""

    kind: Kind
    out: str
    place: int
    new_column: str
    expression_of: Callable[[str], str]


def apply_sql(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    expression_of: Callable[[str], str],
    column: str,
    new_column: str,
    limits: tuple[float, float] | None = None,
    force: bool = False,
    missing: Literal["error", "keep"] = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
) -> int:
    """Write `path` with a new last column to `out`; the number of rows written.

    `expression_of` turns the SQL of a score (a double, never null) into the SQL of the new value; a score outside
    `limits` (give or take what rounding does) is refused. Formats by suffix: csv, tsv, txt, parquet, jsonl; .gz on the
    texts. `missing="keep"` leaves the new cell empty where the score is missing. A text file keeps its separator and
    its decimal mark unless the output is a .tsv.
    """
    check_missing(missing, ("error", "keep"))
    kind = output_kind(out)
    target = output_target(out, force=force)
    with written_beside(out, force=force) as beside, Engine(target.parent, progress) as engine:
        source = open_source(engine, path, separator, decimal, header)
        job = _Job(kind, os.fspath(out), source.place(column, "score"), new_column, expression_of)
        source.must_be_numeric(job.place, "score")
        refuse_taken(source, new_column)
        return with_second_look(engine, source, lambda source: _write(engine, source, job, beside, missing, limits))


def output_kind(out: str | os.PathLike[str]) -> Kind:
    """The kind of file that the name of an output asks for."""
    kind = kind_by_name(Path(out))
    if kind is None or (kind == "parquet" and Path(out).suffix == ".gz"):
        raise InputError(
            f"The output {os.fspath(out)!r} must end in .csv, .tsv, .txt, .jsonl (each also with .gz) or .parquet."
        )
    return kind


def refuse_taken(source: Source, new_column: str) -> None:
    """Refuse a name that the file has already."""
    if source.header and any(name.strip().lower() == new_column.strip().lower() for name in source.names):
        raise ColumnError(
            f"{source.path!r} already has a column {new_column!r}: choose another name for the new column."
        )


def _write(
    engine: Engine, source: Source, job: _Job, beside: Path, missing: str, limits: tuple[float, float] | None
) -> int:
    blank = _refuse_unusable(engine, source, job.place, missing, limits)
    engine.stage = (0.3, 1.0)
    if job.kind == "json" and source.kind == "json":
        return _copy(engine, _json_lines(source, job), beside, _raw_lines(job))
    kept = f"WHERE NOT ({source.empty()})" if blank else ""
    number = f"CASE WHEN {source.missing(job.place)} THEN NULL ELSE {number_name(job.place)} END AS {NUMBER}"
    result = f"CASE WHEN {NUMBER} IS NULL THEN NULL ELSE CAST({job.expression_of(NUMBER)} AS DOUBLE) END AS {RESULT}"
    relation = f"(SELECT *, {result} FROM (SELECT *, {number} FROM {source.relation([job.place])} {kept}))"
    if job.kind == "text":
        select, options = _text_rows(source, job, relation)
        return _copy(engine, select, beside, options) - int(source.header)
    return _copy(engine, _typed_rows(source, job, relation), beside, typed_options(job.kind, job.out))


def _refuse_unusable(
    engine: Engine, source: Source, place: int, missing: str, limits: tuple[float, float] | None
) -> int:
    """How many rows are empty throughout, once every score is known to be usable."""
    engine.stage = (0.0, 0.3)
    outside = "false" if limits is None else outside_sql(number_name(place), limits)
    tests = (source.unusable(place), source.missing(place), outside)
    counted = ", ".join(f"count(*) FILTER ({test})" for test in tests)
    bad, absent, beyond = engine.rows(f"SELECT {counted} FROM {source.relation([place])}")[0]
    if bad:
        refuse_bad_cells(engine, source, [place], None)
    if beyond and limits is not None:
        refuse_outside(engine, source, place, limits, beyond)
    if not absent:
        return 0
    instead = 'keep those rows, the new cell empty, with missing="keep" (--missing keep)'
    return blank_rows(engine, source, [place], {source.names[place]: source.missing(place)}, missing, instead)


def _copy(engine: Engine, select: str, beside: Path, options: str) -> int:
    return int(engine.rows(f"COPY ({select}) TO {text_sql(str(beside))} ({options})")[0][0])


def compression(out: str) -> str:
    """How the output is compressed, by its name."""
    return "gzip" if out.lower().endswith(".gz") else "none"


# ---------------------------------------------------------------- kinds of output


def _text_rows(source: Source, job: _Job, relation: str) -> tuple[str, str]:
    """The rows as text, after a row of names where the source has one (so that names may repeat)."""
    cells = [f"CAST({column} AS VARCHAR)" for column in source.columns]
    result = f"CAST({RESULT} AS VARCHAR)"
    if source.decimal == ",":
        result = f"replace({result}, '.', ',')"
    labels = [f"v{place}" for place in range(len(cells) + 1)]
    body = ", ".join(f"{cell} AS {label}" for cell, label in zip([*cells, result], labels))
    names = ", ".join(f"{text_sql(name)} AS {label}" for name, label in zip([*source.names, job.new_column], labels))
    head = f"SELECT {names} UNION ALL " if source.header else ""
    return f"{head}SELECT {body} FROM {relation}", text_options(source, job.out)


def text_options(source: Source, out: str) -> str:
    """How a text file is written: with the separator of the source, or tabs where the name of the output says so."""
    tabs = {".tsv", ".tab"} & {suffix.lower() for suffix in Path(out).suffixes}
    separator = "\t" if tabs else source.separator
    options = f"FORMAT csv, HEADER false, DELIMITER {text_sql(separator)}, QUOTE '\"', ESCAPE '\"'"
    return f"{options}, COMPRESSION {compression(out)}"


def typed_names(source: Source, kind: Kind) -> list[str]:
    """Names of the columns for a file of typed columns, which must all be different."""
    names = [name or f"column_{place + 1}" for place, name in enumerate(source.names)]
    folded = [name.lower() for name in names]
    twice = next((name for name in names if folded.count(name.lower()) > 1), None)
    if twice is not None:
        raise ColumnError(
            f"{source.path!r} has more than one column called {twice!r} (capitals do not count), which "
            f"{'Parquet' if kind == 'parquet' else 'JSON'} files cannot hold: rename one, or write a csv."
        )
    return names


def _typed_rows(source: Source, job: _Job, relation: str) -> str:
    names = typed_names(source, job.kind)
    cells = [f"{column} AS {name_sql(name)}" for column, name in zip(source.columns, names)]
    return f"SELECT {', '.join(cells)}, {RESULT} AS {name_sql(job.new_column)} FROM {relation}"


def typed_options(kind: Kind, out: str) -> str:
    """How a file of typed columns is written."""
    return "FORMAT parquet" if kind == "parquet" else f"FORMAT json, COMPRESSION {compression(out)}"


def _json_lines(source: Source, job: _Job) -> str:
    """Each line of JSON as it is, with the new member before its last brace."""
    pointer = "/" + source.names[job.place].replace("~", "~0").replace("/", "~1")
    lines = f"SELECT CAST(json AS VARCHAR) AS line, json->>{text_sql(pointer)} AS cell FROM read_json_objects("
    lines += f"{files_sql(source.files)}, format='newline_delimited')"
    member = text_sql(json.dumps(job.new_column, ensure_ascii=False) + ": ")
    number = "CASE WHEN isnan(TRY_CAST(cell AS DOUBLE)) THEN NULL ELSE TRY_CAST(cell AS DOUBLE) END"
    result = f"CASE WHEN {NUMBER} IS NULL THEN NULL ELSE CAST({job.expression_of(NUMBER)} AS DOUBLE) END"
    value = f"coalesce(CAST({result} AS VARCHAR), 'null')"
    comma = "CASE WHEN rtrim(start) = '{' THEN '' ELSE ', ' END"
    return (
        f"SELECT start || {comma} || {member} || {value} || '}}' FROM (SELECT rtrim(left(rtrim(line), -1)) AS start, "
        f"{number} AS {NUMBER} FROM ({lines}))"
    )


def _raw_lines(job: _Job) -> str:
    """Options that write one column of text exactly as it is."""
    return f"FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01', COMPRESSION {compression(job.out)}"
