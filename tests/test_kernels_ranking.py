"""Sorted tables and ranking against the slowest ways to compute them."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from calibrant._kernels import areas, ranking
from calibrant._kernels._compiled import MANY, SPREAD

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def by_dictionary(scores, labels, weights):
    sums = {}
    for score, label, weight in zip(scores, labels, weights):
        if weight > 0:
            entry = sums.setdefault(score + 0.0, [0.0, 0.0, 0.0, 0.0])
            entry[0 if label else 1] += weight
            entry[2] += 1
            entry[3] += weight * weight
    keys = sorted(sums)
    return np.array(keys), *(np.array([sums[key][k] for key in keys]) for k in range(4))


def whole(table):
    """Rows without weights: the number of rows, and the sum of squared weights, are those of both classes."""
    if isinstance(table, ranking.Ordered):
        assert table.labels.dtype == np.uint8
        table = ranking.Distinct(table.scores, table.labels.astype(float), (1 - table.labels).astype(float))
    scores, positives, negatives, rows, squares = table
    unweighted = positives + negatives
    return scores, positives, negatives, *(unweighted if sums is None else sums for sums in (rows, squares))


def assert_same(table, expected):
    table, expected = whole(table), whole(expected)
    for column, values in zip(table, expected, strict=True):
        assert column.dtype == np.float64
        assert_array_equal(column, values)
        assert not np.any(np.signbit(column) & (column == 0))


def rows(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    scores = {
        "distinct": lambda: rng.random(n),
        "rounded": lambda: np.round(rng.random(n), 2),
        "constant": lambda: np.full(n, 0.25),
        "ends": lambda: rng.choice([0.0, -0.0, 1.0, 5e-324, np.nextafter(1.0, 0.0)], n),
        "margins": lambda: rng.normal(size=n) * 10,
        "rounded margins": lambda: np.round(rng.normal(size=n) * 10) * 0.5 + 0.0,
        "negative": lambda: -rng.random(n) - 3,
        "huge": lambda: rng.normal(size=n) * 2e307,
        "tiny": lambda: rng.normal(size=n) * 1e-310,
        "everything": lambda: np.concatenate((rng.normal(size=n - 3), [1.7e308, -5e-324, 0.0])),
        "sorted": lambda: np.sort(rng.random(n)),
    }[kind]()
    return scores, (rng.random(n) < 0.3).astype(np.uint8)


KINDS = [
    "distinct",
    "rounded",
    "constant",
    "ends",
    "margins",
    "rounded margins",
    "negative",
    "huge",
    "tiny",
    "everything",
    "sorted",
]


@pytest.mark.parametrize("n", [1, 2, 300, MANY + 3])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_summed_by_score(kind, n):
    if kind == "everything" and n < 4:
        n = 4
    scores, labels = rows(kind, n)
    assert_same(ranking.distinct_rows(scores, labels, None), by_dictionary(scores, labels, np.ones(n)))


@pytest.mark.parametrize("kind", KINDS)
def test_few_and_many_rows_take_the_same_table(kind):
    scores, labels = rows(kind, SPREAD + 11)
    base = ranking._base(scores)
    if base is None:
        assert kind == "everything"
        return
    assert_same(ranking._distinct_many(scores, labels, base), ranking._distinct_few(scores, labels, base))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(FINITE, st.integers(0, 1)), min_size=1, max_size=30))
def test_any_floats_are_sorted_with_their_labels(pairs):
    scores = np.array([score for score, _ in pairs])
    labels = np.array([label for _, label in pairs], dtype=np.uint8)
    assert_same(ranking.distinct_rows(scores, labels, None), by_dictionary(scores, labels, np.ones(len(pairs))))


@pytest.mark.parametrize("n", [0, 1, 500, MANY + 5, SPREAD + 1])
@pytest.mark.parametrize("kind", ["distinct", "rounded", "margins", "constant", "ends"])
def test_weights_are_summed_and_rows_of_weight_0_are_absent(kind, n):
    scores, labels = rows(kind, n)
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float)
    assert_same(ranking.distinct_rows(scores, labels, weights), by_dictionary(scores, labels, weights))


def test_no_rows_with_weight_leave_an_empty_table():
    scores, labels = rows("distinct", 5)
    for table in (
        ranking.distinct_rows(scores, labels, np.zeros(5)),
        ranking.distinct_rows(scores[:0], labels[:0], None),
    ):
        assert [len(column) for column in whole(table)] == [0] * 5


def test_strided_and_read_only_rows():
    both = np.random.default_rng(2).random((MANY + 7, 2))
    labels = (both[:, 0] < 0.5).astype(np.uint8)
    expected = ranking.distinct_rows(both[:, 1].copy(), labels, None)
    both.flags.writeable = False
    labels.flags.writeable = False
    assert_same(ranking.distinct_rows(both[:, 1], labels, None), expected)


def test_counts_are_summed_like_rows():
    scores, labels = rows("rounded", 400)
    weights = np.random.default_rng(3).integers(0, 3, 400).astype(float)
    hits = weights * labels
    table = ranking.distinct_counts(scores, hits, weights - hits, np.ones(400), weights**2)
    assert_same(table, ranking.distinct_rows(scores, labels, weights))


def pair_by_pair(positives, negatives):
    pairs = sum(
        Fraction(p) * Fraction(q) * (Fraction(1, 2) if i == j else int(i > j))
        for i, p in enumerate(positives)
        for j, q in enumerate(negatives)
    )
    return float(pairs / sum(map(Fraction, positives)) / sum(map(Fraction, negatives)))


def precision_by_precision(positives, negatives):
    total = sum(map(Fraction, positives))
    value = Fraction(0)
    for i, p in enumerate(positives):
        hits, misses = sum(map(Fraction, positives[i:])), sum(map(Fraction, negatives[i:]))
        value += Fraction(p) / total * hits / (hits + misses) if p else 0
    return float(value)


COUNTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: sum(pair) > 0), min_size=2, max_size=12
).filter(lambda pairs: any(p for p, _ in pairs) and any(q for _, q in pairs))


@settings(max_examples=100, deadline=None)
@given(COUNTS)
def test_ranking_measures_are_those_of_every_pair(pairs):
    positives, negatives = np.array(pairs, dtype=float).T.copy()
    assert areas.auc(positives, negatives) == pytest.approx(pair_by_pair(positives, negatives), rel=1e-15)
    expected = precision_by_precision(positives, negatives)
    assert areas.average_precision(positives, negatives) == pytest.approx(expected, rel=1e-14)


def test_compiled_ranking_is_the_same():
    rng = np.random.default_rng(4)
    positives, negatives = rng.integers(0, 5, (2, 1000)).astype(float)
    negatives += positives == 0
    assert areas._auc(positives, negatives) == areas.auc(positives, negatives)
    expected = areas.average_precision(positives, negatives)
    assert areas._average_precision(positives, negatives) == pytest.approx(expected, rel=1e-14)
    assert areas._auc.function(positives, negatives) == areas.auc(positives, negatives)


@pytest.mark.parametrize("n", [2, 3, 50, MANY + 1, SPREAD + 1])
@pytest.mark.parametrize("kind", ["distinct", "rounded", "sorted"])
def test_rows_in_order_are_measured_as_their_counts(kind, n):
    labels = rows(kind, n)[1]
    labels[0], labels[-1] = 0, 1
    counts = labels.astype(float), (1 - labels).astype(float)
    assert areas.auc_of_rows(labels) == pytest.approx(areas.auc(*counts), rel=1e-15)
    assert areas._auc_of_rows(labels) == areas._auc_of_rows.function(labels) == areas.auc_of_rows(labels)
    precision = areas.average_precision_of_rows(labels)
    assert precision == pytest.approx(areas.average_precision(*counts), rel=1e-13)
    assert precision == pytest.approx(areas._average_precision_of_rows(labels), rel=1e-13)


def test_weighted_rows_are_summed_where_they_lie():
    scores, labels = rows("distinct", 400_000)
    weights = np.random.default_rng(4).random(len(scores)) + 0.5
    ranking.distinct_rows(scores, labels, weights)
    tracemalloc.start()
    ranking.distinct_rows(scores, labels, weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 5 * 8 * len(scores) + 10**6
