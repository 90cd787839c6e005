"""Estimates: what they refuse, where a normal interval would be nonsense, and second ways to their errors."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import calibrant as ca
from calibrant._kernels import intervals, resample
from calibrant.metrics import _influence
from calibrant.metrics._bootstrap import bootstrapped
from calibrant.metrics._class_losses import MeanLoss
from calibrant.metrics._design import design_of
from calibrant.metrics._influence import clustered_variance
from catalogue import binary_rows, class_rows

ONE_NUMBER = [ca.brier_score, ca.log_loss, ca.roc_auc, ca.average_precision]


def sample(n=2000, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    return (rng.uniform(size=n) < expit(slope * z)).astype(int), expit(z)


def same(a, b, tolerance):
    np.testing.assert_allclose([a.value, a.low, a.high], [b.value, b.low, b.high], atol=tolerance, rtol=0)


# ---------------------------------------------------------------- the calibration error


def test_chance_is_taken_off():
    values = []
    for seed in range(200):
        y, p = sample(600, seed)
        ends = np.array_split(np.argsort(p), 15)
        gaps = [(y[at].mean() - p[at].mean()) ** 2 - np.var(y[at] - p[at], ddof=1) / len(at) for at in ends]
        squared = sum(len(at) * gap for at, gap in zip(ends, gaps)) / 600
        assert ca.calibration_error(y, p).value == pytest.approx(math.sqrt(max(squared, 0)), abs=1e-12)
        values.append(squared)
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(200)


def test_the_interval_inverts_its_own_distribution():
    spread = intervals.spread_of(np.array([1.0, 0.5, 2.0]) / 100)
    for value in (-0.01, 0.02, 0.4):
        low, high = intervals.square_limits(value, spread, spread, 0.9)
        if low > 0:
            assert intervals.share_below(value, low, spread) == pytest.approx(0.95, abs=1e-6)
        seen = max(value, intervals.value_at(0.1, 0.0, spread))
        assert intervals.share_below(seen, high, spread) == pytest.approx(0.05, abs=1e-6)


def test_null_distribution_is_chi_squared_for_equal_bins():
    spread = intervals.spread_of(np.full(15, 0.002))
    drawn = 0.002 * (np.random.default_rng(0).chisquare(15, 200_000) - 15)
    for share in (0.025, 0.5, 0.975):
        value = intervals.value_at(share, 0.0, spread)
        assert (drawn <= value).mean() == pytest.approx(share, abs=0.002)
        assert intervals.share_below(value, 0.0, spread) == pytest.approx(share, abs=1e-9)


def test_a_perfect_forecast_is_not_certain():
    y = np.array([0, 1] * 100)
    found = ca.calibration_error(y, y.astype(float))
    assert (found.value, found.low) == (0, 0)
    assert 0.01 < found.high < 0.05


def test_rare_events_are_not_called_miscalibrated():
    calls = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = expit(-7 + rng.normal(size=1000))
        calls += ca.calibration_error(rng.uniform(size=1000) < p, p).low > 0
    assert calls <= 5


def test_weights_that_differ_widen_the_interval():
    y, p = sample()
    w = np.random.default_rng(1).exponential(size=len(y))
    for measure in (ca.calibration_error, ca.brier_score, ca.roc_auc):
        assert ca.estimate(measure, y, p, sample_weight=w).width > 1.1 * ca.estimate(measure, y, p).width


def test_whole_weights_of_counts_are_rows():
    y, p = sample(300)
    p = p.round(2)
    table = ca.ScoreTable.from_arrays(p, y).distinct
    counted = ca.ScoreTable.from_counts(table.scores, table.positives, table.negatives)
    for measure in (*ONE_NUMBER, ca.calibration_error):
        same(ca.estimate(measure, counted), ca.estimate(measure, y, p), 1e-12)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_few_distinct_scores_and_few_rows(strategy):
    found = ca.calibration_error([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], strategy=strategy)
    assert (found.value, found.low) == (0, 0)
    assert found.high > 0.2
    assert ca.calibration_error([1], [0.3]).high > 0.3


# ---------------------------------------------------------------- refusals


def test_the_plain_error_has_no_interval():
    y, p = sample(100)
    for call in (lambda m: ca.estimate(m, y, p), lambda m: ca.compare(m, y, p, p)):
        with pytest.raises(ca.errors.InputError, match="calibration_error, which is debiased"):
            call(ca.expected_calibration_error)
        with pytest.raises(ca.errors.InputError, match=r"known to cover. Measures that have one: brier_score"):
            call(ca.smooth_calibration_error)
    with pytest.raises(ca.errors.InputError, match="score_decomposition, whose miscalibration"):
        ca.compare(ca.calibration_error, y, p, p)


def test_bad_arguments():
    y, p = sample(100)
    table = ca.ScoreTable.from_arrays(p, y)
    cases = [
        ({"confidence": 95}, "confidence must be a number strictly between 0 and 1"),
        ({"confidence": True}, "confidence"),
        ({"n_resamples": 5}, "n_resamples must be"),
        ({"rng": "x"}, "rng must be"),
        ({"eps": 0.1}, "eps is not an option of brier_score"),
        ({"groups": [1] * 100}, "one group only"),
        ({"groups": [1, 2]}, "groups"),
    ]
    for options, message in cases:
        with pytest.raises(ca.errors.InputError, match=message):
            ca.estimate(ca.brier_score, y, p, **options)
    moved = table.distinct.with_scores(table.distinct.scores / 2)  # as clipping does to scores just beyond an end
    for sorted_rows in (table.distinct, table.distinct + table.distinct, moved, moved + table):
        with pytest.raises(ca.errors.InputError, match="groups need rows"):
            ca.estimate(ca.brier_score, sorted_rows, groups=np.arange(len(sorted_rows)) % 7)
    with pytest.raises(ca.errors.InputTypeError, match="compare needs rows"):
        ca.compare(ca.brier_score, table, None, None)
    with pytest.raises(ca.errors.InputError, match="only the positive class"):
        ca.estimate(ca.roc_auc, np.ones(5), np.linspace(0, 1, 5))
    with pytest.raises(ca.errors.InputError, match="no bootstrap"):
        ca.estimate(ca.score_decomposition, y, p, n_resamples=100)
    with pytest.raises(ca.errors.InputError, match="two classes only"):
        ca.estimate(ca.roc_auc, class_rows().y, class_rows().scores)


# ---------------------------------------------------------------- where a normal interval would be nonsense


def test_the_ends_are_honest():
    y = np.array([0, 1] * 20)
    perfect = y.astype(float)
    assert ca.estimate(ca.roc_auc, y, perfect).low == pytest.approx(0.025 ** (1 / 20))
    assert ca.estimate(ca.average_precision, y, perfect).low < 0.9
    assert ca.estimate(ca.brier_score, y, perfect).high == pytest.approx(1 - 0.025 ** (1 / 40))
    assert ca.estimate(ca.log_loss, y, perfect).high == math.inf
    assert ca.estimate(ca.roc_auc, [1, 0, 0], [0.5, 0.2, 0.7]).width == 1
    wrong = ca.estimate(ca.log_loss, [1, 0], [0.0, 0.5])
    assert wrong.value == wrong.high == math.inf
    assert ca.estimate(ca.score_decomposition, [1, 0], [0.0, 0.5], score="log").miscalibration.value == math.inf


def test_infinite_losses_are_compared_or_refused():
    worse = ca.compare(ca.log_loss, [1, 0, 1], [0.0, 0.5, 0.8], [0.4, 0.5, 0.8])
    assert worse.value == worse.low == math.inf
    with pytest.raises(ca.errors.InputError, match="both forecasts have an infinite log loss"):
        ca.compare(ca.log_loss, [1, 0], [0.0, 0.5], [0.0, 0.4])


def test_bootstraps_of_a_handful_of_rows():
    one = ca.estimate(ca.brier_score, [1], [0.3], n_resamples=40)
    assert one.low <= one.value <= one.high
    with pytest.raises(ca.errors.InputError, match="separate the classes"):
        ca.estimate(ca.calibration_slope_intercept, [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], n_resamples=200)


def test_tiny_probabilities_do_not_underflow():
    p = np.array([1e-160, 1e-300, 0.0, 1e-100])
    assert ca.calibration_error([0, 0, 0, 0], p).value < 1e-50
    assert ca.calibration_verdict([0, 0, 0, 1], p, margin=0.01).rows_needed > 0


def test_values_are_the_measures():
    rows = binary_rows()
    for measure in ONE_NUMBER:
        found = ca.estimate(measure, rows.y, rows.scores, sample_weight=rows.weight)
        assert found.value == pytest.approx(measure(rows.y, rows.scores, sample_weight=rows.weight), abs=1e-14)
        assert found.low < found.value < found.high
        assert float(found) == found.value
        assert "95 % interval" in str(found)
    floored = ca.estimate(ca.log_loss, [1, 0, 1], [0.0, 0.5, 0.8], eps=0.1)
    assert floored.value == pytest.approx(ca.log_loss([1, 0, 1], [0.0, 0.5, 0.8], eps=0.1))


@pytest.mark.parametrize("score", ["brier", "log"])
def test_estimated_parts_add_up(score):
    y, p = sample(800, slope=0.6)
    found = ca.estimate(ca.score_decomposition, y, p, score=score)
    whole = found.miscalibration.value - found.discrimination.value + found.uncertainty.value
    assert whole == pytest.approx(found.score.value, abs=1e-12)
    plain = ca.score_decomposition(y, p, score=score)
    assert found.miscalibration.value < plain.miscalibration
    assert found.discrimination.value < plain.discrimination
    for part in (found.score, found.miscalibration, found.discrimination, found.uncertainty):
        assert part.low <= part.value <= part.high


def test_brier_miscalibration_is_the_squared_calibration_error():
    y, p = sample(800, slope=0.5)
    part, error = ca.estimate(ca.score_decomposition, y, p).miscalibration, ca.calibration_error(y, p)
    np.testing.assert_allclose([part.value, part.low, part.high], np.square([error.value, error.low, error.high]))


def test_nil_refinement_is_seen():
    rng = np.random.default_rng(0)
    found = ca.estimate(ca.score_decomposition, rng.uniform(size=3000) < 0.2, rng.normal(0.2, 0.01, 3000))
    assert found.discrimination.low == 0


# ---------------------------------------------------------------- second ways to a standard error


@pytest.mark.parametrize("measure", ONE_NUMBER)
def test_influence_is_what_one_row_more_does(measure):
    y, p = sample(400)
    rows = ca.ScoreTable.from_arrays(p, y)
    made = {
        ca.brier_score: _influence.of_brier,
        ca.log_loss: _influence.of_log_loss,
        ca.roc_auc: _influence.of_auc,
        ca.average_precision: _influence.of_average_precision,
    }[measure](rows)
    influence = made.of(rows)(slice(0, 400))
    scale = [1.0, 1.0]
    if measure is ca.roc_auc:  # carries DeLong's n - 1
        scale = [math.sqrt(n / (n - 1)) for n in (y.sum(), 400 - y.sum())]
    for row in (0, 7, 30, 211, 399):
        weight = np.ones(400)
        weight[row] += 1e-6
        slope = (measure(y, p, sample_weight=weight) - measure(y, p)) / 1e-6 * 400
        own = influence[row] / scale[1 - y[row]]
        assert slope == pytest.approx(own, abs=2e-3 * max(1, abs(own)))


@pytest.mark.parametrize("measure", [*ONE_NUMBER, ca.calibration_slope_intercept])
@pytest.mark.parametrize("clustered", [False, True])
def test_bootstrap_agrees_with_the_influences(measure, clustered):
    y, p = sample(1500, slope=0.7)
    groups = np.arange(1500) // 3 if clustered else None
    one = ca.estimate(measure, y, p, groups=groups)
    other = ca.estimate(measure, y, p, groups=groups, n_resamples=2000, rng=1)
    parts = ("slope", "intercept", "intercept_at_slope_one") if measure is ca.calibration_slope_intercept else (None,)
    for part in parts:
        a, b = (one, other) if part is None else (getattr(one, part), getattr(other, part))
        assert a.value == pytest.approx(b.value, abs=1e-9)
        assert b.width == pytest.approx(a.width, rel=0.1)
        assert abs(b.low - a.low) < 0.1 * a.width


def test_resamples_are_the_same_on_any_number_of_cores(monkeypatch):
    y, p = sample(500)
    two = ca.estimate(ca.brier_score, y, p, n_resamples=200, rng=3)
    monkeypatch.setattr(resample, "side_by_side", lambda tasks: [task() for task in tasks])
    assert ca.estimate(ca.brier_score, y, p, n_resamples=200, rng=3) == two


@pytest.mark.parametrize("measure", [*ONE_NUMBER, ca.calibration_slope_intercept])
def test_cells_do_not_move_the_interval(measure, monkeypatch):
    """12,000 rows in 4,096 cells, and in as many cells as rows: the same interval but for the luck of the draw."""
    y, p = sample(12_000)
    design = design_of(ca.ScoreTable.from_arrays(p, y), None, None, "")
    coarse = bootstrapped(measure, design, 1000, 0.95, 0, {})
    whole = resample.cells
    monkeypatch.setattr(resample, "cells", lambda *given: whole(*given, most=20_000))
    fine = bootstrapped(measure, design, 1000, 0.95, 0, {})
    for name in coarse:
        assert "4,096" not in fine[name].method
        assert coarse[name].value == fine[name].value
        assert abs(coarse[name].width / fine[name].width - 1) < 0.15
        assert abs(coarse[name].low - fine[name].low) < 0.1 * fine[name].width


def test_repeated_rows_are_no_new_evidence():
    y, p = sample(600)
    repeated, groups = np.repeat(np.arange(600), 4), np.repeat(np.arange(600), 4)
    for measure in (*ONE_NUMBER, ca.calibration_error):
        once = ca.estimate(measure, y, p)
        four = ca.estimate(measure, y[repeated], p[repeated], groups=groups)
        assert ca.estimate(measure, y[repeated], p[repeated]).width < 0.75 * once.width
        assert four.width == pytest.approx(once.width, rel=0.05)


def test_rows_of_weight_zero_have_no_group():
    y, p = sample(200)
    w, groups = np.ones(200), np.arange(200) // 4
    w[::5] = 0
    kept = w > 0
    same(
        ca.estimate(ca.brier_score, y, p, sample_weight=w, groups=groups),
        ca.estimate(ca.brier_score, y[kept], p[kept], groups=groups[kept]),
        1e-15,
    )


# ---------------------------------------------------------------- two forecasts


def test_a_pair_is_judged_row_by_row():
    y, p = sample(1000)
    q = np.clip(0.9 * p + 0.02, 0, 1)
    found = ca.compare(ca.brier_score, y, p, q)
    apart = (p - y) ** 2 - (q - y) ** 2
    assert found.value == pytest.approx(apart.mean(), abs=1e-15)
    assert found.width == pytest.approx(2 * 1.959964 * apart.std() / math.sqrt(1000), rel=1e-6)
    assert found.width < 0.3 * ca.estimate(ca.brier_score, y, p).width
    opposite = ca.compare(ca.brier_score, y, q, p)
    np.testing.assert_allclose([opposite.value, opposite.low], [-found.value, -found.high], atol=1e-15)
    assert ca.compare(ca.roc_auc, y, p, q).value == 0
    parts = ca.compare(ca.score_decomposition, y, p, q)
    whole = parts.miscalibration.value - parts.discrimination.value
    assert whole == pytest.approx(parts.score.value, abs=1e-12)
    line = ca.compare(ca.calibration_slope_intercept, y, p, q, groups=np.arange(1000) // 2)
    assert line.slope.low < line.slope.value < line.slope.high


def test_many_classes():
    rows = class_rows()
    found = ca.estimate(ca.brier_score, rows.y, rows.scores, sample_weight=rows.weight)
    assert found.value == pytest.approx(ca.brier_score(rows.y, rows.scores, sample_weight=rows.weight))
    assert found.low < found.value < found.high
    uniform = np.full_like(rows.scores, 1 / 3)
    assert ca.compare(ca.log_loss, rows.y, rows.scores, uniform).high < 0
    clustered = ca.estimate(ca.log_loss, rows.y, rows.scores, groups=np.arange(len(rows.y)) // 2)
    assert clustered.value == pytest.approx(ca.log_loss(rows.y, rows.scores))
    alone = ca.estimate(ca.log_loss, rows.y, rows.scores, groups=np.arange(len(rows.y)))
    same(alone, ca.estimate(ca.log_loss, rows.y, rows.scores), 1e-14)


@pytest.mark.parametrize("base", [0.0, 1e6])
def test_means_of_parts_add_to_the_mean_of_all(base):
    """In any cut, also of one row, and where the mean is large beside the spread."""
    rng = np.random.default_rng(0)
    x, w = base + rng.exponential(size=500), rng.integers(1, 5, 500).astype(float)
    whole = MeanLoss.of(w, x)
    assert whole.variance == pytest.approx(clustered_variance(w, x - whole.mean, np.arange(500)), rel=1e-12)
    for n_parts in (2, 7, 500):
        cuts = np.array_split(rng.permutation(500), n_parts)
        added = reduce(add, [MeanLoss.of(w[cut], x[cut]) for cut in cuts])
        assert (added.rows, added.weight) == (whole.rows, whole.weight)
        assert added.mean == pytest.approx(whole.mean, rel=1e-13)
        assert added.variance == pytest.approx(whole.variance, rel=1e-8)
    assert math.isinf((whole + MeanLoss.of(np.ones(2), np.array([1.0, np.inf]))).mean)


# ---------------------------------------------------------------- the smooth error


def by_hand(y, p, w):
    """The published definition: kernels with their mirror images, an integral on a fine grid, a root."""
    t = (np.arange(4000) + 0.5) / 4000

    def size(sigma):
        images = [2 * k + sign * p for k in range(-3, 4) for sign in (1, -1)]
        kernel = sum(np.exp(-0.5 * ((t[:, None] - image) / sigma) ** 2) for image in images)
        return np.abs(kernel / (sigma * math.sqrt(2 * math.pi)) @ (w * (y - p))).mean() / w.sum()

    return brentq(lambda sigma: size(sigma) - sigma, 1e-3, 1)


@pytest.mark.parametrize("seed", range(4))
def test_smooth_error_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=60) ** 2
    y = (rng.uniform(size=60) < np.sqrt(p)).astype(int)
    w = rng.integers(1, 4, 60).astype(float)
    assert ca.smooth_calibration_error(y, p, sample_weight=w) == pytest.approx(by_hand(y, p, w), rel=1e-6)


def test_smooth_error_sees_residuals_that_cancel_in_a_coarse_grid():
    """A quarter of the rows with .5 are positive; those 1 / 4096 beside them make up for it."""
    p, positives, negatives = [0.5 - 2**-12, 0.5, 0.5 + 2**-12], [20472, 8192, 20488], [12296, 24576, 12280]
    table = ca.ScoreTable.from_counts(p, positives, negatives)
    assert ca.smooth_calibration_error(table) == pytest.approx(0.00133709, rel=1e-5)


def test_smooth_error_of_a_constant_and_of_tiny_probabilities():
    assert ca.smooth_calibration_error([0, 1], [0.5, 0.5]) == 0
    rng = np.random.default_rng(0)
    p = np.full(50_000, 1e-4)
    assert ca.smooth_calibration_error(rng.uniform(size=50_000) < p, p) < 3e-4
