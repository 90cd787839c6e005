"""The formula of every map of K classes, once, for all languages that it is written in.

A writer is that of `_formula`, with the greatest of several values; what `keep` is given is worked out once, so that
the text grows with the parameters of the map. Invariant: as in `_formula`; the exponents of a softmax lie in [-700, 0];
what a tree compares has the bits that it has in NumPy.
A new kind of map registers its rule with `class_formula`. May import the records of this folder, `_formula`, the limits
of `_sql`, `calibrant._checks`, `calibrant.data._class_frames` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from calibrant._checks import ROW_SUM_TOLERANCE, columns_in_order, shown
from calibrant.data._class_frames import row_sum
from calibrant.errors import ColumnError, InputError
from calibrant.maps._base import Map
from calibrant.maps._class_records import ClassIdentityMap, LogMixtureMap, MatrixScalingMap, VectorScalingMap
from calibrant.maps._formula import Value, Writer, formula, total_of
from calibrant.maps._prior_shift import ClassPriorShiftMap
from calibrant.maps._records import OneVsRestMap, TemperatureMap
from calibrant.maps._sql import HALF, LEAST_PROBABILITY, MOST_EXPONENT
from calibrant.maps._tree import AverageMap, CorrectedMap, RowMap, TreeMap

LEAST_NORMAL = float(np.finfo(np.float64).tiny)


class ClassWriter(Writer, Protocol):
    """What a language must be able to say for K classes."""

    def greatest(self, values: Sequence[Value]) -> Value:
        """The greatest of several values."""


def class_probabilities(record: Map, scores: Sequence[Value], w: ClassWriter) -> list[Value]:
    """The map at a row of scores that it accepts."""
    if record.reads != "probability":
        return class_formula(record, [w.clip(-HALF, x, HALF) for x in scores], w)
    return class_formula(record, _divided([w.keep(w.clip(0.0, x, 1.0), "p") for x in scores], w), w)


def row_ends(record: Map) -> tuple[float, float] | None:
    """Between what a row of scores must sum up to; None for any sum."""
    return (1 - ROW_SUM_TOLERANCE, 1 + ROW_SUM_TOLERANCE) if record.reads == "probability" else None


def score_names(record: Map, columns: Any) -> list[str]:
    """Names of the columns of the scores: a list, one for each class."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise InputError(
            f"The map {record.kind!r} has {len(record.classes)} classes ({shown(record.classes)}): give a list of "
            f"columns, one for each, in this order; not {columns!r}."
        )
    names = list(columns)
    fine = all(isinstance(name, str) and name and "\0" not in name for name in names)
    if not fine or len(set(names)) < len(names) or len(names) != len(record.classes):
        raise InputError(
            f"columns must name a column for each of the {len(record.classes)} classes ({shown(record.classes)}), in "
            f"this order and each once, but it is {shown(names, 12)}."
        )
    columns_in_order(names, record.classes, "the list", fitted=True)
    return names


def new_names(record: Map, prefix: str = "calibrated") -> list[str]:
    """Names of the columns of the probabilities."""
    return [f"{prefix}_{own}" for own in record.classes]


def refuse_one_name(names: Sequence[str], folds: bool) -> None:
    """Refuse two columns of one name; `folds` where capitals do not tell names apart."""
    known: dict[str, str] = {}
    for name in names:
        before = known.setdefault(name.lower() if folds else name, name)
        if before is not name:
            where = " in this engine" if folds else ""
            raise ColumnError(
                f"The new columns {before!r} and {name!r} would have one name{where}. Take a map of classes whose "
                f"names differ, or keep other columns."
            )


# ---------------------------------------------------------------- one rule per kind of map


@singledispatch
def class_formula(record: Map, x: list[Value], w: ClassWriter) -> list[Value]:
    """The map at checked scores; probabilities sum to 1."""
    raise InputError(
        f"{w.language} cannot be written for the map {record.kind!r} of {len(record.classes)} classes. Apply it in "
        f"Python, load_map(path)(scores), or to a file with calibrant apply."
    )


