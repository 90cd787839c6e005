"""A file, a folder of parts or a glob as one relation of the engine: its SQL, its columns, what a cell of them means.

Invariant: text columns stay text, so that nothing is lost before a cell is looked at; no name from a file reaches SQL
unquoted; parts are read in the order of their names.
May import the standard library, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from calibrant._checks import plural
from calibrant.data._columns import BLANKS, MISSING_MARKERS, column_index
from calibrant.data._engine import Engine, EngineError, files_sql, list_sql, name_sql, text_sql
from calibrant.data._text import TextFile, head_of, is_gzipped, plain_copy, separator_named, sniff
from calibrant.errors import ColumnError, InputError, InputTypeError

Result = TypeVar("Result")
Kind = Literal["text", "parquet", "json"]

SUFFIXES: dict[str, Kind] = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
NUMBER_TYPE = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|U?INTEGER|BIGNUM|VARINT)"
)
JSON_TYPES_KEPT = ("BOOLEAN", "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE")
ROW = name_sql("calibrant row")
TEXT_TYPE = re.compile(r"VARCHAR|ENUM\(.*\)", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """A relation: `sql` can follow FROM; `columns` are the SQL names of the columns called `names` in the file."""

    path: str
    kind: Kind
    files: tuple[Path, ...]
    texts: tuple[TextFile, ...]
    sql: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    decimal: str | None
    header: bool
    copied: bool = False

    @property
    def separator(self) -> str:
        """The separator of a text file; a comma elsewhere."""
        return self.texts[0].separator if self.texts else ","

    def place(self, name: str, argument: str) -> int:
        """Position of a column by name."""
        hint = ""
        if len(self.names) == 1 and self.texts:
            hint = (
                " Its cells seem to be separated by blanks: save it with commas or tabs, or, where it is one blank "
                "throughout, give separator=' '."
                if self.texts[0].blanks
                else " Only one column was found: give the separator, for example separator=';' (--separator ';')."
            )
        elif self.texts and self.header and any(_is_number(name) for name in self.names):
            hint = " The first line looks like data: if there are no names, read with header=False (--no-header)."
        return column_index(self.names, name, argument, hint)

    def is_text(self, place: int) -> bool:
        """Whether the column holds text (then its cells may still be numbers)."""
        return TEXT_TYPE.fullmatch(self.types[place]) is not None

    def number(self, place: int) -> str:
        """SQL of a cell as a double; null where it is not a number."""
        column = self.columns[place]
        if self.decimal != "," or not self.is_text(place):
            return f"TRY_CAST({column} AS DOUBLE)"
        return f"CASE WHEN contains({column}, '.') THEN NULL ELSE TRY_CAST(replace({column}, ',', '.') AS DOUBLE) END"

    def relation(self, places: Sequence[int], row_numbers: bool = False) -> str:
        """SQL of the rows with the numbers of some columns (`number_name`), and the number of the row (`ROW`)."""
        added = [f"{self.number(place)} AS {number_name(place)}" for place in dict.fromkeys(places)]
        added += [f"row_number() OVER () AS {ROW}"] if row_numbers else []
        return f"(SELECT {', '.join(['*', *added])} FROM {self.sql})"

    def missing(self, place: int) -> str:
        """SQL condition on `relation`: the cell is missing (never null)."""
        column, number = self.columns[place], number_name(place)
        none = f"{column} IS NULL"
        if self.is_text(place):
            none += f" OR {trimmed_sql(column)} IN {list_sql(MISSING_MARKERS)}"
        return f"(CASE WHEN {number} IS NULL THEN {none} ELSE isnan({number}) END)"

    def unusable(self, place: int, weight: bool = False) -> str:
        """SQL condition on `relation`: the cell is there, but is no finite number (or is a negative weight)."""
        number = number_name(place)
        low = f" OR {number} < 0" if weight else ""
        return f"(CASE WHEN {number} IS NULL THEN NOT {self.missing(place)} ELSE isinf({number}){low} END)"

    def empty(self) -> str:
        """SQL condition: the whole row is empty."""
        cells = (
            f"coalesce({trimmed_sql(column)}, '') = ''" if self.is_text(place) else f"{column} IS NULL"
            for place, column in enumerate(self.columns)
        )
        return " AND ".join(cells)

    def must_be_numeric(self, place: int, argument: str) -> None:
        """Refuse a typed column of another kind (dates, lists)."""
        if not self.is_text(place) and not NUMBER_TYPE.fullmatch(self.types[place]):
            raise ColumnError(
                f"{argument}={self.names[place]!r} holds {self.types[place]}, not numbers. Choose another column, or "
                f"convert it first."
            )


def number_name(place: int) -> str:
    """SQL name of the number of a cell."""
    return name_sql(f"calibrant number {place}")


def trimmed_sql(column: str) -> str:
    """SQL of a cell as text without blanks around."""
    return f"trim(CAST({column} AS VARCHAR), {text_sql(BLANKS)})"


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- which files


def files_of(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The file, or the parts of the folder or glob in the order of their names."""
    name = os.fspath(path)
    place = Path(name)
    if place.is_dir():
        parts = sorted(part for part in place.rglob("*") if part.is_file() and _is_part(part.relative_to(place)))
        if not parts:
            raise InputError(f"The folder {name!r} holds no csv, tsv, txt, Parquet or JSON lines file.")
        return tuple(parts)
    if place.exists():
        return (place,)
    parts = sorted(Path(part) for part in glob.glob(name, recursive=True) if Path(part).is_file())
    if parts:
        return tuple(parts)
    raise InputError(f"{name!r} does not exist.{_close_file(place)}")


