"""Parquet of many rows, made in pieces: the table, the fits, the measures and the commands, with time and peak memory.

Run `python benchmarks/scale.py [rows ...] [--folder FOLDER] [--only TEXT] [--short]`, by default 100_000_000 and
300_000_000 rows; `--only different` or `--only digits` makes one kind of scores, `--steps` only shows how many steps of
a map are applied as fast over blocks of rows as in SQL.
Every line is a process of its own, from start to end, which reads the files first; peak memory is that of the whole
process. The floor is one scan of the two columns in DuckDB with two threads. The peer is scikit-learn on the columns as
arrays, up to 100_000_000 rows: more do not fit. `--short` leaves out the lazy frames and the peer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _timing import fastest, header

PIECE = 5_000_000
LAZY = ("duckdb", "polars")
TASKS = ("table", "Platt", "beta", "isotonic", "measures")
OF_PEER = ("Platt", "isotonic", "measures")
MOST_OF_PEER = 100_000_000
COMMANDS = {
    "report": ["report", "{rows}", "--label", "y", "--output", "{page}"],
    "evaluate": ["evaluate", "{rows}", "--label", "y", "--json"],
    "fit --method auto": ["fit", "{rows}", "--label", "y", "--method", "auto", "--output", "{map}"],
    "apply": ["apply", "{map}", "{rows}", "--output", "{scored}"],
}


def make(folder: Path, rows: int, digits: int | None) -> None:
    """Scores with some digits of log-odds, so that many rows share a score, or with all of them."""
    import duckdb

    normal = "3 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) - 1"
    z = normal if digits is None else f"round({normal}, {digits})"
    for piece in range(0, rows, PIECE):
        many = min(PIECE, rows - piece)
        target = folder / f"{piece // PIECE:04d}.parquet"
        with duckdb.connect(config={"threads": 2}) as engine:
            engine.execute(f"SELECT setseed({piece / rows})")
            engine.execute(
                f"COPY (SELECT 1 / (1 + exp(-z)) AS p, CAST(random() < 1 / (1 + exp(-0.6 * z)) AS TINYINT) AS y "
                f"FROM (SELECT {z} AS z FROM range({many}))) TO '{target}'"
            )


def table_of(source: str, folder: Path) -> Any:
    from calibrant import ScoreTable

    columns = {"score": "p", "label": "y"}
    if source == "file":
        return ScoreTable.from_file(folder, **columns)
    if source == "duckdb":
        import duckdb

        return ScoreTable.from_frame(duckdb.read_parquet(f"{folder}/*.parquet"), **columns)
    import polars as pl

    return ScoreTable.from_frame(pl.scan_parquet(f"{folder}/*.parquet"), **columns)


def tasks() -> dict[str, Callable[[Any], Any]]:
    import calibrant as ca

    measures = (ca.brier_score, ca.log_loss, ca.expected_calibration_error, ca.roc_auc, ca.average_precision)
    parts = (ca.score_decomposition, ca.reliability_curve, ca.calibration_slope_intercept, ca.calibration_error)
    return {
        "table": lambda table: table.distinct,
        "Platt": lambda table: ca.PlattScaling().fit_table(table),
        "beta": lambda table: ca.BetaCalibration().fit_table(table),
        "isotonic": lambda table: ca.IsotonicCalibration().fit_table(table),
        "measures": lambda table: [measure(table) for measure in (*measures, *parts)],
    }


def peer(task: str, folder: Path) -> None:
    """The same by scikit-learn, of the measures those that it has."""
    import duckdb
    from sklearn import metrics
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    with duckdb.connect(config={"threads": 2}) as engine:
        columns = engine.execute(f"SELECT p, y FROM '{folder}/*.parquet'").fetchnumpy()
    p, y = columns["p"], columns["y"]
    if task == "measures":
        for measure in (metrics.brier_score_loss, metrics.log_loss, metrics.roc_auc_score):
            measure(y, p)
        metrics.average_precision_score(y, p)
    else:
        (IsotonicRegression() if task == "isotonic" else _SigmoidCalibration()).fit(p, y)


def one(source: str, task: str, folder: Path) -> None:
    """Run in a process of its own."""
    if source == "peer":
        peer(task, folder)
        return
    if source == "floor":
        import duckdb

        with duckdb.connect(config={"threads": 2}) as engine:
            engine.execute(f"SELECT sum(p), sum(y) FROM '{folder}/*.parquet'").fetchall()
        return
    warnings.simplefilter("ignore")
    tasks()[task](table_of(source, folder))


def run(command: list[str], rows: int, source: str, task: str, floor: float | None = None) -> float:
    """Run a process, print its line of the table, and return its seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)} failed: {said.read().decode()}")
    spent = time.perf_counter() - start
    times = "" if floor is None else f" {spent / floor:.1f} |"
    print(f"| {rows:,} | {source} | {task} | {spent:.1f} | {used.ru_maxrss / 1024:,.0f} |{times}", flush=True)
    return spent


