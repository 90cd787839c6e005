"""The evidence of one side of the report: intervals of its numbers, the band of its curve, and the verdict on a margin.

Invariant: a verdict is "within" or "beyond" only when the whole interval says so; ends are finite numbers or None.
May import `calibrant.data`, `calibrant.metrics`, and `_words` beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics import (
    CalibrationVerdict,
    Estimate,
    average_precision,
    brier_score,
    calibration_slope_intercept,
    calibration_verdict,
    estimate,
    log_loss,
    reliability_bands,
)
from calibrant.view._words import Sentence, count, fixed

LEVEL = 0.95
MOST_MARGIN = 0.02
BAND_POINTS = 80
RESAMPLES = 500
CODES = {
    "within margin": "calibrated-within-margin",
    "beyond margin": "miscalibrated-beyond-margin",
    "not enough rows": "margin-undecided",
}


@dataclass(frozen=True)
class Interval:
    """A number with its ends; None where it is infinite."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Band:
    """The isotonic curve and its confidence band, thinned."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Proof:
    """Intervals at `level`, the verdict on `margin`, and the band; `rows_needed` is None when no number would do.

    `near_margin` says that the error is about as large as the margin, so that more rows may not settle the verdict.
    """

    level: float
    margin: float
    verdict: str
    rows_needed: float | None
    near_margin: bool
    informative: bool
    calibration_error: Interval
    log_loss: Interval
    brier: Interval
    slope: Interval | None
    intercept: Interval | None
    roc_auc: Interval
    average_precision: Interval
    band: Band


def default_margin(table: ScoreTable) -> float:
    """Two points, or a fifth of the rarer class's share when that is less, in one digit."""
    rarer = min(table.prevalence, 1 - table.prevalence)
    margin = min(MOST_MARGIN, 0.2 * rarer)
    return float(f"{margin:.0e}")


def proof(table: ScoreTable, margin: float) -> Proof:
    """The evidence of a table of probabilities."""
    found = calibration_verdict(table, margin=margin, confidence=LEVEL)
    line = _line(table)
    return Proof(
        level=LEVEL,
        margin=margin,
        verdict=found.verdict,
        rows_needed=found.rows_needed if math.isfinite(found.rows_needed) else None,
        near_margin=found.near_margin,
        informative=found.informative,
        calibration_error=interval(found.estimate),
        log_loss=interval(_estimate(log_loss, table)),
        brier=interval(_estimate(brier_score, table)),
        slope=None if line is None else interval(line.slope),
        intercept=None if line is None else interval(line.intercept),
        roc_auc=interval(_area(found)),
        average_precision=interval(_estimate(average_precision, table)),
        band=_band(table),
    )


def _estimate(measure: Any, table: ScoreTable) -> Estimate:
    found: Estimate = estimate(measure, table, confidence=LEVEL)
    return found


def _line(table: ScoreTable) -> Any:
    try:
        return estimate(calibration_slope_intercept, table, confidence=LEVEL)
    except InputError:
        return None


def _area(found: CalibrationVerdict) -> Estimate:
    assert found.discrimination is not None
    return found.discrimination


def interval(found: Estimate) -> Interval:
    """Its ends as numbers that JSON can hold."""
    return Interval(*(part if math.isfinite(part) else None for part in (found.value, found.low, found.high)))


def _band(table: ScoreTable) -> Band:
    found = reliability_bands(table, confidence=LEVEL, n_resamples=RESAMPLES)
    every = np.unique(np.linspace(0, len(found.predicted) - 1, BAND_POINTS).astype(int))
    parts = (found.predicted, found.observed, found.low, found.high)
    return Band(*(tuple(np.round(part[every], 6).tolist()) for part in parts))


# ---------------------------------------------------------------- the verdict in words


def judgement(side: Any, *, after: bool) -> Sentence:
    """What the rows show about calibration within the margin."""
    found: Proof = side.proof
    error = found.calibration_error
    value, low, high = (100 * (part or 0.0) for part in (error.value, error.low, error.high))
    decimals = 0 if high >= 20 else min(5, max(1, 1 - math.floor(math.log10(max(high, 1e-4)))))
    gap = f"the calibration error is {fixed(value, decimals)} points"
    reach = f"{100 * found.level:.4g}\u00a0% interval {fixed(low, decimals)} to {fixed(high, decimals)}"
    subject = "After the map" if after else "Before any map"
    margin = f"{100 * found.margin:.3g} points"
    texts = {
        "within margin": f"{subject} these rows show calibration within a margin of {margin}: {gap} ({reach}).",
        "beyond margin": f"{subject} these rows show miscalibration beyond a margin of {margin}: {gap} ({reach}).",
        "not enough rows": f"{subject} these rows cannot show whether calibration is within a margin of {margin}: "
        f"{gap} ({reach}){_wanted(found)}.",
    }
    text = texts[found.verdict]
    if found.verdict == "within margin" and not found.informative:
        text += " But nothing shows that they tell the event from the rest: the base rate would do as well."
    return Sentence(CODES[found.verdict] + ("-after" if after else ""), text)


def _wanted(found: Proof) -> str:
    if found.near_margin:
        return "; it is about as large as the margin, so more rows may not settle that"
    return "" if found.rows_needed is None else f"; about {count(found.rows_needed)} rows would"