@class_formula.register
def _identity(record: ClassIdentityMap, x: list[Value], w: ClassWriter) -> list[Value]:
    return _mixed(_softmax(x, w) if record.from_logits else x, record.mix)


@class_formula.register
def _temperature(record: TemperatureMap, x: list[Value], w: ClassWriter) -> list[Value]:
    logits = x if record.from_logits else _logs(x, w)
    return _mixed(_softmax(_scaled(logits, record.beta, w), w), record.mix)


@class_formula.register
def _vector(record: VectorScalingMap, x: list[Value], w: ClassWriter) -> list[Value]:
    logs = _inner(record, x, float(np.abs(record.weights).max()), w)
    lines = zip(logs, record.weights.tolist(), record.intercepts.tolist())
    return _softmax([slope * one + intercept for one, slope, intercept in lines], w)


@class_formula.register
def _matrix(record: MatrixScalingMap, x: list[Value], w: ClassWriter) -> list[Value]:
    logs = _inner(record, x, float(np.abs(record.weights).sum(axis=1).max()), w)
    etas = []
    for row, intercept in zip(record.weights.tolist(), record.intercepts.tolist()):
        etas.append(total_of([slope * one for slope, one in zip(row, logs)]) + intercept)
    return _softmax(etas, w)


@class_formula.register
def _one_vs_rest(record: OneVsRestMap, x: list[Value], w: ClassWriter) -> list[Value]:
    given = _log_odds(x, w) if record.reads == "logit" else x
    p = [w.keep(formula(part, one, w), "p") for part, one in zip(record.maps, given)]
    total = w.keep(total_of(p), "total")
    divisor = w.keep(w.clip(LEAST_NORMAL, total, float(len(p))), "divisor")
    return [w.below(total, LEAST_NORMAL, 1.0 / len(p), one / divisor) for one in p]


@class_formula.register
def _log_mixture(record: LogMixtureMap, x: list[Value], w: ClassWriter) -> list[Value]:
    p = [w.keep(one, "p") for one in _softmax(x, w)] if record.from_logits else x
    weighted = []
    for weight, mix, part in zip(record.weights.tolist(), record.mixes.tolist(), record.maps):
        if weight > 0:
            given = [w.keep(one, "p") for one in _mixed(p, mix)]
            weighted.append([weight * one for one in _logs(_of_part(part, given, w), w)])
    return _softmax([total_of(terms) for terms in zip(*weighted)], w)


@class_formula.register
def _prior_shift(record: ClassPriorShiftMap, x: list[Value], w: ClassWriter) -> list[Value]:
    inner = _of_part(record.maps[0], x, w)
    ratio = (record.new_prior / record.train_prior).tolist()
    moved = [w.keep(share * one, "moved") for share, one in zip(ratio, inner)]
    total = w.keep(total_of(moved), "total")
    return [one / total for one in moved]


@class_formula.register
def _tree(record: TreeMap, x: list[Value], w: ClassWriter) -> list[Value]:
    columns = record.leaves.T.tolist()
    if len(record.leaves) == 1:
        return [column[0] + 0.0 * x[0] for column in columns]  # values for every row, not numbers
    children = record.children.astype(int).reshape(-1, len(x)).tolist()
    goes: list[Value] = [float(leaf - len(children)) for leaf in range(len(children) + len(record.leaves))]
    for split in reversed(range(len(children))):  # a child comes after its parent
        point = record.split_points[split].tolist()
        leads = [(x[k] - point[k], goes[child]) for k, child in enumerate(children[split]) if child >= 0]
        goes[split] = w.keep(_first_of_greatest(leads, w)[1], "goes")
    cuts = [place - 0.5 for place in range(1, len(record.leaves))]
    return w.pick(goes[0], cuts, columns)


def _first_of_greatest(leads: Sequence[tuple[Value, Value]], w: ClassWriter) -> tuple[Value, Value]:
    """Of pairs (lead, where it goes) the first with the greatest lead, as balanced conditions."""
    if len(leads) == 1:
        return leads[0]
    middle = len(leads) // 2
    (left, there), (right, else_there) = _first_of_greatest(leads[:middle], w), _first_of_greatest(leads[middle:], w)
    return w.keep(w.greatest([left, right]), "lead"), w.below(left - right, 0.0, else_there, there)


