"""Speed of the generative classifiers: beside scikit-learn and a floor, in engines, and when rows double.

The floor is one pass over memory of every feature: 2 ns for each row and feature. Beside scikit-learn the time of the
processor counts, with one thread of BLAS, so that neither waiting nor idle threads do. An iteration of risk-based
calibration is the difference of two fits with few and with more iterations, over the iterations between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from threadpoolctl import threadpool_limits

from _timing import PASS, Row, fastest, measure, once, passes, peak_megabytes, print_rows
from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    LinearDiscriminantLogistic,
    QuadraticDiscriminant,
    RiskBasedCalibration,
)

Data = tuple[np.ndarray, np.ndarray]
PEERS: tuple[tuple[Any, Any], ...] = (
    (CategoricalNaiveBayes(1.0), CategoricalNB()),
    (GaussianNaiveBayes(), GaussianNB()),
    (QuadraticDiscriminant(), QuadraticDiscriminantAnalysis()),
    (LinearDiscriminantLogistic(), LinearDiscriminantAnalysis()),
)


def categories(n: int, d: int = 20, n_classes: int = 2) -> Data:
    """Features of 4 to 8 categories that tell the classes apart a little."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    columns = [(rng.integers(0, size, n) + y * (rng.random(n) < 0.1)) % size for size in rng.integers(4, 9, d)]
    return np.stack(columns, axis=1), y


def numbers(n: int, d: int = 20, n_classes: int = 2) -> Data:
    """Correlated features whose means differ between the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, d)) + 0.3 * y[:, None]
    X[:, 1:] += 0.5 * X[:, :-1]
    return X, y


def rows_for(model: Any, n: int, d: int = 20, n_classes: int = 2) -> Data:
    make = categories if isinstance(model, CategoricalNaiveBayes) else numbers
    return make(n, d, n_classes)


def calibrate(model: Any, given: Data, iterations: int) -> Any:
    return RiskBasedCalibration(model, max_iter=iterations).fit(*given)


def iteration(fit: Callable[[int], Any], few: int, more: int, repeats: int) -> float:
    """Seconds of one iteration, from the least times of fits with few and with more."""
    fit(few)
    turns = [[once(partial(fit, few)), once(partial(fit, more))] for _ in range(repeats)]
    least = [min(taken) for taken in zip(*turns)]
    return (least[1] - least[0]) / (more - few)


# ---------------------------------------------------------------- beside scikit-learn


def speed() -> None:
    """Plain fits and predictions beside scikit-learn's, and 64 iterations in under half a minute of the processor."""
    with threadpool_limits(1):
        print("### Plain fits and predictions; the floor is a pass over each of the 20 features, 2 ns a row\n")
        print_rows([row for ours, peer in PEERS for row in _plain(ours, peer)])
        print("\n### 64 iterations; the floor is that of 65 passes over each feature\n")
        _iterations()


