"""Calibrators and measures of many classes against their peers, in one process.

    python benchmarks/multiclass.py [--large] [--only TEXT] [--rows 15000000]

Rows are logits of simulated models: a matrix distortion of true logits. A ratio is the peer's time over ours; peers
that cannot be imported are left out, and the times of those measured elsewhere are given as constants. The floor is one
pass over the logits (2 ns a number), six for a temperature. The peer of a joint method in scikit-learn is its
logistic regression on the same logits, which fits a matrix. `doubling` tells whether time doubles with the rows,
`--large` adds 50,000 rows of 1,000 classes in float32, `blocks` fits rows that are never held together and counts the
passes, `files` runs the commands on Parquet, by default on more scores than are held at once. The last table is
one-versus-rest beside the joint fits.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as ca
from _timing import Floor, Row, fastest, header, measure, passes, print_rows
from scale import run

PUBLISHED = {  # seconds on 10,000 x 10, measured once beside ours where the package was installed
    "structured vector": ("reference package", 0.178, 3.0),
    "structured matrix": ("reference package, quasi-Newton", 0.470, 3.0),
    "Dirichlet": ("dirichletcal", 13.9, 100.0),
}


def rows_of(n: int, k: int, seed: int = 0, matrix_seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Logits of an over-confident model that mixes up some classes, and labels."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, k)) + 3 * np.eye(k)[rng.integers(0, k, n)] * rng.random((n, 1))
    p = np.exp(true - true.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    rng = rng if matrix_seed is None else np.random.default_rng(matrix_seed)
    mixing = np.eye(k) + rng.normal(size=(k, k)) / k
    return 1.7 * true @ mixing, y


def probabilities(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


CLI = [sys.executable, "-m", "calibrant"]
JOINT = {
    "vector": ca.VectorScaling,
    "matrix": ca.MatrixScaling,
    "Dirichlet": ca.DirichletCalibration,
    "structured vector": ca.StructuredVectorScaling,
    "structured matrix": ca.StructuredMatrixScaling,
}


def over_logits(n: int, k: int, count: int = 1, goal: float | None = None) -> Floor:
    """So many passes over the logits."""
    return passes(n * k, count, goal)


def temperature(n: int, k: int) -> Iterator[Row]:
    logits, y = rows_of(n, k)
    ours, peer = ca.TemperatureScaling(from_logits=True), _TemperatureScaling()
    bar = 5.0 if (n, k) == (10_000, 10) else None
    task, floor = f"temperature, K = {k}", over_logits(n, k, 6, 3.0)
    yield measure(task, n, lambda: ours.fit(logits, y), lambda: peer.fit(logits, y), bar=bar, floor=floor)
    if find_spec("netcal"):
        from netcal.scaling import TemperatureScaling

        p = probabilities(logits)
        netcal = lambda: TemperatureScaling().fit(p, y)  # noqa: E731
        yield measure(task, n, lambda: ours.fit(logits, y), netcal, "netcal", floor=floor)


def joint(n: int, k: int) -> Iterator[Row]:
    """The joint methods; where a package cannot be imported its published time stands in."""
    logits, y = rows_of(n, k)
    for name, make in JOINT.items():
        ours, regression = make(from_logits=True), LogisticRegression(max_iter=1000)
        task, floor = f"{name}, K = {k}", over_logits(n, k)
        row = measure(task, n, partial(ours.fit, logits, y), partial(regression.fit, logits, y), floor=floor)
        yield row
        if (n, k) == (10_000, 10) and name in PUBLISHED:
            peer, seconds, bar = PUBLISHED[name]
            yield Row(row.task, n, row.ours, seconds, f"{peer} (published)", bar, row.peak, floor)


def one_by_one(n: int, k: int) -> Iterator[Row]:
    """One-versus-rest beside scikit-learn's calibrators, a column at a time."""
    logits, y = rows_of(n, k)
    p = probabilities(logits)

    def sigmoids() -> None:
        for column in range(k):
            _SigmoidCalibration().fit(p[:, column], (y == column).astype(float))

    def isotonics() -> None:
        for column in range(k):
            IsotonicRegression(out_of_bounds="clip").fit(p[:, column], y == column)

    for name, inner, peer in (
        ("affine", ca.AffineLogit(), sigmoids),
        ("isotonic", ca.IsotonicCalibration(), isotonics),
    ):
        ours = ca.OneVsRest(inner)
        yield measure(f"one-vs-rest {name}, K = {k}", n, partial(ours.fit, p, y), peer, floor=over_logits(n, k))