def measured(folder: Path, rows: int, kind: str, short: bool) -> None:
    """The lines of one set of files."""
    this = [sys.executable, __file__, "--one"]
    floor = run([*this, "floor", "scan", str(folder)], rows, kind, "one scan (floor)")
    for task in TASKS:
        run([*this, "file", task, str(folder)], rows, kind, task, floor)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        names = {"rows": folder, "page": f"{place}/page.html", "map": f"{place}/map.json"}
        names["scored"] = f"{place}/scored.parquet"
        for name, words in COMMANDS.items():
            command = [sys.executable, "-m", "calibrant", *(word.format(**names) for word in words), "--score", "p"]
            run(command, rows, kind, f"`calibrant {name}`", floor)
    for task in () if short or rows > MOST_OF_PEER else OF_PEER:
        run([*this, "peer", task, str(folder)], rows, kind, f"scikit-learn: {task}", floor)
    for source in () if short else LAZY:
        for task in ("table", "measures"):
            run([*this, source, task, str(folder)], rows, f"{kind}, {source}", task, floor)


def steps(rows: int = 1_000_000) -> None:
    """Applying maps of ever more steps as SQL and over blocks of rows, in seconds of the processor."""
    import numpy as np

    from calibrant.cli._apply import LONG, _by_blocks, _by_sql
    from calibrant.maps import StepMap
    from calibrant.maps._sql import sql_of

    print(f"| steps, {rows:,} rows | as SQL, s | over blocks, s | ratio | `apply` takes |\n|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as place:
        make(Path(place), rows, None)
        given = (Path(place, "0000.parquet"), Path(place, "out.parquet"), "p", "q", {"force": True})
        for count in (10, 100, 300, 1000, 3000):
            values = np.arange(1, count + 1) / (count + 1)
            record = StepMap((0, 1), values[1:], values)
            sql, blocks = fastest([partial(way, record, *given) for way in (_by_sql, _by_blocks)], 2, time.process_time)
            taken = "SQL" if len(sql_of(record, "x")) <= LONG else "blocks"
            print(f"| {count:,} | {sql:.2f} | {blocks:.2f} | {sql / blocks:.1f} | {taken} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("rows", nargs="*", type=lambda text: int(text.replace("_", "")))
    options.add_argument("--folder")
    options.add_argument("--only", default="")
    options.add_argument("--short", action="store_true")
    options.add_argument("--steps", action="store_true")
    given = options.parse_args()
    if given.steps:
        header("Steps as SQL and over blocks")
        steps()
        return
    header("Files larger than memory")
    print(f"Load of the machine when it began: {os.getloadavg()[0]:.1f}\n")
    print(
        "| rows | scores | task, as a whole process | seconds | peak MiB | times the floor |\n|--:|---|---|--:|--:|--:|"
    )
    for rows in given.rows or (100_000_000, 300_000_000):
        for kind, digits in (("four digits of log-odds", 4), ("all different", None)):
            if given.only not in kind:
                continue
            with tempfile.TemporaryDirectory(dir=given.folder) as place:
                folder = Path(place) / "rows"
                folder.mkdir()
                make(folder, rows, digits)
                measured(folder, rows, kind, given.short)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main()
