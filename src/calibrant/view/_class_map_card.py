"""The fitted map of K classes in words and numbers: what it is, why it was chosen, what it was weighed against.

May import the standard library, `calibrant.maps`, and `_words` beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant import maps
from calibrant.view._words import fixed, general, percent


@dataclass(frozen=True)
class Candidate:
    """What was weighed: its out-of-fold log loss, the standard error of its difference to the identity, its weight."""

    name: str
    log_loss: float
    standard_error: float
    weight: float


@dataclass(frozen=True)
class ClassMapCard:
    """The map that was fitted on all rows; `labels_needed` says whether the code must name the classes."""

    name: str
    chosen: str
    code: str
    labels_needed: bool
    kind: str
    formula: str
    words: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]


def class_map_card(calibrator: Any, fitted: Any, classes: Sequence[Any], chosen: str, notes: list[str]) -> ClassMapCard:
    """The card of a fitted calibrator of K classes."""
    formula, words = _describe(fitted.map_)
    found = getattr(fitted, "results_", ())
    plain = tuple(classes) == tuple(range(len(classes)))
    shown = type(calibrator)(**{**calibrator.get_params(deep=False), "classes": None})
    return ClassMapCard(
        name=type(calibrator).__name__,
        chosen=chosen,
        code=" ".join(repr(shown).split()),
        labels_needed=not plain,
        kind=fitted.map_.kind,
        formula=formula,
        words=tuple(words),
        candidates=tuple(Candidate(one.name, one.log_loss, one.standard_error, one.weight) for one in found),
        notes=tuple(notes),
    )


def _describe(fitted: maps.Map) -> tuple[str, list[str]]:
    if isinstance(fitted, maps.LogMixtureMap):
        used = sum(weight >= 0.005 for weight in fitted.weights)
        text = "It is nearly one of them alone." if used == 1 else f"{used} of them have a weight worth the name."
        return "a weighted average of log-probabilities, made to sum to 1", [text]
    if isinstance(fitted, maps.OneVsRestMap):
        text = "Each column has a map of its own; dividing by the sum of the row afterwards is not calibrated itself."
        return "a map for each class, divided by the sum of the row", [text]
    if isinstance(fitted, maps.TemperatureMap):
        softer = "softened" if fitted.beta < 1 else "sharpened"
        return "softmax(logits / temperature)", [f"All logits are multiplied by {general(fitted.beta)}: {softer}."]
    if isinstance(fitted, maps.VectorScalingMap):
        low, high = float(fitted.weights.min()), float(fitted.weights.max())
        text = f"Slopes of the classes run from {fixed(low, 2)} to {fixed(high, 2)}; below 1 a class is drawn in."
        return "softmax(slope of the class × logit + intercept of the class)", [*_started(fitted), text]
    if isinstance(fitted, maps.MatrixScalingMap):
        return "softmax(matrix × logits + intercepts)", [*_started(fitted), "Every class may borrow from every other."]
    return f"a map of the kind “{fitted.kind}”", []


def _started(fitted: Any) -> list[str]:
    if fitted.beta == 1 and fitted.mix == 0:
        return []
    mixed = f" and mixed with {percent(fitted.mix)} of the uniform distribution" if fitted.mix else ""
    return [f"Logits are first multiplied by {general(fitted.beta)}{mixed}."]
