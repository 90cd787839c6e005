"""How an estimate of each measure is made: its influence, the variance of the design, and the scale it is normal on.

May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant._kernels import intervals
from calibrant.errors import InputError
from calibrant.metrics import _calibration, _ranking, _scores
from calibrant.metrics._design import Design, clustered_square
from calibrant.metrics._influence import (
    Influence,
    of_auc,
    of_average_precision,
    of_brier,
    of_discrimination,
    of_line,
    of_log_loss,
    variance_of_rows,
)
from calibrant.metrics._intervals import Estimate, binned_gaps, calibration_error, root
from calibrant.metrics._parts import Part, brier_miscalibration, default_gaps, log_miscalibration, parts_of
from calibrant.metrics._scores import _one_of, uniform_edges


@dataclass(frozen=True)
class CalibrationLineEstimates:
    """Estimates of `calibration_slope_intercept`, under the same names.

    Attributes
    ----------
    slope, intercept, intercept_at_slope_one : Estimate
    """

    slope: Estimate
    intercept: Estimate
    intercept_at_slope_one: Estimate


@dataclass(frozen=True)
class DecompositionEstimates:
    """Estimates of `score_decomposition`, under the same names, with the part of chance taken off.

    Attributes
    ----------
    score, miscalibration, discrimination, uncertainty : Estimate
        The values add up: `score = miscalibration - discrimination + uncertainty`.
    """

    score: Estimate
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate


EDGE = 1e-12
Estimates = Estimate | CalibrationLineEstimates | DecompositionEstimates
READS_SCORES = (_ranking.roc_auc, _ranking.average_precision)
ONE_NUMBER: dict[Callable[..., Any], Callable[..., Influence]] = {
    _scores.brier_score: of_brier,
    _scores.log_loss: of_log_loss,
    _ranking.roc_auc: of_auc,
    _ranking.average_precision: of_average_precision,
}


# ---------------------------------------------------------------- one forecast


def estimate_of(measure: Any, design: Design, level: float, options: dict[str, Any]) -> Estimates:
    if measure in ONE_NUMBER:
        found = ONE_NUMBER[measure](design.by_score, **options)
        return interval_of(found, design.variance(found), level, design)
    if measure is calibration_error:
        return _calibration_error(design, level, **options)
    if measure is _scores.score_decomposition:
        return DecompositionEstimates(**_parts(design, level, **options))
    found_line = of_line(design.by_score)
    return CalibrationLineEstimates(
        **{name: interval_of(part, design.variance(part), level, design) for name, part in found_line.items()}
    )


def _calibration_error(design: Design, level: float, n_bins: int = 15, strategy: str = "quantile") -> Estimate:
    _one_of("strategy", strategy, ("quantile", "uniform"))
    gaps = binned_gaps(design.distinct, uniform_edges(n_bins), strategy)
    return root(clustered_square(design, gaps, level)[0])


def _parts(design: Design, level: float, score: str = "brier") -> dict[str, Estimate]:
    _one_of("score", score, ("brier", "log"))
    mean = estimate_of(_scores.brier_score if score == "brier" else _scores.log_loss, design, level, {})
    assert isinstance(mean, Estimate)
    table = design.distinct if design.cluster is None else design.table
    return parts_of(table, score, mean, level, design.variance, _lost(design, score, level))


def _lost(design: Design, score: str, level: float) -> Part:
    gaps = default_gaps(design.distinct)
    squared, effect = clustered_square(design, gaps, level)
    if score == "log":
        return log_miscalibration(design.distinct, level, effect)
    if design.cluster is None:
        return brier_miscalibration(gaps, level)
    return Part(max(squared.value, 0.0), squared.low, squared.high, 2 * squared.spread.squares)


def interval_of(found: Influence, variance: float, level: float, design: Design) -> Estimate:
    """The interval of a measure from its variance, on the scale on which it is normal."""
    value, error = found.value, intervals.normal_quantile(level) * math.sqrt(variance)

    def made(low: float, high: float) -> Estimate:
        return Estimate(value, min(low, value), max(high, value), level, found.method)

    if not math.isfinite(value):
        return made(value, value)
    if found.scale in ("unit", "logit") and (not EDGE < value < 1 - EDGE or _smaller_class(design) < 2):
        return _all_or_nothing(value, level, design)
    if found.scale == "positive" and value == 0:
        bound = 1 - ((1 - level) / 2) ** (1 / design.units)
        return made(0.0, bound * found.most)
    if found.scale == "positive":
        return made(value * math.exp(-error / value), value * math.exp(error / value))
    if found.scale == "logit":
        odds, step = value / (1 - value), math.exp(min(error / (value * (1 - value)), 700.0))
        return made(odds / step / (1 + odds / step), odds * step / (1 + odds * step))
    low, high = value - error, value + error
    return made(max(low, 0.0), min(high, 1.0)) if found.scale == "unit" else made(low, high)


def _smaller_class(design: Design) -> float:
    return min(design.table.total_positives, design.table.total_negatives)


def _all_or_nothing(value: float, level: float, design: Design) -> Estimate:
    """Ranking without an error, or with one row of a class: the binomial bound of as many rows as the smaller class."""
    count = min(_smaller_class(design), design.units)
    bound = ((1 - level) / 2) ** (1 / max(count, 1.0))
    low, high = (bound, 1.0) if value >= 1 - EDGE else (0.0, 1 - bound)
    if EDGE < value < 1 - EDGE:
        low, high = 0.0, 1.0
    return Estimate(value, min(low, value), max(high, value), level, "binomial bound of the smaller class")


# ---------------------------------------------------------------- two forecasts


def difference_of(measure: Any, a: Design, b: Design, level: float, options: dict[str, Any]) -> Estimates:
    if measure in ONE_NUMBER:
        influence = ONE_NUMBER[measure]
        return _pair(influence(a.table, **options), influence(b.table, **options), a, b, level)
    if measure is _calibration.calibration_slope_intercept:
        lines = of_line(a.table), of_line(b.table)
        return CalibrationLineEstimates(
            **{name: _pair(lines[0][name], lines[1][name], a, b, level) for name in lines[0]}
        )
    return DecompositionEstimates(**_parts_apart(a, b, level, **options))


def _parts_apart(a: Design, b: Design, level: float, score: str = "brier") -> dict[str, Estimate]:
    parts = [_parts(side, level, score) for side in (a, b)]
    lost = [_lost(side, score, level) for side in (a, b)]
    chance = lost[0].chance + lost[1].chance
    influences = [of_discrimination(side.table, score) for side in (a, b)]
    loss = of_brier if score == "brier" else of_log_loss
    made = {"score": _pair(loss(a.table), loss(b.table), a, b, level)}
    for place, name in ((1, "miscalibration"), (0, "discrimination")):
        both = [found[place] for found in influences]
        values = [part[name].value for part in parts]
        made[name] = _pair(both[0], both[1], a, b, level, chance=chance, values=values)
    made["uncertainty"] = Estimate(0.0, 0.0, 0.0, level, "the same rows")
    return made


def _pair(
    first: Influence,
    second: Influence,
    a: Design,
    b: Design,
    level: float,
    *,
    chance: float = 0.0,
    values: list[float] | None = None,
) -> Estimate:
    one, other = values or (first.value, second.value)
    if math.isinf(one) and math.isinf(other):
        raise InputError("compare: both forecasts have an infinite log loss; eps= floors it, brier_score is finite.")
    value = one - other
    ours, theirs = first.of(a.table), second.of(b.table)
    variance = variance_of_rows(a.table, lambda at: ours(at) - theirs(at), a.cluster) + chance
    half = intervals.normal_quantile(level) * math.sqrt(variance) if math.isfinite(value) else 0.0
    return Estimate(value, value - half, value + half, level, "paired differences of the rows")


def as_record(measure: Any, found: dict[str, Estimate]) -> Estimates:
    if measure is _calibration.calibration_slope_intercept:
        return CalibrationLineEstimates(**found)
    return next(iter(found.values()))
