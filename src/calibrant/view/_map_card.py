"""The fitted map in words and numbers: its formula, what its coefficients mean, a few scores before and after.

May import NumPy, `calibrant.maps`, `calibrant.data` and `_words`, `_curves`, `_keep` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import maps
from calibrant._checks import Floats
from calibrant._kernels import likelihood
from calibrant.data import ScoreTable
from calibrant.view._curves import Scale
from calibrant.view._keep import lines_to_keep
from calibrant.view._words import counted, fixed, general, percent

FIXED_EXAMPLES = (0.01, 0.1, 0.5, 0.9, 0.99)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CURVE_POINTS = 81


@dataclass(frozen=True)
class Example:
    """A score, the probability that it stood for (None when it stood for none), and what the map gives."""

    score: float
    before: float | None
    after: float


@dataclass(frozen=True)
class MapCard:
    """The map that was fitted on all rows; `keep` holds the lines that make it again."""

    name: str
    chosen: str
    code: str
    keep: str
    kind: str
    formula: str
    words: tuple[str, ...]
    slope: float | None
    intercept: float | None
    examples: tuple[Example, ...]
    curve: tuple[Example, ...]
    notes: tuple[str, ...]


def map_card(
    calibrator: Any, fitted: maps.BinaryMap, table: ScoreTable, scale: str, axis: Scale, chosen: str, notes: list[str]
) -> MapCard:
    """The card of a fitted map; `table` holds the distinct scores, `scale` says how they were read."""
    formula, words = _describe(fitted)
    return MapCard(
        name=type(calibrator).__name__,
        chosen=chosen,
        code=" ".join(repr(calibrator).split()),
        keep=lines_to_keep(calibrator, table),
        kind=fitted.kind,
        formula=formula,
        words=tuple(words),
        slope=_number(getattr(fitted, "slope", None)),
        intercept=_number(getattr(fitted, "intercept", None)),
        examples=_applied(fitted, _example_scores(table, scale, axis), scale),
        curve=_applied(fitted, _curve_scores(table, scale, axis), scale),
        notes=tuple(notes),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _applied(fitted: maps.BinaryMap, scores: list[float], scale: str) -> tuple[Example, ...]:
    given = np.array(scores)
    before: list[Any] = [None] * len(scores)
    if scale != "score":
        before = (likelihood.expit(given) if scale == "log-odds" else given).tolist()
    return tuple(Example(*row) for row in zip(scores, before, fitted(given).tolist()))


def _example_scores(table: ScoreTable, scale: str, axis: Scale) -> list[float]:
    """Five scores: all there are, round probabilities, or quantiles of the rows."""
    scores = table.scores
    if len(scores) <= len(FIXED_EXAMPLES):
        return _listed(scores)
    if scale == "probability" and axis.strategy == "uniform":
        return list(FIXED_EXAMPLES)
    reached = np.cumsum(table.weight)
    places = np.searchsorted(reached, np.array(QUANTILES) * reached[-1])
    return _listed(scores[np.unique(np.minimum(places, len(scores) - 1))])


def _curve_scores(table: ScoreTable, scale: str, axis: Scale) -> list[float]:
    """Scores for the picture of the map: along the axis of the diagrams, or along the range of the scores."""
    if scale == "probability":
        return _listed(np.linspace(axis.low, axis.high, CURVE_POINTS))
    low, high = float(table.scores[0]), float(table.scores[-1])
    return [low + (high - low) * (step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS)] if high > low else [low]


def _listed(scores: Floats) -> list[float]:
    return [float(score) for score in scores]


# ---------------------------------------------------------------- in words


def _describe(fitted: maps.BinaryMap) -> tuple[str, list[str]]:
    if isinstance(fitted, maps.AffineLogitMap):
        formula = "log-odds after = intercept + slope × log-odds before"
        return formula, [*_affine_words(fitted.slope, fitted.intercept)]
    if isinstance(fitted, maps.PlattMap):
        return "probability = 1 / (1 + exp(−(intercept + slope × score)))", [*_platt_words(fitted)]
    if isinstance(fitted, maps.TemperatureMap):
        softer = "softened" if fitted.beta < 1 else "sharpened"
        text = f"Every log-odds is multiplied by {general(fitted.beta)}: probabilities are {softer} about one half."
        return "log-odds after = log-odds before / temperature", [text]
    if isinstance(fitted, maps.StepMap):
        return "a staircase of the score", [f"A staircase with {counted(len(fitted.values), 'step')}."]
    if isinstance(fitted, maps.LineMap):
        return "straight lines between points", [f"Straight lines between {counted(len(fitted.knots), 'point')}."]
    if isinstance(fitted, maps.MixtureMap):
        parts = ", ".join(f"{part.kind} {percent(weight)}" for weight, part in zip(fitted.weights, fitted.maps))
        return "a weighted average of maps", [f"The average of {counted(len(fitted.maps), 'map')}: {parts}."]
    if isinstance(fitted, maps.QuadraticLogitMap):
        b, w1, w2 = (general(value) for value in (fitted.intercept, fitted.linear, fitted.square))
        text = f"A parabola on the log-odds: b = {b}, w1 = {w1}, w2 = {w2}."
        return "log-odds after = b + w1 × log-odds + w2 × log-odds²", [text]
    if isinstance(fitted, maps.BetaMap):
        text = f"a = {general(fitted.a)}, b = {general(fitted.b)}, c = {general(fitted.c)}."
        return "log-odds after = c + a × log p − b × log(1 − p)", [text]
    if isinstance(fitted, maps.SplineMap):
        return "log-odds after = a smooth curve", [f"A curve through {counted(len(fitted.knots), 'knot')}."]
    if isinstance(fitted, maps.VennAbersMap):
        return "p1 / (1 − p0 + p1)", [f"Two rising staircases with {counted(len(fitted.lower), 'step')}."]
    return f"a map of the kind “{fitted.kind}”", []


def _affine_words(slope: float, intercept: float) -> list[str]:
    if slope < 0:
        return ["The slope is negative: the map turns the ranking round."]
    if slope == 0:
        return ["The slope is zero: every score gets the same probability."]
    if slope < 1:
        change = f"Log-odds are drawn in to {percent(slope)} of their size: confident scores become less so"
    elif slope > 1:
        change = f"Log-odds are stretched {fixed(slope, 2)} times: timid scores become more confident"
    else:
        change = "Log-odds keep their size"
    shift = f"; the intercept {'raises' if intercept > 0 else 'lowers'} them all by {general(abs(intercept))}"
    still = _stands_still(slope, intercept)
    return [change + shift + ".", *([f"A score of {still} stays as it is."] if still else [])]


def _stands_still(slope: float, intercept: float) -> str | None:
    """The score that the map leaves where it is."""
    if abs(slope - 1) < 1e-3:
        return None
    at = float(likelihood.expit(np.array([intercept / (1 - slope)]))[0])
    return percent(at) if 0.001 < at < 0.999 else None


def _platt_words(fitted: maps.PlattMap) -> list[str]:
    if fitted.slope == 0:
        return ["The slope is zero: every score gets the same probability."]
    half = general(-fitted.intercept / fitted.slope)
    falls = "" if fitted.slope > 0 else " The slope is negative: the higher the score, the lower the probability."
    return [
        f"One point of score moves the log-odds by {general(fitted.slope)}; a score of {half} means one half.{falls}"
    ]
