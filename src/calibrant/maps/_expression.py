"""A map as a narwhals expression of a column: pandas, Polars, PyArrow, DuckDB, Spark, eager or lazy.

Steps are a balanced tree of conditions: DuckDB and Spark go down one way per row, the others work out every branch.
K classes need columns on the way (the greatest logit, the sum of a softmax): they are added stage by stage, and
dropped at the end. May import narwhals, `calibrant._checks`, `calibrant.maps._formula`, `_class_formula` and `_stages`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant._checks import shown
from calibrant.data._columns import column_index
from calibrant.errors import ColumnError, InputError
from calibrant.maps._base import Map
from calibrant.maps._class_formula import class_formula, class_probabilities, new_names, row_ends, score_names
from calibrant.maps._formula import Value, calibrated, reach, total_of
from calibrant.maps._stages import StagedValue, Stages

if TYPE_CHECKING:
    import narwhals as nw

VALID = "calibrant valid"


class _Expressions:
    """The writer of narwhals: its expressions are values already."""

    language: ClassVar[str] = "A dataframe expression"

    def exp(self, x: Value) -> Value:
        return x.exp()

    def log(self, x: Value) -> Value:
        return x.log()

    def clip(self, low: float, x: Value, high: float) -> Value:
        import narwhals as nw

        # Not `clip`, which holds x twice where the engine is SQL: nested ones would grow without end.
        return nw.max_horizontal(nw.min_horizontal(x, nw.lit(high)), nw.lit(low))

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        import narwhals as nw

        return nw.when(x < cut).then(yes).otherwise(no)

    def keep(self, x: Value, name: str) -> Value:
        return x

    def pick(self, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
        return [self._tree(x, cuts, column) for column in columns]

    def _tree(self, x: Value, cuts: Sequence[float], leaves: Sequence[float]) -> Value:
        """Balanced conditions; where both sides hold one and the same number, there is none."""
        import narwhals as nw

        if not cuts:
            return nw.lit(leaves[0])
        middle = len(cuts) // 2
        below = self._tree(x, cuts[:middle], leaves[: middle + 1])
        above = self._tree(x, cuts[middle + 1 :], leaves[middle + 1 :])
        return self.below(x, cuts[middle], below, above)


class _Columns(Stages):
    """The writer of narwhals for K classes."""

    language: ClassVar[str] = "A dataframe expression"

    def joined(self, operation: str, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        found: nw.Expr = OPERATIONS[operation](left, right)
        return found

    def number(self, value: float) -> Any:
        import narwhals as nw

        return nw.lit(value)

    def column(self, name: str) -> Any:
        import narwhals as nw

        return nw.col(name)

    def exp(self, x: Value) -> Value:
        return self.value(lambda code: code.exp(), x)

    def log(self, x: Value) -> Value:
        return self.value(lambda code: code.log(), x)

    def clip(self, low: float, x: Value, high: float) -> Value:
        return self.value(lambda code: PLAIN.clip(low, code, high), x)

    def greatest(self, values: Sequence[Value]) -> Value:
        import narwhals as nw

        return self.value(nw.max_horizontal, *values)

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        return self.value(lambda code, a, b: PLAIN.below(code, cut, a, b), x, yes, no)


PLAIN = _Expressions()
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def frame_with_classes(record: Map, frame: Any, columns: Sequence[str], prefix: str) -> Any:
    """The frame with a column of probabilities for every class; null in a row that the map would refuse."""
    import narwhals as nw

    if len(record.classes) == 2 and not _takes_two_columns(record, columns):
        raise _one_column_is_enough(record)
    names = score_names(record, columns)
    wrapped: Any = nw.from_native(frame)
    there = wrapped.collect_schema().names()
    for name in names:
        column_index(there, name, "columns")
    new = new_names(record, prefix)
    taken = [name for name in new if name in there]
    if taken:
        raise ColumnError(f"The frame has a column {taken[0]!r} already: give another prefix.")
    writer = _Columns()
    scores = [StagedValue(nw.col(name).cast(nw.Float64()), 0, writer) for name in names]
    found = class_probabilities(record, scores, writer)
    writer.put(VALID, _accepted(record, [score.code for score in scores]))
    for stage in writer.kept:
        wrapped = wrapped.with_columns(**stage)
    valid = nw.col(VALID)
    wrapped = wrapped.with_columns(**{name: nw.when(valid).then(one.code) for name, one in zip(new, found)})
    return wrapped.select(*there, *new).to_native()


def _takes_two_columns(record: Map, columns: Any) -> bool:
    """Whether a map of two classes is of a kind that reads a column for each of them, and has got two."""
    known = class_formula.dispatch(type(record)) is not class_formula.dispatch(object)
    return known and isinstance(columns, Sequence) and not isinstance(columns, str) and len(columns) == 2


def _one_column_is_enough(record: Map) -> InputError:
    return InputError(
        f"apply_frame is for a column of scores per class, but this map {record.kind!r} of two classes "
        f"({shown(record.classes)}) reads one column: import narwhals as nw, then "
        f'nw.from_native(frame).with_columns(q=record.to_expr("p")).to_native().'
    )


def _accepted(record: Map, scores: Sequence[Any]) -> Any:
    """Whether the map accepts the row."""
    import narwhals as nw

    low, high = reach(record)
    inside: Any = nw.all_horizontal(*((x >= low) & (x <= high) for x in scores), ignore_nulls=False)
    ends = row_ends(record)
    if ends is None:
        return inside
    total = total_of(scores)
    return inside & (total >= ends[0]) & (total <= ends[1])


def column_expression(record: Map, column: str) -> nw.Expr:
    """The map as an expression; null where the map would refuse the score."""
    import narwhals as nw

    x = nw.col(column).cast(nw.Float64())
    low, high = reach(record)
    inside = calibrated(record, x, _Expressions())
    return nw.when((x >= low) & (x <= high)).then(inside)
