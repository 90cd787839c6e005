"""The one door to DuckDB, the embedded engine that reads and writes files.

Invariant: one in-memory engine per piece of work, without network, without extensions from elsewhere, without a look at
the variables of the caller; what it spills goes to a temporary folder that is gone afterwards.
May import DuckDB and the standard library.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as StillRunning
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

EngineError = duckdb.Error
Progress = Callable[[float], None]

SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
    "memory_limit": "1GB",
}


def text_sql(text: str) -> str:
    """A text constant."""
    return "'" + text.replace("'", "''") + "'"


def name_sql(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def list_sql(values: Iterable[str]) -> str:
    """A list of text constants, in parentheses."""
    return "(" + ", ".join(map(text_sql, values)) + ")"


def files_sql(paths: Sequence[Path]) -> str:
    """A list of files, each exactly the one named: wildcards in a name stand for themselves."""
    plain = ["".join(f"[{c}]" if c in "*?[" else c for c in str(path)) for path in paths]
    return "[" + ", ".join(map(text_sql, plain)) + "]"


class Engine(AbstractContextManager["Engine"]):
    """A DuckDB in memory, and a folder for temporary files.

    Parameters
    ----------
    spill : path, optional
        Folder in which the temporary folder is made; the system's by default.
    progress : callable, optional
        Called with the share done, in [0, 1], while a query takes longer than a moment. `stage` is the part of the
        whole work that the next queries are.
    """

    def __init__(self, spill: Path | None = None, progress: Progress | None = None) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix=".calibrant-", dir=spill, ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self._progress = progress
        self.stage = (0.0, 1.0)

    @cached_property
    def _connection(self) -> Any:
        opened = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(self.folder / "spill")})
        if self._progress is not None:
            opened.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        return opened

    def __exit__(self, *_: object) -> None:
        if "_connection" in self.__dict__:
            self._connection.close()
        self._temporary.cleanup()

    def _fetched(self, sql: str, values: Sequence[Any], how: str) -> Any:
        """The whole result; the caller is told how far it is, and can interrupt.

        The query has a thread of its own, because the engine looks at signals too seldom: in a group-by, not at all.
        """
        connection = self._connection
        with ThreadPoolExecutor(1) as pool:
            query = pool.submit(self._fetch, sql, values, how)
            try:
                return self._watched(query)
            except BaseException:
                while not query.done():  # while a query is planned, the engine forgets that it was interrupted
                    connection.interrupt()
                    wait([query], 0.05)
                raise

    def _fetch(self, sql: str, values: Sequence[Any], how: str) -> Any:
        try:
            return getattr(self._connection.execute(sql, list(values)), how)()
        except RuntimeError as reason:
            if "interrupted" in str(reason):
                raise KeyboardInterrupt from reason
            raise

    def _watched(self, query: Any) -> Any:
        while True:
            try:
                return query.result(timeout=0.1)
            except StillRunning:
                if query.done():
                    raise
                if self._progress is not None:
                    share = min(max(self._connection.query_progress() / 100, 0.0), 1.0)
                    self._progress(self.stage[0] + share * (self.stage[1] - self.stage[0]))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        found: list[tuple[Any, ...]] = self._fetched(sql, values, "fetchall")
        return found

    def arrays(self, sql: str, values: Sequence[Any] = ()) -> dict[str, Any]:
        """The columns of a result as NumPy arrays."""
        found: dict[str, Any] = self._fetched(sql, values, "fetchnumpy")
        return found

    def relation(self, sql: str) -> Any:
        """A result that is not worked out yet, for frames that work on it in this engine."""
        return self._connection.sql(sql)

    def insert(self, table: str, columns: dict[str, Any]) -> None:
        """Add rows of NumPy columns to the end of a table of the engine; NaN becomes null."""
        cells = (f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END" for name in columns)
        self._connection.register("calibrant_block", columns)
        try:
            self.rows(f"INSERT INTO {table} SELECT {', '.join(cells)} FROM calibrant_block")
        finally:
            self._connection.unregister("calibrant_block")
