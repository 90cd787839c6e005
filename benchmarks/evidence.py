"""How long intervals and bands take, and whether coarsening the table moves the interval.

python benchmarks/evidence.py            the bars: 1e6 rows, 1,000 resamples; bands at 1e5 rows
python benchmarks/evidence.py --row      also a bootstrap of rows, 20 resamples, for the ratio (slow)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as ca
from _timing import header
from calibrant._kernels import resample
from calibrant.metrics._bootstrap import bootstrapped
from calibrant.metrics._design import design_of

MEASURES = (ca.brier_score, ca.log_loss, ca.calibration_slope_intercept, ca.roc_auc, ca.average_precision)


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Slightly over-confident scores without ties."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    return (rng.uniform(size=n) < 1 / (1 + np.exp(-0.9 * z))).astype(np.uint8), 1 / (1 + np.exp(-z))


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def line(task: str, took: float, bar: float | None = None) -> None:
    verdict = "" if bar is None else f"{bar:g} s {'ok' if took <= bar else 'MISSED'}"
    print(f"| {task} | {took:.2f} s | {verdict} |", flush=True)


def resamples(n: int) -> None:
    y, p = rows(n)
    print(f"| {n:,} rows | time | bar |\n|---|--:|---|")
    table = ca.ScoreTable.from_arrays(p, y)
    line("sort once", seconds(lambda: table.distinct))
    total = 0.0
    for measure in MEASURES:
        took = seconds(lambda measure=measure: ca.estimate(measure, table, n_resamples=1000))
        total += took if measure is not ca.average_precision else 0.0
        line(f"1,000 resamples of {measure.__name__}", took)
    parts = [
        seconds(lambda: ca.calibration_error(table)),
        seconds(lambda: ca.estimate(ca.score_decomposition, table)),
    ]
    line("calibration_error and decomposition, null inverted", sum(parts))
    line("Brier, log loss, calibration measures and AUC together", total + sum(parts), 10.0)
    line("the same from influences, no resamples", sum(seconds(lambda m=m: ca.estimate(m, table)) for m in MEASURES))


def bands(n: int) -> None:
    y, p = rows(n)
    ca.reliability_bands(y[:1000], p[:1000], n_resamples=20)
    for kind in ("confidence", "consistency"):
        took = seconds(lambda kind=kind: ca.reliability_bands(y, p, kind=kind))
        line(f"isotonic curve with {kind} band, {n:,} rows, 1,000 fits", took, 3.0)


def row_bootstrap(n: int, times: int = 20) -> None:
    y, p = rows(n)
    rng = np.random.default_rng(0)

    def once() -> None:
        at = rng.integers(0, n, n)
        table = ca.ScoreTable.from_arrays(p[at], y[at])
        for measure in MEASURES:
            measure(table)

    took = seconds(lambda: [once() for _ in range(times)])
    line(f"a bootstrap of rows would take, for 1,000 ({times} timed)", took / times * 1000)


def coarsening(n: int) -> None:
    """Intervals of 4,000 resamples with ever more cells; the last has a cell for every row."""
    y, p = rows(n)
    design = design_of(ca.ScoreTable.from_arrays(p, y), None, None, "")
    whole = resample.cells
    print(f"\n{n:,} rows, 4,000 resamples; ends less those of the influences, in per cent of the width (chance: 3)\n")
    print("| measure | " + " | ".join(f"{most:,} cells" for most in (512, 1024, 4096, n)) + " |\n|---|--:|--:|--:|--:|")
    for measure in (ca.brier_score, ca.log_loss, ca.roc_auc, ca.average_precision):
        exact, cells = ca.estimate(measure, y, p), []
        for most in (512, 1024, 4096, n):
            resample.cells = lambda *given, most=most: whole(*given, most=most)
            found = bootstrapped(measure, design, 4000, 0.95, 1, {})["value"]
            ends = (found.low - exact.low, found.high - exact.high)
            cells.append(" ".join(f"{100 * end / exact.width:+.1f}" for end in ends))
        resample.cells = whole
        print(f"| {measure.__name__} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    header("Evidence")
    resamples(1_000_000)
    bands(100_000)
    if "--row" in sys.argv:
        row_bootstrap(1_000_000)
    coarsening(20_000)