def measures(n: int, k: int) -> Iterator[Row]:
    """Measures of K classes, and applying a map."""
    logits, y = rows_of(n, k)
    p = probabilities(logits)

    def top_curve() -> Any:
        return calibration_curve(p.argmax(axis=1) == y, p.max(axis=1), n_bins=15)

    by_class = partial(metrics.roc_auc_score, y, p, multi_class="ovr", average=None)
    tasks: dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]] = {
        "log_loss": (partial(ca.log_loss, y, p), partial(metrics.log_loss, y, p)),
        "brier_score": (partial(ca.brier_score, y, p), partial(metrics.brier_score_loss, y, p)),
        "top_label_table": (partial(ca.top_label_table, y, p), None),
        "top-label error (peer: its curve)": (partial(ca.expected_calibration_error, y, p), top_curve),
        "class_summary (peer: its AUCs)": (partial(ca.class_summary, y, p), by_class),
        "confusion_matrix": (
            partial(ca.confusion_matrix, y, p),
            lambda: metrics.confusion_matrix(y, p.argmax(axis=1)),
        ),
    }
    for name, (ours, peer) in tasks.items():
        yield measure(f"{name}, K = {k}", n, ours, peer, floor=over_logits(n, k))
    record = ca.StructuredMatrixScaling(from_logits=True).fit(logits[:20_000], y[:20_000]).map_
    regression = LogisticRegression(max_iter=1000).fit(logits[:20_000], y[:20_000])
    task = f"apply a matrix, K = {k}"
    yield measure(task, n, partial(record, logits), partial(regression.predict_proba, logits), floor=over_logits(n, k))


def doubling(n: int, k: int) -> None:
    """Time of n and 2n rows, taken in turn, for every method and measure."""
    samples = []
    for size in (n, 2 * n):
        logits, y = rows_of(size, k)
        samples.append((logits, probabilities(logits), y))
    records = {name: make(from_logits=True).fit(samples[0][0], samples[0][2]).map_ for name, make in JOINT.items()}
    tasks: dict[str, Callable[..., Any]] = {"temperature": lambda z, p, y: ca.TemperatureScaling(True).fit(z, y)}
    for name, make in JOINT.items():
        tasks[name] = lambda z, p, y, make=make: make(from_logits=True).fit(z, y)
    tasks["one-vs-rest affine"] = lambda z, p, y: ca.OneVsRest(ca.AffineLogit()).fit(p, y)
    tasks["one-vs-rest isotonic"] = lambda z, p, y: ca.OneVsRest(ca.IsotonicCalibration()).fit(p, y)
    for name in ("log_loss", "brier_score", "class_tables", "top_label_table", "expected_calibration_error"):
        tasks[name] = lambda z, p, y, name=name: getattr(ca, name)(y, p)
    for name in ("class_summary", "confusion_matrix", "classwise_reliability_curves"):
        tasks[name] = lambda z, p, y, name=name: getattr(ca, name)(y, p)
    tasks |= {f"apply, {name}": lambda z, p, y, record=record: record(z) for name, record in records.items()}
    print(f"\nTime when rows double, K = {k}; within 15 % of 2 (of 2.1 with a sort):\n")
    print(f"| task | {n:,} rows | {2 * n:,} rows | ratio | |\n|---|--:|--:|--:|---|")
    for name, task in tasks.items():
        least = fastest([partial(task, *sample) for sample in samples], 5)
        ratio = least[1] / least[0]
        most = 1.15 * (2.1 if name in ("one-vs-rest isotonic", "class_summary") else 2.0)
        said = "ok" if ratio <= most else "MORE"
        print(f"| {name} | {least[0] * 1e3:.1f} ms | {least[1] * 1e3:.1f} ms | {ratio:.2f} | {said} |", flush=True)


