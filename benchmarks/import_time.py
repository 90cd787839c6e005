"""How long it takes until something can be used: imports beyond NumPy, the command line, compiled kernels.

    python benchmarks/import_time.py [--only imports|kernels]

Each figure is the least of several fresh processes. The first use of a kernel counts the import of Numba: with an
empty folder for the cache, with that folder filled, and where no folder can be written (then it is compiled once in
every process). Below them whole first calls, which use several kernels each.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import calibrant._kernels
from _timing import header
from calibrant._kernels._compiled import Compiled

REPEATS = 7
FIRST_USE = 3.0
NUMPY = "import numpy"
SNIPPETS = {
    "import calibrant": ("import numpy, calibrant", 0.15),
    "from calibrant import AffineLogit": ("import numpy; from calibrant import AffineLogit", None),
    "from calibrant import load_map": ("import numpy; from calibrant import load_map", None),
    "import sklearn.calibration": ("import numpy, sklearn.calibration", None),
}
ROWS = "rng = numpy.random.default_rng(0); p = rng.random(200_000); y = (rng.random(200_000) < p).astype(int)"
CALLS = {
    "isotonic fit, 200,000 rows": "calibrant.IsotonicCalibration().fit(p, y)",
    "isotonic fit, weighted": "calibrant.IsotonicCalibration().fit(p, y, p + 1)",
    "Venn-Abers fit": "calibrant.VennAbers().fit(p, y)",
    "Platt fit": "calibrant.PlattScaling().fit(p, y)",
    "Platt fit, weighted": "calibrant.PlattScaling().fit(p, y, p + 1)",
    "spline fit": "calibrant.SplineCalibration().fit(p, y)",
    "reliability curve": "calibrant.reliability_curve(y, p)",
    "ROC AUC": "calibrant.roc_auc(y, p)",
    "recursive partitioning, 3 classes": "calibrant.RecursivePartitioning().fit(numpy.stack([p, p, 3 - 2 * p]).T[:2000]"
    " / 3, numpy.arange(2000) % 3)",
}
NO_FOLDER = "import numba.core.caching as c; c.CacheImpl._locator_classes = []; "


def run(*command: str) -> float:
    """Least seconds of a fresh process; the first run, which fills caches, is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def show(task: str, seconds: float, goal: float | None) -> None:
    verdict = "" if goal is None else f"{goal:g} s {'ok' if seconds <= goal else 'MISSED'}"
    print(f"| {task} | {seconds:.3f} s | {verdict} |", flush=True)


def imports() -> None:
    """Imports and the command line."""
    print("| task | seconds | goal |\n|---|--:|--:|")
    bare = run(sys.executable, "-c", NUMPY)
    show("import numpy, in a fresh process", bare, None)
    for task, (code, goal) in SNIPPETS.items():
        show(f"{task}, beyond NumPy", max(run(sys.executable, "-c", code) - bare, 0.0), goal)
    command = [sys.executable, "-m", "calibrant"]
    show("calibrant --help", run(*command, "--help"), 0.5)
    with tempfile.TemporaryDirectory() as folder:
        scores, record = Path(folder, "scores.csv"), Path(folder, "map.json")
        scores.write_text("p,y\n" + "\n".join(f"{i / 1000},{i % 3 % 2}" for i in range(1, 1000)) + "\n")
        columns = (str(scores), "--score", "p", "--force")
        show("calibrant fit, 999 rows", run(*command, "fit", *columns, "--label", "y", "-o", str(record)), None)
        written = str(Path(folder, "out.csv"))
        show("calibrant apply, 999 rows", run(*command, "apply", str(record), *columns, "-o", written), 1.0)


def kernels() -> None:
    """First use of every kernel, and of calls that use several."""
    print("| kernel | cache empty | from the cache | no folder for a cache | goal |\n|---|--:|--:|--:|---|")
    for module, name in found():
        compiling = f"k.{name}; _compiled._compile(x.function, *x._how)"
        row(f"{module.removeprefix('calibrant._kernels.')}.{name}", f"import {module} as k", f"x = {compiling}")
    print("\n| first call of a process, scikit-learn not counted | | | | |\n|---|--:|--:|--:|---|")
    for task, code in CALLS.items():
        row(task, f"import numpy, calibrant, sklearn.base; {ROWS}", code)


def found() -> Iterator[tuple[str, str]]:
    """Module and name of every kernel."""
    for info in pkgutil.iter_modules(calibrant._kernels.__path__, "calibrant._kernels."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if isinstance(value, Compiled) and value.function.__module__ == info.name:
                yield info.name, name


def row(task: str, ready: str, code: str) -> None:
    """One line: seconds of `code` after `ready`, least of two processes, in the three states of the cache."""
    cold, warm, bare = [], [], []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(first_use(ready, code, folder))
            warm.append(first_use(ready, code, folder))
        bare.append(first_use(ready, NO_FOLDER + code, None))
    worst = max(min(cold), min(bare))
    cells = [f"{min(taken):.2f} s" for taken in (cold, warm, bare)]
    print(f"| {task} | {' | '.join(cells)} | {FIRST_USE:g} s {'ok' if worst < FIRST_USE else 'MISSED'} |", flush=True)


def first_use(ready: str, code: str, folder: str | None) -> float:
    timed = f"import time; from calibrant._kernels import _compiled; {ready}\ns = time.perf_counter()\n{code}\n"
    environment = os.environ | ({} if folder is None else {"NUMBA_CACHE_DIR": folder})
    script = f"import warnings; warnings.simplefilter('ignore')\n{timed}print(time.perf_counter() - s)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["imports", "kernels"])
    options = parser.parse_args()
    header("Imports, the command line and compiled kernels")
    if options.only != "kernels":
        imports()
        print()
    if options.only != "imports":
        kernels()


if __name__ == "__main__":
    main()
