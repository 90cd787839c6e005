"""Timing in one process: ours, a peer's and a floor in turn, the least of several runs, peak memory, the machine.

A floor is what no program on this machine can do without: passes over memory at 2 ns a row, or one vectorised sort of
the same scores, which is timed beside the rest. The least of several runs taken in turn hardly moves when another
process takes a core for a while; medians do.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

PASS = 2e-9
"""Seconds a row of one pass over memory."""
LONG = 1.5
"""A call that takes more seconds than this is run twice only, a peer's once."""


@dataclass(frozen=True)
class Floor:
    """A name, its seconds (or a call that takes them), and how many times as long we may take."""

    name: str
    seconds: float | Callable[[], Any]
    goal: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of a benchmark table."""

    task: str
    rows: int
    ours: float
    peer: float | None
    peer_name: str
    bar: float | None
    peak: float
    floor: Floor | None = None
    budget: float | None = None
    """Seconds that were allowed."""

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours


def passes(rows: int, count: int, goal: float | None = None) -> Floor:
    """So many passes over the rows."""
    return Floor(f"{count} pass{'' if count == 1 else 'es'}", count * PASS * rows, goal)


def sort(scores: np.ndarray, goal: float | None = None) -> Floor:
    """One vectorised sort of these scores."""
    return Floor("sort", lambda: np.sort(scores), goal)


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median seconds of a call; one warm-up run is not counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        return statistics.median(once(call) for _ in range(repeats))


def fastest(
    calls: list[Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Least seconds of each call, taken in turn after a round that does not count; a long call is not repeated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = [once(call, clock) for call in calls]
        least = [np.inf if taken < LONG else taken for taken in first]
        for turn in range(repeats):
            for k, call in enumerate(calls):
                if first[k] < LONG or (turn == k == 0):
                    least[k] = min(least[k], once(call, clock))
    return least


def once(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call."""
    start = clock()
    call()
    return clock() - start


def peak_megabytes(call: Callable[[], Any]) -> float:
    """Most memory that arrays of the call took at once, beyond its input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / 1e6


def measure(
    task: str,
    rows: int,
    ours: Callable[[], Any],
    peer: Callable[[], Any] | None,
    peer_name: str = "scikit-learn",
    bar: float | None = None,
    floor: Floor | None = None,
    budget: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Row:
    """Time ours, the peer's and the floor in turn, with few repeats where a run is long."""
    repeats = 15 if rows <= 200_000 else 7 if rows <= 2_000_000 else 4
    timed = [ours]
    timed += [] if peer is None else [peer]
    timed += [floor.seconds] if floor is not None and callable(floor.seconds) else []
    least = fastest(timed, repeats, clock)
    if floor is not None and callable(floor.seconds):
        floor = Floor(floor.name, least[-1], floor.goal)
    taken = None if peer is None else least[1]
    return Row(task, rows, least[0], taken, peer_name, bar, peak_megabytes(ours), floor, budget)


def header(title: str) -> None:
    """Title, date, machine, load and versions."""
    from importlib.metadata import version

    names = ("numpy", "scipy", "scikit-learn", "numba")
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"# {title}\n")
    print(f"{date.today()}, {os.cpu_count()} cores{load}, {platform.machine()}, ", end="")
    print(f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names) + "\n")


def print_rows(rows: list[Row]) -> None:
    """A Markdown table; what was asked for stands behind a figure: of a peer at least, of time and floor at most."""
    print("| task | rows | ours | ns a row | peer | peer's | peer / ours | floor | its time | ours / floor | peak MB |")
    print("|---|--:|--:|--:|---|--:|--:|---|--:|--:|--:|")
    for row in rows:
        peer = ("", "", "") if row.ratio is None else (row.peer_name, _time(row.peer or 0.0), _asked(row))
        cells = [row.task, f"{row.rows:,}", _time(row.ours) + _kept(row), f"{row.ours / row.rows * 1e9:.1f}", *peer]
        print("| " + " | ".join([*cells, *_of_floor(row), f"{row.peak:.0f}"]) + " |", flush=True)


def _kept(row: Row) -> str:
    return "" if row.budget is None else f" ({row.budget:g} s {'ok' if row.ours <= row.budget else 'MISSED'})"


def _asked(row: Row) -> str:
    """The peer's time over ours, at least 1 or what the bar says."""
    ratio, bar = row.ratio or 0.0, row.bar or 1.0
    if row.bar is None and ratio >= bar:
        return f"{ratio:.1f}"
    return f"{ratio:.1f} ({bar:g} {'ok' if ratio >= bar else 'MISSED'})"


def _of_floor(row: Row) -> tuple[str, str, str]:
    if row.floor is None or callable(row.floor.seconds):
        return "", "", ""
    times, goal = row.ours / row.floor.seconds, row.floor.goal
    verdict = "" if goal is None else f" ({goal:g} {'ok' if times <= goal else 'MISSED'})"
    return row.floor.name, _time(row.floor.seconds), f"{times:.1f}{verdict}"


def _time(value: float) -> str:
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"