@class_formula.register
def _average(record: AverageMap, x: list[Value], w: ClassWriter) -> list[Value]:
    given = _divided(x, w)
    found = [class_formula(part, given, w) for part in record.maps]
    return [total_of(column) / float(len(found)) for column in zip(*found)]


@class_formula.register
def _corrected(record: CorrectedMap, x: list[Value], w: ClassWriter) -> list[Value]:
    given = _divided(x, w)
    first, *factors = (_logs(class_formula(part, given, w), w) for part in record.maps)
    share = (1 - record.shrinkage) / len(factors)
    return _softmax([one + share * total_of(column) for one, *column in zip(first, *factors)], w)


# ---------------------------------------------------------------- what the rules are made of


def _of_part(part: Map, x: list[Value], w: ClassWriter) -> list[Value]:
    """A part of a map; a tree has ties, so its rows are divided by their sum anew, as it does that itself."""
    return class_formula(part, _divided(x, w) if isinstance(part, RowMap) else x, w)


def _divided(p: Sequence[Value], w: ClassWriter) -> list[Value]:
    """Rows divided by their sum, which is added up in the order of NumPy."""
    total = w.keep(w.clip(0.5, row_sum(p), 2.0), "total")
    return [w.keep(one / total, "p") for one in p]


def _logs(p: Sequence[Value], w: ClassWriter) -> list[Value]:
    """Logarithms with their floor."""
    return [w.keep(w.log(w.clip(LEAST_PROBABILITY, one, 1.0)), "log") for one in p]


def _below_greatest(values: Sequence[Value], w: ClassWriter) -> list[Value]:
    """The values less the greatest of them."""
    kept = [w.keep(value, "value") for value in values]
    top = w.keep(w.greatest(kept), "top")
    return [w.keep(value - top, "below") for value in kept]


def _scaled(logits: Sequence[Value], beta: float, w: ClassWriter) -> list[Value]:
    """`beta L`, L less the greatest; where that is beyond all floats, it is its end."""
    farthest = -HALF / max(beta, 1.0)
    return [beta * w.clip(farthest, one, 0.0) for one in _below_greatest(logits, w)]


def _inner(record: VectorScalingMap | MatrixScalingMap, x: list[Value], most: float, w: ClassWriter) -> list[Value]:
    """Log-probabilities after the temperature and the mixture; `most` is what they will be multiplied with."""
    logits = x if record.from_logits else _logs(x, w)
    scaled = [w.keep(one, "scaled") for one in _scaled(logits, record.beta, w)]
    if record.mix:
        return [w.keep(w.log(one), "log") for one in _mixed(_softmax(scaled, w), record.mix)]
    top = w.keep(w.greatest(scaled), "top")
    divisor = w.keep(top + w.log(total_of([_exponential(one - top, w) for one in scaled])), "divisor")
    farthest = -HALF / (max(most, 1.0) * len(x))
    return [w.keep(w.clip(farthest, one - divisor, 0.0), "log") for one in scaled]


def _softmax(etas: Sequence[Value], w: ClassWriter) -> list[Value]:
    parts = [w.keep(_exponential(one, w), "part") for one in _below_greatest(etas, w)]
    total = w.keep(total_of(parts), "total")
    return [part / total for part in parts]


def _exponential(x: Value, w: ClassWriter) -> Value:
    return w.exp(w.clip(-MOST_EXPONENT, x, 0.0))


def _mixed(p: Sequence[Value], mix: float) -> list[Value]:
    return list(p) if mix == 0 else [(1 - mix) * one + mix / len(p) for one in p]


def _log_odds(x: Sequence[Value], w: ClassWriter) -> list[Value]:
    """Every logit less the log of the sum of the others' exponentials."""
    found = []
    for place, own in enumerate(x):
        others = [*x[:place], *x[place + 1 :]]
        top = w.keep(w.greatest(others), "top")
        rest = total_of([_exponential(one - top, w) for one in others])
        found.append(w.keep(w.clip(-HALF, own - top, HALF) - w.log(rest), "log_odds"))
    return found
