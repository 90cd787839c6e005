"""Rows of K classes in a frame: arrays of an eager one, and the score tables of a lazy one, added up in its engine.

One query finds the distinct labels and all that cannot be used; then there is one for each table, which takes as long
as one for all tables together and less memory. Invariant: the tables are those of the same rows in memory, to the bit:
probabilities are moved into [0, 1] and divided by the sum of their row, added up in the order of NumPy. Dask has no
comparison across columns that narwhals could use: its named columns are computed, and their rows read as an eager
frame's.
May import NumPy, narwhals, `calibrant._checks`, `calibrant.errors` and the modules of this folder that read frames.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import PROBABILITY_TOLERANCE, ROW_SUM_TOLERANCE, Floats, Label
from calibrant.data import _lazy
from calibrant.data._columns import Sums, check_missing, column_index, label_apart
from calibrant.data._frames import complete_rows, lazy_frame
from calibrant.data._grouped import added_up
from calibrant.data._lazy import is_absent, one_if
from calibrant.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import narwhals as nw


class FrameRows(NamedTuple):
    """Complete rows of an eager frame; the gate has not seen them yet."""

    scores: Floats
    labels: Any
    weights: Floats | None


@dataclass(frozen=True)
class LazyClasses:
    """Checked rows of a lazy frame: probabilities s0, s1, ..., the index of the class (code), the weight."""

    rows: nw.LazyFrame[Any]
    n_rows: int
    classes: tuple[Label, ...]

    def column(self, k: int, max_distinct: int) -> Sums:
        """Sums by the probability of class k: is it this class."""
        import narwhals as nw

        return self._sums(self.rows.select("weight", score=nw.col(f"s{k}"), hit=nw.col("code") == k), max_distinct)

    def top(self, max_distinct: int) -> Sums:
        """Sums by the greatest probability: is it the class of the first column that has it."""
        import narwhals as nw

        hit = nw.col("code") == nw.col("first")
        return self._sums(self._ranked().select("weight", "score", hit=hit), max_distinct)

    def decided(self) -> Floats:
        """The weight of the rows of each class (lines) whose first greatest column is that of each class."""
        import narwhals as nw

        found = self._ranked().group_by("code", "first").agg(nw.col("weight").sum()).collect()
        code, first, weight = (found.get_column(name).to_list() for name in ("code", "first", "weight"))
        counts = np.zeros((len(self.classes), len(self.classes)))
        counts[code, first] = weight
        return counts

    def _ranked(self) -> nw.LazyFrame[Any]:
        """Code, weight, the greatest probability (score) and the first column that has it."""
        import narwhals as nw

        scores = [nw.col(f"s{k}") for k in range(len(self.classes))]
        rows = self.rows.with_columns(score=nw.max_horizontal(*scores))
        return rows.select("code", "weight", "score", first=_first([score >= nw.col("score") for score in scores]))

    def _sums(self, rows: nw.LazyFrame[Any], max_distinct: int) -> Sums:
        import narwhals as nw

        weight = nw.col("weight")
        hit = nw.when(nw.col("hit")).then(weight).otherwise(nw.lit(0.0))
        whole = rows.select("score", "weight", hit=hit, square=weight * weight)
        return added_up(whole, self.n_rows, (0, 1), max_distinct, weighted=True)


def lazy_classes(frame: Any, n_rows: int, classes: tuple[Label, ...]) -> LazyClasses:
    """Rows that have been checked already, in the columns that `LazyClasses` has."""
    import narwhals as nw

    wrapped: Any = nw.from_native(frame)
    return LazyClasses(wrapped, n_rows, classes)


def read_class_frame(
    frame: Any,
    scores: Sequence[Hashable],
    label: Hashable,
    weight: Hashable | None,
    classes: Sequence[Any] | None,
    missing: str,
) -> FrameRows | LazyClasses:
    """The named columns of a frame, three or more of them scores; `classes` names the classes of those."""
    import narwhals as nw

    check_missing(missing)
    names = _names(scores, label, weight)
    k = len(scores)
    wrapped = lazy_frame(frame)
    if wrapped is None or wrapped.implementation.is_dask():
        read = complete_rows(frame, names, missing)
        columns = [read.numbers[f"s{place}"] for place in range(k)]
        return FrameRows(np.column_stack(columns), read.labels, read.numbers.get("weight"))
    rows = _numbers(wrapped, names)
    flags = _faults(k)
    added = rows.select("label", **flags).group_by("label").agg(*(nw.col(name).sum() for name in flags))
    found = added.head(_lazy.MOST_LABELS + 1).collect()
    _refuse_gaps(rows, names, found, missing)
    _refuse_numbers(found)
    counts = np.array(found.get_column("whole").to_list())
    usable = counts > 0
    _lazy.refuse_many_labels(len(usable), label)
    labels, as_they_are = _lazy.usable_labels(found.get_column("label"), usable)
    codes, own = _checks.class_labels(labels, k, classes, f"label column {label!r}")
    return LazyClasses(_complete(rows, k, dict(zip(as_they_are, codes.tolist()))), int(counts.sum()), own)


def _names(scores: Sequence[Hashable], label: Hashable, weight: Hashable | None) -> dict[str, Hashable]:
    """Names of the columns by what they are: s0, s1, ..., label, weight."""
    if isinstance(scores, str) or not isinstance(scores, Sequence):
        raise InputTypeError(f"scores must be a list of the names of the columns, one per class, not {scores!r}.")
    if len(scores) < 3:
        raise InputError(
            f"scores must name the columns of three or more classes, but it is {list(scores)!r}. Two classes have one "
            f"score table: ScoreTable.from_frame(frame, score=, label=)."
        )
    if len(set(scores)) < len(scores):
        raise InputError(f"scores names a column twice: {_checks.shown(scores, 12)}.")
    label_apart(label, [*((name, "scores") for name in scores), (weight, "weight")])
    names = {f"s{place}": name for place, name in enumerate(scores)}
    return names | {"label": label} | ({} if weight is None else {"weight": weight})


def _numbers(wrapped: nw.LazyFrame[Any], names: dict[str, Hashable]) -> nw.LazyFrame[Any]:
    """The named columns, the numbers as doubles."""
    schema = wrapped.collect_schema()
    there, found = schema.names(), {}
    for place, name in names.items():
        found[place] = there[column_index(there, name, place if place in ("label", "weight") else "scores")]
        if place != "label" and not schema[found[place]].is_numeric():
            raise _lazy.no_numbers(name, schema[found[place]])
    return _lazy.as_named(wrapped, found)


# ---------------------------------------------------------------- what cannot be used


def _lost(k: int) -> nw.Expr:
    """Whether a cell of the row is missing."""
    import narwhals as nw

    gaps = [*(is_absent(f"s{place}") for place in range(k)), is_absent("weight"), nw.col("label").is_null()]
    return nw.max_horizontal(*(one_if(gap) for gap in gaps)) > 0


def _faults(k: int) -> dict[str, nw.Expr]:
    """1 for a complete row of weight above 0, for one with a gap, and for one with a number that cannot be, else 0."""
    import narwhals as nw

    scores, weight, lost = [nw.col(f"s{place}") for place in range(k)], nw.col("weight"), _lost(k)
    low, high = nw.min_horizontal(*scores), nw.max_horizontal(*scores)
    outside = (low < -PROBABILITY_TOLERANCE) | (high > 1 + PROBABILITY_TOLERANCE)
    total = row_sum(scores)
    off = (total > 1 + ROW_SUM_TOLERANCE) | (total < 1 - ROW_SUM_TOLERANCE)
    flags = {
        "whole": ~lost & (weight > 0),
        "lost": lost,
        "wrong": ~lost & ((weight > _lazy.FINITE) | (weight < 0)),
        "outside": ~lost & outside,
        "off": ~lost & off,
    }
    return {name: one_if(condition) for name, condition in flags.items()}


def _refuse_gaps(rows: nw.LazyFrame[Any], names: dict[str, Hashable], found: Any, missing: str) -> None:
    import narwhals as nw

    lost, whole = (int(sum(found.get_column(name).to_list())) for name in ("lost", "whole"))
    if lost and missing == "error":
        gaps = {place: nw.col(place).is_null() if place == "label" else is_absent(place) for place in names}
        each = rows.select(**{place: one_if(gap).sum() for place, gap in gaps.items()}).collect()
        counts = {place: int(each.get_column(place).to_list()[0]) for place in names}
        raise InputError(
            f"{_checks.plural(lost, 'row')} of the frame {'has' if lost == 1 else 'have'} a missing value; missing by "
            f'column: {_lazy.by_column(counts, names)}. Fill them, or leave those rows out with missing="drop".'
        )
    if not whole:
        raise InputError(f"The frame has no rows{' without a missing value and of weight above 0' if lost else ''}.")


def _refuse_numbers(found: Any) -> None:
    words = {
        "wrong": "an infinite weight or one below 0. Weights count how often a row was seen",
        "outside": "a score outside [0, 1]. These tables are of probabilities: take the softmax of logits first",
        "off": "scores that do not sum to 1 (within 1e-4). Give all classes, or divide each row by its sum",
    }
    for name, said in words.items():
        count = int(sum(found.get_column(name).to_list()))
        if count:
            rows = _checks.plural(count, "row")
            raise InputError(f"{rows} of the frame {'has' if count == 1 else 'have'} {said}.")


# ---------------------------------------------------------------- rows and sums


def _complete(rows: nw.LazyFrame[Any], k: int, codes: dict[Any, int]) -> nw.LazyFrame[Any]:
    """Complete rows of weight above 0, as `LazyClasses` holds them."""
    import narwhals as nw

    kept = rows.filter(~_lost(k) & (nw.col("weight") > 0))
    places = [f"s{place}" for place in range(k)]
    inside = [nw.col(s).clip(0.0, 1.0) for s in places]
    by_code = {code: value for value, code in codes.items()}
    member = [nw.col("label") == by_code[code] if code in by_code else nw.lit(False) for code in range(k)]
    coded = kept.select("weight", *inside, code=_first(member))
    summed = coded.with_columns(total=row_sum([nw.col(s) for s in places]))
    return summed.select("weight", "code", *(((nw.col(s) / nw.col("total")) + 0.0).alias(s) for s in places))


def _first(conditions: Sequence[nw.Expr]) -> nw.Expr:
    """The place of the first condition that holds; their number where none does."""
    import narwhals as nw

    none = nw.lit(len(conditions))
    return nw.min_horizontal(*(nw.when(one).then(nw.lit(k)).otherwise(none) for k, one in enumerate(conditions)))


def row_sum(terms: Sequence[Any]) -> Any:
    """The sum in the order in which NumPy adds up a row: eight sums side by side, halves of more than 128 terms."""
    if len(terms) < 8:
        return reduce(add, terms)
    if len(terms) > 128:
        half = len(terms) // 16 * 8
        return row_sum(terms[:half]) + row_sum(terms[half:])
    whole = len(terms) // 8 * 8
    a, b, c, d, e, f, g, h = (reduce(add, terms[lane:whole:8]) for lane in range(8))
    return reduce(add, terms[whole:], ((a + b) + (c + d)) + ((e + f) + (g + h)))
