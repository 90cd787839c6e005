"""Values that are worked out in stages: each is code, and the stage from which on it can be worked out.

What `keep` is given becomes a column of its stage, and from the next one on it is that column. May import `_formula`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from calibrant.maps._formula import Operand, Value


class StagedValue(Operand):
    """Code of a language and its stage; numbers are of stage 0."""

    def __init__(self, code: Any, stage: int, stages: Stages) -> None:
        self.code, self.stage, self.stages = code, stage, stages

    def join(self, operation: str, left: Value, right: Value) -> Value:
        return self.stages.value(lambda *code: self.stages.joined(operation, *code), left, right)


class Stages(ABC):
    """The columns of every stage, by name; a language says how it joins values, writes numbers and names columns."""

    @abstractmethod
    def joined(self, operation: str, left: Any, right: Any) -> Any:
        """Code of one of the four operations."""

    @abstractmethod
    def number(self, value: float) -> Any:
        """Code of a number."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """Code of a column."""

    @abstractmethod
    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        """`yes` where x < cut, else `no`."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self._names: dict[str, int] = {}

    def value(self, make: Callable[..., Any], *values: Value) -> StagedValue:
        """The value that `make` gives of the code of others, which may be floats."""
        code = [one.code if isinstance(one, StagedValue) else self.number(float(one)) for one in values]
        stage = max((one.stage for one in values if isinstance(one, StagedValue)), default=0)
        return StagedValue(make(*code), stage, self)

    def given(self, name: str) -> StagedValue:
        """A column that is there from the start."""
        return StagedValue(self.column(name), 0, self)

    def keep(self, x: Value, name: str) -> Value:
        """The value as a column of its stage."""
        if not isinstance(x, StagedValue):
            return x
        self._names[name] = self._names.get(name, 0) + 1
        column = f"calibrant {name} {self._names[name]}"
        self.put(column, x.code, x.stage)
        return StagedValue(self.column(column), x.stage + 1, self)

    def put(self, column: str, code: Any, stage: int = 0) -> None:
        """A column of a stage."""
        self.kept += [{} for _ in range(stage + 1 - len(self.kept))]
        self.kept[stage][column] = code

    def tree(self, x: Value, cuts: Sequence[float], leaves: Sequence[float]) -> Value:
        """`leaves[k]`, k the number of cuts that are at most x, as balanced conditions."""
        if not cuts:
            return leaves[0]
        middle = len(cuts) // 2
        below = self.tree(x, cuts[:middle], leaves[: middle + 1])
        above = self.tree(x, cuts[middle + 1 :], leaves[middle + 1 :])
        return self.below(x, cuts[middle], below, above)

    def pick(self, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
        """`column[k]` for every column, k the number of cuts that are at most x."""
        return [self.tree(x, cuts, column) for column in columns]
