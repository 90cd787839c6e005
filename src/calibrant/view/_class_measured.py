"""What the report for K classes measures: each side as a whole, class by class, and what is taken for what.

Invariant: everything here is a plain finite number, or None with the reason. Intervals of single classes hold for all
classes together (each at level `1 - 0.05 / K`); the others hold one by one.
May import NumPy, the kernels, `calibrant.data`, `calibrant.metrics` and `_curves`, `_proof`, `_words` beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import metrics
from calibrant._checks import Floats
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.metrics._calibration import _column_table
from calibrant.view import _curves
from calibrant.view._proof import BAND_POINTS, LEVEL, RESAMPLES, Band
from calibrant.view._words import counted

MOST_PANELS = 12
MOST_MISTAKES = 12
MOST_MATRIX = 12


@dataclass(frozen=True)
class Measured:
    """A number with the ends of its interval; None where it is infinite, with the reason."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None = None


@dataclass(frozen=True)
class ClassSide:
    """What was measured before or after the map.

    `top_error` is the typical gap of the top label's probability beyond chance, `class_error` the mean of that over
    the classes; `mean_error` is the standard error of the accuracy if the probabilities were right.
    """

    name: str
    log_loss: Measured
    brier: Measured
    accuracy: float
    mean_confidence: float
    mean_error: float
    top_error: Measured
    class_error: float
    reliability: _curves.Reliability
    band: Band


@dataclass(frozen=True)
class OneClass:
    """One side of one class against the rest: mean probability and its standard error if honest, gap beyond chance."""

    mean_predicted: float
    mean_error: float
    error: Measured
    roc_auc: float | None
    recall: float | None
    precision: float | None

    @property
    def clear(self) -> bool:
        """Whether the gap is beyond chance, all classes taken together."""
        return (self.error.low or 0.0) > 0


@dataclass(frozen=True)
class ClassLine:
    """One class: its weight, its share, and both sides."""

    name: str
    weight: float
    share: float
    before: OneClass
    after: OneClass | None


@dataclass(frozen=True)
class Panel:
    """The reliability of one class before and after, on one scale."""

    name: str
    weight: float
    before: _curves.Reliability
    after: _curves.Reliability | None


@dataclass(frozen=True)
class Mistake:
    """Rows of one class that are taken for another; `share` of the class's rows."""

    true: str
    taken_for: str
    weight: float
    share: float


@dataclass(frozen=True)
class Decisions:
    """Taking the likeliest class: how often it is wrong, how often it was expected to be, and what is mixed up.

    `matrix` holds the weights of all pairs (true by line) where there are few classes, else it is None; `changed` is
    the share of rows for which the map changes the likeliest class.
    """

    side: str
    wrong: float
    expected: float
    changed: float | None
    mistakes: tuple[Mistake, ...]
    matrix: tuple[tuple[float, ...], ...] | None


