"""Does time double when rows double? Every binary method, measure, decision, monitoring step and prior estimate.

    python benchmarks/doubling.py [--rows 4000000] [--only TEXT] [--user]

Both sizes lie beyond the caches and are run in turn; the least of several runs counts. Where the system can fork, each
task has a process of its own, so that none finds the memory which another one left. A method that needs the order
of the scores is expected at 2 log(2n) / log(n), all others at 2; `ok` is within 15 per cent of that, or below it.
With `--user` the mean of the processor's time in our own code counts, of all threads together: without the waiting for
others on a shared machine, and without the system's clearing of fresh pages, which is not ours and follows its mood.
Tables are sorted in the call unless the task says otherwise. Scores are distinct floats, labels int64.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import calibrant as ca
from _timing import PASS, header, once

Task = tuple[str, bool, Callable[["Sample"], Callable[[], Any]]]
"""Name, whether it sorts, and the call for a sample."""
ENOUGH = 1.0
"""Seconds for the repeats of one task."""
LEAST = 4
"""Repeats of a task that takes longer."""


class Sample:
    """Rows of a slightly over-confident model around a rate of 10 %, and what a task may need ready."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(0)
        self.margin = rng.normal(-2.6, 1.3, n)
        self.p = 1 / (1 + np.exp(-self.margin))
        self.other = 1 / (1 + np.exp(-0.8 * self.margin))
        self.y = (rng.random(n) < 1 / (1 + np.exp(-0.9 * self.margin))).astype(np.int64)
        self.weight = rng.integers(1, 4, n).astype(float)
        self.group = rng.integers(0, 8, n)
        self.sorted = ca.ScoreTable.from_arrays(self.p, self.y).distinct

    @property
    def table(self) -> ca.ScoreTable:
        """Not sorted yet."""
        return ca.ScoreTable.from_arrays(self.p, self.y)


def calibrators() -> Iterator[Task]:
    makers: dict[str, tuple[bool, Callable[[], Any]]] = {
        "PlattScaling": (False, ca.PlattScaling),
        "TemperatureScaling": (False, ca.TemperatureScaling),
        "AffineLogit": (False, ca.AffineLogit),
        "QuadraticLogit": (False, ca.QuadraticLogit),
        "BetaCalibration": (False, ca.BetaCalibration),
        "SplineCalibration": (True, ca.SplineCalibration),
        "IsotonicCalibration": (True, ca.IsotonicCalibration),
        "IsotonicCalibration, centred": (True, partial(ca.IsotonicCalibration, centered=True)),
        "HistogramBinning": (True, ca.HistogramBinning),
        "HistogramBinning, uniform": (False, partial(ca.HistogramBinning, strategy="uniform")),
        "VennAbers": (True, ca.VennAbers),
        "RecursivePartitioning, two classes": (True, ca.RecursivePartitioning),
        "AutoCalibrator": (True, ca.AutoCalibrator),
    }
    for name, (sorts, make) in makers.items():
        yield f"{name}, fit", sorts, lambda s, make=make: lambda: make().fit(s.p, s.y)
    for name in ("PlattScaling", "IsotonicCalibration"):
        make = getattr(ca, name)
        sorts = name == "IsotonicCalibration"
        yield f"{name}, weighted fit", sorts, lambda s, make=make: lambda: make().fit(s.p, s.y, s.weight)
    for name, (_, make) in makers.items():
        if "centred" not in name and "uniform" not in name:
            yield f"{name}, apply", False, lambda s, make=make: _apply(s, make)


def _apply(sample: Sample, make: Callable[[], Any]) -> Callable[[], Any]:
    """The map learned from the first 100,000 rows, on all."""
    return partial(make().fit(sample.p[:100_000], sample.y[:100_000]).map_, sample.p)


def measures() -> Iterator[Task]:
    plain: dict[str, tuple[bool, Any, dict[str, Any]]] = {
        "brier_score": (False, ca.brier_score, {}),
        "log_loss": (False, ca.log_loss, {}),
        "expected_calibration_error": (False, ca.expected_calibration_error, {}),
        "expected_calibration_error, quantile": (True, ca.expected_calibration_error, {"strategy": "quantile"}),
        "calibration_error": (True, ca.calibration_error, {}),
        "smooth_calibration_error": (True, ca.smooth_calibration_error, {}),
        "calibration_slope_intercept": (False, ca.calibration_slope_intercept, {}),
        "score_decomposition, bins": (False, ca.score_decomposition, {"method": "bins"}),
        "score_decomposition, isotonic": (True, ca.score_decomposition, {}),
        "reliability_curve": (False, ca.reliability_curve, {}),
        "reliability_curve, isotonic": (True, ca.reliability_curve, {"strategy": "isotonic"}),
        "roc_auc": (True, ca.roc_auc, {}),
        "average_precision": (True, ca.average_precision, {}),
        "roc_curve": (True, ca.roc_curve, {}),
        "roc_convex_hull": (True, ca.roc_convex_hull, {}),
        "calibration_test, Spiegelhalter": (False, ca.calibration_test, {}),
        "calibration_test, Hosmer-Lemeshow": (True, ca.calibration_test, {"kind": "hosmer-lemeshow"}),
        "calibration_test, Cox": (False, ca.calibration_test, {"kind": "cox"}),
        "calibration_verdict": (False, ca.calibration_verdict, {"margin": 0.02}),
        "shape_diagnosis": (True, ca.shape_diagnosis, {}),
    }
    for name, (sorts, measure, options) in plain.items():
        yield name, sorts, lambda s, measure=measure, options=options: partial(measure, s.y, s.p, **options)
    for name in ("brier_score", "log_loss", "roc_auc", "average_precision", "calibration_slope_intercept"):
        measure = getattr(ca, name)
        sorts = name in ("roc_auc", "average_precision")
        yield f"estimate, {name}", sorts, lambda s, measure=measure: partial(ca.estimate, measure, s.y, s.p)
    yield "compare, brier_score", False, lambda s: partial(ca.compare, ca.brier_score, s.y, s.p, s.other)
    yield "compare, roc_auc", True, lambda s: partial(ca.compare, ca.roc_auc, s.y, s.p, s.other)
    yield "calibration_by_group", True, lambda s: partial(ca.calibration_by_group, s.y, s.p, s.group)


