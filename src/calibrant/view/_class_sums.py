"""The statistic behind the report for K classes: tables of the top label and of each class, and sums of the losses.

Invariant: everything here adds over rows, so rows in memory and rows that come block by block give the same one, up to
rounding and to the cells of more distinct probabilities than a table holds.
May import NumPy, `calibrant.data` and `calibrant.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import metrics
from calibrant._checks import Floats, Label
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.metrics._calibration import _column_table
from calibrant.metrics._class_losses import MeanLoss, row_losses
from calibrant.metrics._inputs import row_weights


@dataclass(frozen=True)
class Losses:
    """The log loss and the Brier score of rows; `impossible` rows had probability 0 for what happened."""

    log: MeanLoss
    brier: MeanLoss
    impossible: int

    def __add__(self, other: Losses) -> Losses:
        """Those of the rows of both."""
        return Losses(self.log + other.log, self.brier + other.brier, self.impossible + other.impossible)


@dataclass(frozen=True)
class Moves:
    """What a map does to each row: how much lower its losses are, how far it moves it, whether the top label changes.

    `moved` and `changed` are weights: of half the sum of the absolute moves, and of the rows with another top label.
    """

    log: MeanLoss
    brier: MeanLoss
    moved: float
    changed: float

    def __add__(self, other: Moves) -> Moves:
        """Those of the rows of both."""
        moved, changed = self.moved + other.moved, self.changed + other.changed
        return Moves(self.log + other.log, self.brier + other.brier, moved, changed)


@dataclass(frozen=True)
class Side:
    """One side: the distinct table of the top label, and of each class when it is asked for.

    `decided` is the weight of the rows of each class (lines) by their likeliest class.
    """

    top: ScoreTable
    column: Callable[[int], ScoreTable]
    decided: Floats
    losses: Losses


@dataclass(frozen=True)
class ClassSums:
    """Both sides; `after` and `moves` are None where no map was judged, `cells` where the tables are exact.

    Else `cells` is the most that the table of the top label has, and those of all classes together.
    """

    rows: int
    classes: tuple[Label, ...]
    before: Side
    after: Side | None
    moves: Moves | None
    cells: int | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides that there are."""
        return (self.before,) if self.after is None else (self.before, self.after)

    @property
    def class_weights(self) -> Floats:
        """Weight of the rows of every class."""
        return np.asarray(self.before.decided.sum(axis=1))


def losses_of(rows: ClassRows) -> Losses:
    """The losses of some rows."""
    weights, log = row_weights(rows), row_losses(metrics.log_loss, rows)
    brier = row_losses(metrics.brier_score, rows)
    return Losses(MeanLoss.of(weights, log), MeanLoss.of(weights, brier), int(np.isinf(log).sum()))


def moves_of(rows: ClassRows, after: Floats) -> Moves:
    """What moved some rows to other probabilities."""
    weights, moved = row_weights(rows), rows._replace(scores=after)

    def gain(measure: Any) -> MeanLoss:
        with np.errstate(invalid="ignore"):  # both can be infinite
            return MeanLoss.of(weights, row_losses(measure, rows) - row_losses(measure, moved))

    far = 0.5 * np.abs(after - rows.scores).sum(axis=1)
    changed = after.argmax(axis=1) != rows.scores.argmax(axis=1)
    return Moves(gain(metrics.log_loss), gain(metrics.brier_score), float(weights @ far), float(weights @ changed))


def sums_of_rows(rows: ClassRows, after: Floats | None) -> ClassSums:
    """The statistic of rows of probabilities in memory, and of what a map made of them."""
    moved = None if after is None else _side(rows._replace(scores=after))
    moves = None if after is None else moves_of(rows, after)
    return ClassSums(len(rows.labels), rows.classes, _side(rows), moved, moves)


def _side(rows: ClassRows) -> Side:
    return Side(
        metrics.top_label_table(rows.labels, rows.scores, sample_weight=rows.weights).distinct,
        lambda k: _column_table(rows, k).distinct,
        _decided(rows),
        losses_of(rows),
    )


def _decided(rows: ClassRows) -> Floats:
    k = rows.scores.shape[1]
    cells = rows.labels * k + rows.scores.argmax(axis=1)
    return np.asarray(np.bincount(cells, rows.weights, minlength=k * k).reshape(k, k).astype(np.float64))
