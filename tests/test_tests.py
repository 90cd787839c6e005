"""Tests of calibration, verdicts, planning, and evidence by group."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit

import calibrant as ca

KINDS = ("spiegelhalter", "hosmer-lemeshow", "cox")


def sample(n=5000, seed=0, slope=1.0, centre=0.0, scale=1.5):
    rng = np.random.default_rng(seed)
    z = centre + scale * rng.normal(size=n)
    return (rng.uniform(size=n) < expit(slope * z)).astype(int), expit(z)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("kind", KINDS)
def test_p_values_are_uniform_when_calibrated_and_small_when_not(kind):
    p_values = [ca.calibration_test(*sample(400, seed), kind=kind).p_value for seed in range(300)]
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.09
    assert 0.43 < np.mean(p_values) < 0.57
    assert ca.calibration_test(*sample(slope=0.6), kind=kind).p_value < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_rows_tables_and_doubled_weights(kind):
    y, p = sample(500)
    found = ca.calibration_test(y, p, kind=kind)
    table = ca.ScoreTable.from_arrays(p, y)
    for other in (table, table.distinct):
        again = ca.calibration_test(other, kind=kind)
        assert again.statistic == pytest.approx(found.statistic, rel=1e-9)
    # A row of weight 2 is one row that counts twice: no more evidence than before.
    assert ca.calibration_test(y, p, kind=kind, sample_weight=np.full(500, 2.0)).statistic == pytest.approx(
        found.statistic, rel=1e-9
    )


def test_certain_forecasts():
    right, wrong = ([0, 1], [0.0, 1.0]), ([0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0])
    for kind in ("spiegelhalter", "hosmer-lemeshow"):
        assert ca.calibration_test(*right, kind=kind).p_value == 1
        assert ca.calibration_test(*wrong, kind=kind).p_value == 0
    assert ca.calibration_test([0, 1, 1, 1], [0.5] * 4, kind="cox").degrees_of_freedom == 1
    assert ca.calibration_test([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8], kind="cox").p_value > 0.3


def test_bad_kinds():
    with pytest.raises(ca.errors.InputError, match="kind must be one of"):
        ca.calibration_test([0, 1], [0.2, 0.7], kind="hl")
    with pytest.raises(ca.errors.InputError, match="no degree of freedom"):
        ca.calibration_test([0, 1], [0.5, 0.5], kind="hosmer-lemeshow", fitted=True)


# ---------------------------------------------------------------- verdicts


def test_three_outcomes():
    within = ca.calibration_verdict(*sample(20_000), margin=0.03)
    assert within.verdict == "within margin"
    assert within.estimate.high <= 0.03
    assert within.rows_needed <= within.rows
    beyond = ca.calibration_verdict(*sample(5000, slope=0.4), margin=0.02)
    assert beyond.verdict == "beyond margin"
    assert beyond.estimate.low > 0.02
    few = ca.calibration_verdict(*sample(200), margin=0.02)
    assert few.verdict == "not enough rows"
    assert few.rows_needed > 5000
    assert "about" in few.words
    assert "rows are needed" in str(few)


def test_no_number_of_rows_is_named_where_the_error_is_about_the_margin():
    """The number has no bound there; elsewhere, however few the rows, it is of the size that planning gives."""
    planned = ca.rows_needed(margin=0.02, prevalence=0.3)
    near = []
    for seed in range(20):
        for n in (100, 400, 3000):
            found = ca.calibration_verdict(*sample(n, seed, slope=0.85), margin=0.02)
            if found.near_margin:
                near.append(found)
                assert found.verdict == "not enough rows"
                assert 0.01 <= found.estimate.value <= 0.04
                assert found.rows_needed > 10 * n
                assert "about as large as the margin, so more rows may not settle it" in found.words
                assert "rows are needed" not in found.words
            elif found.verdict == "not enough rows":
                assert f"about {found.rows_needed:,.0f} rows are needed" in found.words
                assert found.rows_needed <= max(10 * n, 2 * planned)
    assert len(near) >= 5


def test_a_large_p_value_is_no_proof():
    y, p = sample(200, seed=3)
    assert ca.calibration_test(y, p).p_value > 0.05
    assert ca.calibration_verdict(y, p, margin=0.02).verdict == "not enough rows"


def test_the_rows_it_asks_for_are_about_enough():
    asked = np.median([ca.calibration_verdict(*sample(400, seed), margin=0.03).rows_needed for seed in range(20)])
    found = [ca.calibration_verdict(*sample(int(asked), seed), margin=0.03).verdict for seed in range(100, 140)]
    assert found.count("within margin") >= 24


def test_useless_and_calibrated_is_said():
    rng = np.random.default_rng(0)
    p = rng.normal(0.3, 0.005, 20_000)
    found = ca.calibration_verdict(rng.uniform(size=20_000) < 0.3, p, margin=0.03)
    assert found.verdict == "within margin"
    assert not found.informative
    assert "nothing shows that the scores tell events from the rest" in found.words
    assert ca.calibration_verdict(*sample(), margin=0.1).informative
    one = ca.calibration_verdict(np.zeros(50), np.full(50, 0.01), margin=0.5)
    assert one.discrimination is None
    assert "one class only" in one.words


def test_verdict_of_repeated_rows():
    y, p = sample(1500)
    at = np.repeat(np.arange(1500), 10)
    assert ca.calibration_verdict(y[at], p[at], margin=0.06).verdict != "not enough rows"
    once = ca.calibration_verdict(y, p, margin=0.02)
    again = ca.calibration_verdict(y[at], p[at], margin=0.02, groups=at)
    assert again.verdict == once.verdict == "not enough rows"
    assert again.estimate.high == pytest.approx(once.estimate.high, rel=0.1)


def test_margins_that_are_none():
    for margin in (0, 1, -0.1, "x", None, True):
        with pytest.raises(ca.errors.InputError, match="margin must be a number strictly between 0 and 1"):
            ca.calibration_verdict([0, 1], [0.2, 0.7], margin=margin)


# ---------------------------------------------------------------- planning


def test_more_rows_for_more():
    base = ca.rows_needed(margin=0.05, prevalence=0.3)
    assert 1500 < base < 2500
    assert 3.5 < ca.rows_needed(margin=0.025, prevalence=0.3) / base < 4.5
    assert ca.rows_needed(margin=0.05, prevalence=0.3, power=0.9) > 1.1 * base
    assert ca.rows_needed(margin=0.05, prevalence=0.3, confidence=0.99) > 1.2 * base
    assert ca.rows_needed(margin=0.05, prevalence=0.05) < base
    assert ca.rows_needed(margin=0.05, prevalence=0.3, roc_auc=0.7) <= base
    assert ca.rows_needed(margin=0.01, prevalence=0.01, roc_auc=0.9) > ca.rows_needed(
        margin=0.01, prevalence=0.01, roc_auc=0.6
    )


def test_plans_that_are_none():
    for options in ({"prevalence": 0}, {"prevalence": 1.2}, {"power": 1}, {"margin": 0}, {"roc_auc": 0.4}):
        with pytest.raises(ca.errors.InputError, match=f"{next(iter(options))} must be"):
            ca.rows_needed(**{"margin": 0.1, "prevalence": 0.3, **options})


# ---------------------------------------------------------------- groups


def segments(seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b", "c", "d"], [6000, 4000, 300, 8])
    z = rng.normal(size=len(group))
    y = rng.uniform(size=len(group)) < expit(np.where(group == "b", z + 0.8, z))
    return y.astype(int), expit(z), group


def test_worst_first_and_too_small_by_name():
    y, p, group = segments()
    found = ca.calibration_by_group(y, p, group, margin=0.06)
    assert [(line.group, line.verdict) for line in found.groups] == [
        ("b", "beyond margin"),
        ("c", "not enough rows"),
        ("a", "within margin"),
        ("d", "too small to judge"),
    ]
    assert found.level == pytest.approx(1 - 0.05 / 3)
    assert found.groups[-1].calibration_error is None
    assert "The worst is b" in str(found)
    alone = ca.calibration_error(y[group == "b"], p[group == "b"], confidence=found.level)
    assert found.groups[0].calibration_error == alone
    assert found.groups[0].rows == 4000


def test_many_calibrated_segments_and_no_false_alarm():
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=6000)
        found = ca.calibration_by_group(rng.uniform(size=6000) < p, p, rng.integers(0, 30, 6000), margin=0.001)
        alarms += found.groups[0].verdict == "beyond margin"
    assert alarms <= 5


def test_size_is_judged_without_looking_at_what_happened():
    p, group = np.full(200, 0.01), np.repeat([1, 2], 100)
    for y in (np.zeros(200, int), np.ones(200, int)):
        found = ca.calibration_by_group(y, p, group)
        assert {line.verdict for line in found.groups} == {"too small to judge"}


def test_groups_of_weighted_rows_and_refusals():
    y, p, group = segments()
    w = np.ones(len(y))
    w[group == "d"] = 0
    found = ca.calibration_by_group(y, p, group, sample_weight=w)
    assert {line.group for line in found.groups} == {"a", "b", "c"}
    with pytest.raises(ca.errors.InputTypeError, match="needs rows and their groups"):
        ca.calibration_by_group(ca.ScoreTable.from_arrays(p, y), None, group)
    with pytest.raises(ca.errors.InputError, match="groups"):
        ca.calibration_by_group(y, p, group[:-1])
    assert math.isclose(sum(line.rows for line in ca.calibration_by_group(y, p, group).groups), len(y))


@pytest.mark.parametrize(("kind", "bytes_a_row"), [("spiegelhalter", 1), ("cox", 1 + 2 * 8), ("hosmer-lemeshow", 13)])
def test_rows_counts_and_weights_of_one_agree_and_few_columns_are_held(kind, bytes_a_row):
    rng = np.random.default_rng(3)
    p = rng.random(200_000)
    y = (rng.random(len(p)) < p).astype(int)
    found = ca.calibration_test(y, p, kind=kind)
    for table in (ca.ScoreTable.from_counts(p, y, 1 - y), ca.ScoreTable.from_arrays(p, y, np.ones(len(p)))):
        other = ca.calibration_test(table, kind=kind)
        assert other.statistic == pytest.approx(found.statistic, rel=1e-8)
        assert other.degrees_of_freedom == found.degrees_of_freedom
    tracemalloc.start()
    ca.calibration_test(y, p, kind=kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= bytes_a_row * len(p) + 10 * 8 * 2**15
