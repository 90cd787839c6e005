"""A map as a narwhals expression of a column: pandas, Polars, PyArrow, DuckDB, Spark, eager or lazy.

Steps are a balanced tree of conditions: DuckDB and Spark go down one way per row, the others work out every branch.
May import narwhals and `calibrant.maps._formula`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from calibrant.maps._base import Map
from calibrant.maps._formula import Value, calibrated, reach

if TYPE_CHECKING:
    import narwhals as nw


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


def column_expression(record: Map, column: str) -> nw.Expr:
    """The map as an expression; null where the map would refuse the score."""
    import narwhals as nw

    x = nw.col(column).cast(nw.Float64())
    low, high = reach(record)
    inside = calibrated(record, x, _Expressions())
    return nw.when((x >= low) & (x <= high)).then(inside)