@dataclass(frozen=True)
class ClassGain:
    """What the map gains out of fold, with a 95 % interval from the differences of the rows' losses."""

    measure: str
    baseline: float
    after: float
    gain: float
    low: float
    high: float
    mean_move: float

    @property
    def clear(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0


# ---------------------------------------------------------------- one side


def class_side(rows: ClassRows, name: str, scale: _curves.Scale, lines: list[OneClass]) -> ClassSide:
    """All measures of one side; `lines` are those of its classes."""
    y, p, w = rows.labels, rows.scores, rows.weights
    top = top_table(rows)
    present = [line.error.value or 0.0 for line in lines]
    return ClassSide(
        name=name,
        log_loss=_log_loss(rows),
        brier=_measured(metrics.estimate(metrics.brier_score, y, p, sample_weight=w, confidence=LEVEL)),
        accuracy=top.prevalence,
        mean_confidence=float(top.weight @ top.scores) / top.total_weight,
        mean_error=_chance(top.scores, top.weight),
        top_error=_measured(metrics.calibration_error(top, confidence=LEVEL)),
        class_error=float(np.mean(present)),
        reliability=_curves.reliability(top, scale),
        band=_band(top),
    )


def top_table(rows: ClassRows) -> ScoreTable:
    """Was the likeliest class right, against its probability; the distinct table."""
    return metrics.top_label_table(rows.labels, rows.scores, sample_weight=rows.weights).distinct


def _measured(found: Any) -> Measured:
    return Measured(*(part if math.isfinite(part) else None for part in (found.value, found.low, found.high)))


def _log_loss(rows: ClassRows) -> Measured:
    own = rows.scores[np.arange(len(rows.labels)), rows.labels]
    wrong = int((own == 0).sum())
    if wrong:
        text = f"infinite: what happened had probability 0 ({counted(wrong, 'row')})"
        return Measured(None, None, None, text)
    return _measured(
        metrics.estimate(metrics.log_loss, rows.labels, rows.scores, sample_weight=rows.weights, confidence=LEVEL)
    )


def _chance(scores: Floats, weight: Floats) -> float:
    """Standard error of the event rate if the probabilities were right."""
    return math.sqrt(float(weight @ (scores * (1 - scores)))) / float(weight.sum())


def _band(table: ScoreTable) -> Band:
    found = metrics.reliability_bands(table, confidence=LEVEL, n_resamples=RESAMPLES)
    every = np.unique(np.linspace(0, len(found.predicted) - 1, BAND_POINTS).astype(int))
    parts = (found.predicted, found.observed, found.low, found.high)
    return Band(*(tuple(np.round(part[every], 6).tolist()) for part in parts))


# ---------------------------------------------------------------- class by class


def one_class_each(rows: ClassRows) -> list[OneClass]:
    """The measures of every class against the rest."""
    k = rows.scores.shape[1]
    counts = _counts(rows)
    confidence = 1 - (1 - LEVEL) / k
    return [_one_class(_column_table(rows, one).distinct, counts, one, confidence) for one in range(k)]


def _one_class(table: ScoreTable, counts: Floats, k: int, confidence: float) -> OneClass:
    weight, total = table.weight, table.total_weight
    both = table.total_positives > 0 and table.total_negatives > 0
    return OneClass(
        mean_predicted=float(weight @ table.scores) / total,
        mean_error=_chance(table.scores, weight),
        error=_measured(metrics.calibration_error(table, confidence=confidence)),
        roc_auc=table._auc if both else None,
        recall=_share(counts[k, k], counts[k].sum()),
        precision=_share(counts[k, k], counts[:, k].sum()),
    )


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _counts(rows: ClassRows) -> Floats:
    """Weights by true class (lines) and likeliest class (columns)."""
    k = rows.scores.shape[1]
    cells = rows.labels * k + rows.scores.argmax(axis=1)
    return np.asarray(np.bincount(cells, rows.weights, minlength=k * k).reshape(k, k).astype(np.float64))


def class_weights(rows: ClassRows) -> Floats:
    """Weight of the rows of every class."""
    return np.bincount(rows.labels, rows.weights, minlength=rows.scores.shape[1]).astype(np.float64)


def class_lines(rows: ClassRows, before: list[OneClass], after: list[OneClass] | None) -> list[ClassLine]:
    """Every class, in the order of the columns."""
    weight = class_weights(rows)
    total = float(weight.sum())
    return [
        ClassLine(str(name), float(weight[k]), float(weight[k]) / total, before[k], None if after is None else after[k])
        for k, name in enumerate(rows.classes)
    ]


def worst_first(lines: list[ClassLine]) -> list[int]:
    """Places of the classes: those with rows before those without, the greatest gap beyond chance first."""

    def rank(k: int) -> tuple[bool, float, float, int]:
        line = lines[k]
        return line.weight == 0, -(line.before.error.value or 0.0), -line.weight, k

    return sorted(range(len(lines)), key=rank)


def panels(rows: ClassRows, after: Floats | None, order: list[int], lines: list[ClassLine]) -> list[Panel]:
    """The diagrams of the worst classes that have rows."""
    moved = None if after is None else rows._replace(scores=after)
    chosen = [k for k in order if lines[k].weight > 0][:MOST_PANELS]
    return [_panel(rows, moved, k, lines[k]) for k in chosen]


def _panel(rows: ClassRows, moved: ClassRows | None, k: int, line: ClassLine) -> Panel:
    tables = [_column_table(side, k).distinct for side in (rows, moved) if side is not None]
    scale = _curves.shared_scale(tables)
    drawn = [_curves.reliability(table, scale) for table in tables]
    return Panel(line.name, line.weight, drawn[0], drawn[1] if len(drawn) > 1 else None)


# ---------------------------------------------------------------- decisions


def decisions(rows: ClassRows, before: Floats, side: str) -> Decisions:
    """What taking the likeliest class of `rows` mixes up; `before` are the probabilities as given."""
    counts = _counts(rows)
    total, names = float(counts.sum()), [str(name) for name in rows.classes]
    top = rows.scores.max(axis=1)
    weights = np.ones(len(top)) if rows.weights is None else rows.weights
    moved = rows.scores.argmax(axis=1) != before.argmax(axis=1)
    return Decisions(
        side=side,
        wrong=1 - float(np.trace(counts)) / total,
        expected=1 - float(weights @ top) / total,
        changed=float(weights @ moved) / total if side == "after" else None,
        mistakes=tuple(_mistakes(counts, names)),
        matrix=tuple(map(tuple, counts.tolist())) if len(names) <= MOST_MATRIX else None,
    )


def _mistakes(counts: Floats, names: list[str]) -> list[Mistake]:
    """The most frequent mistakes, heaviest first."""
    wrong = counts - np.diag(np.diag(counts))
    truth, taken = np.nonzero(wrong)
    order: NDArray[Any] = np.lexsort([taken, truth, -wrong[truth, taken]])[:MOST_MISTAKES]
    size = counts.sum(axis=1)
    return [
        Mistake(names[t], names[d], float(counts[t, d]), float(counts[t, d] / size[t]))
        for t, d in zip(truth[order], taken[order])
    ]


# ---------------------------------------------------------------- gain


def class_gain(rows: ClassRows, after: Floats) -> ClassGain:
    """The gain of the cross-fitted probabilities over those of `rows`; in Brier score where a log loss is infinite."""
    y, before, w = rows.labels, rows.scores, rows.weights
    own = [p[np.arange(len(y)), y] for p in (before, after)]
    in_log = all(bool((p > 0).all()) for p in own)
    measure = metrics.log_loss if in_log else metrics.brier_score
    found = metrics.compare(measure, y, before, after, sample_weight=w, confidence=LEVEL)
    weights = np.ones(len(y)) if w is None else w
    moved = 0.5 * np.abs(after - before).sum(axis=1)
    return ClassGain(
        "log loss" if in_log else "Brier score",
        measure(y, before, sample_weight=w),
        measure(y, after, sample_weight=w),
        found.value,
        found.low,
        found.high,
        float(weights @ moved) / float(weights.sum()),
    )
