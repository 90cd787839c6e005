"""Numbers that others have published or that follow on paper, each with its source."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import calibrant as ca


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def test_isotonic_ties_are_summed_before_pooling():
    """scikit-learn issue 4184 family: x = 0 1 1 2 3, y = 0 0 1 0 1 gives 0, 1/3, 1/3, 1 at the distinct scores."""
    made = ca.IsotonicCalibration().fit([0, 1, 1, 2, 3], [0, 0, 1, 0, 1]).map_
    np.testing.assert_allclose(made([0, 1, 2, 3]), [0, 1 / 3, 1 / 3, 1], atol=1e-15)


def test_isotonic_switches_half_way_and_keeps_the_ends():
    """By definition: blocks {0, 1} and {2, 3}; the switch is at 1.5 and belongs to the upper block."""
    made = ca.IsotonicCalibration().fit([0, 1, 2, 3], [0, 0, 1, 1]).map_
    assert made([-1e300, 1.4999, 1.5, 1e300]).tolist() == [0, 0, 1, 1]
    line = ca.IsotonicCalibration(interpolation="linear").fit([0, 1, 2, 3], [0, 0, 1, 1]).map_
    np.testing.assert_allclose(line([-9, 1, 1.25, 2, 9]), [0, 0, 0.25, 1, 1], atol=1e-15)


def test_isotonic_keeps_neighbouring_floats_apart():
    """Scores one unit in the last place apart are two scores."""
    a = 0.7
    b = np.nextafter(a, 1)
    made = ca.IsotonicCalibration().fit([a, b], [0, 1]).map_
    assert made([a, b]).tolist() == [0, 1]


def test_isotonic_smoothing():
    """Block value (k + s) / (n + 2 s): two blocks of two rows with s = 1 give 1/4 and 3/4."""
    made = ca.IsotonicCalibration(smoothing=1).fit([0, 1, 2, 3], [0, 0, 1, 1]).map_
    np.testing.assert_allclose(made([0, 3]), [0.25, 0.75], atol=1e-15)


def test_platt_targets():
    """Platt (1999), section 2.2: (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), here of 3 positives and 2 negatives."""
    fitted = ca.PlattScaling().fit([-1.0, 0.5, 1.0, 2.0, -2.0], [0, 1, 1, 1, 0])
    assert fitted.target_positive_ == 4 / 5
    assert fitted.target_negative_ == 1 / 4


def test_platt_of_two_scores_is_the_logit_of_the_targets():
    """Separable rows at two scores: the map meets the targets exactly (Lin, Lin, Weng 2007, the optimum condition)."""
    fitted = ca.PlattScaling().fit([-1.0, -1.0, 1.0, 1.0], [0, 0, 1, 1])
    assert fitted.slope_ == pytest.approx(math.log(3), abs=1e-12)
    assert fitted.intercept_ == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(fitted.map_([-1, 1]), [1 / 4, 3 / 4], atol=1e-12)


def test_platt_minimises_the_cross_entropy():
    """Against a general optimiser, on rows with weights."""
    rng = np.random.default_rng(4)
    score, weight = rng.normal(size=80), rng.uniform(0.5, 2, 80)
    y = (rng.uniform(size=80) < expit(1.5 * score)).astype(int)
    fitted = ca.PlattScaling().fit(score, y, weight)
    target = np.where(y == 1, fitted.target_positive_, fitted.target_negative_)
    loss = lambda at: weight @ (np.logaddexp(0, at[0] + at[1] * score) - target * (at[0] + at[1] * score))  # noqa: E731
    found = minimize(loss, [0, 0], tol=1e-14)
    assert loss([fitted.intercept_, fitted.slope_]) <= found.fun + 1e-12
    np.testing.assert_allclose([fitted.intercept_, fitted.slope_], found.x, atol=1e-5)


def test_affine_logit_of_two_groups():
    """Cox (1958): with two predicted values the recalibrated ones are the event rates, 1/4 and 2/3."""
    p = [0.2] * 4 + [0.8] * 3
    y = [1, 0, 0, 0, 1, 1, 0]
    fitted = ca.AffineLogit().fit(p, y)
    np.testing.assert_allclose(fitted.map_([0.2, 0.8]), [1 / 4, 2 / 3], atol=1e-12)
    line = ca.calibration_slope_intercept(y, p)
    assert line.slope == pytest.approx(math.log(6) / math.log(16), abs=1e-12)
    assert line.slope == pytest.approx(fitted.slope_, abs=1e-12)
    assert line.intercept == pytest.approx(fitted.intercept_, abs=1e-12)


def test_temperature_of_two_confident_answers():
    """Guo et al. (2017), section 4.2: all logits +-a with a share q right give T = a / logit(q); here q = 3/4."""
    p = [0.9, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.1]
    y = [1, 1, 0, 0, 1, 1, 0, 0]
    fitted = ca.TemperatureScaling().fit(p, y)
    assert fitted.temperature_ == pytest.approx(math.log(9) / math.log(3), abs=1e-9)
    np.testing.assert_allclose(fitted.map_([0.9, 0.1]), [3 / 4, 1 / 4], atol=1e-9)


def test_calibration_error_of_two_rows():
    """torchmetrics and net:cal issues: p = .95 and 1 with labels 1 and 0 in 10 bins, and 1 belongs to the last bin."""
    assert ca.expected_calibration_error([1, 0], [0.95, 1.0], n_bins=10) == pytest.approx(0.475, abs=1e-15)
    assert ca.expected_calibration_error([1, 0], [1.0, 0.0]) == 0


def test_bins_are_closed_on_the_right_at_the_floats_of_linspace():
    """scikit-learn's `calibration_curve`: edges linspace(0, 1, 11); 0.1 is in the first bin, 0.3 (a float) as well as
    its edge 0.30000000000000004 in the third.
    """
    curve = ca.reliability_curve([0, 1, 0, 1], [0.0, 0.1, 0.3, 0.30000000000000004], n_bins=10)
    assert curve.rows.tolist() == [2, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    assert np.isnan(curve.observed_rate[1])


def test_brier_of_four_forecasts():
    """Brier (1950), on paper: forecasts .1 .9 .8 .3 of 0 1 1 0 give (.01 + .01 + .04 + .09) / 4."""
    assert ca.brier_score([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3]) == pytest.approx(0.0375, abs=1e-15)


def test_multiclass_brier_is_twice_the_binary_one():
    """Brier (1950): the sum over the classes; a third class of probability 0 doubles the binary score."""
    y, p = [0, 1, 1, 0], np.array([0.1, 0.9, 0.8, 0.3])
    three = np.column_stack([1 - p, p, np.zeros(4)])
    assert ca.brier_score(y, three) == pytest.approx(2 * ca.brier_score(y, p), abs=1e-15)


def test_murphy_decomposition_on_distinct_values():
    """Murphy (1973): groups .2 (1 of 4) and .8 (2 of 3): reliability, resolution and uncertainty in fractions."""
    p, y = [0.2] * 4 + [0.8] * 3, [1, 0, 0, 0, 1, 1, 0]
    base = Fraction(3, 7)
    reliability = (4 * (Fraction(1, 5) - Fraction(1, 4)) ** 2 + 3 * (Fraction(4, 5) - Fraction(2, 3)) ** 2) / 7
    resolution = (4 * (Fraction(1, 4) - base) ** 2 + 3 * (Fraction(2, 3) - base) ** 2) / 7
    parts = ca.score_decomposition(y, p, method="distinct")
    assert parts.miscalibration == pytest.approx(float(reliability), abs=1e-15)
    assert parts.discrimination == pytest.approx(float(resolution), abs=1e-15)
    assert parts.uncertainty == pytest.approx(float(base * (1 - base)), abs=1e-15)
    assert parts.score == pytest.approx(float(reliability - resolution + base * (1 - base)), abs=1e-15)


def test_auc_counts_ties_one_half():
    """Hanley and McNeil (1982): the probability of a right order plus half that of a tie; here 3.5 of 4 pairs."""
    assert ca.roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]) == 0.875
    assert ca.roc_auc([0, 1, 0, 1], [5, 5, 5, 5]) == 0.5


def test_documented_values_of_scikit_learn():
    """The examples in scikit-learn's documentation of roc_auc_score, average_precision_score and log_loss."""
    y, score = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    assert ca.roc_auc(y, score) == 0.75
    assert ca.average_precision(y, score) == pytest.approx(0.8333333333333333, abs=1e-15)
    p = [[0.1, 0.9], [0.9, 0.1], [0.8, 0.2], [0.35, 0.65]]
    spam = ["spam", "ham", "ham", "spam"]
    assert ca.log_loss(spam, p, pos_label="spam") == pytest.approx(0.21616, abs=5e-6)
    assert ca.brier_score([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3]) == pytest.approx(0.037, abs=5e-4)


