"""Costs, thresholds and limits against hand-worked cases, brute force and exact ties."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as ca
from calibrant.errors import DataWarning, InputError, InputTypeError


def rows(seed, n=300, levels=25):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, levels + 1, n) / levels
    return (rng.random(n) < p**1.3).astype(int), p


# ---------------------------------------------------------------- the threshold of costs


@pytest.mark.parametrize("miss", range(1, 40))
def test_a_tie_acts_exactly(miss):
    """With costs 1 and m the threshold is 1 / (1 + m), and the float nearest to it acts."""
    p = float(Fraction(1, 1 + miss))
    threshold = ca.optimal_threshold(false_positive=1, false_negative=miss)
    assert threshold == p
    matrix = [[0, 1], [miss, 0]]
    below = np.nextafter(p, 0)
    assert ca.bayes_decision([below, p], matrix).tolist() == [0, 1]


def test_the_whole_matrix_counts():
    matrix = [[-1, 4], [9, -6]]
    assert ca.optimal_threshold(matrix) == 5 / 20
    named = ca.optimal_threshold(true_negative=-1, false_positive=4, false_negative=9, true_positive=-6)
    assert named == ca.optimal_threshold(matrix)


@pytest.mark.parametrize(
    "matrix, expected, words",
    [
        ([[1, 0], [5, 2]], 0.0, "acting is always best"),
        ([[0, 0], [5, 0]], 0.0, "acting is always best"),
        ([[0, 1], [0, 0]], np.inf, "never acting"),
        ([[0, 1], [2, 3]], np.inf, "never acting"),
    ],
)
def test_degenerate_matrices_say_so(matrix, expected, words):
    with pytest.warns(DataWarning, match=words):
        assert ca.optimal_threshold(matrix) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        acts = ca.bayes_decision([0.0, 0.5, 1.0], matrix)
    assert acts.tolist() == ([1, 1, 1] if expected == 0 else [0, 0, 0])


def test_costs_that_reward_errors_are_refused():
    with pytest.raises(InputError, match="reward both errors"):
        ca.optimal_threshold([[1, 0], [0, 1]])
    with pytest.raises(InputError, match="cost the same"):
        ca.optimal_threshold([[1, 1], [2, 2]])
    assert ca.bayes_decision([0.2, 0.5, 0.8], [[1, 0], [0, 1]]).tolist() == [1, 1, 0]


def test_costs_by_row():
    misses = np.array([1.0, 9.0, 99.0])
    thresholds = ca.optimal_threshold(false_positive=1, false_negative=misses)
    assert np.allclose(thresholds, [0.5, 0.1, 0.01])
    matrices = np.array([[[0, 1], [miss, 0]] for miss in misses])
    assert np.array_equal(ca.optimal_threshold(matrices), thresholds)
    p = np.array([0.4, 0.1, 0.5])
    assert np.array_equal(ca.bayes_decision(p, matrices), (p >= thresholds).astype(int))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ca.optimal_threshold(), "what errors cost"),
        (lambda: ca.optimal_threshold(false_positive=1), "false_negative"),
        (lambda: ca.optimal_threshold([[0, 1], [2, 0]], false_positive=1), "not both"),
        (lambda: ca.optimal_threshold([[0, 1, 2], [2, 0, 1]]), "bayes_decision"),
        (lambda: ca.optimal_threshold(false_positive=np.nan, false_negative=1), "finite cost"),
        (lambda: ca.optimal_threshold(false_positive=[1, 2], false_negative=[1, 2, 3]), "one length"),
        (lambda: ca.bayes_decision([0.5], [[0, 1]]), "a row for each of the 2 classes"),
        (lambda: ca.bayes_decision([0.5, 0.2], np.zeros((3, 2, 2))), "each of the 2 rows"),
        (lambda: ca.net_benefit([0, 1], [0.2, 0.8], [1.0]), r"\[0, 1\)"),
        (lambda: ca.net_benefit([0, 1], [0.2, 0.8]), "thresholds"),
    ],
)
def test_errors_are_for_people(call, words):
    with pytest.raises(InputError, match=words):
        call()


# ---------------------------------------------------------------- any number of actions


def test_many_classes_and_actions_against_loops():
    rng = np.random.default_rng(0)
    p, costs = rng.dirichlet([1, 1, 1, 1], 200), rng.normal(size=(4, 6))
    expected = [min(range(6), key=lambda a: sum(row[k] * costs[k, a] for k in range(4))) for row in p]
    assert ca.bayes_decision(p, costs).tolist() == expected
    by_row = rng.normal(size=(200, 4, 3))
    expected = [min(range(3), key=lambda a: float(row @ by_row[i, :, a])) for i, row in enumerate(p)]
    assert ca.bayes_decision(p, by_row).tolist() == expected


def test_ties_of_many_actions_go_to_the_first():
    third = [[1 / 3, 1 / 3, 1 / 3]]
    assert ca.bayes_decision(third, 1 - np.eye(3))[0] == 0
    # 0.1 + 0.2 is not 0.3 in floats; the costs are equal all the same.
    assert ca.bayes_decision([[0.3, 0.1, 0.6]], [[0, 0.1, 1], [0, 0.1, 1], [0.1, 0.0, 1]])[0] in (0, 1)
    assert ca.bayes_decision([[0.7, 0.2, 0.1]], [[0.3, 0.21, 0.21], [0, 0.21, 0.21], [0, 0.21, 0.21]])[0] == 0


def test_declining_to_decide_is_an_action():
    costs = [[0, 10, 1], [10, 0, 1]]
    p = np.array([0.05, 0.0999, 0.2, 0.8, 0.95])
    assert ca.bayes_decision(p, costs).tolist() == [0, 0, 2, 2, 1]
    assert ca.bayes_decision(0.5, costs) == 2


# ---------------------------------------------------------------- every threshold


def brute(y, p, w, t):
    act = p >= t
    return [float(w[cell].sum()) for cell in (act & (y == 1), act & (y == 0), ~act & (y == 1), ~act & (y == 0))]


@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([1, 2, 5, 1000]), st.booleans())
def test_curve_is_brute_force(seed, n, levels, weighted):
    rng = np.random.default_rng(seed)
    p, y = rng.integers(0, levels + 1, n) / levels, rng.integers(0, 2, n)
    w = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    w[0] = 1.0
    prices = {"false_positive": 3, "false_negative": 7.5, "true_positive": -1, "true_negative": 0.25}
    curve = ca.threshold_curve(y, p, sample_weight=w, **prices)
    assert curve.thresholds.tolist() == [*np.unique(p[w > 0]), np.inf]
    for k, t in enumerate(curve.thresholds):
        tp, fp, fn, tn = brute(y, p, w, t)
        assert [curve.tp[k], curve.fp[k], curve.fn[k], curve.tn[k]] == [tp, fp, fn, tn]
        assert curve.cost[k] == pytest.approx(3 * fp + 7.5 * fn - tp + 0.25 * tn)
        assert curve.accuracy[k] == pytest.approx((tp + tn) / w.sum())
        assert curve.f1[k] == pytest.approx(2 * tp / (2 * tp + fp + fn), nan_ok=True) if tp + fp + fn else True


def test_curve_of_rows_and_tables_and_parts():
    y, p = rows(1)
    table = ca.ScoreTable.from_arrays(p, y)
    parts = ca.ScoreTable.from_arrays(p[:100], y[:100]) + ca.ScoreTable.from_arrays(p[100:], y[100:])
    for other in (table, table.distinct, parts):
        assert np.array_equal(ca.threshold_curve(other).tp, ca.threshold_curve(y, p).tp)
    assert ca.threshold_curve(table).cost is None


def test_costs_by_row_in_the_curve():
    y, p = rows(2, 80)
    rng = np.random.default_rng(3)
    alarm, miss, w = rng.random(80), rng.random(80) * 5, rng.integers(0, 3, 80).astype(float)
    curve = ca.threshold_curve(y, p, false_positive=alarm, false_negative=miss, sample_weight=w)
    for k, t in enumerate(curve.thresholds):
        act = p >= t
        assert curve.cost[k] == pytest.approx(
            w[act & (y == 0)] @ alarm[act & (y == 0)] + w[~act & (y == 1)] @ miss[~act & (y == 1)]
        )
    with pytest.raises(InputError, match="need the rows"):
        ca.threshold_curve(ca.ScoreTable.from_arrays(p, y), false_positive=alarm, false_negative=miss)


def test_net_benefit_is_its_formula():
    y, p = rows(4)
    for t in (0.0, 0.2, 0.5, 0.99):
        tp, fp, _, _ = brute(y, p, np.ones(len(y)), t)
        assert ca.net_benefit(y, p, t) == pytest.approx((tp - fp * t / (1 - t)) / len(y))
    assert ca.net_benefit(ca.ScoreTable.from_arrays(p, y), thresholds=0.0) == pytest.approx(y.mean())


def test_never_act_and_any_threshold():
    curve = ca.threshold_curve([0, 1], [0.2, 0.8])
    assert (curve.tp[-1], curve.fp[-1], curve.thresholds[-1]) == (0, 0, np.inf)
    assert [curve.at(t) for t in (0.0, 0.2, 0.3, 0.9, np.inf)] == [0, 0, 1, 2, 2]


# ---------------------------------------------------------------- one threshold


@pytest.mark.parametrize("objective", ["cost", "recall", "precision", "f1", "accuracy", "youden"])
def test_the_best_of_all_thresholds(objective):
    y, p = rows(5)
    curve = ca.threshold_curve(y, p, false_positive=2, false_negative=5)
    found = ca.choose_threshold(y, p, objective=objective, false_positive=2, false_negative=5)
    if objective == "cost":
        assert found.value * len(y) == pytest.approx(curve.cost.min())
    else:
        assert found.value == pytest.approx(np.nanmax(getattr(curve, objective)))
    assert found.low <= found.value <= found.high
    at = curve.at(found.threshold)
    assert (found.tp, found.fp, found.fn, found.tn) == (curve.tp[at], curve.fp[at], curve.fn[at], curve.tn[at])
    assert found.feasible


@pytest.mark.parametrize(
    "at_least, at_most",
    [
        ({"precision": 0.8}, None),
        (None, {"false_positive_rate": 0.1}),
        (None, {"alerts": 40}),
        (None, {"alert_rate": 0.05}),
        ({"precision": 0.7}, {"alerts": 60}),
        ({"accuracy": 0.6}, {"cost": 0.9}),
    ],
)
def test_limits_against_brute_force(at_least, at_most):
    y, p = rows(6)
    costs = {"false_positive": 1, "false_negative": 2}
    found = ca.choose_threshold(y, p, objective="recall", at_least=at_least, at_most=at_most, **costs)
    best = -1.0
    for t in [*np.unique(p), np.inf]:
        tp, fp, fn, tn = brute(y, p, np.ones(len(y)), t)
        n = len(y)
        values = {
            "precision": tp / (tp + fp) if tp + fp else np.nan,
            "false_positive_rate": fp / (fp + tn),
            "alerts": tp + fp,
            "alert_rate": (tp + fp) / n,
            "accuracy": (tp + tn) / n,
            "cost": (fp + 2 * fn) / n,
        }
        keeps = all(values[name] >= bound for name, bound in (at_least or {}).items())
        keeps &= all(values[name] <= bound for name, bound in (at_most or {}).items())
        best = max(best, tp / (tp + fn)) if keeps else best
    assert found.value == pytest.approx(best)
    assert all(check.met for check in found.limits)


def test_capacity_is_counted_over_a_day():
    y, p = rows(7, 1000, 1000)
    found = ca.choose_threshold(y, p, objective="recall", at_most={"alerts": 30}, expected_rows=500)
    assert found.tp + found.fp <= 60
    assert found.limits[0].estimate.value <= 30
    assert ca.choose_threshold(y, p, objective="recall", at_most={"alerts": 60}).threshold == found.threshold


def test_limits_that_nothing_meets():
    y, p = rows(8)
    found = ca.choose_threshold(y, p, objective="recall", at_least={"precision": 1.0}, at_most={"alerts": 0})
    assert (found.threshold, found.feasible, found.tp) == (np.inf, False, 0)
    alone = ca.choose_threshold(y, p, objective="recall", at_most={"alerts": 0})
    assert not alone.feasible


def test_regret_is_what_miscalibration_costs():
    y, p = rows(9, 2000, 500)
    honest = ca.IsotonicCalibration().fit(p, y).map_(p)
    prices = {"false_positive": 1, "false_negative": 4}
    assert ca.choose_threshold(y, honest, **prices).regret == pytest.approx(0, abs=1e-12)
    shown = ca.choose_threshold(y, p / 3, **prices)
    curve = ca.threshold_curve(y, p / 3, **prices)
    assert shown.cost_threshold == 0.2
    assert shown.regret == pytest.approx((curve.cost[curve.at(0.2)] - curve.cost.min()) / 2000)
    assert shown.regret > 0.01


def test_weights_count_rows():
    y, p = rows(10, 100)
    w = np.random.default_rng(0).integers(1, 4, 100)
    prices = {"false_positive": 1, "false_negative": 4}
    counted = ca.choose_threshold(y, p, sample_weight=w, **prices)
    repeated = ca.choose_threshold(np.repeat(y, w), np.repeat(p, w), **prices)
    assert counted.threshold == repeated.threshold
    assert counted.value == pytest.approx(repeated.value)
    assert counted.high - counted.low > repeated.high - repeated.low


@pytest.mark.parametrize(
    "options, kind, words",
    [
        ({}, InputError, "what errors cost"),
        ({"objective": "profit"}, InputError, "objective must be"),
        ({"objective": "recall", "at_least": {"specificity": 0.9}}, InputError, "but not 'specificity'"),
        ({"objective": "recall", "at_least": {"precision": 90}}, InputError, "bound of precision"),
        ({"objective": "recall", "at_most": [0.1]}, InputTypeError, "mapping"),
        ({"objective": "recall", "guarantee": 0.1}, InputError, "there is no limit"),
        ({"objective": "recall", "guarantee": 0.1, "at_least": {"f1": 0.5}}, InputError, "not for 'f1'"),
        ({"objective": "recall", "guarantee": 0.9, "at_least": {"recall": 0.5}}, InputError, "guarantee must be"),
        ({"objective": "recall", "confidence": 1}, InputError, "confidence"),
        ({"false_positive": [1, 2], "false_negative": 1}, InputError, "its own threshold"),
        ({"false_positive": -1, "false_negative": -1}, InputError, "reward both errors"),
    ],
)
def test_questions_that_cannot_be_answered(options, kind, words):
    with pytest.raises(kind, match=words):
        ca.choose_threshold([0, 1, 1], [0.2, 0.6, 0.9], **options)


def test_one_class_has_no_threshold():
    with pytest.raises(InputError, match="only the positive class"):
        ca.choose_threshold([1, 1], [0.2, 0.6], objective="recall")


# ---------------------------------------------------------------- guarantees


def drawn(rng, n, separation=2.0, prior=0.1):
    y = rng.random(n) < prior
    x = rng.normal(np.where(y, separation, 0.0), 1.0)
    return y, 1 / (1 + np.exp(-(np.log(prior / (1 - prior)) + separation * x - separation**2 / 2)))


LIMITS = [
    ({"precision": 0.7}, None),
    (None, {"false_positive_rate": 0.03}),
    ({"recall": 0.5}, None),
    (None, {"alerts": 50}),
    ({"precision": 0.6}, {"false_positive_rate": 0.03}),
]


@pytest.mark.parametrize("at_least, at_most", LIMITS)
def test_a_guarantee_is_on_the_safe_side(at_least, at_most):
    y, p = drawn(np.random.default_rng(0), 4000)
    objective = "precision" if at_least and "recall" in at_least else "recall"
    options = {"objective": objective, "at_least": at_least, "at_most": at_most, "expected_rows": 1000}
    safe, plain = ca.choose_threshold(y, p, guarantee=0.1, **options), ca.choose_threshold(y, p, **options)
    assert safe.feasible
    assert safe.guarantee == 0.1
    assert "binomial" in safe.method
    assert safe.value <= plain.value
    again = ca.choose_threshold(ca.ScoreTable.from_arrays(p[::-1], y[::-1]), guarantee=0.1, **options)
    assert again.threshold == safe.threshold


def test_a_guarantee_counts_whole_rows():
    y, p = drawn(np.random.default_rng(0), 500)
    with pytest.raises(InputError, match="whole numbers"):
        ca.choose_threshold(
            y, p, objective="recall", at_most={"alert_rate": 0.2}, guarantee=0.1, sample_weight=np.full(500, 1.5)
        )


def test_too_few_rows_give_no_guarantee():
    y, p = drawn(np.random.default_rng(0), 30, prior=0.4)
    found = ca.choose_threshold(y, p, objective="recall", at_least={"precision": 0.99}, guarantee=0.01)
    assert not found.feasible
    assert found.threshold == np.inf
