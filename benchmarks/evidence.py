"""How long intervals and bands take, and whether coarsening the table moves the interval.

    python benchmarks/evidence.py [--rows 1000000]

The peer of an interval is the usual way: the rows drawn again a thousand times, scikit-learn's measure each time (two
of them are timed). The floor is one `numpy.sort` of the scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

import calibrant as ca
from _timing import Row, fastest, header, measure, print_rows, sort
from calibrant._kernels import resample
from calibrant.metrics._bootstrap import bootstrapped
from calibrant.metrics._design import design_of

RESAMPLES = 1000


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Slightly over-confident scores without ties."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    return (rng.uniform(size=n) < 1 / (1 + np.exp(-0.9 * z))).astype(np.uint8), 1 / (1 + np.exp(-z))


def slope(y: Any, p: Any) -> float:
    """The peer's calibration slope."""
    return float(LogisticRegression(C=np.inf).fit(np.log(p / (1 - p))[:, None], y).coef_[0, 0])


PEERS: dict[Any, Callable[[Any, Any], Any]] = {
    ca.brier_score: metrics.brier_score_loss,
    ca.log_loss: metrics.log_loss,
    ca.calibration_slope_intercept: slope,
    ca.roc_auc: metrics.roc_auc_score,
    ca.average_precision: metrics.average_precision_score,
}


def of_rows(measured: Callable[[Any, Any], Any], y: Any, p: Any) -> float:
    """Seconds of a bootstrap of rows, from one draw in a thousand."""
    rng = np.random.default_rng(0)

    def once() -> None:
        at = rng.integers(0, len(y), len(y))
        measured(y[at], p[at])

    return fastest([once], 1)[0] * RESAMPLES


def intervals(n: int) -> list[Row]:
    """Of every measure: from influences, and from resamples of a coarsened table."""
    y, p = rows(n)
    found = []
    for measured, peer in PEERS.items():
        usual = of_rows(peer, y, p)
        for kind, options in (("from influences", {}), (f"{RESAMPLES:,} resamples", {"n_resamples": RESAMPLES})):
            call = partial(ca.estimate, measured, y, p, **options)
            row = measure(f"{measured.__name__}, {kind}", n, call, None, floor=sort(p))
            found.append(Row(row.task, n, row.ours, usual, "1,000 draws of rows", None, row.peak, row.floor))
    table = ca.ScoreTable.from_arrays(p, y).distinct
    for name, call in (
        ("calibration_error, null inverted", partial(ca.calibration_error, table)),
        ("decomposition with intervals", partial(ca.estimate, ca.score_decomposition, table)),
        ("the table, sorted", lambda: ca.ScoreTable.from_arrays(p, y).distinct),
    ):
        found.append(measure(name, n, call, None, floor=sort(p)))
    together = sum(row.ours for row in found if "resamples" in row.task and "precision" not in row.task)
    name = "Brier, log loss, slope, AUC, errors"
    return [*found, Row(name, n, together + sum(row.ours for row in found[-3:-1]), None, "", None, 0.0, budget=10)]


def bands(n: int) -> list[Row]:
    """Isotonic curves with a band of 1,000 fits."""
    y, p = rows(n)
    return [
        measure(
            f"{kind} band, 1,000 isotonic fits",
            n,
            partial(ca.reliability_bands, y, p, kind=kind),
            None,
            floor=sort(p),
            budget=3,
        )
        for kind in ("confidence", "consistency")
    ]


def coarsening(n: int) -> None:
    """Intervals of 4,000 resamples with ever more cells; the last has a cell for every row."""
    y, p = rows(n)
    design = design_of(ca.ScoreTable.from_arrays(p, y), None, None, "")
    whole = resample.cells
    print(f"\n{n:,} rows, 4,000 resamples; ends less those of the influences, in per cent of the width (chance: 3)\n")
    print("| measure | " + " | ".join(f"{most:,} cells" for most in (512, 1024, 4096, n)) + " |\n|---|--:|--:|--:|--:|")
    for measured in (ca.brier_score, ca.log_loss, ca.roc_auc, ca.average_precision):
        exact, cells = ca.estimate(measured, y, p), []
        for most in (512, 1024, 4096, n):
            resample.cells = lambda *given, most=most: whole(*given, most=most)
            found = bootstrapped(measured, design, 4000, 0.95, 1, {})["value"]
            ends = (found.low - exact.low, found.high - exact.high)
            cells.append(" ".join(f"{100 * end / exact.width:+.1f}" for end in ends))
        resample.cells = whole
        print(f"| {measured.__name__} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    header("Evidence")
    print_rows([*intervals(given.rows), *bands(100_000)])
    coarsening(20_000)


if __name__ == "__main__":
    main()
