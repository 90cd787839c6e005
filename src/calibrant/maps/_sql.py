"""A map as one SQL expression of its score, for DuckDB, PostgreSQL, Spark and SQLite.

The expression gives what the map gives in Python, to 1e-12. A score that the map would refuse (NULL, NaN, infinite, or
outside [0, 1] where probabilities are read; in SQLite also text) gives NULL. Invariant: no engine is asked for a
logarithm of 0, a division by 0, or a result beyond the range of a double, which PostgreSQL refuses; what lies below
1e-290 may be taken for 0.
A new kind of map registers its formula with `_formula`.
May import the kernels, `calibrant._checks`, the records of this folder and `calibrant.errors`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from calibrant._checks import PROBABILITY_TOLERANCE, shown
from calibrant._kernels import spline
from calibrant._kernels.likelihood import LOG_FLOOR
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
from calibrant.maps._tree import AverageMap, CorrectedMap, TreeMap
from calibrant.maps._venn_abers import VennAbersMap

LARGEST = sys.float_info.max
HALF = LARGEST / 2
"""No product is larger, so that the sum of two numbers is a double."""
SAFE = 1e290
"""No product is smaller than 1 / SAFE, unless it is 0."""
MOST_EXPONENT = 700.0
"""exp(-700) and exp(700) are normal doubles."""
LEAST_PROBABILITY = 1.1754943508222875e-38
"""exp(LOG_FLOOR), the smallest normal float32."""


@dataclass(frozen=True)
class Dialect:
    """How one engine writes names, doubles and the few functions that are needed.

    `double` writes a constant that is read as exactly this double; `raises` tells whether a product too small for a
    double is an error; `kinds` is a condition that the cell must meet beside being a number; `fence` ends a step of
    a query, where the engine would otherwise write its columns out in every place that names them.
    """

    quote: str
    double: Callable[[float], str]
    least: str = "least"
    greatest: str = "greatest"
    raises: bool = False
    kinds: str = ""
    fence: str = ""

    def name(self, column: str) -> str:
        """A quoted column name."""
        return self.quote + column.replace(self.quote, 2 * self.quote) + self.quote

    def between(self, low: float, x: str, high: float) -> str:
        """`x` moved into [low, high]."""
        return f"{self.least}({self.double(high)}, {self.greatest}({self.double(low)}, {x}))"


def _with_exponent(value: float) -> str:
    text = repr(value) if "e" in repr(value) else f"{value!r}e0"
    return f"({text})" if value < 0 else text


def _plain(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(value)


DIALECTS = {
    "duckdb": Dialect('"', _with_exponent),
    "postgres": Dialect('"', lambda value: f"'{value!r}'::float8", raises=True, fence=" OFFSET 0"),
    "spark": Dialect("`", lambda value: f"({value!r}D)" if value < 0 else f"{value!r}D"),
    "sqlite": Dialect(
        '"', _plain, least="min", greatest="max", kinds="typeof({x}) IN ('real', 'integer')", fence=" LIMIT -1"
    ),
}


def sql_expression(record: Map, column: str, dialect: str = "duckdb") -> str:
    """The map as an SQL expression of a column; the name is quoted here."""
    if not isinstance(column, str) or not column or "\0" in column:
        raise InputError(f"column must be the name of a column, but it is {column!r}.")
    return sql_of(record, dialect_named(dialect).name(column), dialect)


def sql_of(record: Map, number_sql: str, dialect: str = "duckdb") -> str:
    """The map as an SQL expression of another expression, which must be a double."""
    if len(record.classes) != 2:
        raise InputError(
            f"One column gives SQL of maps of two classes, but this map {record.kind!r} has {len(record.classes)} "
            f"({shown(record.classes)}). Give a list of columns, one per class: to_sql([...], table=...)."
        )
    d = dialect_named(dialect)
    reach = (
        (-PROBABILITY_TOLERANCE, 1 + PROBABILITY_TOLERANCE) if record.reads == "probability" else (-LARGEST, LARGEST)
    )
    tests = [d.kinds.format(x=number_sql)] if d.kinds else []
    tests += [f"{number_sql} >= {d.double(reach[0])}", f"{number_sql} <= {d.double(reach[1])}"]
    return f"CASE WHEN {' AND '.join(tests)} THEN {_formula(record, number_sql, d)} END"


def dialect_named(name: str) -> Dialect:
    """The dialect of an engine."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(map(repr, DIALECTS))}, but it is {name!r}.")
    return DIALECTS[name]


