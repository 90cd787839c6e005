"""Estimates of the parts of a proper score: miscalibration without the part of chance, discrimination, uncertainty.

The plain terms of the isotonic decomposition are too large, because the isotonic fit follows chance too. Here both
are less by what it is expected to gain on 15 equal-mass bins, so that `score = miscalibration - discrimination +
uncertainty` still holds, and a calibrated forecast has miscalibration 0 within its interval.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import blocks, intervals, likelihood
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.metrics._influence import Influence, of_discrimination
from calibrant.metrics._intervals import Estimate, Gaps, binned_gaps, squared_error, worth
from calibrant.metrics._scores import log_loss, mass_starts, uniform_edges

N_BINS = 15
Variance = Callable[[Influence], float]


class Part(NamedTuple):
    """A debiased miscalibration, its interval, and its variance were it zero."""

    value: float
    low: float
    high: float
    chance: float


def brier_miscalibration(gaps: Gaps, level: float) -> Part:
    """The squared calibration error over the bins."""
    found = squared_error(gaps, level)
    return Part(max(found.value, 0.0), found.low, found.high, 2 * found.spread.squares)


def log_miscalibration(table: ScoreTable, level: float, effect: float = 1.0) -> Part:
    """The gain of a shift of the log-odds in each bin, less that of chance, by a noncentral chi-squared statistic.

    `effect` is how many rows of the sample are worth one independent row.
    """
    total, starts = table.total_weight, mass_starts(table, N_BINS)
    if not math.isfinite(log_loss(table)):
        return Part(math.inf, math.inf, math.inf, 0.0)
    gain, information = _gains(table, starts)
    # A bin that expects a small part of an event gains less than half a unit by chance.
    degrees = float((1 - np.exp(-6 * information)).sum())
    unit_weight = effect * total / worth(table)
    statistic = 2 * float(gain.sum()) / unit_weight
    low, high = intervals.noncentral_limits(statistic, degrees, level)
    unit = unit_weight / (2 * total)
    value = max(0.0, (2 * float(gain.sum()) - degrees * effect) / (2 * total))
    return Part(value, min(low * unit, value), max(high * unit, value), 2 * degrees * unit**2)


def _gains(table: ScoreTable, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Gain in log-likelihood of the best shift in each bin, and the information of the shift at no shift."""
    z, none = fit_log_odds(table), np.zeros(len(starts))
    total, events = _bin_sums(table, z, starts, none, lambda part, _: (part.weight, part.positives))
    inner = (events > 0) & (events < total)
    at, information = none, none
    for step in range(60):
        expected, bend = _bin_sums(table, z, starts, at, _moments)
        if step == 0:
            information = bend
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.where(inner & (bend > 0), np.clip((events - expected) / bend, -1.0, 1.0), 0.0)
        at = at + move
        if np.all(np.abs(move) < 1e-9):
            break
    before, after = (_bin_sums(table, z, starts, shift, _losses)[0] for shift in (none, at))
    return np.maximum(before - np.where(inner, after, 0.0), 0.0), information


def _bin_sums(
    table: ScoreTable, z: Floats, starts: NDArray[np.int64], shift: Floats, columns: Callable[..., tuple[Floats, ...]]
) -> Floats:
    """Sums over the bins of columns of a block of the table and of its log-odds, shifted bin by bin."""
    ends = np.append(starts, len(z))

    def block(at: slice) -> tuple[Floats, ...]:
        return columns(table._at(at), z[at] + np.repeat(shift, np.diff(np.clip(ends, at.start, at.stop))))

    return blocks.sums_between(starts, len(z), block)


def _moments(part: ScoreTable, z: Floats) -> tuple[Floats, ...]:
    p = likelihood.expit(z)
    expected = part.weight * p
    return expected, expected * (1 - p)


def _losses(part: ScoreTable, z: Floats) -> tuple[Floats, ...]:
    return (part.weight * np.logaddexp(0, z) - part.positives * z,)


def parts_of(
    table: ScoreTable, score: str, mean: Estimate, level: float, variance: Variance, lost: Part
) -> dict[str, Estimate]:
    """Estimates of the four terms, given that of the score and the miscalibration."""
    uncertainty = _uncertainty(table.prevalence, worth(table), score, level)
    gained, _ = of_discrimination(table, score)
    value = uncertainty.value - mean.value + lost.value if math.isfinite(mean.value) else gained.value
    half = intervals.normal_quantile(level) * math.sqrt(variance(gained) + lost.chance)
    debiased = "debiased over 15 equal-mass bins"
    return {
        "score": mean,
        "miscalibration": Estimate(lost.value, lost.low, lost.high, level, f"{debiased}, null distribution inverted"),
        "discrimination": Estimate(
            value, min(max(value - half, 0.0), value), value + half, level, f"{debiased}, influence of each row"
        ),
        "uncertainty": uncertainty,
    }


def _uncertainty(rate: float, rows: float, score: str, level: float) -> Estimate:
    """The score of the base rate, over the exact binomial interval of the base rate."""
    limits = intervals.binomial_limits(np.array([rate * rows]), np.array([rows]), level)
    low, high = float(limits[0][0]), float(limits[1][0])
    ends = [_entropy(low, score), _entropy(high, score)]
    top = _entropy(0.5, score) if low <= 0.5 <= high else max(ends)
    return Estimate(_entropy(rate, score), min(ends), top, level, "exact binomial interval of the base rate")


def _entropy(rate: float, score: str) -> float:
    if score == "brier":
        return rate * (1 - rate)
    return -sum(part * math.log(part) for part in (rate, 1 - rate) if part > 0)


def default_gaps(table: ScoreTable) -> Gaps:
    """The 15 equal-mass bins."""
    return binned_gaps(table, uniform_edges(N_BINS))
