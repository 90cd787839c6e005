"""The formula of every binary map, once, for all languages that it is written in.

A writer of a language gives values that can be added, subtracted, multiplied and divided, and the few functions of
`Writer`. Invariant: no rule takes a logarithm of a number below 1e-38 or an exponential beyond 700, or divides by 0,
also where the result is not used.
A new kind of map registers its rule with `formula`. May import the kernels, `calibrant._checks`, the records of this
folder, `_parts`, the limits of `_sql` and `calibrant.errors`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, ClassVar, Protocol

import numpy as np

from calibrant._checks import PROBABILITY_TOLERANCE, shown
from calibrant._kernels import softmax, spline
from calibrant._kernels.likelihood import LOG_FLOOR, expit
from calibrant.errors import InputError
from calibrant.maps._base import Map
from calibrant.maps._parts import part_to_write
from calibrant.maps._prior_shift import PriorShiftMap, absorbed
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
    return formula(record, x, w)


# ---------------------------------------------------------------- one rule per kind of map


@singledispatch
def formula(record: Map, x: Value, w: Writer) -> Value:
    """The map at a score that it accepts; a probability may lie beyond [0, 1] by the tolerance."""
    raise InputError(
        f"{w.language} cannot be written for the map {record.kind!r}. Apply it in Python: load_map(path)(scores)."
    )


@formula.register
def _identity(record: IdentityMap, x: Value, w: Writer) -> Value:
    return _mixed(_expit(x, w) if record.from_logits else w.clip(0.0, x, 1.0), record.mix)


@formula.register
def _platt(record: PlattMap, x: Value, w: Writer) -> Value:
    return _expit(record.intercept + record.slope * x, w)


@formula.register
def _affine(record: AffineLogitMap, x: Value, w: Writer) -> Value:
    most = abs(record.intercept) + abs(record.slope) * _farthest(record)
    return _expit(record.intercept + record.slope * _read(record, x, w), w, most)


@formula.register
def _temperature(record: TemperatureMap, x: Value, w: Writer) -> Value:
    return _mixed(_expit(record.beta * _read(record, x, w), w, record.beta * _farthest(record)), record.mix)


@formula.register
def _quadratic(record: QuadraticLogitMap, x: Value, w: Writer) -> Value:
    ends = (record.low, record.high)
    inside = w.keep(_read(record, x, w, *ends), "inside")
    values = [record.intercept + (record.linear + record.square * end) * end for end in ends]
    slopes = [max(record.linear + 2 * record.square * end, 0.0) for end in ends]
    size = max(map(abs, ends))
    most = abs(record.intercept) + (abs(record.linear) + abs(record.square) * size) * size
    parabola = record.intercept + (record.linear + record.square * inside) * inside
    return _expit(total_of([parabola, *_rays(record, x, w, ends, values, slopes)]), w, most)


@formula.register
def _beta(record: BetaMap, x: Value, w: Writer) -> Value:
    least, least_other = (max(end, LOG_FLOOR) for end in (record.least, record.least_other))
    one = w.log(w.clip(max(math.exp(least), LEAST_PROBABILITY), x, 1.0))
    other = w.log(w.clip(max(math.exp(least_other), LEAST_PROBABILITY), 1.0 - x, 1.0))
    most = abs(record.c) - record.a * least - record.b * least_other
    return _expit(record.c + record.a * one - record.b * other, w, most)


@formula.register
def _spline(record: SplineMap, x: Value, w: Writer) -> Value:
    ends = (float(record.knots[0]), float(record.knots[-1]))
    inside = w.keep(_read(record, x, w, *ends), "inside")
    # A probability is compared itself, as far as its log-odds are not cut off.
    inner, ends_read = record.knots[1:-1], (-math.inf, math.inf) if record.from_logits else _ends(record)
    first, last = np.searchsorted(inner, ends_read, side="right").tolist()
    cuts = [knot if record.from_logits else _probability_at(knot) for knot in inner[first:last].tolist()]
    pieces = [column[first : last + 1] for column in _cubics(record)]
    # From the distance t of the left knot: value + t (slope + t (bend + t cube)).
    left, value, slope, bend, cube = _picked(w, x, cuts, pieces)
    t = w.keep(inside - left, "t")
    curve = value + t * (slope + t * (bend + t * cube))
    slopes = spline.end_slopes(record.knots, record.values, record.curvatures)
    rays = _rays(record, x, w, ends, record.values[[0, -1]].tolist(), slopes)
    most = float(np.abs(record.values).max() + np.max(np.diff(record.knots)) ** 2 * np.abs(record.curvatures).max() / 8)
    return _expit(total_of([curve, *rays]), w, most)


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
    return formula(record.as_steps, x, w)


@formula.register
def _partition(record: TreeMap, x: Value, w: Writer) -> Value:
    return _steps(record.as_steps.of_probabilities, x, w)


@formula.register
def _lines(record: LineMap, x: Value, w: Writer) -> Value:
    knots, values = record.knots, record.values
    inside = w.keep(w.clip(float(knots[0]), x, float(knots[-1])), "inside")
    with np.errstate(over="ignore"):
        unit = np.append(np.where(np.isinf(np.diff(knots)), 0.5, 1.0), 1.0)  # halves, where a distance overflows
    width = np.append(knots[1:] * unit[:-1] - knots[:-1] * unit[:-1], 1.0)
    columns = (knots * unit, width, values, np.append(np.diff(values), 0.0), unit)
    left, wide, start, rise, part = _picked(w, x, knots[1:].tolist(), [column.tolist() for column in columns])
    return w.clip(0.0, start + (inside * part - left) / wide * rise, 1.0)


@formula.register
def _mixture(record: MixtureMap, x: Value, w: Writer) -> Value:
    weighted = [(weight, part) for weight, part in zip(record.weights.tolist(), record.maps) if weight]
    total = total_of([weight * _part(record, part, x, w) for weight, part in weighted])
    # Rounding keeps order: where the weights, added in this order, are no more than 1, no sum is.
    return total if total_of([weight for weight, _ in weighted]) <= 1.0 else w.clip(0.0, total, 1.0)


@formula.register
def _average(record: AverageMap, x: Value, w: Writer) -> Value:
    return total_of([formula(part, x, w) for part in record.maps]) / float(len(record.maps))


@formula.register
def _corrected(record: CorrectedMap, x: Value, w: Writer) -> Value:
    first, *factors = (_floored_log_odds(part, x, w) for part in record.maps)
    # Each lies within -LOG_FLOOR of 0.
    return _expit(first + (1 - record.shrinkage) / len(factors) * total_of(factors), w, -2 * LOG_FLOOR)


@formula.register
def _prior_shift(record: PriorShiftMap, x: Value, w: Writer) -> Value:
    whole = absorbed(record)
    if whole is not None:
        return formula(whole, x, w)
    p = w.keep(formula(record.maps[0], x, w), "p")
    up, down = record.new_prior / record.train_prior, (1 - record.new_prior) / (1 - record.train_prior)
    hit = w.keep(up * p, "hit")
    return hit / (hit + down * (1.0 - p))


# ---------------------------------------------------------------- what the rules are made of


LogOddsMap = AffineLogitMap | TemperatureMap | QuadraticLogitMap | SplineMap


def _read(record: LogOddsMap, x: Value, w: Writer, low: float = -math.inf, high: float = math.inf) -> Value:
    """What the map works on, the score or the log-odds of a probability, moved into [low, high].

    Log-odds are cut off where the probability is, not once more behind the logarithm: a language without names would
    write out all of it again for every end.
    """
    if record.from_logits:
        return x if math.isinf(low) and math.isinf(high) else w.clip(max(low, -LARGEST), x, min(high, LARGEST))
    low, high = (min(max(end, low), high) for end in _ends(record))
    p = w.keep(w.clip(LEAST_PROBABILITY, x, BELOW_ONE), "inner")
    z = w.below(x, _probability_at(high), w.log(p / (1.0 - p)), high)
    return w.keep(z if low == LOG_FLOOR else w.below(x, _probability_at(low), low, z), "log_odds")


def _ends(record: LogOddsMap) -> tuple[float, float]:
    """The least and the greatest log-odds that the map works on."""
    least, greatest = (min(max(end, record.lowest), record.highest) for end in (LOG_FLOOR, -LOG_FLOOR))
    return least, greatest


def _farthest(record: LogOddsMap) -> float:
    """The largest size of what the map works on."""
    return math.inf if record.from_logits else max(map(abs, _ends(record)))


def _probability_at(log_odds: float) -> float:
    """The least probability whose log-odds are not below these; 1 where there is none before it."""
    if log_odds <= LOG_FLOOR:
        return LEAST_PROBABILITY
    p = min(float(expit(np.array([log_odds]))[0]), BELOW_ONE)
    while p > LEAST_PROBABILITY and math.log(p / (1.0 - p)) >= log_odds:
        p = math.nextafter(p, 0.0)
    while p < 1.0 and math.log(p / (1.0 - p)) < log_odds:
        p = math.nextafter(p, 1.0)
    return p


def _rays(
    record: LogOddsMap,
    x: Value,
    w: Writer,
    ends: tuple[float, float],
    values: Sequence[float],
    slopes: Sequence[float],
) -> list[Value]:
    """What the lines beyond both ends of a curve add to its value there, as far as MOST_EXPONENT."""
    (low, high), found = ends, []
    below, above = _ray_length(values[0], slopes[0]), _ray_length(values[1], -slopes[1])
    # A steep line may end before the next number does.
    if below > 0 and (record.from_logits or low > record.lowest):
        end = min(low - below, math.nextafter(low, -math.inf))
        found.append(slopes[0] * (_read(record, x, w, end, low) - low))
    if above > 0 and (record.from_logits or high < record.highest):
        end = max(high + above, math.nextafter(high, math.inf))
        found.append(slopes[1] * (_read(record, x, w, high, end) - high))
    return found


def _ray_length(value: float, fall: float) -> float:
    """How far a line that starts at a value and falls (negative: rises) may go, MOST_EXPONENT being its end."""
    return (MOST_EXPONENT + (value if fall > 0 else -value)) / abs(fall) if fall else 0.0


def _part(record: Map, part: Map, x: Value, w: Writer) -> Value:
    written, as_it_is = part_to_write(record, part)
    return formula(written, x if as_it_is else w.keep(w.clip(0.0, x, 1.0), "p"), w)


def _floored_log_odds(part: Map, x: Value, w: Writer) -> Value:
    """Log p - log(1 - p) of a part, each logarithm with its own floor."""
    if isinstance(part, TreeMap):
        steps = part.as_steps.of_probabilities
        logs = softmax.log_floored(steps.values) - softmax.log1p_floored(steps.values)
        return _picked(w, x, steps.thresholds.tolist(), [logs.tolist()])[0]
    p = w.keep(formula(part, x, w), "p")
    return w.log(w.clip(LEAST_PROBABILITY, p, 1.0)) - w.log(w.clip(LEAST_PROBABILITY, 1.0 - p, 1.0))


def _expit(z: Value, w: Writer, most: float = math.inf) -> Value:
    """1 / (1 + exp(-z)), z no farther than `most` from 0."""
    return 1.0 / (1.0 + w.exp(0.0 - (z if most <= MOST_EXPONENT else w.clip(-MOST_EXPONENT, z, MOST_EXPONENT))))


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
