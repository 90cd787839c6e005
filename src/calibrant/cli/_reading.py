"""From the options to a score table: the columns asked for, and a sentence for each way in which they cannot be had.

May import `calibrant.data`, `calibrant._checks`, `calibrant.errors` and the modules of this folder.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import PROBABILITY_TOLERANCE, Floats
from calibrant.cli import _console
from calibrant.data import ScoreTable
from calibrant.data._columns import Columns
from calibrant.data._engine import Engine, Progress
from calibrant.data._files import read_binary
from calibrant.data._source import open_source
from calibrant.errors import ColumnError, InputError

FEW_OUTSIDE = 0.05


@dataclass(frozen=True)
class Request:
    """What a command was asked to read."""

    path: Path
    score: str | None
    label: str | None
    weight: str | None
    pos_label: str | None
    missing: Any
    separator: str | None
    decimal: str | None
    header: bool
    from_logits: bool = False
    group: str | None = None

    def how(self, progress: Progress | None) -> dict[str, Any]:
        """How the file is read, as arguments by name."""
        return {
            "missing": self.missing,
            "separator": self.separator,
            "decimal": self.decimal,
            "header": self.header,
            "progress": progress,
        }


class Rows(NamedTuple):
    """The table, how many rows were left out because a cell was missing, and the group of each entry of the table."""

    table: ScoreTable
    dropped: int
    groups: Any = None


def read_rows(request: Request) -> Rows:
    """The score table of a file."""
    score = named_column(request, "score", request.score)
    label = named_column(request, "label", request.label)
    with _console.working(f"Reading {request.path.name}") as progress:
        columns = read_binary(
            request.path,
            score=score,
            label=label,
            weight=request.weight,
            group=request.group,
            pos_label=request.pos_label,
            **request.how(progress),
        )
        groups = columns.groups
        if groups is not None:
            groups = groups.astype(str)
            if isinstance(columns, Columns) and columns.weights is not None:
                groups = groups[columns.weights > 0]
        return Rows(ScoreTable._of_columns(columns), columns.dropped, groups)


def named_column(request: Request, option: str, name: str | None) -> str:
    """The name given, or an error that lists the names there are."""
    if name is not None:
        return name
    what = {"score": "holds the scores", "label": "says what happened"}[option]
    raise ColumnError(
        f"Say which column {what}, with --{option} NAME. The columns of {str(request.path)!r} are: "
        f"{_checks.shown(column_names(request), 20)}."
    )


def column_names(request: Request) -> tuple[str, ...]:
    """The names of the columns of a file."""
    with Engine() as engine:
        return open_source(engine, request.path, request.separator, request.decimal, request.header).names


class Range(NamedTuple):
    """The least and the greatest score, and how many rows lie outside [0, 1]."""

    low: float
    high: float
    outside: int

    @property
    def inside(self) -> bool:
        """Whether all scores can be probabilities."""
        return self.outside == 0


def range_of(table: ScoreTable) -> Range:
    """Where the scores of a table lie."""
    scores = table.scores
    low, high = float(scores.min()), float(scores.max())
    if low >= -PROBABILITY_TOLERANCE and high <= 1 + PROBABILITY_TOLERANCE:
        return Range(low, high, 0)
    outside = (scores < -PROBABILITY_TOLERANCE) | (scores > 1 + PROBABILITY_TOLERANCE)
    return Range(low, high, int(np.count_nonzero(outside)))


def refuse_a_few_outside(table: ScoreTable, found: Range) -> None:
    """Refuse to guess what the scores are when nearly all of them, but not all, lie in [0, 1]."""
    if not 0 < found.outside < FEW_OUTSIDE * len(table):
        return
    worst = found.low if found.low < -PROBABILITY_TOLERANCE else found.high
    raise InputError(
        f"{_checks.plural(found.outside, 'score')} of {len(table):,} lie outside [0, 1], for example {worst:.6g}. If "
        f"the scores are probabilities, that may be a code for a missing value: remove those rows. If they are not, "
        f"say so with --method platt (or another method for any score)."
    )


def as_probabilities(table: ScoreTable) -> ScoreTable:
    """The table with scores that rounding put beyond an end set to it."""
    inside = inside_probabilities(table.scores)
    return table if inside is table.scores else table.with_scores(inside)


def inside_probabilities(scores: Floats) -> Floats:
    """Probabilities, each within [0, 1]; other scores are refused where only a map of them would do."""
    low, high = float(scores.min(initial=0)), float(scores.max(initial=1))
    if low < -PROBABILITY_TOLERANCE or high > 1 + PROBABILITY_TOLERANCE:
        raise InputError(
            f"The scores run from {float(scores.min()):.6g} to {float(scores.max()):.6g}, but probabilities in [0, 1] "
            f"are needed here. Make them first, with `calibrant fit` and `calibrant apply`."
        )
    return _checks.probabilities(scores, "scores")


def command(request: Request, *words: str) -> str:
    """A command to run next, with the options that say how the file is written."""
    given = ["calibrant", *words]
    for option, value in (("--separator", request.separator), ("--decimal", request.decimal)):
        given += [option, value] if value else []
    return shlex.join(given + ([] if request.header else ["--no-header"]))
