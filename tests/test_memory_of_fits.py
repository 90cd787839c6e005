"""How many bytes a row a fit needs at its peak, beside the rows given: the sorted table takes 9 (a score, a label)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import calibrant as ca

ROWS = 600_000
NEEDED: dict[str, tuple[Callable[[], object], float]] = {
    "isotonic": (ca.IsotonicCalibration, 13),
    "isotonic, smoothed": (lambda: ca.IsotonicCalibration(smoothing=1), 13),
    "isotonic, centred": (lambda: ca.IsotonicCalibration(centered=True), 13),
    "isotonic, five folds": (lambda: ca.IsotonicCalibration(n_folds=5), 42),  # a permutation, places, a fold's rows
    "histogram": (ca.HistogramBinning, 13),
    "recursive partitioning": (ca.RecursivePartitioning, 13),
    "spline": (ca.SplineCalibration, 25),  # the log-odds
    "Venn-Abers": (ca.VennAbers, 40),  # sums of the rows and of the positives before each, and the hulls
    "automatic": (ca.AutoCalibrator, 55),  # Venn-Abers after the cells, which do not grow
}


def peak_of(fit: Callable[[], object]) -> float:
    """Bytes a row of a second fit; the first compiles."""
    fit()
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1] / ROWS
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", NEEDED)
def test_a_fit_makes_no_columns_it_does_not_need(name: str) -> None:
    make, most = NEEDED[name]
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    assert peak_of(partial(make().fit, p, (rng.random(ROWS) < p).astype(np.int64))) <= most


def test_weights_of_both_classes_are_added_up_without_their_columns() -> None:
    rng = np.random.default_rng(0)
    y, weights = rng.integers(0, 2, ROWS), rng.integers(1, 4, ROWS).astype(float)
    table = ca.ScoreTable.from_arrays(rng.random(ROWS), y, weights)

    def totals() -> list[float]:
        again = table.with_scores(table.scores)
        return [again.total_positives, again.total_negatives]

    assert totals() == [weights[y == 1].sum(), weights[y == 0].sum()]
    assert peak_of(totals) <= 0.5


def test_probabilities_that_are_sorted_are_not_sorted_again() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    table = ca.ScoreTable.from_arrays(p, rng.random(ROWS) < p)
    for given in (table.distinct, table):
        assert peak_of(partial(ca.SplineCalibration().fit_table, given)) <= 14  # the log-odds