def blocks(n_blocks: int = 20, rows: int = 100_000, k: int = 100) -> None:
    """Seconds and peak memory of fits over blocks of float32 logits, each read from its own file when it is wanted."""
    print(f"\n| over blocks of {rows:,} x {k} float32 | blocks | all logits | passes | seconds | peak of the process |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(n_blocks):
            logits, y = rows_of(rows, k, seed=number + 1, matrix_seed=0)
            np.save(folder / f"z{number}.npy", logits.astype(np.float32))
            np.save(folder / f"y{number}.npy", y)
        for method in ("TemperatureScaling", "StructuredVectorScaling", "StructuredMatrixScaling"):
            for count in (n_blocks // 4, n_blocks):
                _blocks_once(method, folder, count, rows * k * 4)


def _blocks_once(method: str, folder: Path, count: int, size: int) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return

    passed = 0

    def source() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        nonlocal passed
        passed += 1
        return ((np.load(folder / f"z{number}.npy"), np.load(folder / f"y{number}.npy")) for number in range(count))

    start = time.perf_counter()
    getattr(ca, method)(from_logits=True).fit_blocks(source)
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = [method, count, f"{count * size / 1e6:,.0f} MB", passed, f"{taken:.1f}", f"{peak:,.0f} MB"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    os._exit(0)


def files(n: int, part: int = 1_000_000) -> None:
    """The commands on Parquet of ten classes, then reports of more classes; each line is a process of its own."""
    print("\n| rows | scores | task, as a whole process | seconds | peak MiB |\n|--:|---|---|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many, few, record, out = (folder / place for place in ("many", "few", "map.json", "out.parquet"))
        for number in range(-(-n // part)):
            _write(many / f"{number}.parquet", min(part, n - number * part), 10, number + 1)
        _write(few / "0.parquet", part, 10, 1)
        for method in ("sms", "temperature"):
            _command(n, 10, f"fit --method {method}", many, "--method", method, "-o", str(record), "--force")
        _command(n, 10, "evaluate --map", many, "--map", str(record), "--json")
        page = str(folder / "page.html")
        _command(n, 10, "report --method temperature", many, "--method", "temperature", "-o", page)
        run([*CLI, "apply", str(record), str(few), "--scores", "p_*", "-o", str(out)], part, "10", "`calibrant apply`")
        for rows, k, method in ((50_000, 100, "auto"), (20_000, 1_000, "temperature")):
            wide = folder / str(k)
            _write(wide / "0.parquet", rows, k, 1)
            _command(rows, k, f"report --method {method}", wide, "--method", method, "-o", page, "--force")


def _command(rows: int, k: int, task: str, folder: Path, *options: str) -> None:
    command = [*CLI, task.split()[0], str(folder), "--scores", "p_*", "--label", "y", *options]
    run(command, rows, f"{k:,}", f"`calibrant {task}`")


def _write(path: Path, n: int, k: int, seed: int) -> None:
    """Probabilities p_0 to p_(k - 1) and the label y; in a child, because a process inherits its parent's peak."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    import pyarrow
    import pyarrow.parquet

    path.parent.mkdir(exist_ok=True)
    logits, y = rows_of(n, k, seed=seed, matrix_seed=0)
    columns = {f"p_{j}": column for j, column in enumerate(probabilities(logits).T)}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"y": y}), path)
    os._exit(0)


def probmetrics(n: int, k: int) -> Iterator[Row]:
    """The reference package of structured scaling, when it can be imported."""
    if not find_spec("probmetrics"):
        return
    from probmetrics.calibrators import get_calibrator

    logits, y = rows_of(n, k)
    p = probabilities(logits)
    for name, make in {"svs": ca.StructuredVectorScaling, "sms": ca.StructuredMatrixScaling}.items():
        peer = lambda name=name: get_calibrator(name).fit(p, y)  # noqa: E731
        yield measure(f"{name}, K = {k}", n, lambda make=make: make().fit(p, y), peer, "probmetrics", 3.0)


def wide() -> Iterator[Row]:
    """A hundred classes on few rows: a limit in seconds instead of a peer."""
    logits, y = rows_of(5_000, 100)
    for name in ("structured vector", "structured matrix"):
        ours = JOINT[name](from_logits=True)
        yield measure(f"{name}, K = 100", 5_000, partial(ours.fit, logits, y), None, "", floor=over_logits(5_000, 100))


def large() -> None:
    """Seconds and peak memory on 50,000 x 1,000 float32 logits, each in a process of its own."""
    print("\n| 50,000 x 1,000 float32 | seconds | peak memory over the input, without the libraries |")
    print("|---|--:|--:|")
    for name in ("TemperatureScaling", "StructuredVectorScaling"):
        child = os.fork()
        if child == 0:
            seconds, ratio = _large_one(getattr(ca, name)(from_logits=True))
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
        "one-vs-rest affine": lambda: ca.OneVsRest(ca.AffineLogit()),
        "one-vs-rest isotonic": lambda: ca.OneVsRest(ca.IsotonicCalibration(smoothing=1.0)),
        "matrix": ca.MatrixScaling,
        "structured vector": ca.StructuredVectorScaling,
        "structured matrix": ca.StructuredMatrixScaling,
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
    parser.add_argument("--only", default="", help="speed, doubling, blocks, files, or demonstration")
    parser.add_argument("--rows", type=int, default=15_000_000, help="of the files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    header("Many classes")
    wanted = [options.only] if options.only else ["speed", "doubling", "blocks", "files", "demonstration"]
    if "speed" in wanted:
        small = [*temperature(10_000, 10), *joint(10_000, 10), *probmetrics(10_000, 10), *one_by_one(10_000, 10)]
        print_rows([*small, *temperature(1_000_000, 10), *measures(200_000, 10), *wide()])
    if options.large:
        large()
    if "doubling" in wanted:
        doubling(1_000_000, 10)
    if "blocks" in wanted:
        blocks()
    if "files" in wanted:
        files(options.rows)
    if "demonstration" in wanted:
        one_against_the_rest()


if __name__ == "__main__":
    main()
