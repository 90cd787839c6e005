"""Parquet of many rows, made in pieces: the table, the fits and the measures, with time and peak memory of each.

Run `python benchmarks/scale.py [rows, by default 100_000_000] [folder]`. Every line is a process of its own, which
builds the table from the files first; peak memory is that of the whole process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _timing import header

PIECE = 5_000_000
SOURCES = ("file", "duckdb", "polars")


def make(folder: Path, rows: int) -> None:
    """Scores with four digits of log-odds, so that millions of rows share tens of thousands of scores."""
    import duckdb

    for piece in range(0, rows, PIECE):
        many = min(PIECE, rows - piece)
        target = folder / f"{piece // PIECE:04d}.parquet"
        z = "round(3 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) - 1, 4)"
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


def one(source: str, task: str, folder: Path) -> None:
    """Run in a process of its own: print the seconds of the table and of the task, and the peak in MB."""
    start = time.perf_counter()
    table = table_of(source, folder)
    read = time.perf_counter()
    tasks()[task](table)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{read - start:.2f} {end - read:.2f} {peak:.0f} {len(table)}")


def main() -> None:
    rows = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as place:
        start = time.perf_counter()
        make(Path(place), rows)
        header(f"{rows:,} rows of Parquet, made in {time.perf_counter() - start:.0f} s")
        print("| table from | task | table, s | task, s | peak MB | entries of the table |\n|---|---|--:|--:|--:|--:|")
        for source in SOURCES:
            for task in ("table", "Platt", "beta", "isotonic", "measures"):
                command = [sys.executable, __file__, "--one", source, task, place]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print("| " + " | ".join([source, task, *done.stdout.split()]) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main()
