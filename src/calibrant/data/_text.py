"""What a text file is: its encoding, its separator, its names; found out from its first 256 KiB.

Invariant: nothing is guessed row by row later on; a file that the engine cannot read as it is (another encoding,
mixed line ends, lines of blanks) is copied once, line for line, into plain UTF-8 with one kind of line end.
May import the standard library and `calibrant.errors`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, cast

from calibrant.errors import InputError

HEAD_BYTES = 1 << 18
HEAD_ROWS = 200
SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "blank": " "}
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
READ_AS_IS = ("utf-8", "utf-8-sig")


@dataclass(frozen=True)
class TextFile:
    """How a delimited text file is to be read.

    `skip` lines stand before the header (or before the data, where there is none). `blanks` is true where one column
    was found whose cells all hold the same number of words.
    """

    path: Path
    encoding: str
    gzipped: bool
    separator: str
    names: tuple[str, ...]
    skip: int
    blanks: bool


def is_gzipped(path: Path) -> bool:
    """Whether the content is gzip, whatever the name says."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def open_bytes(path: Path, gzipped: bool) -> IO[bytes]:
    """The content, decompressed."""
    return cast(IO[bytes], gzip.open(path, "rb")) if gzipped else path.open("rb")


def head_of(path: Path, gzipped: bool) -> bytes:
    """The first bytes of the content."""
    try:
        with open_bytes(path, gzipped) as file:
            return file.read(HEAD_BYTES)
    except (EOFError, gzip.BadGzipFile) as reason:
        raise InputError(f"{str(path)!r} is not a whole gzip file: {reason}.") from reason


def separator_named(separator: str | None) -> str | None:
    """The separator itself: one character, or a word for it ("tab")."""
    if separator is None:
        return None
    found = SEPARATOR_NAMES.get(separator, separator) if isinstance(separator, str) else ""
    if len(found) != 1 or found in '"\r\n':
        raise InputError(f'separator must be one character, or "tab", but it is {separator!r}.')
    return found


def sniff(path: Path, separator: str | None = None, header: bool = True) -> TextFile:
    """How this file is to be read; `separator=None` finds out which it is."""
    gzipped = is_gzipped(path)
    head = head_of(path, gzipped)
    encoding = _encoding(path, head)
    text, skip = _first_lines(codecs.getincrementaldecoder(encoding)().decode(head), len(head) == HEAD_BYTES)
    separator = separator_named(separator)
    hint = re.match(r"sep=(.)\r?\n", text)
    if hint:
        separator, text, skip = separator or hint[1], text[hint.end() :], skip + 1
    if not text.strip():
        raise InputError(f"{str(path)!r} is empty.")
    separator = separator or _best_separator(text)
    rows = _records(text, separator)
    names = tuple(rows[0]) if header else tuple(f"column_{place + 1}" for place in range(len(rows[0])))
    return TextFile(path, encoding, gzipped, separator, names, skip, len(names) == 1 and _by_blanks(text))


def _encoding(path: Path, head: bytes) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head:
        even, odd = head[0::2].count(0), head[1::2].count(0)
        if max(even, odd) > 0.4 * len(head) / 2 and min(even, odd) * 10 < max(even, odd):
            return "utf-16-be" if even > odd else "utf-16-le"
        raise InputError(f"{str(path)!r} is not a text file. Read are csv, tsv and txt, Parquet and JSON lines.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _first_lines(text: str, cut: bool) -> tuple[str, int]:
    """The whole lines of the head from the first that is not blank, and how many lines stand before it."""
    if cut and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    blank = re.match(r"(?:[ \t]*(?:\r\n|\r|\n))*", text)
    before = blank[0] if blank else ""
    return text[len(before) :], len(re.findall(r"\r\n|\r|\n", before))


def _records(text: str, separator: str) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return list(islice((row for row in rows if any(cell.strip() for cell in row)), HEAD_ROWS))
    except csv.Error:
        return [text.splitlines()[0].split(separator)]


def _best_separator(text: str) -> str:
    """The separator under which most rows are as wide as the first, the widest first row among equals."""
    best, best_fit = SEPARATORS[0], (0.0, 1)
    for separator in SEPARATORS:
        rows = _records(text, separator)
        if rows and len(rows[0]) > 1:
            alike = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
            if (alike, len(rows[0])) > best_fit:
                best, best_fit = separator, (alike, len(rows[0]))
    return best


def _by_blanks(text: str) -> bool:
    lines = (line.split() for line in text.splitlines())
    words = {len(line) for line in islice(lines, HEAD_ROWS) if line}
    return len(words) == 1 and words.pop() > 1


def plain_copy(file: TextFile, folder: Path, number: int) -> TextFile:
    """The same file, line for line, as UTF-8 with one kind of line end; lines of blanks are empty in it."""
    target = folder / f"part-{number:06d}.txt"
    encoding = "utf-8-sig" if file.encoding in READ_AS_IS else file.encoding
    try:
        with (
            open_bytes(file.path, file.gzipped) as raw,
            io.TextIOWrapper(raw, encoding=encoding, newline=None) as lines,
            target.open("w", encoding="utf-8", newline="\n") as out,
        ):
            out.writelines("\n" if line.isspace() else line for line in lines)
    except UnicodeDecodeError as reason:
        if encoding == "utf-8-sig":
            return plain_copy(replace(file, encoding="cp1252"), folder, number)
        raise InputError(
            f"{str(file.path)!r} is neither UTF-8 nor Windows-1252 text ({reason}): save it as UTF-8."
        ) from reason
    return replace(file, path=target, encoding="utf-8", gzipped=False)


def line_of_row(file: TextFile, row: int, header: bool, most: int = 1_000_000) -> int | None:
    """The line on which data row `row` (from 1) ends; None where that would take long or fails."""
    if row > most:
        return None
    encoding = "utf-8-sig" if file.encoding in READ_AS_IS else file.encoding
    with (
        open_bytes(file.path, file.gzipped) as raw,
        io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="") as text,
    ):
        for _ in range(file.skip):
            text.readline()
        rows = csv.reader(text, delimiter=file.separator)
        try:
            full = (rows.line_num for cells in rows if any(cell.strip() for cell in cells) or len(cells) > 1)
            number = next(islice(full, row - (0 if header else 1), None), None)
        except csv.Error:
            return None
    return None if number is None else number + file.skip
