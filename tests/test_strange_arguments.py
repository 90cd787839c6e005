"""Arguments that no one should give: each is answered with an error of calibrant, none with one of Python or NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import calibrant as ca
from calibrant.cli._evidence import evidence
from calibrant.cli._limits import limits_of
from calibrant.errors import CalibrantError, CalibrantWarning
from calibrant.generative import GaussianNaiveBayes, RiskBasedCalibration

RNG = np.random.default_rng(0)
P = RNG.uniform(0.02, 0.98, 120)
Y = (RNG.random(120) < P).astype(int)
P3 = RNG.dirichlet(np.ones(3), 120)
Y3 = np.array([RNG.choice(3, p=row) for row in P3])
LABELS = (np.array([1, 2]), np.array(0.5), pd.NA, np.nan, b"1", [1])
TURNED = pd.Series(np.arange(120) % 2).iloc[::-1]
COSTS3 = np.full((3, 3), 1e308)
RISK = ca.RiskBasedDisplay.from_estimator(RiskBasedCalibration(GaussianNaiveBayes(), max_iter=2).fit(P3, Y3))
TREE = ca.RecursivePartitioning(max_leaves=3).fit(P3, Y3).map_
SURFACE = ca.roc_surface(Y3, P3)


def plane() -> object:
    """Axes of two dimensions."""
    return Figure().add_subplot()


REFUSED = {
    "pos_label": [lambda one=one: ca.brier_score(Y, P, pos_label=one) for one in LABELS],
    "whole numbers beyond floats": [
        lambda: ca.calibration_error(Y, P, confidence=10**400),
        lambda: ca.rows_needed(margin=0.05, prevalence=0.2, roc_auc=10**400),
        lambda: ca.build_report(Y, P, margin=10**400),
        lambda: ca.expected_performance(P, threshold=10**400),
    ],
    "arrays of no dimension": [
        lambda: ca.class_tables(Y3, P3, labels=np.array(0.3)),
        lambda: ca.TemperatureScaling(classes=np.array(0.3)).fit(P3, Y3),
        lambda: ca.net_benefit(Y, P, np.nan),
        lambda: ca.adjust_prior(P3, np.nan, [0.2, 0.3, 0.5]),
        lambda: ca.shift_map(ca.PlattScaling().fit(P, Y).map_, np.array([0.1, 0.2]), 0.3),
    ],
    "flags": [lambda one=one: ca.calibration_test(Y, P, kind="hosmer-lemeshow", fitted=one) for one in (None, 0.5, -1)]
    + [lambda one=one: ca.build_report(Y, P, from_logits=one) for one in (np.array([1, 2]), pd.NA, "no")],
    "thresholds": [lambda one=one: ca.expected_performance(P, threshold=one) for one in (np.nan, "a", [], True)],
    "choices": [
        lambda: ca.estimate(np.array([1, 2]), Y, P),
        lambda: ca.estimate_prior(P, 0.4, method=np.array([1, 2])),
        lambda: ca.choose_threshold(Y, P, objective="recall", at_least=np.array([1, 2])),
        lambda: ca.choose_threshold(Y, P, objective="recall", at_least=0.3),
        lambda: ca.choose_threshold(Y, P, objective="recall", at_least={pd.NA: 0.3}),
        lambda: ca.AutoCalibrator(candidates=[1]).fit(P3, Y3),
        lambda: ca.roc_surface(Y3, P3, len),
        lambda: ca.roc_surface(Y3, P3, [[0, 0, 1j]]),
        lambda: ca.ReliabilityDisplay.from_predictions(Y, P, ax=3),
        lambda: ca.ThresholdDisplay.from_predictions(Y, P, ax="axes"),
        lambda: ca.ReliabilityDisplay.from_predictions(Y, P, name=np.array(["a", "b"])),
        lambda: ca.ThresholdDisplay.from_predictions(Y, P, name=np.array(["a", "b"])),
        *(lambda one=one: RISK.plot(ax=one) for one in (3, [3, 4, 5], "axes", [], [None] * 4)),
        lambda: ca.RiskBasedDisplay(RISK.history, name=np.arange(2)),
        lambda: ca.RiskBasedDisplay(RISK.history, baseline_name=3),
        *(lambda one=one: ca.PartitionCurveDisplay([1], {}).plot(ax=one) for one in (3, [3, 4], "axes")),
        *(lambda one=one: ca.SimplexDisplay(TREE).plot(ax=one) for one in (3, [3], "axes")),
        *(lambda one=one: ca.RocSurfaceDisplay({"a": SURFACE}).plot(ax=one) for one in (3, "axes", plane())),
    ],
    "costs of other rows": [
        lambda: ca.threshold_curve(pd.Series(Y), P, false_positive=1.0, false_negative=TURNED + 1.0),
        lambda: ca.threshold_curve(Y, pd.Series(P), false_positive=TURNED + 1.0, false_negative=1.0),
        lambda: ca.threshold_curve(Y, P, false_positive=pd.Series(P), false_negative=TURNED + 1.0),
        lambda: ca.optimal_threshold(false_positive=pd.Series(P), false_negative=TURNED + 1.0),
    ],
    "groups and weights of other rows": [
        lambda: ca.calibration_by_group(pd.Series(Y), P, TURNED),
        lambda: ca.estimate(ca.brier_score, pd.Series(Y), P, groups=TURNED),
        lambda: ca.compare(ca.brier_score, pd.Series(Y), P, P**2, groups=TURNED),
        lambda: ca.calibration_verdict(pd.Series(Y), P, margin=0.1, groups=TURNED),
        lambda: ca.build_report(pd.Series(Y), P, groups=TURNED),
        lambda: ca.estimate_prior(pd.Series(P), 0.4, sample_weight=TURNED + 1.0),
        lambda: ca.expected_performance(pd.Series(P), sample_weight=TURNED + 1.0),
    ],
    "too small": [
        lambda: ca.rows_needed(margin=5e-324, prevalence=0.2),
        lambda: ca.CalibrationMonitor(ca.ScoreTable.from_arrays(P, Y), alpha=5e-324),
        lambda: ca.adjust_prior(P, 5e-324, 0.3),
        lambda: ca.adjust_prior(P3, [5e-324, 0.5, 0.5], [0.2, 0.3, 0.5]),
        lambda: ca.estimate_prior(P, 5e-324),
        lambda: ca.build_report(Y, P, new_prevalence=5e-324),
    ],
    "too large": [
        lambda: ca.threshold_curve(Y, P, false_positive=1e308, false_negative=1e308),
        lambda: ca.optimal_threshold([[-1e308, 1e308], [1, 0]]),
        lambda: ca.bayes_decision(P3, COSTS3),
        lambda: ca.confusion_matrix(Y3, P3, cost_matrix=COSTS3),
        lambda: ca.roc_surface(Y3, (P3 - 0.5) * 3e308),
        lambda: ca.adjust_prior(P3, np.full(3, 1e308), [0.2, 0.3, 0.5]),
        lambda: RiskBasedCalibration(GaussianNaiveBayes(), learning_rate=1e308).fit(P3, Y),
    ],
}
CASES = [
    pytest.param(call, id=f"{kind}-{place}") for kind, calls in REFUSED.items() for place, call in enumerate(calls)
]


@pytest.mark.parametrize("call", CASES)
def test_strange_arguments_are_refused_in_our_words(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", CalibrantWarning)
        with pytest.raises(CalibrantError) as caught:
            call()
    assert str(caught.value).endswith(".")


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
@pytest.mark.parametrize("penalty", [5e-324, 1e-300, 1e-30])
@pytest.mark.parametrize("make", [ca.VectorScaling, ca.MatrixScaling, ca.StructuredVectorScaling])
def test_a_penalty_that_is_lost_to_rounding_is_none(make, penalty):
    found = make(penalty=penalty).fit(P3, Y3).predict_proba(P3)
    np.testing.assert_allclose(found, make(penalty=1e-9).fit(P3, Y3).predict_proba(P3), atol=1e-5)


def test_a_limit_that_is_given_twice_is_refused():
    with pytest.raises(CalibrantError, match="precision twice"):
        limits_of("--at-least", ["precision=0.9", "precision=0.5"])


def test_a_margin_of_nothing_is_refused_and_not_replaced():
    table = ca.ScoreTable.from_arrays(P, Y)
    with pytest.raises(CalibrantError, match="margin"):
        evidence(table, None, 0.0)
    with pytest.raises(CalibrantError, match="last"):
        ca.CalibrationMonitor(table).reliability(0)


def test_an_infinite_threshold_never_acts():
    assert ca.expected_performance(P, threshold=np.inf).alert_rate == 0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_smallest_probabilities_are_judged_without_a_warning_of_numpy():
    tiny = P * 1e-320
    assert ca.calibration_test(Y, tiny, kind="hosmer-lemeshow").p_value == 0
    assert "1" in str(ca.build_report(Y, tiny).data.rows)
