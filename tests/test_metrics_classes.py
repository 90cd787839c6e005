"""Measures class by class, against the same numbers counted by hand and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics

import calibrant as ca
from catalogue import class_rows

ROWS = class_rows(n=300, k=4)


def test_a_table_per_class_is_the_class_against_the_rest():
    tables = ca.class_tables(ROWS.y, ROWS.scores, sample_weight=ROWS.weight)
    for k, table in enumerate(tables):
        want = ca.ScoreTable.from_arrays(ROWS.scores[:, k], ROWS.y == k, ROWS.weight)
        assert_allclose(table.distinct.scores, want.distinct.scores, rtol=1e-14)
        assert_array_equal(table.distinct.positives, want.distinct.positives)
    assert sum(table.prevalence for table in tables) == pytest.approx(1)


def test_top_label():
    table = ca.top_label_table(ROWS.y, ROWS.scores)
    assert table.prevalence == pytest.approx(np.mean(ROWS.scores.argmax(axis=1) == ROWS.y))
    assert ca.expected_calibration_error(table) == ca.expected_calibration_error(ROWS.y, ROWS.scores)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curves_give_the_classwise_error(strategy):
    curves = ca.classwise_reliability_curves(ROWS.y, ROWS.scores, n_bins=7, strategy=strategy)
    want = ca.expected_calibration_error(ROWS.y, ROWS.scores, n_bins=7, strategy=strategy, kind="classwise")
    assert np.mean([curve.calibration_error() for curve in curves]) == pytest.approx(want)
    summary = ca.class_summary(ROWS.y, ROWS.scores, n_bins=7, strategy=strategy)
    assert_allclose(summary.calibration_error, [curve.calibration_error() for curve in curves])
    assert summary.worst_first[0] == summary.calibration_error.argmax()


def test_summary_against_scikit_learn():
    found = ca.class_summary(ROWS.y, ROWS.scores, sample_weight=ROWS.weight)
    top = ROWS.scores.argmax(axis=1)
    given = {"sample_weight": ROWS.weight, "average": None}
    assert_allclose(found.recall, metrics.recall_score(ROWS.y, top, **given))
    assert_allclose(found.precision, metrics.precision_score(ROWS.y, top, **given))
    areas = metrics.roc_auc_score(np.eye(4)[ROWS.y], ROWS.scores, **given)
    assert_allclose(found.roc_auc, areas)
    assert found.brier.sum() == pytest.approx(ca.brier_score(ROWS.y, ROWS.scores, sample_weight=ROWS.weight))
    assert_allclose(found.mean_predicted, np.average(ROWS.scores, axis=0, weights=ROWS.weight))


def test_summary_of_a_class_without_rows():
    kept = ROWS.y != 2
    found = ca.class_summary(ROWS.y[kept], ROWS.scores[kept])
    assert found.weight[2] == 0
    assert np.isnan(found.roc_auc[2])
    assert np.isnan(found.recall[2])
    assert found.mean_predicted[2] > 0


def test_confusion_against_scikit_learn():
    found = ca.confusion_matrix(ROWS.y, ROWS.scores, sample_weight=ROWS.weight)
    want = metrics.confusion_matrix(ROWS.y, ROWS.scores.argmax(axis=1), sample_weight=ROWS.weight)
    assert_array_equal(found.weights, want)
    assert found.cost == pytest.approx(1 - np.trace(want) / want.sum())


def test_confusion_with_costs_takes_the_cheapest_action():
    costs = np.array([[0, 5, 1], [1, 0, 1], [9, 9, 1], [2, 2, 1.0]])
    found = ca.confusion_matrix(ROWS.y, ROWS.scores, cost_matrix=costs)
    action = (ROWS.scores @ costs).argmin(axis=1)
    assert found.weights.shape == (4, 3)
    assert found.cost == pytest.approx(costs[ROWS.y, action].mean())
    assert found.expected_cost == pytest.approx((ROWS.scores @ costs).min(axis=1).mean())


def test_a_calibrated_forecast_keeps_its_promise():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 50_000)
    y = (rng.random((50_000, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    found = ca.confusion_matrix(y, p, cost_matrix=[[0, 1, 2], [3, 0, 1], [1, 1, 0]])
    assert found.cost == pytest.approx(found.expected_cost, abs=0.01)


def test_labels_of_the_columns():
    names = np.array(["d", "a", "c", "b"])
    given = {"labels": names.tolist()}
    plain = ca.class_summary(ROWS.y, ROWS.scores)
    found = ca.class_summary(names[ROWS.y], ROWS.scores, **given)
    assert found.labels == ("d", "a", "c", "b")
    assert_array_equal(found.recall, plain.recall)
    assert ca.confusion_matrix(names[ROWS.y], ROWS.scores, **given).labels == ("d", "a", "c", "b")


@pytest.mark.parametrize(
    "measure",
    [ca.class_tables, ca.top_label_table, ca.classwise_reliability_curves, ca.class_summary, ca.confusion_matrix],
)
def test_two_classes_are_sent_to_their_table(measure):
    with pytest.raises(ca.errors.InputError, match="three or more"):
        measure([0, 1], [0.2, 0.7])


@pytest.mark.parametrize("costs", [np.eye(3), np.ones((4, 1)), [1, 2, 3, 4]])
def test_costs_of_another_shape_are_refused(costs):
    with pytest.raises(ca.errors.InputError, match="line for each of the 4 classes"):
        ca.confusion_matrix(ROWS.y, ROWS.scores, cost_matrix=costs)