def _iterations() -> None:
    print("| task | rows | classes | seconds | bar | floor | time / floor | peak MB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for n_classes in (2, 3):
        _print_speed(CategoricalNaiveBayes(), 1_000_000, n_classes)
    for n_classes in (2, 3):
        for model in (GaussianNaiveBayes(), QuadraticDiscriminant(), LinearDiscriminantLogistic()):
            _print_speed(model, 100_000, n_classes)
    print()


def _plain(ours: Any, peer: Any) -> Iterator[Row]:
    X, y = rows_for(ours, 1_000_000)
    name = type(ours).__name__
    given: dict[str, Any] = {"floor": passes(*X.shape), "clock": time.process_time}
    yield measure(f"{name} fit", len(y), lambda: ours.fit(X, y), lambda: peer.fit(X, y), **given)
    task = f"{name} predict_proba"
    yield measure(task, len(y), lambda: ours.predict_proba(X), lambda: peer.predict_proba(X), **given)


def _print_speed(model: Any, n: int, n_classes: int) -> None:
    X, y = rows_for(model, n, n_classes=n_classes)
    took = fastest([partial(calibrate, model, (X, y), 64)], 2, time.process_time)[0]
    peak = peak_megabytes(partial(calibrate, model, (X, y), 2))
    floor = 65 * X.size * PASS
    cells = [f"{type(model).__name__}, {X.shape[1]} features", f"{n:,}", n_classes, f"{took:.1f}"]
    cells += ["30 ok" if took < 30 else "30 MISSED", f"{floor:.2f}", f"{took / floor:.1f}", f"{peak:.0f}"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---------------------------------------------------------------- frames


def frames(spark: bool) -> None:
    """The plain fit and an iteration of the same million rows in memory and in each engine."""
    n, d, n_classes = 1_000_000, 10, 3
    print(f"### {n:,} rows of {n_classes} classes in memory (one thread) and in engines of two threads\n")
    print("The difference is the largest of the log losses of three iterates from those in memory.\n")
    print("| model | rows in | plain fit, s | an iteration, s | beside memory | difference |")
    print("|---|---|--:|--:|--:|--:|")
    for model in (GaussianNaiveBayes(), LinearDiscriminantLogistic(), QuadraticDiscriminant()):
        _frame_rows(model, d, n, n_classes, spark)
    for features in (5, 20):
        _frame_rows(CategoricalNaiveBayes(1.0), features, n, n_classes, spark)
    print()


def _frame_rows(model: Any, d: int, n: int, n_classes: int, spark: bool) -> None:
    X, y = rows_for(model, n, d, n_classes)
    data = {f"x{j}": column for j, column in enumerate(X.T)} | {"y": y}
    memory = iteration(partial(calibrate, model, (X, y)), 2, 10, 2)
    wanted = calibrate(model, (X, y), 2).history_.log_loss
    _print_frame(model, d, "memory", fastest([lambda: model.fit(X, y)], 3)[0], memory, memory, "")
    engines = {"Polars": _polars, "DuckDB": _duckdb, "Spark, cached": _spark} if spark else ENGINES
    for engine, make in engines.items():
        frame = make(data)
        named: dict[str, Any] = {"frame": frame, "features": [f"x{j}" for j in range(d)], "label": "y"}

        def fit(iterations: int, named: dict[str, Any] = named) -> Any:
            return RiskBasedCalibration(model, max_iter=iterations).fit_frame(**named)

        taken = iteration(fit, 1, 5, 2)
        plain = once(partial(model.fit_frame, **named))
        _print_frame(model, d, engine, plain, taken, memory, f"{np.abs(fit(2).history_.log_loss - wanted).max():.0e}")


def _print_frame(model: Any, d: int, engine: str, plain: float, taken: float, memory: float, apart: str) -> None:
    name = f"{type(model).__name__}, {d} features"
    cells = [name, engine, f"{plain:.2f}", f"{taken:.3f}", f"{taken / memory:.1f}", apart]
    print("| " + " | ".join(cells) + " |", flush=True)


def _polars(data: dict[str, np.ndarray]) -> Any:
    import polars

    return polars.LazyFrame(data)


def _duckdb(data: dict[str, np.ndarray]) -> Any:
    import duckdb
    import pyarrow

    connection = duckdb.connect(config={"threads": 2})
    connection.register("given", pyarrow.table(data))
    connection.execute("create table rows as select * from given")
    return connection.table("rows")


ENGINES = {"Polars": _polars, "DuckDB": _duckdb}


def _spark(data: dict[str, np.ndarray]) -> Any:
    """A cached frame of a local Spark with two threads."""
    import tempfile

    import pyarrow
    import pyarrow.parquet
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.python.sql.dataFrameDebugging.enabled", "false")
    session = builder.config("spark.driver.memory", "3g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.catalog.clearCache()
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        pyarrow.parquet.write_table(pyarrow.table(data), file.name)
        frame = session.read.parquet(file.name).repartition(4).cache()
        frame.count()
    return frame


# ---------------------------------------------------------------- twice the rows


def doubling() -> None:
    """The least times of plain fits, predictions and iterations on n and 2n rows."""
    n = 1_000_000
    print(f"### Twice the rows: {n:,} and {2 * n:,}, 10 features, 2 classes; the time should double\n")
    print("| task | n rows | 2n rows | growth | at most 2.3 |\n|---|--:|--:|--:|---|")
    for model, _ in PEERS:
        sets = [rows_for(model, size, 10) for size in (n, 2 * n)]
        name = type(model).__name__
        _print_growth(f"{name} fit", fastest([partial(model.fit, *given) for given in sets], 5))
        _print_growth(f"{name} predict_proba", fastest([partial(model.predict_proba, X) for X, _ in sets], 5))
        taken = [iteration(partial(calibrate, model, given), 1, 9, 3) for given in sets]
        _print_growth(f"{name}, an iteration", taken)
    print()


def _print_growth(task: str, taken: list[float]) -> None:
    growth = taken[1] / taken[0]
    cells = [task, *(f"{one * 1e3:.1f} ms" for one in taken), f"{growth:.2f}", "ok" if growth <= 2.3 else "MORE"]
    print("| " + " | ".join(cells) + " |", flush=True)
