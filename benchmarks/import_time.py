"""How long it takes until something can be used: imports beyond NumPy, and the command line.

Run `python benchmarks/import_time.py`. Each figure is the median of several fresh processes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _timing import header

REPEATS = 7
NUMPY = "import numpy"
SNIPPETS = {
    "import calibrant": ("import numpy, calibrant", 0.15),
    "from calibrant import AffineLogit": ("import numpy; from calibrant import AffineLogit", None),
    "from calibrant import load_map": ("import numpy; from calibrant import load_map", None),
    "import sklearn.calibration": ("import numpy, sklearn.calibration", None),
}


def run(*command: str) -> float:
    """Median seconds of a fresh process; the first run, which fills caches, is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def show(task: str, seconds: float, goal: float | None) -> None:
    verdict = "" if goal is None else f"{goal:g} s {'ok' if seconds <= goal else 'MISSED'}"
    print(f"| {task} | {seconds:.3f} s | {verdict} |", flush=True)


def main() -> None:
    header("Imports and the command line")
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


if __name__ == "__main__":
    main()
