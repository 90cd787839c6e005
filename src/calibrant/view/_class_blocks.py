"""The report for K classes of rows that do not fit in memory: fits and tables in several passes over staged rows.

Invariant: it is the report of the same rows in memory with the same folds, up to rounding, as long as the tables hold
all distinct probabilities.
May import NumPy and every layer below, and the files beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant
from calibrant._checks import Floats
from calibrant._kernels import softmax
from calibrant._parameters import generator
from calibrant.calibrators._class_cross_fit import dealt, folds_of, refit_blocks, without_signs
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.data._cells import LEAST, MORE
from calibrant.data._class_files import Block, StagedRows
from calibrant.data._class_frames import LazyClasses
from calibrant.maps import Map
from calibrant.view._class_map_card import class_map_card
from calibrant.view._class_report import (
    ASKED,
    ClassReport,
    Fits,
    all_notes,
    made_report,
    reads_logits,
    usable_calibrator,
)
from calibrant.view._class_sums import ClassSums, Losses, Side, losses_of, moves_of
from calibrant.view._report import Method, noting
from calibrant.view._report_input import seed_text

MOST_DISTINCT = 2_000_000
"""Distinct probabilities of a side that are kept of the top label, and of all classes together."""

Check = Callable[[Floats], Floats]


@dataclass(frozen=True)
class _Rows:
    """Staged rows whose scores have been checked, and how they are read and dealt."""

    staged: StagedRows
    check: Check
    is_logit: bool
    folds: int
    key: int

    def without(self, fold: int | None) -> Iterator[tuple[Any, ...]]:
        """The blocks for a fit: of all rows, or of those of the other folds."""
        if fold is None:
            yield from (block if block[2] is not None else block[:2] for block in self._checked())
            return
        for (scores, labels, weights), folds in self._dealt():
            kept = np.flatnonzero(folds != fold)
            parts = (scores, labels) if weights is None else (scores, labels, weights)
            if len(kept):
                yield tuple(part[kept] for part in parts)

    def given(self) -> Iterator[ClassRows]:
        """Blocks of the probabilities as they were given."""
        return (self._as_given(block) for block in self._checked())

    def pairs(self, maps: list[Map]) -> Iterator[tuple[ClassRows, ClassRows]]:
        """Blocks before the maps and after: each row by the map that was fitted without its fold."""
        for block, folds in self._dealt():
            given = self._as_given(block)
            yield given, given._replace(scores=_out_of_fold(block[0], folds, maps))

    def _as_given(self, block: Block) -> ClassRows:
        scores, labels, weights = block
        probabilities = softmax.softmax(scores) if self.is_logit else scores
        return ClassRows(probabilities, labels, weights, self.staged.classes)

    def _dealt(self) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        return dealt(self._checked(), self.staged.n_scores, self.folds, self.key)

    def _checked(self) -> Iterator[Block]:
        for scores, labels, weights in self.staged.blocks():
            yield self.check(scores), labels, weights


def _out_of_fold(scores: Floats, folds: NDArray[np.int64], maps: list[Map]) -> Floats:
    out = np.empty(scores.shape)
    for fold, made in enumerate(maps):
        held = folds == fold
        if held.any():
            out[held] = made(scores[held])
    return out


def report_of_staged_rows(
    staged: StagedRows,
    calibrator: Any,
    check: Check,
    *,
    title: str | None = None,
    source: str | None = None,
    date: str | None = None,
    n_folds: int = 5,
    from_logits: bool = False,
    random_state: Any = 0,
) -> ClassReport:
    """The report of staged rows, of two classes or more, and of a calibrator with `fit_blocks`.

    `check` gives the checked scores of a block.
    """
    used = usable_calibrator(calibrator, from_logits)
    is_logit = reads_logits(used)
    folds = folds_of(staged.class_rows, staged.size * staged.n_scores, n_folds)
    key = int(generator(random_state).integers(2**62))
    rows = _Rows(staged, check, is_logit, folds, key)
    fits, maps = _fit(used, rows)
    card = class_map_card(used, fits.fitted, staged.classes, ASKED, fits.notes)
    method = Method(fits.folds or None, seed_text(random_state), calibrant.__version__, date)
    return made_report(_sums(rows, maps), card, method, "logits" if is_logit else "probability", title, source)


def _fit(calibrator: Any, rows: _Rows) -> tuple[Fits, list[Map] | None]:
    """The fits, and the maps of the folds."""

    def fit(fold: int | None = None) -> Any:
        return refit_blocks(calibrator, lambda: rows.without(fold))

    def maps_of_folds() -> list[Map]:
        with without_signs():
            return [fit(fold).map_ for fold in range(rows.folds)]

    fitted, notes = noting(fit)
    if rows.folds < 2:
        return Fits(fitted, 0, notes), None
    maps, more = noting(maps_of_folds)
    return Fits(fitted, rows.folds, all_notes(notes, more)), maps


# ---------------------------------------------------------------- adding up


def _sums(rows: _Rows, maps: list[Map] | None) -> ClassSums:
    """The statistic of the report: a pass for the losses, and one for the tables of each side."""
    size, classes = rows.staged.size, rows.staged.classes
    if maps is None:
        losses = reduce(add, map(losses_of, rows.given()))
        before, cells = _side(rows, rows.given(), losses)
        return ClassSums(size, classes, before, None, None, cells)
    parts = ((losses_of(one), losses_of(other), moves_of(one, other.scores)) for one, other in rows.pairs(maps))
    losses, lost, moves = reduce(lambda one, other: tuple(map(add, one, other)), parts)
    before, cells = _side(rows, rows.given(), losses)
    after, more = _side(rows, (moved for _, moved in rows.pairs(maps)), lost)
    return ClassSums(size, classes, before, after, moves, cells or more)


def _side(rows: _Rows, blocks: Iterable[ClassRows], losses: Losses) -> tuple[Side, int | None]:
    """The tables of some probabilities, added up in the engine; and how many cells they have at most, if any has."""
    made = rows.staged.lazy(((block.scores, block.labels, block.weights) for block in blocks), keep=True)
    (top, columns), said = noting(lambda: _tables(made))
    in_cells = any(text.endswith(MORE) for text in said)
    return Side(top, columns.__getitem__, made.decided(), losses), MOST_DISTINCT if in_cells else None


def _tables(made: LazyClasses) -> tuple[ScoreTable, list[ScoreTable]]:
    top = ScoreTable._of_counts(*made.top(MOST_DISTINCT)).distinct
    each = max(MOST_DISTINCT // len(made.classes), LEAST)
    columns = range(len(made.classes))
    return top, [ScoreTable._of_counts(*made.column(k, each)).distinct for k in columns]
