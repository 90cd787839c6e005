"""Sums block by block: the same as at once, by definition, and without a column of all rows."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata

import calibrant as ca
from calibrant._kernels import blocks
from calibrant._kernels.blocks import BLOCK

N = 3 * BLOCK + 7
Z = 1.959963984540054
LOSSES = [ca.brier_score, ca.log_loss]
MEASURES = [*LOSSES, ca.roc_auc, ca.average_precision, ca.calibration_slope_intercept, ca.score_decomposition]


def sample(n=N, digits=17, seed=0):
    """Labels and two forecasts; few digits make ties."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 1.5, n)
    y = (rng.random(n) < expit(0.8 * z)).astype(int)
    return y, expit(z).round(digits), expit(0.7 * z + rng.normal(0, 0.3, n)).round(digits)


def numbers(found):
    """Every number of an estimate or of a record of them."""
    parts = vars(found).values() if not isinstance(found, ca.metrics.Estimate) else [found]
    return np.array([[part.value, part.low, part.high] for part in parts])


@pytest.mark.parametrize("size", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, N])
@pytest.mark.parametrize("every", [1, 7, BLOCK, 10 * BLOCK])
def test_sums_between_starts_are_those_of_whole_columns(size, every):
    column = np.random.default_rng(0).random(size)
    starts = np.arange(0, size, every)
    found = blocks.sums_between(starts, size, lambda at: (column[at], np.ones(at.stop - at.start)))
    np.testing.assert_allclose(found[0], np.add.reduceat(column, starts), rtol=1e-13)
    np.testing.assert_array_equal(found[1], np.diff(starts, append=size))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("digits", [2, 17])
def test_rows_counts_and_weights_of_one_give_the_same(measure, digits):
    y, p, q = sample(digits=digits)
    rows = ca.ScoreTable.from_arrays(p, y)
    found = numbers(ca.estimate(measure, rows))
    for other in (
        ca.estimate(measure, y, p, sample_weight=np.ones(N)),
        ca.estimate(measure, ca.ScoreTable.from_counts(p, y, 1 - y)),
        ca.estimate(measure, rows.distinct),
    ):
        np.testing.assert_allclose(numbers(other), found, rtol=1e-9, atol=1e-12)
    pair = numbers(ca.compare(measure, y, p, q))
    np.testing.assert_allclose(numbers(ca.compare(measure, y, p, q, sample_weight=np.ones(N))), pair, atol=1e-11)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_row_of_its_own_in_every_cluster_is_independent(measure):
    y, p, q = sample()
    own, factor = np.random.default_rng(1).permutation(N), math.sqrt(N / (N - 1))
    alone = numbers(ca.compare(measure, y, p, q))
    clustered = numbers(ca.compare(measure, y, p, q, groups=own))
    np.testing.assert_allclose(clustered[:, 0], alone[:, 0], atol=1e-9)
    if measure is not ca.score_decomposition:  # whose chance part is measured in another way
        np.testing.assert_allclose(np.ptp(clustered, axis=1), factor * np.ptp(alone, axis=1), rtol=1e-9)


@pytest.mark.parametrize("measure", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_difference_of_losses_is_a_mean_over_rows(measure, weighted):
    y, p, q = sample()
    w = np.random.default_rng(1).exponential(size=N) if weighted else np.ones(N)
    groups = np.random.default_rng(2).permutation(N) // 3
    lost = [(f - y) ** 2 if measure is ca.brier_score else -np.log(np.where(y == 1, f, 1 - f)) for f in (p, q)]
    apart = lost[0] - lost[1]
    mean = np.average(apart, weights=w)
    sums = np.bincount(groups, w * (apart - mean))
    for clusters, error in (
        (None, math.sqrt(((w * (apart - mean)) ** 2).sum())),
        (groups, math.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))),
    ):
        found = ca.compare(measure, y, p, q, sample_weight=w if weighted else None, groups=clusters)
        assert found.value == pytest.approx(mean, rel=1e-10)
        assert found.high - found.value == pytest.approx(Z * error / w.sum(), rel=1e-10)


def placements(y, p):
    """Of each row the share of the other class that it ranks above (positives), or below (negatives)."""
    within = np.where(y == 1, rankdata(np.where(y == 1, p, np.inf)), 0.0)
    within += np.where(y == 0, rankdata(np.where(y == 0, p, np.inf)), 0.0)
    below = (rankdata(p) - within) / np.where(y == 1, (y == 0).sum(), y.sum())
    return np.where(y == 1, below, 1 - below)


