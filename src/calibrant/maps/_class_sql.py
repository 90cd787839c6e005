"""A map of K classes as an SQL query, for DuckDB, PostgreSQL, Spark and SQLite.

What several classes need (the greatest logit, the sum of a softmax) is a column of a step (WITH) and worked out once,
so that the text grows with the parameters of the map. A row that the map would refuse gives NULL for every class.
May import `_class_formula`, `_formula`, `_stages`, the dialects of `_sql` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from calibrant.errors import InputError
from calibrant.maps._base import Map
from calibrant.maps._class_formula import class_probabilities, new_names, refuse_one_name, row_ends, score_names
from calibrant.maps._formula import Value, reach
from calibrant.maps._sql import Dialect, dialect_named
from calibrant.maps._stages import Stages

VALID = "calibrant valid"


class _Query(Stages):
    """The writer of SQL."""

    language: ClassVar[str] = "SQL"

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect

    def joined(self, operation: str, left: str, right: str) -> str:
        return f"({left} {operation} {right})"

    def number(self, value: float) -> str:
        return self.dialect.double(value)

    def column(self, name: str) -> str:
        return self.dialect.name(name)

    def exp(self, x: Value) -> Value:
        return self.value("exp({})".format, x)

    def log(self, x: Value) -> Value:
        return self.value("ln({})".format, x)

    def clip(self, low: float, x: Value, high: float) -> Value:
        return self.value(lambda code: self.dialect.between(low, code, high), x)

    def greatest(self, values: Sequence[Value]) -> Value:
        return self.value(lambda *code: f"{self.dialect.greatest}({', '.join(code)})", *values)

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        return self.value("CASE WHEN {} < {} THEN {} ELSE {} END".format, x, cut, yes, no)


def class_query(record: Map, columns: Sequence[str], dialect: str, table: str, keep: Sequence[str]) -> str:
    """The query that gives the columns of `keep` and a probability of every class, from what stands after FROM."""
    names = score_names(record, columns)
    d = dialect_named(dialect)
    if not isinstance(table, str) or not table.strip():
        raise InputError(f"table must be what stands after FROM, the name of a table for example, not {table!r}.")
    if isinstance(keep, str) or not all(isinstance(name, str) and name for name in keep):
        raise InputError(f"keep must be a list of the names of columns, but it is {keep!r}.")
    refuse_one_name([*keep, *new_names(record)], folds=dialect != "postgres")
    writer = _Query(d)
    found = class_probabilities(record, [writer.given(name) for name in names], writer)
    writer.put(VALID, f"CASE WHEN {_condition(record, list(map(d.name, names)), d)} THEN 1 ELSE 0 END")
    source, steps = table, []
    for number, stage in enumerate(writer.kept, start=1):
        added = ", ".join(f"{code} AS {d.name(name)}" for name, code in stage.items())
        steps.append(f"{d.name(f'calibrant {number}')} AS (SELECT *, {added} FROM {source}{d.fence})")
        source = d.name(f"calibrant {number}")
    valid = f"{d.name(VALID)} = 1"
    new = [f"CASE WHEN {valid} THEN {one.code} END AS {d.name(name)}" for one, name in zip(found, new_names(record))]
    return f"WITH {', '.join(steps)} SELECT {', '.join([*map(d.name, keep), *new])} FROM {source}"


def _condition(record: Map, columns: Sequence[str], d: Dialect) -> str:
    """SQL of whether the map accepts the row."""
    low, high = map(d.double, reach(record))
    tests = [f"{x} >= {low} AND {x} <= {high}" for x in columns]
    tests += [d.kinds.format(x=x) for x in columns] if d.kinds else []
    ends = row_ends(record)
    if ends is not None:
        tests.append(f"{' + '.join(columns)} BETWEEN {d.double(ends[0])} AND {d.double(ends[1])}")
    return " AND ".join(tests)
