"""Bins against the rule written out for one number at a time."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from calibrant._kernels import bins
from calibrant._kernels._compiled import MANY


def edge_cases(n_bins, n):
    """Probabilities at, just below and just above every edge, denormals, and others."""
    edges = np.linspace(0, 1, n_bins + 1)
    p = np.concatenate((edges, np.nextafter(edges, 2), np.nextafter(edges, -1), [5e-324, 1e-310]))
    p = p[(p >= 0) & (p <= 1)]
    return edges, np.concatenate((p, np.random.default_rng(0).random(n)))


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 20, 100, 999, 1000, 12345])
def test_a_probability_on_an_edge_is_in_the_lower_bin(n_bins):
    edges, p = edge_cases(n_bins, MANY)
    place = bins.uniform_bin(p, edges)
    assert place.dtype == np.int64
    assert np.all((edges[place] < p) | (p == 0))
    assert np.all(p <= edges[place + 1])
    ones, counts = np.ones(len(p), dtype=np.uint8), np.bincount(place, minlength=n_bins)
    assert_array_equal(bins.uniform_bin_sums_rows(p, ones, None, edges).rows, counts)
    columns = (ones.astype(float), np.zeros(len(p)), ones.astype(float), ones.astype(float))
    assert_array_equal(bins.uniform_bin_sums(p, *columns, edges).rows, counts)


def one_by_one(p, labels, weights, edges):
    sums = np.zeros((5, len(edges) - 1))
    for value, label, weight in zip(p, labels, weights):
        j = max(int(np.searchsorted(edges, value, side="left")) - 1, 0)
        sums[:, j] += weight, weight * label, weight * value, weight > 0, weight * weight
    return sums


def assert_sums(found, expected):
    for name, column, values in zip(found._fields, found, expected):
        assert column.dtype == np.float64
        if name == "sum_p":
            assert_allclose(column, values, rtol=1e-12)
        else:
            assert_array_equal(column, values)


@pytest.mark.parametrize("n_bins", [1, 10, 50])
@pytest.mark.parametrize("n", [0, 100, MANY])
def test_rows_are_summed_by_bin(n_bins, n):
    edges, p = edge_cases(n_bins, n)
    rng = np.random.default_rng(1)
    labels = (rng.random(len(p)) < p).astype(np.uint8)
    weights = rng.integers(0, 4, len(p)).astype(float)
    assert_sums(bins.uniform_bin_sums_rows(p, labels, None, edges), one_by_one(p, labels, np.ones(len(p)), edges))
    assert_sums(bins.uniform_bin_sums_rows(p, labels, weights, edges), one_by_one(p, labels, weights, edges))


def test_rows_on_two_threads_are_the_counts_of_their_table():
    n = 2 * MANY * 4 + 3
    rng = np.random.default_rng(2)
    p = rng.random((n, 2))[:, 1]
    labels = (rng.random(n) < p).astype(np.uint8)
    p.flags.writeable = False
    edges = np.linspace(0, 1, 11)
    ones = np.ones(n)
    hits = labels.astype(float)
    expected = bins.uniform_bin_sums(p, hits, 1.0 - hits, ones, ones, edges)
    assert_sums(bins.uniform_bin_sums_rows(p, labels, None, edges), expected)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any), st.integers(1, 12), st.floats(0.01, 100))
def test_equal_mass_bins_end_where_their_share_is_reached(weights, n_bins, scale):
    reached = np.cumsum(weights)
    total = int(reached[-1])
    first = [next(i for i, c in enumerate(reached) if c >= Fraction(j * total, n_bins)) for j in range(1, n_bins + 1)]
    expected = sorted({*first[:-1], len(weights) - 1})
    ends = bins.quantile_bin_ends(np.array(weights, dtype=float) * scale, n_bins)
    assert ends.dtype == np.int64
    if len(expected) > 1 and first[-1] < len(weights) - 1:  # what has no weight belongs to the last bin
        expected = sorted({*(end for end in first[:-1] if end < first[-1]), len(weights) - 1})
        ends = np.unique(np.where(ends >= first[-1], len(weights) - 1, ends))
    assert_array_equal(ends, expected)


@given(st.integers(1, 5000), st.integers(1, 400))
def test_rows_that_count_once_have_the_ends_of_weights_of_one(size, n_bins):
    assert_array_equal(bins.quantile_row_ends(size, n_bins), bins.quantile_bin_ends(np.ones(size), n_bins))


@pytest.mark.parametrize("size", [1, bins.BLOCK - 1, bins.BLOCK, bins.BLOCK + 1, 3 * bins.BLOCK + 5])
@pytest.mark.parametrize("runs", [1, 2, 1000])
def test_sums_of_runs_are_those_of_the_whole_column(size: int, runs: int) -> None:
    rng = np.random.default_rng(size + runs)
    values = rng.integers(0, 100, size).astype(float)
    starts = np.unique(np.append(0, rng.integers(0, size, runs - 1)))
    sums = bins.run_sums(lambda at: values[at], starts, size)
    np.testing.assert_array_equal(sums, np.add.reduceat(values, starts))
