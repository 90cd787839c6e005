"""From the options to rows of K classes: which columns hold the scores, and which class each of them is of.

The class of a column is what the star of a pattern stands for, or its name, or what `--classes` says; never its place.
May import NumPy, `calibrant.data`, `calibrant._checks`, `calibrant.errors` and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import softmax
from calibrant.cli import _console
from calibrant.cli._class_checks import checked_scores
from calibrant.cli._reading import Request, column_names, command
from calibrant.cli._words import percent
from calibrant.data._arrays import ClassRows
from calibrant.data._columns import column_index
from calibrant.data._files import read_many
from calibrant.errors import ColumnError, InputError

FEWEST = 3


@dataclass(frozen=True)
class ClassRequest:
    """What a command was asked to read: a request of a file, the columns of the scores, the names of the classes."""

    file: Request
    scores: tuple[str, ...]
    classes: tuple[str, ...] | None
    normalize: bool = False


class ScoreColumns(NamedTuple):
    """The columns of the scores, in the order of the file or of the list, and the class of each."""

    names: tuple[str, ...]
    classes: tuple[str, ...]


class ManyRows(NamedTuple):
    """Checked rows of K classes, the columns they came from, and how many were left out for a missing cell."""

    rows: ClassRows
    columns: ScoreColumns
    dropped: int


def class_request(
    file: Request, scores: Sequence[str] | None, classes: str | None, normalize: bool = False, **for_two_classes: Any
) -> ClassRequest:
    """The request, once the options are known to fit together; `for_two_classes` are more options, by name."""
    if not scores:
        what = "--classes names the classes" if classes else "--normalize divides the rows"
        raise InputError(f"{what} of the columns of --scores: give those columns with --scores.")
    if normalize and file.from_logits:
        raise InputError("--normalize is for probabilities and --from-logits for logits: leave one of them out.")
    alone = {"score": file.score, "pos_label": file.pos_label, "group": file.group, **for_two_classes}
    for name, value in alone.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option} is for two classes and --scores for three or more: leave one of them out.")
    names = None if classes is None else tuple(name.strip() for name in classes.split(","))
    return ClassRequest(file, tuple(scores), names, normalize)


# ---------------------------------------------------------------- columns


def score_columns(request: ClassRequest) -> ScoreColumns:
    """The columns that were asked for and their classes."""
    file = request.file
    names = column_names(file)
    taken = {name for name in (file.label, file.weight) if name is not None}
    found = [pair for word in request.scores for pair in _matched(word, names, taken)]
    columns, classes = tuple(name for name, _ in found), tuple(own for _, own in found)
    _refuse_twice(columns, "--scores names the column {} twice")
    if len(columns) < FEWEST:
        raise ColumnError(
            f"--scores must name a column for each of three or more classes, but it names {len(columns)}: "
            f"{_checks.shown(columns)}. The columns are: {_checks.shown(names, 20)}. For two classes give the column "
            f"of the event with --score."
        )
    classes = classes if request.classes is None else _as_listed(request.classes, columns)
    _refuse_twice(classes, "the class {} has two columns: name the classes with --classes")
    return ScoreColumns(columns, classes)


def _matched(word: str, names: Sequence[str], taken: set[str]) -> list[tuple[str, str]]:
    """Columns and classes of one pattern, of one name, or of a list of names with commas between."""
    if word in names:
        return [(word, word)]
    if "*" in word and "," not in word:
        return _matched_by_star(word, names, taken)
    parts = [part.strip() for part in word.split(",") if part.strip()]
    if len(parts) > 1:
        return [pair for part in parts for pair in _matched(part, names, taken)]
    name = names[column_index(names, word, "scores")]
    return [(name, name.strip())]


def _matched_by_star(word: str, names: Sequence[str], taken: set[str]) -> list[tuple[str, str]]:
    if word.count("*") != 1:
        raise InputError(f"--scores {word!r} has more than one star: a pattern has one, which stands for the class.")
    before, after = word.split("*")
    own = [(name, _checks.class_in_name(name, before, after)) for name in names if name not in taken]
    found = [(name, text) for name, text in own if text is not None]
    if not found:
        raise ColumnError(
            f"--scores {word!r} matches no column. The columns are: {_checks.shown(names, 20)}. A star stands for one "
            f"letter or more."
        )
    return found


def _as_listed(classes: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    if len(classes) == len(columns) and all(classes):
        return classes
    raise InputError(
        f"--classes must name the class of each of the {len(columns)} columns of --scores, in their order, but it "
        f"names {len(classes)}. The classes: {_checks.shown(classes, 12)}. The columns: {_checks.shown(columns, 12)}."
    )


def _refuse_twice(values: tuple[str, ...], words: str) -> None:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ColumnError(f"{words.format(repr(twice))}.")


# ---------------------------------------------------------------- rows


def label_of(request: ClassRequest) -> str:
    """The name of the column of the labels."""
    if request.file.label is None:
        raise ColumnError("Say which column says what happened, with --label NAME.")
    return request.file.label


def read_class_file(request: ClassRequest, columns: ScoreColumns, reads: str) -> ManyRows:
    """The rows of a file; `reads` is "probability" or "logit"."""
    file, label = request.file, label_of(request)
    with _console.working(f"Reading {file.path.name}") as progress:
        read = read_many(
            file.path,
            scores=columns.names,
            label=label,
            weight=file.weight,
            classes=columns.classes,
            **file.how(progress),
        )
    classes = known_classes(read.classes, columns)
    scores = checked_scores(request, columns.names, read.scores, reads)
    weights = _checks.weights(read.weights, len(scores))
    return ManyRows(ClassRows(scores, read.labels, weights, classes).present(), columns, read.dropped)


def known_classes(classes: Sequence[Any], columns: ScoreColumns) -> tuple[Label, ...]:
    """The classes of the columns as labels, each of them once."""
    if len(set(classes)) < len(classes):
        raise ColumnError(
            f"Two columns are of one class: as labels, the classes {_checks.shown(columns.classes, 12)} read as "
            f"{_checks.shown(tuple(classes), 12)}. Name them with --classes."
        )
    return tuple(classes)


class RowCounts(NamedTuple):
    """How many rows were read and left out, and the weight of each class."""

    rows: int
    dropped: int
    classes: tuple[Label, ...]
    weights: Floats

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())


def counts_of(read: ManyRows) -> RowCounts:
    """The counts of rows in memory."""
    rows = read.rows
    weights = np.bincount(rows.labels, rows.weights, minlength=len(rows.classes)).astype(np.float64)
    return RowCounts(len(rows.labels), read.dropped, rows.classes, weights)


def two_classes_occur(counts: RowCounts, what: str) -> None:
    """Refuse rows of one class only."""
    present = np.flatnonzero(counts.weights)
    if len(present) < 2:
        raise InputError(
            f"All rows are of the class {counts.classes[int(present[0])]!r}: {what} needs rows of two classes or more."
        )


def as_probabilities(rows: ClassRows, from_logits: bool) -> ClassRows:
    """The rows with the softmax of their logits."""
    return rows._replace(scores=softmax.softmax(rows.scores)) if from_logits else rows


# ---------------------------------------------------------------- words


def class_rows_read(counts: RowCounts, name: str) -> str:
    """`1,797 rows of scores.csv in 10 classes, from '1' (183) to '8' (174).`."""
    weights, total, classes = counts.weights, counts.total, counts.classes
    most, least = int(weights.argmax()), int(np.where(weights > 0, weights, np.inf).argmin())
    weighted = "" if total == counts.rows else f", total weight {total:,.6g}"
    absent = [own for own, weight in zip(classes, weights) if weight == 0]
    none = f" Without rows: {_checks.shown(absent, 8)}." if absent else ""
    left = f" Left out: {counts.dropped:,} with missing cells." if counts.dropped else ""
    return (
        f"{_checks.plural(counts.rows, 'row')} of {name}{weighted}, {len(classes):,} classes: {classes[most]!r} is the "
        f"most frequent ({percent(weights[most] / total)}), {classes[least]!r} the rarest "
        f"({percent(weights[least] / total)}).{none}{left}"
    )


def options_of(request: ClassRequest) -> list[str]:
    """The options that say which columns are the scores."""
    words = [word for pattern in request.scores for word in ("--scores", pattern)]
    words += ["--normalize"] if request.normalize else []
    return words + ([] if request.classes is None else ["--classes", ",".join(request.classes)])


def next_command(request: ClassRequest, *words: str) -> str:
    """A command to run next on the same kind of file."""
    return command(request.file, *words)
