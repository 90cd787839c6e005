"""The measures of one side of the report (before, after), and the evidence that the sentences lean on.

Invariant: everything here is a plain finite number, or None with the reason. `score = miscalibration - discrimination
+ uncertainty` holds in every `Parts` whose score is finite.
May import NumPy, the kernels, `calibrant.data`, `calibrant.metrics` and `_curves`, `_words` beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant import metrics
from calibrant._checks import Floats
from calibrant._kernels import likelihood
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import InputError
from calibrant.view import _curves
from calibrant.view._proof import Proof, proof
from calibrant.view._words import count, counted

JUDGE_BINS = 15
CLEAR = 2.0
"""A difference is called clear when it exceeds this many of its standard errors."""


@dataclass(frozen=True)
class Number:
    """A finite number, or None and the reason why there is none."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Parts:
    """A proper score and its parts: `score = miscalibration - discrimination + uncertainty`."""

    score: Number
    miscalibration: Number
    discrimination: float
    uncertainty: float


@dataclass(frozen=True)
class Misfit:
    """How far 15 equal-mass bins miss beyond chance.

    `typical_gap` is the root mean square gap with the part that chance explains taken off; `clear` says whether the
    gaps together are more than chance gives once in a thousand.
    """

    typical_gap: float
    clear: bool


@dataclass(frozen=True)
class Side:
    """What was measured before or after the map."""

    name: str
    mean_predicted: float
    brier: Parts
    log_loss: Parts
    slope: Number
    intercept: Number
    intercept_at_slope_one: Number
    slope_error: float | None
    mean_error: float
    roc_auc: float
    average_precision: float
    misfit: Misfit
    reliability: _curves.Reliability
    sweep: tuple[_curves.SweepRow, ...]
    proof: Proof


@dataclass(frozen=True)
class Gain:
    """What the map gains out of fold over what there was before it.

    `over` is "before", or "the base rate" when there were no probabilities before; `error` its standard error.
    """

    measure: Literal["log loss", "Brier score"]
    over: str
    baseline: float
    after: float
    gain: float
    error: float
    mean_move: float | None

    @property
    def clear(self) -> bool:
        """Whether the gain exceeds twice its standard error."""
        return self.gain > CLEAR * self.error


# ---------------------------------------------------------------- one side


def side(table: ScoreTable, name: str, scale: _curves.Scale, margin: float) -> Side:
    """All measures of a table of probabilities, and the evidence on a margin."""
    line = _line(table)
    return Side(
        name=name,
        mean_predicted=mean_of(table),
        brier=_parts(table, "brier"),
        log_loss=_parts(table, "log"),
        slope=line[0],
        intercept=line[1],
        intercept_at_slope_one=line[2],
        slope_error=_slope_error(table, line[0], line[1]),
        mean_error=_mean_error(table),
        roc_auc=metrics.roc_auc(table),
        average_precision=metrics.average_precision(table),
        misfit=misfit(table),
        reliability=_curves.reliability(table, scale),
        sweep=_curves.sweep(table, name),
        proof=proof(table, margin),
    )


def mean_of(table: ScoreTable) -> float:
    """Weighted mean of the scores."""
    return float(table.weight @ table.scores) / table.total_weight


def _parts(table: ScoreTable, score: Literal["brier", "log"]) -> Parts:
    parts = metrics.score_decomposition(table, score=score)
    if math.isfinite(parts.score):
        return Parts(
            Number(parts.score), Number(parts.miscalibration), float(parts.discrimination), float(parts.uncertainty)
        )
    reason = f"infinite: {_certain_and_wrong(table)}"
    return Parts(Number(None, reason), Number(None, reason), float(parts.discrimination), float(parts.uncertainty))


def wrong_at_ends(table: ScoreTable) -> tuple[float, float]:
    """Weight of the events that were given probability 0, and of the others that were given 1."""
    scores = table.scores
    return float(table.positives[scores == 0].sum()), float(table.negatives[scores == 1].sum())


def _certain_and_wrong(table: ScoreTable) -> str:
    weighted = table.total_weight != table.n_rows
    ends = zip(
        wrong_at_ends(table), ("the event happened at probability 0", "the event did not happen at probability 1")
    )
    texts = [
        f"{said} ({f'weight {count(weight)}' if weighted else counted(weight, 'row')})"
        for weight, said in ends
        if weight
    ]
    return " and ".join(texts)


