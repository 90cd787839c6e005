"""Frozen records of the smooth maps with more than one slope: quadratic, beta and spline.

Each works on the log-odds z of a probability (or on the score itself, `from_logits`).
May import NumPy, the kernels and `calibrant.maps._base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import likelihood, softmax, spline
from calibrant._kernels.blocks import by_block
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, flag, number, vector
from calibrant.maps._fields import refuse_overflow, refuse_reversed
from calibrant.maps._records import FARTHEST, read_log_odds


@dataclass(frozen=True, eq=False)
class QuadraticLogitMap(BinaryMap):
    """`p -> expit(intercept + linear z + square z^2)` for z in [low, high]; outside, a line with the end's slope."""

    kind: ClassVar[str] = "quadratic_logit"
    intercept: float = number()
    linear: float = number()
    square: float = number()
    low: float = number()
    high: float = number()
    from_logits: bool = flag(default=False)
    lowest: float = number(default=-FARTHEST)
    highest: float = number(default=FARTHEST)

    def _validate(self) -> None:
        super()._validate()
        refuse_reversed(low=self.low, high=self.high)
        refuse_reversed(lowest=self.lowest, highest=self.highest)
        end, linear, square = max(abs(self.low), abs(self.high)), abs(self.linear), abs(self.square)
        height, slope = abs(self.intercept) + (linear + square * end) * end, linear + 2 * square * max(end, 1.0)
        refuse_overflow("intercept, linear, square, low and high", end, height, slope)

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        z = read_log_odds(scores, self.from_logits, self.lowest, self.highest)
        inside = np.clip(z, self.low, self.high)
        slope = np.maximum(self.linear + 2 * self.square * inside, 0.0)
        with np.errstate(over="ignore"):
            eta = self.intercept + (self.linear + self.square * inside) * inside + slope * (z - inside)
        return likelihood.expit(eta)


@dataclass(frozen=True, eq=False)
class BetaMap(BinaryMap):
    """`p -> expit(c + a log p - b log(1 - p))`, a, b >= 0, the logarithms floored at `least` and `least_other`."""

    kind: ClassVar[str] = "beta"
    a: float = number(0)
    b: float = number(0)
    c: float = number()
    least: float = number(-FARTHEST, 0, default=-FARTHEST)
    least_other: float = number(-FARTHEST, 0, default=-FARTHEST)

    @property
    def reads(self) -> str:
        return "probability"

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):
            one = np.maximum(softmax.log_floored(scores), self.least)
            other = np.maximum(softmax.log1p_floored(scores), self.least_other)
            eta = self.c + self.a * one - self.b * other
        return likelihood.expit(eta)


@dataclass(frozen=True, eq=False)
class SplineMap(BinaryMap):
    """`p -> expit(s(z))`, s the natural cubic spline through (knot, value) with these second derivatives."""

    kind: ClassVar[str] = "spline"
    knots: Floats = vector(rising=True)
    values: Floats = vector()
    curvatures: Floats = vector()
    from_logits: bool = flag(default=False)
    lowest: float = number(default=-FARTHEST)
    highest: float = number(default=FARTHEST)

    def _validate(self) -> None:
        super()._validate()
        if not len(self.knots) == len(self.values) == len(self.curvatures) >= 2:
            raise InputError("there must be a value and a second derivative for each of two or more knots.")
        if self.curvatures[0] != 0 or self.curvatures[-1] != 0:
            raise InputError("the second derivatives at the outer knots must be 0.")
        refuse_reversed(lowest=self.lowest, highest=self.highest)
        with np.errstate(over="ignore", invalid="ignore"):
            bend = np.diff(self.knots) ** 2 * np.maximum(np.abs(self.curvatures).max(), 1.0)
            ends = spline.end_slopes(self.knots, self.values, self.curvatures)
            sizes = [*ends, *bend, *self.knots, *self.values]
        refuse_overflow("knots, values and curvatures", *map(float, sizes))

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        z = read_log_odds(scores, self.from_logits, self.lowest, self.highest)
        with np.errstate(over="ignore"):
            return likelihood.expit(spline.evaluate(z, self.knots, self.values, self.curvatures))
