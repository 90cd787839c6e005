"""Merged tables are those of all rows sorted together."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import calibrant as ca
from calibrant._kernels import merging, ranking
from calibrant._kernels._compiled import MANY


def part(kind, n, seed):
    """Scores, labels and weights (None: every row counts once) of one part."""
    rng = np.random.default_rng(seed)
    scores = {
        "distinct": lambda: rng.random(n),
        "some shared": lambda: rng.permutation(3 * n)[:n] / (3 * n),
        "all shared": lambda: np.arange(n) / 7.0,
        "margins": lambda: np.concatenate((rng.normal(size=n - 1) * 10, [0.0 if seed % 2 else -0.0])),
        "apart": lambda: rng.random(n) + 2 * seed,
        "tied": lambda: np.round(rng.random(n), 2),
        "weighted": lambda: np.round(rng.random(n), 3),
    }[kind]()
    weights = rng.integers(0, 4, n).astype(float) if kind == "weighted" else None
    return scores, (rng.random(n) < 0.3).astype(np.uint8), weights


KINDS = ["distinct", "some shared", "all shared", "margins", "apart", "tied", "weighted"]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 400), (300, 200), (MANY, 5), (3, MANY), (MANY - 9, MANY + 7)])
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", ["distinct", "some shared", "all shared", "apart", "tied", "weighted"])
def test_merging_is_sorting_all_rows_together(first, second, sizes):
    parts = [part(kind, n, seed) for seed, (kind, n) in enumerate(zip((first, second), sizes), start=1)]
    merged = merging.merge(*(ranking.distinct_rows(*rows) for rows in parts))
    scores, labels = (np.concatenate(column) for column in list(zip(*parts))[:2])
    weighted = any(weights is not None for *_, weights in parts)
    ones = [np.ones(len(scores)) if weights is None else weights for scores, _, weights in parts]
    together = ranking.distinct_rows(scores, labels, np.concatenate(ones) if weighted else None)
    assert type(merged) is type(together)
    for column, expected in zip(merged, together, strict=True):
        assert (column is None) == (expected is None)
        if expected is not None:
            assert column.dtype == expected.dtype
            assert_array_equal(column, expected)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", ["some shared", "weighted"])
def test_few_and_many_entries_merge_alike(monkeypatch, first, second):
    tables = [ranking.distinct_rows(*part(kind, 2000, seed)) for seed, kind in ((1, first), (2, second))]
    few = merging.merge(*tables)
    monkeypatch.setattr(merging, "MANY", 1)
    for column, expected in zip(merging.merge(*tables), few, strict=True):
        assert_array_equal(column, expected)


def test_the_sum_of_sorted_tables_is_sorted_and_holds_no_more_than_its_entries():
    rng = np.random.default_rng(5)
    a, b = (ca.ScoreTable.from_arrays(rng.random(200_000), rng.random(200_000) < 0.5).distinct for _ in range(2))
    apart = a + b
    assert apart.distinct is apart
    assert ca.roc_auc(apart) == pytest.approx(ca.roc_auc(b + a), abs=1e-15)
    for other, bytes_a_row in ((b, 2 * (8 + 2) + 2), (a, 3 * 8 + 4)):
        tracemalloc.start()
        (a + other).distinct  # noqa: B018
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= bytes_a_row * len(a) + 50_000


def test_many_parts_add_up_to_the_table_of_all_rows():
    rng = np.random.default_rng(6)
    scores, y = np.round(rng.random((200, 40)), 4), rng.random((200, 40)) < 0.4
    together = ca.ScoreTable.from_arrays(scores.ravel(), y.ravel()).distinct
    for parts in (zip(scores, y), [*zip(scores, y), (scores.ravel(), y.ravel())], [(scores.ravel(), y.ravel())]):
        whole = sum(ca.ScoreTable.from_arrays(*part).distinct for part in parts).distinct
        times = round(whole.total_weight / together.total_weight)
        assert_array_equal(whole.scores, together.scores)
        assert_array_equal(whole.positives, times * together.positives)
        assert_array_equal(whole.n_rows, times * together.n_rows)
