"""The formula of every binary map, once, for all languages that it is written in.

A writer of a language gives values that can be added, subtracted, multiplied and divided, and the few functions of
`Writer`. Invariant: no rule takes a logarithm of a number below 1e-38 or an exponential beyond 700, or divides by 0,
also where the result is not used.
A new kind of map registers its rule with `formula`. May import the kernels, `calibrant._checks`, the records of this
folder, the limits of `calibrant.maps._sql` and `calibrant.errors`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, ClassVar, Protocol

import numpy as np

from calibrant._checks import PROBABILITY_TOLERANCE, shown
from calibrant._kernels import spline
from calibrant._kernels.likelihood import LOG_FLOOR
from calibrant.errors import InputError
from calibrant.maps._base import Map
from calibrant.maps._prior_shift import PriorShiftMap
from calibrant.maps._records import (
    AffineLogitMap,
    IdentityMap,
    LineMap,
    MixtureMap,
    PlattMap,
    StepMap,
    TemperatureMap,
)
from calibrant.maps._smooth import BetaMap, QuadraticLogitMap, SplineMap
from calibrant.maps._sql import LARGEST, LEAST_PROBABILITY, MOST_EXPONENT
from calibrant.maps._tree import AverageMap, CorrectedMap, TreeMap
from calibrant.maps._venn_abers import VennAbersMap

BELOW_ONE = math.nextafter(1.0, 0.0)
Value = Any
"""A number in the language: it has the four operations, with floats too."""


class Writer(Protocol):
    """What a language must be able to say beside the four operations."""

    language: ClassVar[str]

    def exp(self, x: Value) -> Value:
        """The exponential."""

    def log(self, x: Value) -> Value:
        """The natural logarithm."""

    def clip(self, low: float, x: Value, high: float) -> Value:
        """`x` moved into [low, high]."""

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        """`yes` where x < cut, else `no`; either may be a float."""

    def pick(self, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
        """`column[k]` for every column, k the number of cuts that are at most x; one or more cuts."""

    def keep(self, x: Value, name: str) -> Value:
        """The same value, worked out once; `name` says what it is."""


class Operand:
    """A value that writes the four operations down, for languages whose values are not Python objects with them."""

    def join(self, operation: str, left: Value, right: Value) -> Value:
        """The value of `left operation right`, one of which may be a float."""
        raise NotImplementedError

    def __add__(self, other: Value) -> Value:
        return self.join("+", self, other)

    def __radd__(self, other: Value) -> Value:
        return self.join("+", other, self)

    def __sub__(self, other: Value) -> Value:
        return self.join("-", self, other)

    def __rsub__(self, other: Value) -> Value:
        return self.join("-", other, self)

    def __mul__(self, other: Value) -> Value:
        return self.join("*", self, other)

    def __rmul__(self, other: Value) -> Value:
        return self.join("*", other, self)

    def __truediv__(self, other: Value) -> Value:
        return self.join("/", self, other)

    def __rtruediv__(self, other: Value) -> Value:
        return self.join("/", other, self)


def reach(record: Map) -> tuple[float, float]:
    """The least and the greatest score that the map accepts."""
    if record.reads == "probability":
        return -PROBABILITY_TOLERANCE, 1 + PROBABILITY_TOLERANCE
    return -LARGEST, LARGEST


def calibrated(record: Map, x: Value, w: Writer) -> Value:
    """The map of two classes at a score that it accepts."""
    if len(record.classes) != 2:
        raise InputError(
            f"{w.language} is written for maps of two classes, but this map {record.kind!r} has "
            f"{len(record.classes)} ({shown(record.classes)}). For many classes: apply_frame(frame, columns)."
        )
    return formula(record, w.keep(w.clip(0.0, x, 1.0), "p") if record.reads == "probability" else x, w)


# ---------------------------------------------------------------- one rule per kind of map


@singledispatch
def formula(record: Map, x: Value, w: Writer) -> Value:
    """The map at a score; a probability has been moved into [0, 1]."""
    raise InputError(
        f"{w.language} cannot be written for the map {record.kind!r}. Apply it in Python: load_map(path)(scores)."
    )


@formula.register
def _identity(record: IdentityMap, x: Value, w: Writer) -> Value:
    return _mixed(_expit(x, w) if record.from_logits else x, record.mix)


@formula.register
def _platt(record: PlattMap, x: Value, w: Writer) -> Value:
    return _expit(record.intercept + record.slope * x, w)


@formula.register
def _affine(record: AffineLogitMap, x: Value, w: Writer) -> Value:
    return _expit(record.intercept + record.slope * _read(record, x, w), w)


@formula.register
def _temperature(record: TemperatureMap, x: Value, w: Writer) -> Value:
    return _mixed(_expit(record.beta * _read(record, x, w), w), record.mix)


@formula.register
def _quadratic(record: QuadraticLogitMap, x: Value, w: Writer) -> Value:
    z = _read(record, x, w)
    inside = w.keep(w.clip(record.low, z, record.high), "inside")
    slope = w.clip(0.0, record.linear + 2 * record.square * inside, LARGEST)
    parabola = record.intercept + (record.linear + record.square * inside) * inside
    return _expit(parabola + slope * (z - inside), w)


@formula.register
def _beta(record: BetaMap, x: Value, w: Writer) -> Value:
    one = w.clip(record.least, w.log(w.clip(LEAST_PROBABILITY, x, 1.0)), 0.0)
    other = w.clip(record.least_other, w.log(w.clip(LEAST_PROBABILITY, 1.0 - x, 1.0)), 0.0)
    return _expit(record.c + record.a * one - record.b * other, w)


@formula.register
def _spline(record: SplineMap, x: Value, w: Writer) -> Value:
    z = _read(record, x, w)
    knots, first, last = record.knots.tolist(), float(record.knots[0]), float(record.knots[-1])
    slopes = spline.end_slopes(record.knots, record.values, record.curvatures)
    inside = w.keep(w.clip(first, z, last), "inside")
    # From the distance t of the left knot: value + t (slope + t (bend + t cube)).
    left, value, slope, bend, cube = _picked(w, inside, knots[1:-1], _cubics(record))
    t = w.keep(inside - left, "t")
    curve = value + t * (slope + t * (bend + t * cube))
    before, after = w.clip(-LARGEST, z, first) - first, w.clip(last, z, LARGEST) - last
    return _expit(curve + slopes[0] * before + slopes[1] * after, w)


def _cubics(record: SplineMap) -> list[list[float]]:
    """Left knot, value, slope, half the second and a sixth of the third derivative of each piece."""
    h, m = np.diff(record.knots), record.curvatures
    slope = np.diff(record.values) / h - h / 6 * (2 * m[:-1] + m[1:])
    columns = (record.knots[:-1], record.values[:-1], slope, m[:-1] / 2, np.diff(m) / (6 * h))
    return [column.tolist() for column in columns]


@formula.register
def _steps(record: StepMap, x: Value, w: Writer) -> Value:
    return _picked(w, x, record.thresholds.tolist(), [record.values.tolist()])[0]


@formula.register
def _venn_abers(record: VennAbersMap, x: Value, w: Writer) -> Value:
    return _picked(w, x, record.thresholds.tolist(), [record.merged.tolist()])[0]


@formula.register
def _partition(record: TreeMap, x: Value, w: Writer) -> Value:
    return _steps(record.as_steps, x, w)


@formula.register
def _lines(record: LineMap, x: Value, w: Writer) -> Value:
    knots, values = record.knots, record.values
    inside = w.keep(w.clip(float(knots[0]), x, float(knots[-1])), "inside")
    with np.errstate(over="ignore"):
        unit = np.append(np.where(np.isinf(np.diff(knots)), 0.5, 1.0), 1.0)  # halves, where a distance overflows
    width = np.append(knots[1:] * unit[:-1] - knots[:-1] * unit[:-1], 1.0)
    columns = (knots * unit, width, values, np.append(np.diff(values), 0.0), unit)
    left, wide, start, rise, part = _picked(w, inside, knots[1:].tolist(), [column.tolist() for column in columns])
    return w.clip(0.0, start + (inside * part - left) / wide * rise, 1.0)


@formula.register
def _mixture(record: MixtureMap, x: Value, w: Writer) -> Value:
    parts = [weight * formula(part, x, w) for weight, part in zip(record.weights.tolist(), record.maps) if weight]
    return w.clip(0.0, total_of(parts), 1.0)


@formula.register
def _average(record: AverageMap, x: Value, w: Writer) -> Value:
    return total_of([formula(part, x, w) for part in record.maps]) / float(len(record.maps))


@formula.register
def _corrected(record: CorrectedMap, x: Value, w: Writer) -> Value:
    first, *factors = (_floored_log_odds(formula(part, x, w), w) for part in record.maps)
    return _expit(first + (1 - record.shrinkage) / len(factors) * total_of(factors), w)


@formula.register
def _prior_shift(record: PriorShiftMap, x: Value, w: Writer) -> Value:
    p = w.keep(formula(record.maps[0], x, w), "p")
    up, down = record.new_prior / record.train_prior, (1 - record.new_prior) / (1 - record.train_prior)
    hit = w.keep(up * p, "hit")
    return hit / (hit + down * (1.0 - p))


# ---------------------------------------------------------------- what the rules are made of


LogOddsMap = AffineLogitMap | TemperatureMap | QuadraticLogitMap | SplineMap


def _read(record: LogOddsMap, x: Value, w: Writer) -> Value:
    """The score, or the log-odds of a probability moved into the ends of the map."""
    if record.from_logits:
        return x
    p = w.keep(w.clip(LEAST_PROBABILITY, x, BELOW_ONE), "inner")
    z = w.below(x, 1.0, w.log(p / (1.0 - p)), -LOG_FLOOR)
    return w.keep(w.clip(record.lowest, z, record.highest), "log_odds")


def _floored_log_odds(p: Value, w: Writer) -> Value:
    """Log p - log(1 - p), each logarithm with its own floor."""
    p = w.keep(p, "p")
    return w.log(w.clip(LEAST_PROBABILITY, p, 1.0)) - w.log(w.clip(LEAST_PROBABILITY, 1.0 - p, 1.0))


def _expit(z: Value, w: Writer) -> Value:
    return 1.0 / (1.0 + w.exp(0.0 - w.clip(-MOST_EXPONENT, z, MOST_EXPONENT)))


def _mixed(p: Value, mix: float) -> Value:
    return p if mix == 0 else (1 - mix) * p + mix / 2


def _picked(w: Writer, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
    """`Writer.pick`; a column that does not change is its number. One column at least is a value of the language."""
    moving = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    found: list[Value] = [column[0] for column in columns]
    if moving:
        for place, value in zip(moving, w.pick(x, cuts, [columns[place] for place in moving])):
            found[place] = value
    elif len(columns) == 1:
        found[0] = found[0] + 0.0 * w.clip(0.0, x, 1.0)  # a value for every row, not one number
    return found


def total_of(parts: Sequence[Value]) -> Value:
    """The values added up."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
