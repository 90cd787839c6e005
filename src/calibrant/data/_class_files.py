"""Rows of K classes of a file, block by block and pass after pass, where all of them would not fit in memory.

The rows are staged in the engine once, as numbers and indices of the classes, and spill to its folder where memory
ends; each pass reads them from there. Invariant: the rows are those of `read_many`, with weight above 0, in the order
of the file; memory is bounded by the block and by what the engine may keep.
May import NumPy, `calibrant.errors` and the modules of this folder that read files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant.data._class_frames import LazyClasses, lazy_classes
from calibrant.data._columns import Missing
from calibrant.data._engine import Engine, Progress
from calibrant.data._files import with_class_rows
from calibrant.data._source import open_source, with_second_look
from calibrant.errors import InputError

BLOCK_CELLS = 2**21
"""Numbers of a block: 16 MB."""
MEMORY = "512MB"
"""What the engine may keep of the staged rows; the rest waits in its folder."""
STAGED, MADE = '"calibrant staged"', '"calibrant made"'

Block = tuple[Floats, NDArray[np.int64], Floats | None]


@dataclass(frozen=True)
class StagedRows:
    """Rows of K classes in an engine: labels are the indices of the columns.

    `class_rows` and `class_weights` have how many rows each class has, and their weight.
    """

    engine: Engine
    n_scores: int
    weighted: bool
    classes: tuple[Any, ...]
    dropped: int
    class_rows: NDArray[np.int64]
    class_weights: Floats

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.class_rows.sum())

    def blocks(self) -> Iterator[Block]:
        """Scores (m, K), labels and weights, block by block."""
        step = max(1, BLOCK_CELLS // self.n_scores)
        for start in range(0, self.size, step):
            found = self.engine.arrays(f"SELECT * FROM {STAGED} WHERE rowid >= {start} AND rowid < {start + step}")
            columns = {name: np.ma.getdata(values) for name, values in found.items()}
            scores = np.column_stack([columns[f"n{order}"] for order in range(self.n_scores)])
            weights = columns[f"n{self.n_scores}"] if self.weighted else None
            yield scores, columns["code"].astype(np.int64), weights

    def lazy(self, blocks: Iterable[Block], *, keep: bool = False) -> LazyClasses:
        """The rows in the engine as the probabilities of some blocks, which take the place of those made before.

        The rows as they were read are dropped, unless `keep` is true.
        """
        self._make(blocks)
        if not keep:
            self.engine.rows(f"DROP TABLE {STAGED}")
        scores = [f"n{order} AS s{order}" for order in range(self.n_scores)]
        weight = f"n{self.n_scores}" if self.weighted else "1.0::DOUBLE"
        columns = ", ".join([*scores, "code", f"{weight} AS weight"])
        return lazy_classes(self.engine.relation(f"SELECT {columns} FROM {MADE}"), self.size, self.classes)

    def _make(self, blocks: Iterable[Block]) -> None:
        """The second table of the engine, of the probabilities."""
        names = [f"n{order}" for order in range(self.n_scores)]
        kinds = [f"{name} DOUBLE" for name in names] + ["code SMALLINT"]
        kinds += [f"n{self.n_scores} DOUBLE"] if self.weighted else []
        self.engine.rows(f"CREATE OR REPLACE TEMP TABLE {MADE} ({', '.join(kinds)})")
        for probabilities, labels, weights in blocks:
            columns: dict[str, Any] = dict(zip(names, np.ascontiguousarray(probabilities.T)))
            columns["code"] = labels.astype(np.float64)
            columns |= {} if weights is None else {f"n{self.n_scores}": weights}
            self.engine.insert(MADE, columns)


def count_rows(
    path: str | os.PathLike[str], separator: str | None, decimal: str | None, header: bool, progress: Progress | None
) -> int:
    """Rows of a file, complete or not."""
    with Engine(progress=progress) as engine:
        source = open_source(engine, path, separator, decimal, header)
        return with_second_look(
            engine, source, lambda source: int(engine.rows(f"SELECT count(*) FROM {source.sql}")[0][0])
        )


@contextmanager
def staged_rows(
    path: str | os.PathLike[str],
    *,
    scores: Sequence[str],
    label: str,
    weight: str | None = None,
    classes: Sequence[Any] | None = None,
    missing: Missing = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    progress: Progress | None = None,
) -> Iterator[StagedRows]:
    """The rows of a file for several passes; arguments as of `read_many`."""
    with Engine(progress=progress) as engine:
        engine.rows(f"SET memory_limit = '{MEMORY}'")
        weighted = f"n{len(scores)}" if weight is not None else None

        def stage(sql: str, values: list[Any], order: tuple[Any, ...], lost: int) -> StagedRows:
            kept = sql if weighted is None else f"{sql} AND {weighted} > 0"
            return _stage(engine, kept, values, order, lost, weighted)

        written = separator, decimal, header
        yield with_class_rows(engine, path, scores, label, weight, classes, missing, written, stage)


def _stage(
    engine: Engine, sql: str, values: list[Any], classes: tuple[Any, ...], dropped: int, weight: str | None
) -> StagedRows:
    engine.stage = (0.5, 0.9)
    engine.rows(f"CREATE OR REPLACE TEMP TABLE {STAGED} AS {sql}", values)
    engine.stage = (0.9, 1.0)
    found = engine.rows(f"SELECT code, count(*), sum({weight or '1.0'}) FROM {STAGED} GROUP BY code")
    if not found:
        raise InputError("No row has a weight above 0: there is nothing to learn from or to judge.")
    counts, totals = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    there = [row[0] for row in found]
    counts[there], totals[there] = [row[1] for row in found], [row[2] for row in found]
    return StagedRows(engine, len(classes), weight is not None, classes, dropped, counts, totals)
