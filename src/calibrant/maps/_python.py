"""A map as the text of a Python function that needs the standard library only.

Two classes: a score in, a probability out. K classes: a list of scores in, a list of probabilities out.
May import the standard library, `calibrant.maps._formula`, `_class_formula` and `calibrant.errors`.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Sequence
from typing import ClassVar

from calibrant._checks import shown
from calibrant.errors import InputError
from calibrant.maps._base import Map
from calibrant.maps._class_formula import class_probabilities, row_ends
from calibrant.maps._formula import Operand, Value, calibrated, reach

WIDTH = 100


class _Text(Operand):
    """A Python expression; `atom` says that it needs no brackets."""

    def __init__(self, code: str, atom: bool = False) -> None:
        self.code, self.atom = code, atom

    def join(self, operation: str, left: Value, right: Value) -> Value:
        first = _bracketed(left) if isinstance(left, _Text) else _code(left)
        return _Text(f"{first} {operation} {_bracketed(right)}")


def _code(value: Value) -> str:
    return value.code if isinstance(value, _Text) else repr(float(value))


def _bracketed(value: Value) -> str:
    code = _code(value)
    return code if not code.startswith("-") and (not isinstance(value, _Text) or value.atom) else f"({code})"


class _Lines:
    """The writer of Python: lines of a function, and the lists of numbers before it."""

    language: ClassVar[str] = "Python"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lists: list[str] = []
        self.names = {"x"}
        self.kept: dict[str, Value] = {}

    def exp(self, x: Value) -> Value:
        return _Text(f"math.exp({_code(x)})", atom=True)

    def log(self, x: Value) -> Value:
        return _Text(f"math.log({_code(x)})", atom=True)

    def clip(self, low: float, x: Value, high: float) -> Value:
        return _Text(f"min(max({_code(x)}, {low!r}), {high!r})", atom=True)

    def greatest(self, values: Sequence[Value]) -> Value:
        return _Text(f"max({', '.join(map(_code, values))})", atom=True)

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        return _Text(f"({_code(yes)} if {_code(x)} < {cut!r} else {_code(no)})", atom=True)

    def keep(self, x: Value, name: str) -> Value:
        code = _code(x)
        if code.isidentifier():
            return x
        if code not in self.kept:
            fresh = self._fresh(name)
            self.lines.append(f"{fresh} = {code}")
            self.kept[code] = _Text(fresh, atom=True)
        return self.kept[code]

    def pick(self, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
        step, known = self._fresh("step"), self._list("CUTS", cuts)
        self.lines.append(f"{step} = bisect_right({known}, {_code(x)})")
        return [_Text(f"{self._list('VALUES', column)}[{step}]", atom=True) for column in columns]

    def _list(self, name: str, values: Sequence[float]) -> str:
        fresh = self._fresh(name)
        self.lists += [f"{fresh} = [", *_filled(values), "]"]
        return fresh

    def _fresh(self, name: str) -> str:
        taken = name
        while taken in self.names:
            taken = f"{name}_{int(taken[len(name) + 1 :] or 1) + 1}"
        self.names.add(taken)
        return taken


def _filled(values: Sequence[float]) -> list[str]:
    """The numbers in lines that are not too long."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(repr(value)) > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {value!r},"
    return [*lines, line]


def python_source(record: Map, name: str = "calibrate") -> str:
    """The text of a module with one function, the map."""
    usable = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    if not usable or hasattr(builtins, name) or name in ("math", "bisect_right"):
        raise InputError(f"name must be a name that a Python function can have, and no built-in's, but it is {name!r}.")
    writer = _Lines()
    writer.names.add(name)
    if len(record.classes) != 2:
        return _rows_source(record, name, writer)
    last = _code(calibrated(record, _Text("x", atom=True), writer))
    low, high = reach(record)
    given = "a probability in [0, 1]" if record.reads == "probability" else "a finite number"
    negative, positive = (repr(label) for label in record.classes)
    head = f"Calibrated probability of the class {positive} (and not {negative}): a map {record.kind!r} of calibrant."
    body = [
        "x = float(score)",
        f"if not {low!r} <= x <= {high!r}:",
        f'    raise ValueError(f"score must be {given}, but it is {{score!r}}.")',
        *writer.lines,
        f"return {last}",
    ]
    return _module(head, f"def {name}(score):", body, writer)


def _rows_source(record: Map, name: str, writer: _Lines) -> str:
    """The text for K classes."""
    k = len(record.classes)
    writer.names.add("scores")
    last = class_probabilities(record, [_Text(f"x[{place}]", atom=True) for place in range(k)], writer)
    low, high = reach(record)
    probabilities = record.reads == "probability"
    given = "probabilities in [0, 1] that sum to 1" if probabilities else "finite numbers"
    ends = row_ends(record)
    off = "" if ends is None else f" or not {ends[0]!r} <= sum(x) <= {ends[1]!r}"
    body = [
        "x = [float(score) for score in scores]",
        f"if len(x) != {k} or not all({low!r} <= score <= {high!r} for score in x){off}:",
        f'    raise ValueError(f"scores must be {k} {given}, but they are {{scores!r}}.")',
        *writer.lines,
        "return [",
        *(f"    {_code(one)}," for one in last),
        "]",
    ]
    head = f"Calibrated probabilities of the classes {shown(record.classes, 1000)}: a map {record.kind!r} of calibrant."
    return _module(head, f"def {name}(scores):", body, writer)


def _module(head: str, signature: str, body: Sequence[str], writer: _Lines) -> str:
    imports = (["import math"] if "math." in "".join(body) else []) + (
        ["from bisect import bisect_right"] if writer.lists else []
    )
    heading = [f"# {' '.join(head.split())}", "", *imports, *([""] if imports else []), *writer.lists]
    return "\n".join([*heading, "", signature, *(f"    {line}" for line in body), ""])
