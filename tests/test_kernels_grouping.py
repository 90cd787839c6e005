"""Rows dealt to their groups, and labels coded, as sorting would do it."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import calibrant as ca
from calibrant._kernels import grouping
from calibrant._kernels._compiled import MANY
from calibrant._labels import SAMPLE, distinct_labels

NAMES = np.array(["north", "south", "", "Süd"])


@pytest.mark.parametrize("n", [1, 9, 500, MANY + 3])
@pytest.mark.parametrize("n_groups", [1, 2, 7, 400])
def test_every_row_goes_to_its_group_and_keeps_its_order(n, n_groups):
    codes = np.random.default_rng(n).integers(0, n_groups, n)
    found = grouping.places_of_groups(codes, n_groups)
    assert len(found) == n_groups
    for code, places in enumerate(found):
        assert_array_equal(places, np.flatnonzero(codes == code))


@pytest.mark.parametrize("n", [1, 300, 8 * SAMPLE + 5])
@pytest.mark.parametrize(
    "labels",
    [
        lambda rng, n: rng.integers(-3, 4, n),
        lambda rng, n: rng.integers(-128, 127, n, dtype=np.int8, endpoint=True),
        lambda rng, n: np.uint64(2**64 - 1) - rng.integers(0, 9, n, dtype=np.uint64),
        lambda rng, n: np.iinfo(np.int64).min + 2 * rng.integers(0, 9, n),
        lambda rng, n: rng.integers(0, 5, n) * 10**15,
        lambda rng, n: rng.integers(0, 10**9, n),
        lambda rng, n: rng.integers(0, 5, n) / 7,
        lambda rng, n: rng.random(n) < 0.5,
        lambda rng, n: NAMES[rng.integers(0, 4, n)],
        lambda rng, n: NAMES[rng.integers(0, 4, n)].astype(object),
        lambda rng, n: NAMES[rng.integers(0, 4, n)].astype(np.dtypes.StringDType()),
        lambda rng, n: np.where(np.arange(n) == n - 2, "rare", NAMES[rng.integers(0, 2, n)]),
    ],
)
def test_labels_have_the_codes_of_sorting_them(labels, n):
    values = labels(np.random.default_rng(n), n)
    found, codes = distinct_labels(values)
    expected, places = np.unique(values, return_inverse=True)
    assert found.dtype == expected.dtype
    assert codes.dtype == places.dtype
    assert_array_equal(found, expected)
    assert_array_equal(codes, places)


def test_a_group_is_freed_once_its_evidence_is_known():
    rng = np.random.default_rng(0)
    p, groups = rng.random(400_000), rng.integers(0, 40, 400_000)
    y = (rng.random(len(p)) < p).astype(int)
    ca.calibration_by_group(y, p, groups)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    ca.calibration_by_group(y, p, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    gc.enable()
    assert peak <= (1 + 8 + 8 + 9 + 2) * len(p)


def test_a_sorted_table_is_freed_at_its_last_use():
    table = ca.ScoreTable.from_arrays([0.1, 0.2, 0.3], [0, 1, 0])
    ca.roc_auc(table)
    seen = weakref.ref(table.distinct.distinct.scores)
    gc.disable()
    del table
    assert seen() is None
    gc.enable()
