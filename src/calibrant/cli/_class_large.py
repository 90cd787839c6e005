"""Files of K classes that are too large for memory: which ones, their fit block by block, and what is refused.

Up to `LARGE` bytes of scores, rows are read at once. Beyond it the methods that learn from sums are fitted block by
block; what needs all rows at once is done only where the memory of the machine is enough for it.
May import `calibrant.data`, `calibrant._checks`, `calibrant.errors` and the modules of this folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from calibrant._checks import plural
from calibrant.cli import _console
from calibrant.cli._class_checks import checked_scores
from calibrant.cli._class_reading import (
    ClassRequest,
    ScoreColumns,
    known_classes,
    label_of,
)
from calibrant.data._class_files import StagedRows, count_rows, staged_rows
from calibrant.errors import InputError
from calibrant.maps import Map

LARGE = 2**30
"""Bytes of the scores as float64 beyond which a fit goes through the rows block by block."""
MOST_DISTINCT = 10_000_000
"""Distinct scores that evaluate keeps of the top label, and of all classes together."""
COPIES = 6
"""Reading, checking and judging rows at once takes this many times the scores."""


def bytes_of(request: ClassRequest, columns: ScoreColumns) -> int:
    """Bytes that the scores of a file take as float64."""
    file = request.file
    with _console.working(f"Counting the rows of {file.path.name}") as progress:
        rows = count_rows(file.path, file.separator, file.decimal, file.header, progress)
    return rows * len(columns.names) * 8


def goes_by_blocks(size: int, calibrator: Any) -> bool:
    """Whether scores of so many bytes go to a calibrator block by block."""
    return size > LARGE and hasattr(calibrator, "fit_blocks")


def refuse_what_does_not_fit(size: int, calibrator: Any) -> None:
    """Refuse a calibrator that needs all rows at once where the machine has not the memory for it."""
    there = physical_memory()
    if size > LARGE and there is not None and size * COPIES > there:
        raise InputError(
            f"{type(calibrator).__name__} needs all rows at once: the scores take {_gigabytes(size)}, the work about "
            f"{COPIES} times that, and this machine has {_gigabytes(there)}. Take --method temperature, vector, "
            f"matrix, dirichlet, svs or sms, which go through the file block by block, or a sample of the rows."
        )


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


@contextmanager
def staged_file(request: ClassRequest, columns: ScoreColumns) -> Iterator[StagedRows]:
    """The rows of the file, for several passes."""
    file = request.file
    with ExitStack() as opened:
        with _console.working(f"Reading {file.path.name}") as progress:
            rows = staged_rows(
                file.path,
                scores=columns.names,
                label=label_of(request),
                weight=file.weight,
                classes=columns.classes,
                **file.how(progress),
            )
            staged = opened.enter_context(rows)
        yield replace(staged, classes=known_classes(staged.classes, columns))


def fit_by_blocks(request: ClassRequest, columns: ScoreColumns, staged: StagedRows, calibrator: Any) -> Map:
    """The map of a calibrator with `fit_blocks`."""
    reads = "logit" if request.file.from_logits else "probability"

    def blocks() -> Iterator[tuple[Any, ...]]:
        for scores, labels, weights in staged.blocks():
            checked = checked_scores(request, columns.names, scores, reads)
            yield (checked, labels) if weights is None else (checked, labels, weights)

    with _console.working(f"Fitting the map to {plural(staged.size, 'row')}, block by block"):
        calibrator.fit_blocks(blocks)
    made: Map = replace(calibrator.map_, classes=staged.classes)
    return made
