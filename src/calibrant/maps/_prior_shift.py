"""A map followed by a prior shift: one record, so that what is applied, saved and exported is one map.

`odds(p') = odds(p) * factor` for two classes, factor = [new / (1 - new)] / [train / (1 - train)];
`p'_k = p_k r_k / sum_j p_j r_j`, r_k = new_k / train_k, for K classes.
May import NumPy, the kernels, `calibrant._checks`, `calibrant.maps._base`, `_records`, `_smooth` and
`calibrant.errors`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels.blocks import slices
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, ClassMap, Map, number, parts, vector
from calibrant.maps._records import AffineLogitMap, IdentityMap, PlattMap, StepMap, TemperatureMap
from calibrant.maps._smooth import BetaMap, QuadraticLogitMap, SplineMap

MOST_RATIO = 1e300


def shift_odds(p: Floats, up: float, down: float) -> Floats:
    """`p up / (p up + (1 - p) down)`: probabilities after the weights of the two classes changed."""
    moved = np.empty_like(p)
    for at in slices(len(p)):
        hit, miss = p[at] * up, (1 - p[at]) * down
        np.divide(hit, np.add(hit, miss, out=miss), out=moved[at])
    return moved


def shift_rows(p: Floats, ratios: Floats) -> Floats:
    """Rows of class probabilities times the ratios, divided by their sums."""
    moved = p * ratios
    moved /= moved.sum(axis=-1, keepdims=True)
    return moved


def _only_part(record: PriorShiftMap | ClassPriorShiftMap) -> Map:
    if len(record.maps) != 1:
        raise InputError("there must be one map whose probabilities are moved.")
    part = record.maps[0]
    if part.classes != record.classes:
        raise InputError("the part must have the classes of the map.")
    return part


def _refuse_far_apart(ratios: Floats) -> None:
    """Refuse ratios of shares whose products with probabilities would vanish or overflow."""
    if ratios.min() < 1 / MOST_RATIO or ratios.max() > MOST_RATIO:
        raise InputError(f"train_prior and new_prior must not differ by a factor beyond {MOST_RATIO:g}.")


@dataclass(frozen=True, eq=False)
class PriorShiftMap(BinaryMap):
    """`score -> odds of maps[0](score), times [new / (1 - new)] / [train / (1 - train)]`, as a probability.

    Attributes
    ----------
    train_prior, new_prior : float
        Prevalence that the inner map's probabilities are right for, and the one they are moved to; in (0, 1).
    maps : tuple of one map
        The inner map.
    """

    kind: ClassVar[str] = "prior_shift"
    train_prior: float = number(0, 1)
    new_prior: float = number(0, 1)
    maps: tuple[Map, ...] = parts()

    def _validate(self) -> None:
        super()._validate()
        _only_part(self)
        if not (0 < self.train_prior < 1 and 0 < self.new_prior < 1):
            raise InputError("train_prior and new_prior must lie strictly between 0 and 1.")
        _refuse_far_apart(np.array([self.new_prior / self.train_prior]))

    @property
    def reads(self) -> str:
        return self.maps[0].reads

    @property
    def log_factor(self) -> float:
        """What is added to the log-odds."""
        new, train = self.new_prior, self.train_prior
        return math.log(new) - math.log1p(-new) - math.log(train) + math.log1p(-train)

    def _apply(self, scores: Floats) -> Floats:
        whole: Any = absorbed(self)  # a p that has been rounded next to 1 cannot be moved away from it any more
        if whole is not None:
            return np.asarray(whole(scores))
        inner: Any = self.maps[0](scores)
        return shift_odds(inner, self.new_prior / self.train_prior, (1 - self.new_prior) / (1 - self.train_prior))


@dataclass(frozen=True, eq=False)
class ClassPriorShiftMap(ClassMap):
    """`p_k -> p_k r_k / sum_j p_j r_j`, r_k = new_k / train_k, p the probabilities of the inner map."""

    kind: ClassVar[str] = "class_prior_shift"
    train_prior: Floats = vector(0, 1)
    new_prior: Floats = vector(0, 1)
    maps: tuple[Map, ...] = parts()

    def _validate(self) -> None:
        _only_part(self)
        for name in ("train_prior", "new_prior"):
            prior = getattr(self, name)
            if len(prior) != len(self.classes) or prior.min() <= 0 or abs(float(prior.sum()) - 1) > 1e-9:
                raise InputError(f"{name} must hold a share above 0 for every class, and they must sum to 1.")
        with np.errstate(over="ignore"):
            _refuse_far_apart(self.new_prior / self.train_prior)

    @property
    def reads(self) -> str:
        return self.maps[0].reads

    def _apply_rows(self, scores: Floats) -> Floats:
        return shift_rows(self.maps[0](scores), self.new_prior / self.train_prior)


# ---------------------------------------------------------------- the same without the wrapper, where there is one


def absorbed(record: PriorShiftMap) -> Map | None:
    """A map of an ordinary kind that equals the composition, or None where there is none."""
    return _moved(record.maps[0], record.log_factor)


@singledispatch
def _moved(part: Map, by: float) -> Map | None:
    """The map with `by` added to its log-odds."""
    return None


@_moved.register(PlattMap)
@_moved.register(AffineLogitMap)
@_moved.register(QuadraticLogitMap)
def _move_intercept(part: Any, by: float) -> Map:
    moved: Map = replace(part, intercept=part.intercept + by)
    return moved


@_moved.register
def _move_beta(part: BetaMap, by: float) -> Map:
    return replace(part, c=part.c + by)


@_moved.register
def _move_spline(part: SplineMap, by: float) -> Map:
    return replace(part, values=part.values + by)


@_moved.register
def _move_steps(part: StepMap, by: float) -> Map:
    return replace(part, values=shift_odds(part.values, math.exp(by / 2), math.exp(-by / 2)))


@_moved.register
def _move_temperature(part: TemperatureMap, by: float) -> Map | None:
    ends = (part.lowest, part.highest)
    return AffineLogitMap(part.classes, part.beta, by, part.from_logits, *ends) if part.mix == 0 else None


@_moved.register
def _move_identity(part: IdentityMap, by: float) -> Map | None:
    # Probabilities stay as they are at 0 and 1, where log-odds have a floor.
    return AffineLogitMap(part.classes, 1.0, by, True) if part.mix == 0 and part.from_logits else None


@_moved.register
def _move_shifted(part: PriorShiftMap, by: float) -> Map | None:
    inner = absorbed(part)
    return None if inner is None else _moved(inner, by)
