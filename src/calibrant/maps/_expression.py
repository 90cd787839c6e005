"""A map as a narwhals expression of a column: pandas, Polars, PyArrow, DuckDB, Spark, Dask, eager or lazy.

`clip` holds in SQL two copies of what is clipped, but `max_horizontal` on Dask joins columns anew, which then stand
beside no other expression. So the formulas clip little but the column itself.

Steps are a balanced tree of conditions: DuckDB and Spark go down one way per row, the others work out every branch.
K classes need columns on the way (the greatest logit, the sum of a softmax): they are added stage by stage, and
dropped at the end. May import narwhals, `calibrant.maps._base`, `_formula`, `_class_formula` and
`_stages`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.maps._base import Map
from calibrant.maps._class_formula import class_probabilities, row_ends
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
        return x.clip(low, high)

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

        if len(set(leaves)) == 1:
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
        import narwhals as nw

        # Not `clip`, which holds x twice where the engine is SQL, and Dask has no part in this.
        return self.value(lambda code: nw.max_horizontal(nw.min_horizontal(code, nw.lit(high)), nw.lit(low)), x)

    def greatest(self, values: Sequence[Value]) -> Value:
        import narwhals as nw

        return self.value(nw.max_horizontal, *values)

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        return self.value(lambda code, a, b: PLAIN.below(code, cut, a, b), x, yes, no)


PLAIN = _Expressions()
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def with_class_columns(record: Map, wrapped: Any, names: Sequence[str], new: Sequence[str]) -> Any:
    """The lazy frame with a column for every class, in `new`; null in a row that the map would refuse."""
    import narwhals as nw

    there = wrapped.collect_schema().names()
    writer = _Columns()
    scores = [StagedValue(nw.col(name).cast(nw.Float64()), 0, writer) for name in names]
    found = class_probabilities(record, scores, writer)
    writer.put(VALID, _accepted(record, [score.code for score in scores]))
    for stage in writer.kept:
        wrapped = wrapped.with_columns(**stage)
    valid = nw.col(VALID)
    wrapped = wrapped.with_columns(**{name: nw.when(valid).then(one.code) for name, one in zip(new, found)})
    return wrapped.select(*there, *new)


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