def test_average_precision_of_a_constant_score_is_the_prevalence():
    """Boyd, Eng, Page (2013): one threshold, at which all rows are taken."""
    assert ca.average_precision([1] * 3 + [0] * 7, [0.4] * 10) == pytest.approx(0.3, abs=1e-15)


def test_roc_curve_of_the_isotonic_fit_is_the_convex_hull():
    """Fawcett and Niculescu-Mizil (2007): pooled scores have the slopes of the hull, so its area is not smaller."""
    rng = np.random.default_rng(11)
    score = rng.integers(0, 30, 200)
    y = (rng.uniform(size=200) < 0.1 + 0.025 * score).astype(int)
    fitted = ca.IsotonicCalibration().fit(score, y).map_(score)
    curve = ca.roc_curve(y, fitted)
    slopes = np.diff(curve.true_positive_rate) / np.maximum(np.diff(curve.false_positive_rate), 1e-300)
    assert np.all(np.diff(slopes) < 0)
    assert ca.roc_auc(y, fitted) >= ca.roc_auc(y, score)


def test_one_vs_rest_divides_by_the_sum():
    """Zadrozny and Elkan (2002), section 4: columns 1/2, 1/4, 1/4 and so on, divided by their sum."""
    p = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    fitted = quiet(lambda: ca.OneVsRest(ca.IsotonicCalibration()).fit(p, [0, 1, 2, 2]))
    np.testing.assert_allclose(fitted.map_([0.6, 0.3, 0.1]), np.array([1 / 2, 1 / 4, 0]) / (3 / 4), atol=1e-15)