# ---------------------------------------------------------------- one formula per kind of map


LogOddsMap = AffineLogitMap | TemperatureMap | QuadraticLogitMap | SplineMap


@singledispatch
def _formula(record: Map, x: str, d: Dialect) -> str:
    """SQL of the map at a score that the map accepts."""
    raise InputError(f"There is no SQL for the map {record.kind!r}. Apply it in Python: load_map(path)(scores).")


@_formula.register
def _identity(record: IdentityMap, x: str, d: Dialect) -> str:
    # A tiny p is taken for 0, so that products with it stay in range.
    p = (
        _expit(d.between(-MOST_EXPONENT, x, MOST_EXPONENT), d)
        if record.from_logits
        else f"CASE WHEN {x} < {d.double(1 / SAFE)} THEN {d.double(0.0)} ELSE {d.least}({d.double(1.0)}, {x}) END"
    )
    return p if record.mix == 0 else _mixed(p, record.mix, d)


@_formula.register
def _platt(record: PlattMap, x: str, d: Dialect) -> str:
    return _expit(_line(record.slope, record.intercept, Term(x), d), d)


@_formula.register
def _affine(record: AffineLogitMap, x: str, d: Dialect) -> str:
    z = _read(record, x, d)
    return _expit(_line(record.slope, record.intercept, z, d), d)


@_formula.register
def _temperature(record: TemperatureMap, x: str, d: Dialect) -> str:
    z = _read(record, x, d)
    p = _expit(_line(record.beta, 0.0, z, d), d)
    return p if record.mix == 0 else _mixed(p, record.mix, d)


@_formula.register
def _quadratic(record: QuadraticLogitMap, x: str, d: Dialect) -> str:
    z = _read(record, x, d)
    reach = 1e6 * max(abs(record.low), abs(record.high), 1.0)
    far = _within(reach, z, d) if record.from_logits else z.sql
    ends = [_ray(record, end, far, d) for end in (record.low, record.high)]
    inside = (
        f"{d.double(record.intercept)} + ({d.double(record.linear)} + {d.double(record.square)} * ({far})) * ({far})"
    )
    low, high = d.double(record.low), d.double(record.high)
    eta = f"CASE WHEN {far} < {low} THEN {ends[0]} WHEN {far} > {high} THEN {ends[1]} ELSE {inside} END"
    return _expit(d.between(-MOST_EXPONENT, eta, MOST_EXPONENT), d)


def _ray(record: QuadraticLogitMap, end: float, z: str, d: Dialect) -> str:
    """SQL of the line that goes on from an end of the parabola."""
    slope = max(record.linear + 2 * record.square * end, 0.0)
    value = record.intercept + (record.linear + record.square * end) * end
    return f"{d.double(value)} + {d.double(slope)} * ({z} - {d.double(end)})"


@_formula.register
def _beta(record: BetaMap, x: str, d: Dialect) -> str:
    one, tiny = d.double(1.0), d.double(LEAST_PROBABILITY)
    p = d.between(0.0, x, 1.0)
    log = f"{d.greatest}({d.double(record.least)}, ln({d.greatest}({tiny}, {p})))"
    other = f"{d.greatest}({d.double(record.least_other)}, ln({d.greatest}({tiny}, {one} - {p})))"
    terms = [d.double(record.c)]
    terms += [f"{d.double(record.a)} * {log}"] if record.a else []
    terms += [f"{d.double(-record.b)} * {other}"] if record.b else []
    return _expit(d.between(-MOST_EXPONENT, " + ".join(terms), MOST_EXPONENT), d)


@_formula.register
def _spline(record: SplineMap, x: str, d: Dialect) -> str:
    z = _read(record, x, d)
    knots, values, curvatures = record.knots.tolist(), record.values.tolist(), record.curvatures.tolist()
    reach = 1e6 * max(abs(knots[0]), abs(knots[-1]), 1.0)
    far = _within(reach, z, d) if record.from_logits else z.sql
    slopes = spline.end_slopes(record.knots, record.values, record.curvatures)
    first = f"{d.double(values[0])} + {d.double(slopes[0])} * ({far} - {d.double(knots[0])})"
    last = f"{d.double(values[-1])} + {d.double(slopes[1])} * ({far} - {d.double(knots[-1])})"
    inner = [_cubic(knots[k : k + 2], values[k : k + 2], curvatures[k : k + 2], far, d) for k in range(len(knots) - 1)]
    return _expit(d.between(-MOST_EXPONENT, _tree(far, knots, [first, *inner, last], d), MOST_EXPONENT), d)


