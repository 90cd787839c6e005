"""What the report for K classes measures: each side as a whole, class by class, and what is taken for what.

Invariant: everything here is a plain finite number, or None with the reason. Intervals of single classes hold for all
classes together (each at level `1 - 0.05 / K`); the others hold one by one.
May import NumPy, the kernels, `calibrant.data`, `calibrant.metrics` and `_class_sums`, `_curves`, `_proof`, `_words`
beside this file.
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
from calibrant.view import _curves
from calibrant.view._class_sums import ClassSums, Losses, Side
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


def class_side(side: Side, name: str, scale: _curves.Scale, lines: list[OneClass]) -> ClassSide:
    """All measures of one side; `lines` are those of its classes."""
    top = side.top
    present = [line.error.value or 0.0 for line in lines]
    return ClassSide(
        name=name,
        log_loss=_log_loss(side.losses),
        brier=_measured(side.losses.brier.estimate(LEVEL, positive=True)),
        accuracy=top.prevalence,
        mean_confidence=_mean_score(top),
        mean_error=_chance(top.scores, top.weight),
        top_error=_measured(metrics.calibration_error(top, confidence=LEVEL)),
        class_error=float(np.mean(present)),
        reliability=_curves.reliability(top, scale),
        band=_band(top),
    )


def _mean_score(table: ScoreTable) -> float:
    return float(table.weight @ table.scores) / table.total_weight


def _measured(found: Any) -> Measured:
    return Measured(*(part if math.isfinite(part) else None for part in (found.value, found.low, found.high)))


def _log_loss(losses: Losses) -> Measured:
    if losses.impossible:
        rows = counted(losses.impossible, "row")
        return Measured(None, None, None, f"infinite: what happened had probability 0 ({rows})")
    return _measured(losses.log.estimate(LEVEL, positive=True))


def _chance(scores: Floats, weight: Floats) -> float:
    """Standard error of the event rate if the probabilities were right."""
    return math.sqrt(float(weight @ (scores * (1 - scores)))) / float(weight.sum())


def _band(table: ScoreTable) -> Band:
    found = metrics.reliability_bands(table, confidence=LEVEL, n_resamples=RESAMPLES)
    every = np.unique(np.linspace(0, len(found.predicted) - 1, BAND_POINTS).astype(int))
    parts = (found.predicted, found.observed, found.low, found.high)
    return Band(*(tuple(np.round(part[every], 6).tolist()) for part in parts))


# ---------------------------------------------------------------- class by class


def one_class_each(side: Side) -> list[OneClass]:
    """The measures of every class against the rest."""
    k = len(side.decided)
    confidence = 1 - (1 - LEVEL) / k
    return [_one_class(side.column(one), side.decided, one, confidence) for one in range(k)]


def _one_class(table: ScoreTable, counts: Floats, k: int, confidence: float) -> OneClass:
    both = table.total_positives > 0 and table.total_negatives > 0
    return OneClass(
        mean_predicted=_mean_score(table),
        mean_error=_chance(table.scores, table.weight),
        error=_measured(metrics.calibration_error(table, confidence=confidence)),
        roc_auc=table._auc if both else None,
        recall=_share(counts[k, k], counts[k].sum()),
        precision=_share(counts[k, k], counts[:, k].sum()),
    )


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def class_lines(found: ClassSums, before: list[OneClass], after: list[OneClass] | None) -> list[ClassLine]:
    """Every class, in the order of the columns."""
    weight = found.class_weights
    total = float(weight.sum())
    return [
        ClassLine(str(name), float(weight[k]), float(weight[k]) / total, before[k], None if after is None else after[k])
        for k, name in enumerate(found.classes)
    ]


def worst_first(lines: list[ClassLine]) -> list[int]:
    """Places of the classes: those with rows before those without, the greatest gap beyond chance first."""

    def rank(k: int) -> tuple[bool, float, float, int]:
        line = lines[k]
        return line.weight == 0, -(line.before.error.value or 0.0), -line.weight, k

    return sorted(range(len(lines)), key=rank)


def panels(found: ClassSums, order: list[int], lines: list[ClassLine]) -> list[Panel]:
    """The diagrams of the worst classes that have rows."""
    chosen = [k for k in order if lines[k].weight > 0][:MOST_PANELS]
    return [_panel(found, k, lines[k]) for k in chosen]


def _panel(found: ClassSums, k: int, line: ClassLine) -> Panel:
    tables = [side.column(k) for side in found.sides]
    scale = _curves.shared_scale(tables)
    drawn = [_curves.reliability(table, scale) for table in tables]
    return Panel(line.name, line.weight, drawn[0], drawn[1] if len(drawn) > 1 else None)


# ---------------------------------------------------------------- decisions


def decisions(found: ClassSums) -> Decisions:
    """What taking the likeliest class mixes up, after the map where there is an after."""
    side = found.after or found.before
    counts, names = side.decided, [str(name) for name in found.classes]
    total = float(counts.sum())
    return Decisions(
        side="after" if found.after else "before",
        wrong=1 - float(np.trace(counts)) / total,
        expected=1 - _mean_score(side.top),
        changed=found.moves.changed / total if found.moves else None,
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


def class_gain(found: ClassSums) -> ClassGain | None:
    """The gain of the cross-fitted probabilities; in Brier score where a log loss is infinite."""
    if found.after is None or found.moves is None:
        return None
    losses = [side.losses for side in found.sides]
    in_log = not any(one.impossible for one in losses)
    baseline, after = (one.log.mean if in_log else one.brier.mean for one in losses)
    gain = (found.moves.log if in_log else found.moves.brier).estimate(LEVEL, positive=False)
    return ClassGain(
        "log loss" if in_log else "Brier score",
        baseline,
        after,
        gain.value,
        gain.low,
        gain.high,
        found.moves.moved / float(found.class_weights.sum()),
    )
