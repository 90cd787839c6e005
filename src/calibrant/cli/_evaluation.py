"""What `calibrant evaluate` measures, as a record: numbers, and for those that do not exist the reason.

May import `calibrant.metrics`, `calibrant.data`, `calibrant.errors` and `_reading` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from calibrant import metrics
from calibrant.cli._reading import Range, as_probabilities, range_of
from calibrant.data import ScoreTable
from calibrant.errors import InputError


@dataclass(frozen=True)
class BinnedError:
    """The calibration error and the bins it came from (None in an empty one)."""

    value: float
    n_bins: int
    strategy: str
    bins: tuple[dict[str, float | None], ...]
    equal_mass_value: float


@dataclass
class Evaluation:
    """Measures by name; `reasons` says why a measure is None."""

    rows: int
    total_weight: float
    prevalence: float
    classes: tuple[Any, ...]
    scores: Range
    measures: dict[str, float | None] = field(default_factory=dict)
    decomposition: dict[str, float] | None = None
    calibration_error: BinnedError | None = None
    reasons: dict[str, str] = field(default_factory=dict)


PROBABILITY_MEASURES = (
    "log_loss",
    "brier_score",
    "calibration_slope",
    "calibration_intercept",
    "calibration_intercept_at_slope_one",
)


def evaluation(table: ScoreTable, n_bins: int) -> Evaluation:
    """All measures of a table."""
    found = Evaluation(table.n_rows, table.total_weight, table.prevalence, table.classes, range_of(table))
    if found.scores.inside:
        _judge_probabilities(found, as_probabilities(table), n_bins)
    else:
        reason = f"{found.scores.outside:,} of {len(table):,} scores lie outside [0, 1], so they are not probabilities"
        found.measures |= dict.fromkeys(PROBABILITY_MEASURES)
        found.reasons |= dict.fromkeys((*PROBABILITY_MEASURES, "expected_calibration_error"), reason)
    _measure(found, "roc_auc", lambda: metrics.roc_auc(table))
    _measure(found, "average_precision", lambda: metrics.average_precision(table))
    return found


def _measure(found: Evaluation, name: str, value: Callable[[], float]) -> None:
    try:
        found.measures[name] = value()
    except InputError as error:
        found.measures[name], found.reasons[name] = None, str(error)


def _judge_probabilities(found: Evaluation, table: ScoreTable, n_bins: int) -> None:
    found.measures["mean_score"] = float(table.weight @ table.scores) / table.total_weight
    found.measures["log_loss"] = _finite_log_loss(found, table)
    parts = metrics.score_decomposition(table)
    found.measures["brier_score"] = parts.score
    found.decomposition = {
        name: float(getattr(parts, name)) for name in ("miscalibration", "discrimination", "uncertainty")
    }
    _judge_line(found, table)
    found.calibration_error = binned_error(table, n_bins)


def _finite_log_loss(found: Evaluation, table: ScoreTable) -> float | None:
    value = metrics.log_loss(table)
    if math.isfinite(value):
        return value
    wrong = float(table.positives[table.scores == 0].sum() + table.negatives[table.scores == 1].sum())
    found.reasons["log_loss"] = f"infinite: {wrong:,.6g} of the rows had probability 0 for what happened"
    return None


def _judge_line(found: Evaluation, table: ScoreTable) -> None:
    names = PROBABILITY_MEASURES[2:]
    try:
        line = metrics.calibration_slope_intercept(table)
    except InputError as error:
        found.measures |= dict.fromkeys(names)
        found.reasons |= dict.fromkeys(names, str(error))
        return
    found.measures |= dict(zip(names, (line.slope, line.intercept, line.intercept_at_slope_one)))


def binned_error(table: ScoreTable, n_bins: int) -> BinnedError:
    """The calibration error over bins of equal width with its bins, and over bins of equal mass."""
    curve = metrics.reliability_curve(table, n_bins=n_bins)
    bins = tuple(
        {
            "low": float(curve.edges[k]),
            "high": float(curve.edges[k + 1]),
            "rows": float(curve.rows[k]),
            "weight": float(curve.weight[k]),
            "mean_predicted": float(curve.mean_predicted[k]) if curve.weight[k] > 0 else None,
            "observed_rate": float(curve.observed_rate[k]) if curve.weight[k] > 0 else None,
        }
        for k in range(n_bins)
    )
    equal_mass = metrics.expected_calibration_error(table, n_bins=n_bins, strategy="quantile")
    return BinnedError(curve.calibration_error(), n_bins, "uniform", bins, equal_mass)
