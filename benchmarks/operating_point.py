"""The operating point against the clock: every threshold, choices under costs and limits, priors, the monitor.

    python benchmarks/operating_point.py [--rows 10000000] [--batch 1000000]

Peers are scikit-learn's `roc_curve` with every threshold kept (and, for a choice by cost, the least cost on it). A
floor is one `numpy.sort` of the scores, or passes over memory at 2 ns a row where the table is sorted or no order is
needed.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

import calibrant as ca
from _timing import Row, header, measure, passes, print_rows, sort


def rows_of(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities around 10 %, and labels."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(-2.6, 1.2, n)))
    return p, rng.random(n) < p


def curve_of(*rows: Any) -> None:
    """The curve with all its counts and costs."""
    found = ca.threshold_curve(*rows, false_positive=1, false_negative=9)
    assert len(found.fn) == len(found.tn) == len(found.cost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    given = parser.parse_args()
    header("Operating point")
    print_rows([*thresholds(given.rows), *priors(given.batch), *batches(given.batch)])
    state()


def thresholds(n: int) -> list[Row]:
    """Every threshold, from rows and from a table that is sorted already."""
    p, y = rows_of(n)
    table = ca.ScoreTable.from_arrays(p, y).distinct
    costs = {"false_positive": 1, "false_negative": 9}
    limit = {"objective": "recall", "at_least": {"precision": 0.4}}

    def every_threshold() -> tuple[np.ndarray, ...]:
        return roc_curve(y, p, drop_intermediate=False)

    def least_cost() -> float:
        fpr, tpr, cuts = every_threshold()
        events = np.count_nonzero(y)
        return float(cuts[np.argmin(fpr * (n - events) + 9 * (1 - tpr) * events)])

    one, four = passes(n, 1), passes(n, 4)
    choose = partial(ca.choose_threshold, table)
    return [
        measure("threshold_curve, rows", n, lambda: curve_of(y, p), every_threshold, "roc_curve", floor=sort(p)),
        measure("threshold_curve, sorted table", n, lambda: curve_of(table), None, floor=four, budget=2),
        measure(
            "choose_threshold by cost, rows",
            n,
            lambda: ca.choose_threshold(y, p, **costs),
            least_cost,
            "roc_curve",
            floor=sort(p),
        ),
        measure("choose_threshold by cost, sorted table", n, partial(choose, **costs), None, floor=four),
        measure("choose_threshold, limit", n, partial(choose, **limit), None, floor=four),
        measure("choose_threshold, guarantee", n, partial(choose, **limit, guarantee=0.05), None, floor=four),
        measure(
            "net_benefit, 50 thresholds",
            n,
            partial(ca.net_benefit, table, thresholds=np.linspace(0.01, 0.5, 50)),
            None,
            floor=one,
        ),
    ]


def priors(n: int) -> list[Row]:
    p = rows_of(n)[0]
    reference = ca.ScoreTable.from_arrays(*rows_of(100_000, 1))
    one = passes(n, 1)
    confusion = partial(ca.estimate_prior, p, 0.1, method="bbse", reference=reference)
    return [
        measure("adjust_prior", n, lambda: ca.adjust_prior(p, 0.1, 0.02), None, floor=one),
        measure("estimate_prior, EM", n, lambda: ca.estimate_prior(p, 0.1), None, floor=one),
        measure("estimate_prior, confusion", n, confusion, None, floor=one),
        measure("label_shift_test", n, lambda: ca.label_shift_test(p, reference), None, floor=one),
        measure("expected_performance", n, lambda: ca.expected_performance(p), None, floor=sort(p)),
    ]


def batches(n: int) -> list[Row]:
    """One batch of the monitor."""
    p, y = rows_of(n)
    monitor = ca.CalibrationMonitor(ca.ScoreTable.from_arrays(*rows_of(100_000, 1)))
    batch, one = ca.ScoreTable.from_arrays(p, y), passes(n, 1)
    return [
        measure("monitor, batch with labels", n, lambda: monitor.update(batch), None, floor=one, budget=1),
        measure("monitor, batch without labels", n, lambda: monitor.update(p), None, floor=one, budget=1),
    ]


def state() -> None:
    """Size of a monitor's memory after many batches."""
    monitor = ca.CalibrationMonitor(ca.ScoreTable.from_arrays(*rows_of(100_000, 1)))
    for k in range(600):
        monitor.update(ca.ScoreTable.from_arrays(*rows_of(200, k + 10)), name=f"batch {k}")
    size = len(json.dumps(monitor.to_dict(), separators=(",", ":")))
    verdict = "ok" if size < 1e6 else "MISSED"
    print(f"\nState after {monitor.n_batches} batches: {size / 1e6:.3f} MB {verdict} (bar 1 MB)")


if __name__ == "__main__":
    main()
