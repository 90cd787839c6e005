"""The operating point against the clock: thresholds of a sorted table, choices, priors, a batch of the monitor.

    python benchmarks/operating_point.py [--rows 10000000] [--batch 1000000]

`bar` is in seconds: the most that is allowed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as ca
from _timing import header, peak_megabytes, seconds


def rows_of(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities around 10 %, and labels."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(-2.6, 1.2, n)))
    return p, rng.random(n) < p


def line(task: str, n: int, call: Callable[[], Any], bar: float | None = None, repeats: int = 3) -> None:
    took, peak = seconds(call, repeats), peak_megabytes(call)
    verdict = "" if bar is None else f"{bar:g} s {'ok' if took <= bar else 'MISSED'}"
    print(f"| {task} | {n:,} | {took:.3f} s | {took / n * 1e9:.0f} | {verdict} | {peak:.0f} |", flush=True)


def curve_of(table: ca.ScoreTable) -> None:
    """The curve with all its counts and costs."""
    found = ca.threshold_curve(table, false_positive=1, false_negative=9)
    assert len(found.fn) == len(found.tn) == len(found.cost)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    given = parser.parse_args()
    header("Operating point")
    print("| task | rows | time | ns a row | bar | peak MB |\n|---|--:|--:|--:|---|--:|")
    thresholds(given.rows)
    batches(given.batch)


def thresholds(n: int) -> None:
    """A sorted table, every threshold of it."""
    table = ca.ScoreTable.from_arrays(*rows_of(n)).distinct
    costs = {"false_positive": 1, "false_negative": 9}
    line("threshold_curve, sorted table", n, lambda: curve_of(table), bar=2)
    line("choose_threshold by cost, sorted table", n, lambda: ca.choose_threshold(table, **costs))
    limit = {"objective": "recall", "at_least": {"precision": 0.4}}
    line("choose_threshold, limit", n, lambda: ca.choose_threshold(table, **limit))
    line("choose_threshold, guarantee", n, lambda: ca.choose_threshold(table, **limit, guarantee=0.05))


def batches(n: int) -> None:
    """Priors and the monitor."""
    p, y = rows_of(n)
    line("adjust_prior", n, lambda: ca.adjust_prior(p, 0.1, 0.02))
    line("estimate_prior, EM", n, lambda: ca.estimate_prior(p, 0.1))
    reference = ca.ScoreTable.from_arrays(*rows_of(100_000, 1))
    monitor = ca.CalibrationMonitor(reference)
    batch = ca.ScoreTable.from_arrays(p, y)
    line("monitor, batch with labels", n, lambda: monitor.update(batch), bar=1)
    line("monitor, batch without labels", n, lambda: monitor.update(p), bar=1)
    for k in range(600):
        monitor.update(ca.ScoreTable.from_arrays(*rows_of(200, k + 10)), name=f"batch {k}")
    size = len(json.dumps(monitor.to_dict(), separators=(",", ":")))
    verdict = "ok" if size < 1e6 else "MISSED"
    print(f"\nState after {monitor.n_batches} batches: {size / 1e6:.3f} MB {verdict} (bar 1 MB)")


if __name__ == "__main__":
    main()
