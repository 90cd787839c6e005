"""Constructor parameters as data: each class declares its rules, `fit` checks them, tests draw bad values from them.

A rule says what a value must be (`describe`), whether it is (`accepts`) and a few values that it refuses (`refused`).
May import NumPy, `calibrant.errors`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set, Sized
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from calibrant.errors import InputError


class Rule(ABC):
    """What one constructor parameter must be."""

    @abstractmethod
    def accepts(self, value: object) -> bool:
        """Whether the value keeps the rule."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, to follow `must be`."""

    @abstractmethod
    def refused(self) -> tuple[object, ...]:
        """Values that break the rule, for tests."""


@dataclass(frozen=True)
class Choice(Rule):
    """One of a few names."""

    names: tuple[str, ...]

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and value in self.names

    def describe(self) -> str:
        return "one of " + ", ".join(map(repr, self.names))

    def refused(self) -> tuple[object, ...]:
        return ("no such name", 3, None)


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool | np.bool_)

    def describe(self) -> str:
        return "True or False"

    def refused(self) -> tuple[object, ...]:
        return ("yes", 1, None)


@dataclass(frozen=True)
class Number(Rule):
    """A finite number between two ends (included, unless `above` leaves the low one out)."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    above: bool = False

    def accepts(self, value: object) -> bool:
        kind = Integral if self.whole else Real
        if not isinstance(value, kind) or isinstance(value, bool | np.bool_):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond every float
            return False
        if not math.isfinite(number):
            return False
        return self.low < number <= self.high if self.above else self.low <= number <= self.high

    def describe(self) -> str:
        noun = "a whole number" if self.whole else "a finite number"
        low = "" if self.low == -math.inf else f" {'above' if self.above else 'of at least'} {self.low:g}"
        high = "" if self.high == math.inf else f"{' and' if low else ' of'} at most {self.high:g}"
        return noun + low + high

    def refused(self) -> tuple[object, ...]:
        ends = [self.low if self.above else self.low - 1] if self.low > -math.inf else []
        ends += [self.high + 1] if self.high < math.inf else []
        return ("3", True, math.nan, math.inf, *ends, *([1.5] if self.whole else []))


@dataclass(frozen=True)
class Instance(Rule):
    """An object with the given methods."""

    methods: tuple[str, ...]
    noun: str

    def accepts(self, value: object) -> bool:
        return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in self.methods)

    def describe(self) -> str:
        return f"{self.noun} (an object with {', '.join(self.methods)})"

    def refused(self) -> tuple[object, ...]:
        return ("a name", 3)


@dataclass(frozen=True)
class Either(Rule):
    """A value that keeps one of several rules."""

    rules: tuple[Rule, ...]

    def accepts(self, value: object) -> bool:
        return any(rule.accepts(value) for rule in self.rules)

    def describe(self) -> str:
        return ", or ".join(rule.describe() for rule in self.rules)

    def refused(self) -> tuple[object, ...]:
        return tuple(value for rule in self.rules for value in rule.refused() if not self.accepts(value))


@dataclass(frozen=True)
class Nothing(Rule):
    """None."""

    def accepts(self, value: object) -> bool:
        return value is None

    def describe(self) -> str:
        return "None"

    def refused(self) -> tuple[object, ...]:
        return ()


@dataclass(frozen=True)
class Sequenced(Rule):
    """A list, tuple, array or column."""

    noun: str = "a list"

    def accepts(self, value: object) -> bool:
        return (
            isinstance(value, Iterable)
            and isinstance(value, Sized)
            and not self._unordered(value)
            and getattr(value, "shape", None) != ()  # an array of no dimension has a `__len__` that fails
            and len(value) > 0
        )

    @staticmethod
    def _unordered(value: object) -> bool:
        return isinstance(value, str | bytes | Mapping | Set)

    def describe(self) -> str:
        return self.noun

    def refused(self) -> tuple[object, ...]:
        return ("text", 3, [], {1, 2}, {"a": 1})


@dataclass(frozen=True)
class Seed(Rule):
    """A seed: None, a whole number of at least 0, a NumPy Generator or a RandomState."""

    def accepts(self, value: object) -> bool:
        return (
            value is None
            or isinstance(value, np.random.Generator | np.random.RandomState)
            or Number(0, whole=True).accepts(value)
        )

    def describe(self) -> str:
        return "None, a whole number of at least 0, or a NumPy generator"

    def refused(self) -> tuple[object, ...]:
        return ("seed", -1, 1.5)


def optional(rule: Rule) -> Rule:
    """The rule, or None."""
    return Either((rule, Nothing()))


def check_parameters(owner: str, values: Mapping[str, object], rules: Mapping[str, Rule]) -> None:
    """Refuse the first parameter that breaks its rule."""
    for name, rule in rules.items():
        if not rule.accepts(values[name]):
            raise InputError(f"{owner}: {name} must be {rule.describe()}, but it is {values[name]!r}.")


def generator(seed: Any) -> np.random.Generator:
    """A NumPy generator from a seed that keeps the rule `Seed`."""
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(0, 2**31 - 1, size=4))
    return np.random.default_rng(seed)