def _cubic(knots: list[float], values: list[float], curvatures: list[float], z: str, d: Dialect) -> str:
    """SQL of one piece of the spline, as a polynomial in the distance from its left knot."""
    h = knots[1] - knots[0]
    cube = (curvatures[1] - curvatures[0]) / (6 * h)
    slope = (values[1] - values[0]) / h - h / 6 * (2 * curvatures[0] + curvatures[1])
    t = f"({z} - {d.double(knots[0])})"
    inner = f"{d.double(curvatures[0] / 2)} + {d.double(cube)} * {t}"
    return f"{d.double(values[0])} + ({d.double(slope)} + ({inner}) * {t}) * {t}"


@_formula.register
def _venn_abers(record: VennAbersMap, x: str, d: Dialect) -> str:
    return _formula(record.as_steps, x, d)


@_formula.register
def _steps(record: StepMap, x: str, d: Dialect) -> str:
    leaves = [d.double(_flushed(value)) for value in record.values.tolist()]
    return _tree(x, record.thresholds.tolist(), leaves, d)


@_formula.register
def _partition(record: TreeMap, x: str, d: Dialect) -> str:
    return _steps(record.as_steps.of_probabilities, x, d)


@_formula.register
def _lines(record: LineMap, x: str, d: Dialect) -> str:
    knots, values = record.knots.tolist(), record.values.tolist()
    inner = [_segment((knots[k], knots[k + 1]), (values[k], values[k + 1]), x, d) for k in range(len(knots) - 1)]
    leaves = [d.double(_flushed(values[0])), *inner, d.double(_flushed(values[-1]))]
    return _tree(x, knots, leaves, d)


@_formula.register
def _mixture(record: MixtureMap, x: str, d: Dialect) -> str:
    terms = []
    for weight, part in zip(record.weights.tolist(), record.maps):
        if weight > 1e-17:
            terms.append(f"{d.double(weight)} * {_bracketed(_part(record, part, x, d))}")
    return d.between(0.0, " + ".join(terms), 1.0)


def _part(record: MixtureMap, part: Map, x: str, d: Dialect) -> str:
    written, as_it_is = part_to_write(record, part)
    return _formula(written, x if as_it_is else d.between(0.0, x, 1.0), d)


@_formula.register
def _average(record: AverageMap, x: str, d: Dialect) -> str:
    parts = (_bracketed(_formula(part, x, d)) for part in record.maps)
    return f"({' + '.join(parts)}) / {d.double(float(len(record.maps)))}"


@_formula.register
def _corrected(record: CorrectedMap, x: str, d: Dialect) -> str:
    one, tiny = d.double(1.0), d.double(LEAST_PROBABILITY)
    given = (_bracketed(_formula(part, x, d)) for part in record.maps)
    first, *factors = (f"ln({d.greatest}({tiny}, {p})) - ln({d.greatest}({tiny}, {one} - {p}))" for p in given)
    share = d.double((1 - record.shrinkage) / len(factors))
    return _expit(f"{first} + {share} * ({' + '.join(factors)})", d)


@_formula.register
def _prior_shift(record: PriorShiftMap, x: str, d: Dialect) -> str:
    whole = absorbed(record)
    if whole is not None:
        return _formula(whole, x, d)
    p, factor = _bracketed(_formula(record.maps[0], x, d)), math.exp(record.log_factor)
    moved = f"{d.double(factor)} * {p} / ({d.double(1.0)} + {d.double(factor - 1)} * {p})"
    return f"CASE WHEN {p} < {d.double(1 / SAFE / min(factor, 1.0))} THEN {d.double(0.0)} ELSE {moved} END"


# ---------------------------------------------------------------- what the formulas are made of


@dataclass(frozen=True)
class Term:
    """SQL of a number that is 0 or lies between `least` and `most` in size."""

    sql: str
    most: float = LARGEST
    least: float = 0.0


def _read(record: LogOddsMap, x: str, d: Dialect) -> Term:
    """What the map works on: the score, or the log-odds of a probability moved into the ends of the map."""
    if record.from_logits:
        return Term(x)
    z = _log_odds(x, d)
    if record.lowest <= LOG_FLOOR and record.highest >= -LOG_FLOOR:
        return z
    return Term(d.between(record.lowest, z.sql, record.highest), z.most, z.least)


