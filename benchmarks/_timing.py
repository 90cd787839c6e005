"""Timing in one process: ours and a peer's in turn, medians and ratios, peak memory, the machine."""

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

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median seconds of a call; one warm-up run is not counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return statistics.median(times)


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
) -> Row:
    """Time both, few repeats where a run is long."""
    repeats = 9 if rows <= 200_000 else 5 if rows <= 2_000_000 else 3
    peer_seconds = None if peer is None else seconds(peer, repeats if rows <= 2_000_000 else 1)
    return Row(task, rows, seconds(ours, repeats), peer_seconds, peer_name, bar, peak_megabytes(ours))


def header(title: str) -> None:
    """Title, date, machine and versions."""
    from importlib.metadata import version

    names = ("numpy", "scipy", "scikit-learn", "numba")
    print(f"# {title}\n")
    print(f"{date.today()}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, ", end="")
    print(", ".join(f"{name} {version(name)}" for name in names) + "\n")


def print_rows(rows: list[Row]) -> None:
    """A Markdown table; `bar` is the ratio asked for."""
    print("| task | rows | ours | ns a row | peer | peer's | ratio | bar | peak MB |")
    print("|---|--:|--:|--:|---|--:|--:|--:|--:|")
    for row in rows:
        peer = "" if row.peer is None else _time(row.peer)
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
        bar = "" if row.bar is None else f"{row.bar:g} {'ok' if (row.ratio or 0) >= row.bar else 'MISSED'}"
        cells = [row.task, f"{row.rows:,}", _time(row.ours), f"{row.ours / row.rows * 1e9:.1f}", row.peer_name, peer]
        print("| " + " | ".join([*cells, ratio, bar, f"{row.peak:.0f}"]) + " |", flush=True)


def _time(value: float) -> str:
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"