@pytest.mark.parametrize("digits", [2, 17])
def test_areas_are_compared_as_delong_has_it(digits):
    y, p, q = sample(digits=digits)
    a, b = placements(y, p), placements(y, q)

    def error(v):
        return math.sqrt(sum(v[y == k].var(ddof=1) / (y == k).sum() for k in (0, 1)))

    found, alone = ca.compare(ca.roc_auc, y, p, q), ca.estimate(ca.roc_auc, y, p)
    assert found.value == pytest.approx(a[y == 1].mean() - b[y == 1].mean(), abs=1e-12)
    assert found.high - found.value == pytest.approx(Z * error(a - b), rel=1e-9)
    assert alone.high - alone.value == pytest.approx(Z * error(a), rel=1e-9)


@pytest.mark.parametrize("digits", [2, 17])
def test_average_precision_moves_with_each_row_as_by_definition(digits):
    y, p, _ = sample(digits=digits)
    at = np.unique(p, return_inverse=True)[1]
    hits, rows = np.bincount(at, y) / N, np.bincount(at) / N
    found, taken = np.cumsum(hits[::-1])[::-1], np.cumsum(rows[::-1])[::-1]
    value = float((hits * found / taken).sum() / hits.sum())
    # d/de of sum(hits found / taken) / sum(hits) when a positive (or negative) row gains weight e
    up, down = np.cumsum(hits * (taken - found) / taken**2), np.cumsum(hits * found / taken**2)
    own = np.where(y == 1, (found / taken - value + up)[at], -down[at]) / hits.sum()
    error = math.sqrt((own**2).sum()) / N
    made = ca.estimate(ca.average_precision, y, p)
    assert made.value == pytest.approx(value, rel=1e-12)
    odds = made.high / (1 - made.high) / (value / (1 - value))
    assert math.log(odds) == pytest.approx(Z * error / (value * (1 - value)), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_floor_is_that_of_each_row(weighted):
    y, p, _ = sample()
    w = np.random.default_rng(1).exponential(size=N) if weighted else None
    lost = -np.log(np.maximum(np.where(y == 1, p, 1 - p), 0.05))
    assert ca.log_loss(y, p, sample_weight=w, eps=0.05) == pytest.approx(np.average(lost, weights=w), rel=1e-12)


BYTES = {
    "compare, brier_score": (lambda y, p, q: ca.compare(ca.brier_score, y, p, q), 4),
    "compare, log_loss": (lambda y, p, q: ca.compare(ca.log_loss, y, p, q), 4),
    "compare, roc_auc": (lambda y, p, q: ca.compare(ca.roc_auc, y, p, q), 48),
    "estimate, brier_score": (lambda y, p, q: ca.estimate(ca.brier_score, y, p), 3),
    "estimate, roc_auc": (lambda y, p, q: ca.estimate(ca.roc_auc, y, p), 13),
    "estimate, average_precision": (lambda y, p, q: ca.estimate(ca.average_precision, y, p), 13),
    "estimate, line": (lambda y, p, q: ca.estimate(ca.calibration_slope_intercept, y, p), 13),
    "calibration_verdict": (lambda y, p, q: ca.calibration_verdict(y, p, margin=0.02), 13),
    "calibration_error": (lambda y, p, q: ca.calibration_error(y, p), 13),
    "score_decomposition": (lambda y, p, q: ca.score_decomposition(y, p), 13),
    "reliability_curve": (lambda y, p, q: ca.reliability_curve(y, p, strategy="isotonic"), 13),
    "average_precision": (lambda y, p, q: ca.average_precision(y, p), 12),
    "score_decomposition, log": (lambda y, p, q: ca.estimate(ca.score_decomposition, y, p, score="log"), 22),
    "log_loss, floored": (lambda y, p, q: ca.log_loss(y, p, eps=1e-6), 3),
    "roc_curve": (lambda y, p, q: ca.roc_curve(y, p), 36),
}


@pytest.mark.parametrize("name", BYTES)
def test_memory_holds_the_sorted_rows_and_little_more(name):
    """A sorted row is 9 bytes; float64 columns of all rows used to lie beside it."""
    call, most = BYTES[name]
    rows = sample(2**20)
    call(*(column[:100_000] for column in rows))  # what is loaded once
    tracemalloc.start()
    call(*rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= most * 2**20
