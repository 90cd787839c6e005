"""A batch is summed block by block: the same sums from rows, counts and weights, and no column as long as the rows."""

import tracemalloc

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels.blocks import BLOCK
from calibrant.monitoring._sums import reference_of, sums_of_scores, sums_of_table


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.random(n - 3), [0.0, 0.5, 1.0]])
    return p, (rng.random(n) < p).astype(int)


@pytest.mark.parametrize("n", [200, 2 * BLOCK + 77])
def test_rows_counts_and_weights_of_one_have_the_same_sums(n):
    p, y = rows(n)
    table = ca.ScoreTable.from_arrays(p, y)
    others = [ca.ScoreTable.from_counts(p, y, 1 - y), ca.ScoreTable.from_arrays(p, y, np.ones(n))]
    reference = reference_of(table)
    for other in others:
        for name in ("cuts", "positives", "negatives", "sum_p"):
            np.testing.assert_allclose(getattr(reference_of(other), name), getattr(reference, name), rtol=1e-12)
    assert reference.weight.sum() == n
    assert reference.sum_p.sum() == pytest.approx(p.sum(), rel=1e-12)
    place = np.searchsorted(reference.cuts, p, side="left")
    for size in (n, 1):
        np.testing.assert_array_equal(reference.place(size)(p), place)
        np.testing.assert_array_equal(reference.place(size)(reference.cuts), np.arange(len(reference.cuts)))
    for found in (*(sums_of_table(reference, batch) for batch in (table, *others)), sums_of_scores(reference, p)):
        np.testing.assert_array_equal(found.scored, np.bincount(place, minlength=len(reference.positives)))
        np.testing.assert_allclose(found.totals[:2], [p.sum(), (p * (1 - p)).sum()], rtol=1e-12)
        assert found.largest == 1
        if found.labelled.any():
            np.testing.assert_array_equal(found.positives, np.bincount(place, y, minlength=len(found.positives)))
            np.testing.assert_allclose(found.sum_p, np.bincount(place, p, minlength=len(found.sum_p)), rtol=1e-12)


@pytest.mark.parametrize("n", [10, 2 * BLOCK + 77])
@pytest.mark.parametrize("threshold", [None, 0.4, 1.5])
def test_expected_performance_of_rows_is_that_of_weights_of_one(n, threshold):
    p, y = rows(n)
    found = ca.expected_performance(p, threshold=threshold)
    for other in (
        ca.expected_performance(p, threshold=threshold, sample_weight=np.full(n, 2.0)),
        ca.expected_performance(ca.ScoreTable.from_counts(p, y, 1 - y), threshold=threshold),
    ):
        for name in ("prevalence", "brier_score", "log_loss", "roc_auc", "alert_rate", "precision", "recall"):
            value = getattr(found, name)
            assert getattr(other, name) == (None if value is None else pytest.approx(value, rel=1e-12))
    if threshold == 0.4:
        assert found.precision == pytest.approx(p[p >= 0.4].mean(), rel=1e-12)


def test_a_batch_of_scores_takes_no_column_and_one_with_labels_only_its_table():
    p, y = rows(400_000)
    monitor = ca.CalibrationMonitor(ca.ScoreTable.from_arrays(p[:5000], y[:5000]))
    monitor.update(p)
    for bytes_a_row, batch in ((0, lambda: p), (9, lambda: ca.ScoreTable.from_arrays(p, y))):
        tracemalloc.start()
        monitor.update(batch())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= (bytes_a_row + 1) * len(p) + 12 * 8 * BLOCK
