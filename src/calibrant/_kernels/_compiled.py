"""How the few loops that NumPy cannot express are compiled, and how work is spread over two cores.

A compiled kernel is written as plain Python, compiled for one signature the first time it is called, and kept on disk
for the next process where a folder can be written; where none can (containers), it is compiled once per process.
Every argument array must be contiguous; read-only arrays are accepted.

May import: Numba, only inside the functions below, so that importing calibrant does not load it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

Result = TypeVar("Result")

MANY = 2**15
"""Fewer rows than this are done in NumPy, without loading Numba."""
SPREAD = 2**17
"""From this many rows on, work is shared by two threads."""


class Compiled:
    """A kernel: called like the function it was made from, compiled at the first call."""

    def __init__(
        self, function: Callable[..., Any], signature: str, regroup: bool, helpers: Sequence[Callable[..., Any]]
    ) -> None:
        self.function = function
        self._how = signature, regroup, helpers
        self._machine_code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        if self._machine_code is None:
            self._machine_code = _compile(self.function, *self._how)
        return self._machine_code(*arguments)


def compiled(
    signature: str, *, regroup: bool = False, helpers: Sequence[Callable[..., Any]] = ()
) -> Callable[[Callable[..., Any]], Compiled]:
    """Mark a function as a kernel, with one letter per argument.

    Lower case is a scalar, upper case an array that is only read, `*` after it an array that is written:
    f float64, i int64, u uint64, b uint8, j int32. With `regroup`, sums may be added up in another order, which lets
    them run in vector registers, and a product is added unrounded where the processor can; without it the kernel
    computes to the bit what the plain function does. `helpers` are plain functions of its module that it calls.
    """
    return lambda function: Compiled(function, signature, regroup, helpers)


def _compile(
    function: Callable[..., Any], signature: str, regroup: bool, helpers: Sequence[Callable[..., Any]]
) -> Callable[..., Any]:
    import numba

    kinds = {"f": numba.float64, "i": numba.int64, "u": numba.uint64, "b": numba.uint8, "j": numba.int32}
    types: list[Any] = []
    for letter in signature:
        if letter == "*":
            types[-1] = types[-1].copy(readonly=False)
        elif letter.isupper():
            types.append(numba.types.Array(kinds[letter.lower()], 1, "C", readonly=True))
        else:
            types.append(kinds[letter])
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"} if regroup else False}
    if helpers:
        scope = function.__globals__ | {one.__name__: numba.njit(**options)(one) for one in helpers}
        function = FunctionType(function.__code__, scope, function.__name__)
    try:
        return numba.njit(tuple(types), cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder that could hold the cache
        return numba.njit(tuple(types), **options)(function)  # type: ignore[no-any-return]


def in_two(work: Callable[[int, int], Result], size: int) -> list[Result]:
    """Results of `work(first, last)` over the whole range, or over its two halves at once when it is long."""
    if size < SPREAD:
        return [work(0, size)]
    return side_by_side([partial(work, 0, size // 2), partial(work, size // 2, size)])


def side_by_side(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Results of the tasks, which run at once where there is a second core."""
    if len(tasks) < 2 or _cores() < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(1) as pool:
        others = [pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(other.result() for other in others)]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