def tables() -> Iterator[Task]:
    yield "ScoreTable, sorted", True, lambda s: lambda: s.table.distinct
    yield "ScoreTable, sum of two", True, lambda s: lambda: (s.sorted + s.sorted).distinct


def decisions() -> Iterator[Task]:
    costs: dict[str, Any] = {"false_positive": 1, "false_negative": 9}
    limit: dict[str, Any] = {"objective": "recall", "at_least": {"precision": 0.4}}
    yield "threshold_curve", True, lambda s: partial(ca.threshold_curve, s.y, s.p, **costs)
    yield "threshold_curve, sorted table", False, lambda s: partial(ca.threshold_curve, s.sorted, **costs)
    yield "choose_threshold, cost", True, lambda s: partial(ca.choose_threshold, s.y, s.p, **costs)
    yield "choose_threshold, limit", True, lambda s: partial(ca.choose_threshold, s.y, s.p, **limit)
    guarantee = {**limit, "guarantee": 0.05}
    yield "choose_threshold, guarantee", True, lambda s: partial(ca.choose_threshold, s.y, s.p, **guarantee)
    yield "net_benefit", True, lambda s: partial(ca.net_benefit, s.y, s.p, np.linspace(0.01, 0.5, 50))


def monitoring() -> Iterator[Task]:
    yield "adjust_prior", False, lambda s: partial(ca.adjust_prior, s.p, 0.1, 0.02)
    yield "undo_sampling", False, lambda s: partial(ca.undo_sampling, s.p, 0.1)
    yield "estimate_prior, EM", False, lambda s: partial(ca.estimate_prior, s.p, 0.1)
    bbse = "estimate_prior, confusion"
    yield bbse, False, lambda s: partial(ca.estimate_prior, s.p, 0.1, method="bbse", reference=s.sorted)
    yield "label_shift_test", False, lambda s: partial(ca.label_shift_test, s.p, s.sorted)
    yield "expected_performance", True, lambda s: partial(ca.expected_performance, s.p)
    yield "monitor, reference", False, lambda s: lambda: ca.CalibrationMonitor(s.table)
    yield "monitor, batch with labels", False, lambda s: lambda: _monitor(s).update(s.table)
    yield "monitor, batch of scores", False, lambda s: lambda: _monitor(s).update(s.p)


def _monitor(sample: Sample) -> ca.CalibrationMonitor:
    return ca.CalibrationMonitor(ca.ScoreTable.from_arrays(sample.p[:10_000], sample.y[:10_000]))


GROUPS = (tables, calibrators, measures, decisions, monitoring)


def user_time() -> float:
    """Seconds of the processor in this process, without the system's."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def show(task: Task, small: Sample, large: Sample, clock: Callable[[], float]) -> bool:
    """Print one line; whether the time grew as it should."""
    name, sorts, of = task
    calls = [of(small), of(large)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repeats = min(max(round(ENOUGH / sum(map(once, calls))), LEAST), 12)
        turns = [[once(call, clock) for call in calls] for _ in range(repeats)]
    summary = min if clock is time.perf_counter else statistics.fmean
    least = [summary(taken) for taken in zip(*turns)]
    n = len(small.p)
    expected = 2 * (math.log(2 * n) / math.log(n) if sorts else 1)
    ratio = least[1] / least[0]
    good = ratio <= 1.15 * expected
    cells = [name, *(f"{taken * 1e3:.1f} ms" for taken in least), f"{least[1] / 2 / n * 1e9:.1f}"]
    cells += [f"{least[1] / (2 * n * PASS):.1f}", f"{ratio:.2f}", f"{expected:.2f}", "ok" if good else "MORE"]
    print("| " + " | ".join(cells) + " |", flush=True)
    return good


def apart(task: Task, *rest: Any) -> bool:
    """`show` in a process of its own."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return show(task, *rest)
    there, here = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=lambda: there.send(show(task, *rest)))
    child.start()
    child.join()
    if not here.poll():
        raise SystemExit(f"{task[0]} ended with exit code {child.exitcode}.")
    return bool(here.recv())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", default="", help="run the tasks whose name contains this")
    parser.add_argument("--user", action="store_true", help="count the processor's time in our code, not the clock's")
    options = parser.parse_args()
    clock = user_time if options.user else time.perf_counter
    kind = "user time" if options.user else "time by the clock"
    header(f"Twice the rows: {options.rows:,} and {2 * options.rows:,}, {kind}")
    small, large = Sample(options.rows), Sample(2 * options.rows)
    print("| task | n rows | 2n rows | ns a row | passes of 2 ns | growth | expected | |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    found = [apart(task, small, large, clock) for group in GROUPS for task in group() if options.only in task[0]]
    print(f"\n{sum(found)} of {len(found)} grow as expected.")


if __name__ == "__main__":
    main()
