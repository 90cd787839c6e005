"""Rows decide like their counts, and hold few columns while they do."""

import dataclasses
import tracemalloc

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels.blocks import BLOCK
from calibrant.decisions._curve import counts_above, curve_of


def tables(n):
    """The same rows as rows, as counts, and with a weight of one each."""
    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = (rng.random(n) < p**2).astype(int)
    rows = ca.ScoreTable.from_arrays(p, y)
    counts = ca.ScoreTable.from_counts(p, y, 1 - y)
    return rows, counts, ca.ScoreTable.from_arrays(p, y, np.ones(n))


@pytest.mark.parametrize("n", [2, 300, 2 * BLOCK + 9])
def test_rows_counts_and_weights_of_one_have_one_curve(n):
    first, *others = (ca.threshold_curve(table, false_positive=1, false_negative=7) for table in tables(n))
    for other in others:
        for column in ("thresholds", "tp", "fp", "cost"):
            np.testing.assert_array_equal(getattr(first, column), getattr(other, column))


@pytest.mark.parametrize("n", [2, 300, 2 * BLOCK + 9])
def test_counts_above_are_those_of_the_curve(n):
    for table in tables(n):
        scores = table.scores[:50]
        asked = np.concatenate([scores, np.nextafter(scores, 1), [0.0, 1.0, -np.inf, np.inf]])
        curve = curve_of(table)
        place = np.searchsorted(curve.thresholds, asked)
        for thresholds, at in (
            (asked, place),
            (asked[:4].reshape(2, 2), place[:4].reshape(2, 2)),
            (asked[0], place[0]),
        ):
            tp, fp = counts_above(table, thresholds)
            np.testing.assert_array_equal(tp, curve.tp[at])
            np.testing.assert_array_equal(fp, curve.fp[at])


@pytest.mark.parametrize("limits", [{"at_least": {"precision": 0.4}}, {"at_most": {"alert_rate": 0.2}}])
def test_a_guarantee_draws_the_same_pilot_from_rows_and_counts(limits):
    first, *others = (
        dataclasses.asdict(ca.choose_threshold(table, objective="recall", guarantee=0.1, **limits))
        for table in tables(BLOCK + 500)
    )
    assert first["feasible"]
    for other in others:
        assert other == first


@pytest.mark.parametrize(
    ("call", "bytes_a_row"),
    [
        (lambda y, p: ca.net_benefit(y, p, [0.1, 0.5]), 10),
        (lambda y, p: ca.threshold_curve(y, p, false_positive=1, false_negative=9), 10 + 4 * 8),
        (lambda y, p: ca.choose_threshold(y, p, objective="recall", at_least={"precision": 0.4}, guarantee=0.05), 64),
    ],
)
def test_memory(call, bytes_a_row):
    rng = np.random.default_rng(0)
    p = rng.random(400_000)
    y = (rng.random(len(p)) < p).astype(int)
    call(y, p)
    tracemalloc.start()
    call(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= bytes_a_row * len(p) + 8 * 8 * BLOCK