def _line(table: ScoreTable) -> tuple[Number, Number, Number]:
    """Calibration slope, intercept, and intercept at slope one."""
    try:
        line = metrics.calibration_slope_intercept(table)
    except InputError as error:
        return (Number(None, str(error)),) * 3
    return Number(line.slope), Number(line.intercept), Number(line.intercept_at_slope_one)


def _slope_error(table: ScoreTable, slope: Number, intercept: Number) -> float | None:
    """Standard error of the slope, from the information matrix of the joint fit."""
    if slope.value is None or intercept.value is None:
        return None
    z = fit_log_odds(table)
    p = likelihood.expit(intercept.value + slope.value * z)
    curvature = table.weight * p * (1 - p)
    total = float(curvature.sum())
    if total <= 0:
        return None
    centre = float(curvature @ z) / total
    spread = float(curvature @ (z - centre) ** 2)
    return 1 / math.sqrt(spread) if spread > 0 else None


def _mean_error(table: ScoreTable) -> float:
    """Standard error of the event rate if the probabilities were right."""
    return math.sqrt(float(table.weight @ (table.scores * (1 - table.scores)))) / table.total_weight


def misfit(table: ScoreTable) -> Misfit:
    """The gaps of equal-mass bins beyond what chance explains."""
    curve = metrics.reliability_curve(table, n_bins=JUDGE_BINS, strategy="quantile")
    weight, mean, rate = curve.weight, curve.mean_predicted, curve.observed_rate
    square = (mean - rate) ** 2
    chance = rate * (1 - rate) / np.maximum(weight - 1, 1)
    mean_square = float(weight @ (square - chance)) / float(weight.sum())
    variance = mean * (1 - mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        statistic = float(np.where(square > 0, weight * square / variance, 0.0).sum())
    return Misfit(math.sqrt(max(0.0, mean_square)), statistic > _chi_square_999(len(weight)))


def _chi_square_999(degrees: int) -> float:
    """The 99.9 % point of the chi-square distribution, by Wilson and Hilferty's cube root."""
    part = 2 / (9 * degrees)
    return degrees * (1 - part + 3.0902 * math.sqrt(part)) ** 3


# ---------------------------------------------------------------- evidence


def chance_auc_error(table: ScoreTable) -> float:
    """Standard error of the AUC of a score that carries nothing (Mann and Whitney)."""
    events, others = table.total_positives, table.total_negatives
    return math.sqrt((events + others + 1) / (12 * events * others))


def separates(distinct: ScoreTable) -> bool:
    """Whether no event scored below any other row (more than one score)."""
    events = distinct.scores[distinct.positives > 0]
    others = distinct.scores[distinct.negatives > 0]
    return len(distinct.scores) > 1 and bool(events.min() >= others.max())


def gain(baseline: ScoreTable, mapped: Floats, after: ScoreTable, over: str) -> Gain:
    """The gain of the map out of fold; its standard error from the rows' own differences under the map of all rows.

    Parameters
    ----------
    baseline : ScoreTable
        The distinct scores with the probabilities before the map (or the base rate).
    mapped : ndarray
        The probabilities that the map of all rows gives to the same scores.
    after : ScoreTable
        The out-of-fold probabilities.
    """
    use_log = math.isfinite(metrics.log_loss(baseline)) and math.isfinite(metrics.log_loss(after))
    measure = metrics.log_loss if use_log else metrics.brier_score
    before, now = measure(baseline), measure(after)
    return Gain(
        measure="log loss" if use_log else "Brier score",
        over=over,
        baseline=before,
        after=now,
        gain=before - now,
        error=_gain_error(baseline, mapped, use_log),
        mean_move=float(baseline.weight @ np.abs(mapped - baseline.scores)) / baseline.total_weight
        if over == "before"
        else None,
    )


def _gain_error(baseline: ScoreTable, mapped: Floats, use_log: bool) -> float:
    old, new = baseline.scores, mapped
    with np.errstate(divide="ignore", invalid="ignore"):
        if use_log:
            happened, did_not = np.log(new) - np.log(old), np.log1p(-new) - np.log1p(-old)
        else:
            happened, did_not = (1 - old) ** 2 - (1 - new) ** 2, old**2 - new**2
    happened = np.where((baseline.positives > 0) & np.isfinite(happened), happened, 0.0)
    did_not = np.where((baseline.negatives > 0) & np.isfinite(did_not), did_not, 0.0)
    total = baseline.total_weight
    mean = float(baseline.positives @ happened + baseline.negatives @ did_not) / total
    square = float(baseline.positives @ happened**2 + baseline.negatives @ did_not**2) / total
    return math.sqrt(max(0.0, square - mean**2) / total)