def _within(reach: float, z: Term, d: Dialect) -> str:
    """SQL of z moved into [-reach, reach]; where the engine minds products that vanish, a tiny z is 0."""
    inside = d.between(-reach, z.sql, reach)
    return f"CASE WHEN abs({z.sql}) < {d.double(1e-90)} THEN {d.double(0.0)} ELSE {inside} END" if d.raises else inside


def _log_odds(x: str, d: Dialect) -> Term:
    """The log-odds of a probability, each logarithm floored as in the kernels."""
    one, ends = d.double(1.0), (d.double(LOG_FLOOR), d.double(-LOG_FLOOR))
    sql = (
        f"CASE WHEN {x} >= {one} THEN {ends[1]} WHEN {x} <= {d.double(LEAST_PROBABILITY)} THEN {ends[0]} "
        f"ELSE ln({x} / ({one} - {x})) END"
    )
    return Term(sql, -LOG_FLOOR, sys.float_info.epsilon / 2)


def _line(slope: float, intercept: float, x: Term, d: Dialect) -> str:
    """SQL of `intercept + slope * x`, moved into the exponents that `_expit` may be given."""
    if slope == 0:
        return d.double(min(max(intercept, -MOST_EXPONENT), MOST_EXPONENT))
    product = _product(slope, x, d)
    start = min(max(intercept, -HALF), HALF)
    line = product if start == 0 else f"{d.double(start)} + {_bracketed(product)}"
    if abs(slope) * x.most + abs(intercept) <= MOST_EXPONENT:
        return line
    return d.between(-MOST_EXPONENT, line, MOST_EXPONENT)


def _product(slope: float, x: Term, d: Dialect) -> str:
    """SQL of `slope * x`, neither too large nor, where the engine minds, too small for a double."""
    size = abs(slope)
    inside = x.sql if size * x.most <= HALF else d.between(-HALF / size, x.sql, HALF / size)
    product = f"{d.double(slope)} * {_bracketed(inside)}"
    if not d.raises or size * x.least > 1 / SAFE:
        return product
    small = d.double(min(1 / SAFE / size, LARGEST))
    return f"CASE WHEN abs({x.sql}) < {small} THEN {d.double(0.0)} ELSE {product} END"


def _expit(z: str, d: Dialect) -> str:
    """SQL of `1 / (1 + exp(-z))`; z must lie within MOST_EXPONENT of 0."""
    one = d.double(1.0)
    return f"{one} / ({one} + exp(-({z})))"


def _mixed(p: str, mix: float, d: Dialect) -> str:
    """SQL of `(1 - mix) p + mix / 2`."""
    return f"{d.double(1 - mix)} * {_bracketed(p)} + {d.double(mix / 2)}"


def _segment(knots: tuple[float, float], values: tuple[float, float], x: str, d: Dialect) -> str:
    """SQL of the straight line between two knots."""
    (a, b), (low, high) = knots, values
    rise = high - low
    if abs(rise) < 1e-250 or math.nextafter(a, b) == b:
        return d.double(_flushed(low))
    width, unit = (b - a, 1.0) if math.isfinite(b - a) else (b / 2 - a / 2, 0.5)
    if unit == 1.0 and width > 1 / SAFE and abs(rise) / width < SAFE:
        line = f"{d.double(low)} + {_bracketed(_product(rise / width, Term(f'{x} - {d.double(a)}', width), d))}"
    elif unit == 1.0:
        line = f"{d.double(low)} + ({x} - {d.double(a)}) / {d.double(width)} * {d.double(rise)}"
    else:
        half = _product(0.5, Term(x), d)
        line = f"{d.double(low)} + ({_bracketed(half)} - {d.double(a / 2)}) / {d.double(width)} * {d.double(rise)}"
    return d.between(_flushed(min(low, high)), line, _flushed(max(low, high)))


def _tree(x: str, cuts: Sequence[float], leaves: Sequence[str], d: Dialect) -> str:
    """SQL of `leaves[k]`, k the number of cuts that are at most x, as a balanced tree."""
    if not cuts:
        return leaves[0]
    middle = len(cuts) // 2
    below = _tree(x, cuts[:middle], leaves[: middle + 1], d)
    above = _tree(x, cuts[middle + 1 :], leaves[middle + 1 :], d)
    return f"CASE WHEN {x} < {d.double(cuts[middle])} THEN {below} ELSE {above} END"


def _bracketed(sql: str) -> str:
    return sql if sql.replace("_", "").isalnum() else f"({sql})"


def _flushed(value: float) -> float:
    return value if abs(value) >= 1 / SAFE else 0.0