def test_venn_abers_of_one_tie():
    """Vovk, Petej, Fedorova (2015), by definition: two isotonic fits with the row added as 0 and as 1.

    Calibration rows 1 (0), 2 (0), 2 (1), 3 (1): the score 2 gives p0 = 1/3, p1 = 2/3.
    """
    fitted = ca.VennAbers().fit([1, 2, 2, 3], [0, 0, 1, 1])
    np.testing.assert_allclose(fitted.predict_interval([2.0]), [[1 / 3, 2 / 3]], atol=1e-15)
    assert fitted.map_(2.0) == pytest.approx((2 / 3) / (1 - 1 / 3 + 2 / 3), abs=1e-15)


def test_beta_calibration_holds_platt_on_log_odds():
    """Kull, Silva Filho, Flach (2017): a = b is the affine map of the log-odds, so the likelihood is not lower."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 300)
    y = (rng.uniform(size=300) < p**2).astype(int)
    beta, affine = ca.BetaCalibration().fit(p, y), ca.AffineLogit().fit(p, y)
    assert ca.log_loss(y, beta.map_(p)) <= ca.log_loss(y, affine.map_(p)) + 1e-12
    assert beta.a_ >= 0
    assert beta.b_ >= 0
    np.testing.assert_allclose(beta.map_(p), expit(beta.c_ + beta.a_ * np.log(p) - beta.b_ * np.log1p(-p)), atol=1e-12)
