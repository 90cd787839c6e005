"""Calibrators of many classes against their peers, in one process.

    python benchmarks/multiclass.py [--large] [--only TEXT]

Rows are logits of simulated models: a matrix distortion of true logits. A ratio is the peer's time over ours; peers
that cannot be imported are left out, and the times of those measured elsewhere are given as constants. `--large` adds
50,000 rows of 1,000 classes in float32. The last table is one-versus-rest beside the joint fits.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.calibration import _TemperatureScaling

import calibrant
from _timing import Row, header, measure, print_rows

PUBLISHED = {  # seconds on 10,000 x 10, measured once beside ours where the package was installed
    "structured vector": ("reference package", 0.178, 3.0),
    "structured matrix": ("reference package, quasi-Newton", 0.470, 3.0),
    "Dirichlet": ("dirichletcal", 13.9, 100.0),
}


def rows_of(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits of an over-confident model that mixes up some classes, and labels."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, k)) + 3 * np.eye(k)[rng.integers(0, k, n)] * rng.random((n, 1))
    p = np.exp(true - true.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    mixing = np.eye(k) + rng.normal(size=(k, k)) / k
    return 1.7 * true @ mixing, y


def probabilities(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def temperature(n: int, k: int) -> Iterator[Row]:
    logits, y = rows_of(n, k)
    ours = calibrant.TemperatureScaling(from_logits=True)
    peer = _TemperatureScaling()
    bar = 5.0 if (n, k) == (10_000, 10) else None
    yield measure(f"temperature, K = {k}", n, lambda: ours.fit(logits, y), lambda: peer.fit(logits, y), bar=bar)
    if find_spec("netcal"):
        from netcal.scaling import TemperatureScaling

        p = probabilities(logits)
        yield measure(
            f"temperature, K = {k}", n, lambda: ours.fit(logits, y), lambda: TemperatureScaling().fit(p, y), "netcal"
        )


def joint(n: int, k: int) -> Iterator[Row]:
    """The joint methods; where a package cannot be imported its published time stands in."""
    logits, y = rows_of(n, k)
    makers = {
        "vector": calibrant.VectorScaling,
        "matrix": calibrant.MatrixScaling,
        "Dirichlet": calibrant.DirichletCalibration,
        "structured vector": calibrant.StructuredVectorScaling,
        "structured matrix": calibrant.StructuredMatrixScaling,
    }
    for name, make in makers.items():
        ours = make(from_logits=True)
        row = measure(f"{name}, K = {k}", n, lambda ours=ours: ours.fit(logits, y), None, "")
        if (n, k) == (10_000, 10) and name in PUBLISHED:
            peer, seconds, bar = PUBLISHED[name]
            row = Row(row.task, n, row.ours, seconds, f"{peer} (published)", bar, row.peak)
        yield row


def probmetrics(n: int, k: int) -> Iterator[Row]:
    """The reference package of structured scaling, when it can be imported."""
    if not find_spec("probmetrics"):
        return
    from probmetrics.calibrators import get_calibrator

    logits, y = rows_of(n, k)
    p = probabilities(logits)
    for name, make in {"svs": calibrant.StructuredVectorScaling, "sms": calibrant.StructuredMatrixScaling}.items():
        peer = lambda name=name: get_calibrator(name).fit(p, y)  # noqa: E731
        yield measure(f"{name}, K = {k}", n, lambda make=make: make().fit(p, y), peer, "probmetrics", 3.0)


def wide() -> Iterator[Row]:
    """A hundred classes on few rows: a limit in seconds instead of a peer."""
    logits, y = rows_of(5_000, 100)
    for name, make in {
        "structured vector": calibrant.StructuredVectorScaling,
        "structured matrix": calibrant.StructuredMatrixScaling,
    }.items():
        ours = make(from_logits=True)
        yield measure(f"{name}, K = 100", 5_000, lambda ours=ours: ours.fit(logits, y), None, "")


def large() -> None:
    """Seconds and peak memory on 50,000 x 1,000 float32 logits, each in a process of its own."""
    print("\n| 50,000 x 1,000 float32 | seconds | peak memory over the input, without the libraries |")
    print("|---|--:|--:|")
    for name in ("TemperatureScaling", "StructuredVectorScaling"):
        child = os.fork()
        if child == 0:
            seconds, ratio = _large_one(getattr(calibrant, name)(from_logits=True))
            print(f"| {name} | {seconds:.1f} | {ratio:.2f} |", flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def _large_one(calibrator: Any, n: int = 50_000, k: int = 1_000) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    logits = np.empty((n, k), dtype=np.float32)
    for first in range(0, n, 500):
        logits[first : first + 500] = 1.5 * rng.normal(size=(500, k))
    y = rng.integers(0, k, n)
    logits[np.arange(n), y] += rng.exponential(7.0, n).astype(np.float32)
    start = time.perf_counter()
    calibrator.fit(logits, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return seconds, peak / logits.nbytes


def one_against_the_rest(k: int = 10, repeats: int = 10) -> None:
    """Expected log loss above that of the truth, by number of calibration rows."""
    sizes = (100, 300, 1_000, 3_000, 10_000, 30_000)
    makers = {
        "as they are": None,
        "one-vs-rest affine": lambda: calibrant.OneVsRest(calibrant.AffineLogit()),
        "one-vs-rest isotonic": lambda: calibrant.OneVsRest(calibrant.IsotonicCalibration(smoothing=1.0)),
        "matrix": calibrant.MatrixScaling,
        "structured vector": calibrant.StructuredVectorScaling,
        "structured matrix": calibrant.StructuredMatrixScaling,
    }
    print(f"\nLog loss above that of the true probabilities, {k} classes, mean of {repeats} draws:\n")
    print("| rows | " + " | ".join(makers) + " |")
    print("|--:|" + "--:|" * len(makers))
    for n in sizes:
        gaps = np.mean([[_gap(make, n, k, seed) for make in makers.values()] for seed in range(repeats)], axis=0)
        print(f"| {n:,} | " + " | ".join(f"{gap:.4f}" for gap in gaps) + " |", flush=True)


def _gap(make: Any, n: int, k: int, seed: int) -> float:
    logits, y = _mixed_up(n, k, seed)[:2]
    test, _, truth = _mixed_up(4_000, k, 10_000 + seed)
    p = probabilities(test)
    q = p if make is None else make().fit(probabilities(logits), y).predict_proba(p)
    return float(np.mean(np.sum(truth * (np.log(truth) - np.log(np.maximum(q, 1e-15))), axis=1)))


def _mixed_up(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits of a model that mixes neighbouring classes, labels and true probabilities."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, k)) + 3 * np.eye(k)[rng.integers(0, k, n)] * rng.random((n, 1))
    truth = probabilities(true)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    blur = 1.5 * np.eye(k) + 0.5 * np.roll(np.eye(k), 1, axis=1)
    return true @ blur, y, truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also 50,000 rows of 1,000 classes")
    parser.add_argument("--only", default="", help="speed, or demonstration")
    options = parser.parse_args()
    header("Many classes")
    if options.only != "demonstration":
        rows = [*temperature(10_000, 10), *joint(10_000, 10), *probmetrics(10_000, 10), *wide()]
        print_rows(rows)
        if options.large:
            large()
    if options.only != "speed":
        one_against_the_rest()


if __name__ == "__main__":
    main()