def _is_part(part: Path) -> bool:
    return not any(step.startswith((".", "_")) for step in part.parts) and kind_by_name(part) is not None


def _close_file(place: Path) -> str:
    try:
        there = [file.name for file in place.parent.iterdir()]
    except OSError:
        return f" There is no folder {str(place.parent)!r}."
    close = difflib.get_close_matches(place.name, there, 1)
    return f" Did you mean {str(place.parent / close[0])!r}?" if close else " Check the name and the folder."


def kind_by_name(path: Path) -> Kind | None:
    """The kind of file that a name stands for; a final .gz does not count."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _kind(path: Path) -> Kind:
    named = kind_by_name(path)
    if named is not None and named != "text":
        return named
    head = head_of(path, is_gzipped(path))
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(f"{str(path)!r} is a workbook or an archive: save the sheet as csv or Parquet.")
    return "json" if named is None and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "text"


# ---------------------------------------------------------------- opening


def open_source(
    engine: Engine, path: str | os.PathLike[str], separator: str | None, decimal: str | None, header: bool
) -> Source:
    """The relation that a path stands for."""
    if decimal not in (None, ".", ","):
        raise InputError(f"decimal must be '.' or ',', but it is {decimal!r}.")
    if not isinstance(header, bool):
        raise InputTypeError(f"header must be True or False, but it is {header!r}.")
    separator_named(separator)
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be the name of a file, but it is {type(path).__name__}.")
    name = os.fspath(path)
    if not name:
        raise InputError("path is empty: give the name of a file.")
    try:
        files = files_of(path)
        kinds = {_kind(file) for file in files}
        if len(kinds) > 1:
            raise InputError(f"{name!r} holds files of different kinds: {', '.join(sorted(kinds))}. Name one kind.")
        if kinds == {"text"}:
            return _open_text(engine, name, tuple(sniff(file, separator, header) for file in files), decimal, header)
    except OSError as reason:
        raise InputError(f"{name!r} cannot be read: {reason.strerror or reason}.") from reason
    return _open_typed(engine, name, kinds.pop(), files)


def _open_text(engine: Engine, path: str, texts: tuple[TextFile, ...], decimal: str | None, header: bool) -> Source:
    first = texts[0]
    for text in texts[1:]:
        if (text.names, text.separator) != (first.names, first.separator):
            raise InputError(
                f"The parts of {path!r} differ: {str(first.path)!r} has the columns {', '.join(first.names)}, "
                f"{str(text.path)!r} has {', '.join(text.names)} (separators {first.separator!r}, {text.separator!r})."
            )
    columns = tuple(f"c{place + 1}" for place in range(len(first.names)))
    source = Source(
        path=path,
        kind="text",
        files=tuple(text.path for text in texts),
        texts=texts,
        sql="",
        names=first.names,
        columns=columns,
        types=("VARCHAR",) * len(columns),
        decimal=decimal,
        header=header,
    )
    alike = len({(text.gzipped, text.skip) for text in texts}) == 1
    if alike and all(text.encoding in ("utf-8", "utf-8-sig") for text in texts):
        return replace(source, sql=_text_sql(source))
    return _as_plain_copies(engine, source)


def _text_sql(source: Source) -> str:
    first = source.texts[0]
    columns = ", ".join(f"{text_sql(column)}: 'VARCHAR'" for column in source.columns)
    header = str(source.header).lower()
    compression = "gzip" if first.gzipped else "none"
    return (
        f"read_csv({files_sql(source.files)}, auto_detect=false, columns={{{columns}}}, header={header}, "
        f"delim={text_sql(first.separator)}, quote='\"', escape='\"', skip={first.skip}, allow_quoted_nulls=false, "
        f"compression='{compression}', hive_partitioning=false)"
    )


def _as_plain_copies(engine: Engine, source: Source) -> Source:
    texts = tuple(plain_copy(text, engine.folder, number) for number, text in enumerate(source.texts))
    plain = replace(source, texts=texts, files=tuple(text.path for text in texts), copied=True)
    return replace(plain, sql=_text_sql(plain))


def _open_typed(engine: Engine, path: str, kind: Kind, files: tuple[Path, ...]) -> Source:
    if kind == "parquet":
        sql = f"read_parquet({files_sql(files)})"
    else:
        if all(not head_of(file, is_gzipped(file)).strip(b"\xef\xbb\xbf \t\r\n") for file in files):
            raise InputError(f"{path!r} is empty.")
        sql = f"read_json({files_sql(files)}, format='auto', sample_size=-1)"
    try:
        described = engine.rows(f"DESCRIBE SELECT * FROM {sql}")
    except EngineError as reason:
        raise readable_error(path, kind, reason) from reason
    names = tuple(str(row[0]) for row in described)
    types = tuple(str(row[1]) for row in described)
    if kind == "json":
        types = tuple(found if found in JSON_TYPES_KEPT else "VARCHAR" for found in types)
        columns = ", ".join(f"{text_sql(name)}: {text_sql(found)}" for name, found in zip(names, types))
        sql = f"read_json({files_sql(files)}, format='auto', columns={{{columns}}})"
    return Source(path, kind, files, (), sql, names, tuple(map(name_sql, names)), types, None, True)


def with_second_look(engine: Engine, source: Source, work: Callable[[Source], Result]) -> Result:
    """The result of `work`; a text file that the engine cannot read as it is gets copied first.

    What the engine then still cannot read is an error that says where.
    """
    try:
        return work(source)
    except EngineError as reason:
        if source.kind != "text" or source.copied or not _about_text(reason):
            raise readable_error(source.path, source.kind, reason, source) from reason
    plain = _as_plain_copies(engine, source)
    try:
        return work(plain)
    except EngineError as reason:
        raise readable_error(source.path, source.kind, reason, plain) from reason


def _about_text(reason: Exception) -> bool:
    return "CSV Error" in str(reason) or "CSV Parser" in str(reason)


def readable_error(path: str, kind: Kind, reason: Exception, source: Source | None = None) -> InputError:
    """What the engine could not do, in words for the owner of the file."""
    text = str(reason)
    if "No space left" in text or "Disk quota" in text:
        return InputError(f"The disk is full: free some space and run it again ({text.splitlines()[0]}).")
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None or source is None:
        said = re.sub(r"^\w+( \w+)* Error: ", "", text.splitlines()[0])
        what = {"text": "text", "parquet": "Parquet", "json": "JSON lines"}[kind]
        return InputError(f"{path!r} cannot be read as {what}: {said}")
    where, separator = f"Line {line[1]} of {path!r}", repr(source.separator)
    if "Maximum line size" in text:
        return InputError(f"{where} is longer than 2,000,000 bytes: remove the long cells, or save it as Parquet.")
    cells = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if cells:
        return InputError(_uneven(where, separator, int(cells[1]), int(cells[2])))
    if "quote" in text:
        return InputError(
            f"{where} has a quote that does not end where its cell ends: write quotes inside a cell twice."
        )
    return InputError(f"{where} cannot be read: {' '.join(text.splitlines()[2:4])}")


def _uneven(where: str, separator: str, expected: int, found: int) -> str:
    said = f"{where} has {plural(found, 'cell')} where the first line has {expected} (separator {separator})."
    if found < expected:
        return f"{said} Complete the line or remove it."
    return (
        f"{said} A cell that holds the separator must be in quotes, and a column of row names needs a name in the "
        f"first line. Numbers with a decimal comma need another separator: separator=';', decimal=',' "
        f"(--separator ';' --decimal ',')."
    )
