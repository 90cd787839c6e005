"""The laws of measures, second ways to the same number in exact fractions, and scikit-learn where it means the same."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn import metrics as sk
from sklearn.calibration import _SigmoidCalibration, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as ca
from catalogue import MEASURES, binary_rows, class_rows, named

every = pytest.mark.parametrize("case", **named(MEASURES))


def agree(case, a, b, tolerance=1e-12):
    np.testing.assert_allclose(case.values(a), case.values(b), atol=tolerance, rtol=tolerance)


def table(rows, weight=None):
    return ca.ScoreTable.from_arrays(rows.scores, rows.y, weight)


# ---------------------------------------------------------------- every measure


@every
def test_rows_are_a_table(case):
    rows = binary_rows()
    by_row = case.call(rows.y, rows.scores, sample_weight=rows.weight)
    agree(case, case.call(table(rows, rows.weight)), by_row)
    agree(case, case.call(table(rows, rows.weight).distinct), by_row)


@every
def test_parts_add_in_any_order(case):
    rows = binary_rows()
    parts = [table(rows.at(slice(start, start + 40)), rows.weight[start : start + 40]) for start in (0, 40, 80, 120)]
    whole = case.call(table(rows, rows.weight))
    agree(case, case.call(sum(parts)), whole)
    agree(case, case.call((parts[3] + parts[1].distinct) + (parts[0].distinct + parts[2])), whole)


@every
def test_weights_are_repeats(case):
    rows = binary_rows()
    repeated = rows.at(np.repeat(np.arange(len(rows.y)), rows.weight.astype(int)))
    agree(case, case.call(rows.y, rows.scores, sample_weight=rows.weight), case.call(repeated.y, repeated.scores), 1e-9)


@every
def test_row_order_is_nothing(case):
    rows = binary_rows(ties=False)
    shuffled = rows.at(np.random.default_rng(3).permutation(len(rows.y)))
    agree(case, case.call(rows.y, rows.scores), case.call(shuffled.y, shuffled.scores), 1e-10)


@every
def test_a_perfect_forecast_scores_perfectly(case):
    y = np.array([0, 1, 1, 0, 1])
    if case.perfect is None:
        return
    assert case.call(y, y.astype(float)) == case.perfect
    assert case.call(y, np.column_stack([1 - y, y])) == case.perfect
    assert not math.copysign(1, case.call(y, y)) < 0


@every
def test_many_classes_repeat_permute_and_are_perfect(case):
    rows = class_rows()
    if not case.many:
        with pytest.raises((ca.errors.InputError, ca.errors.InputTypeError)):
            raise_for_many(case, rows)
        return
    value = case.call(rows.y, rows.scores, sample_weight=rows.weight)
    repeated = rows.at(np.repeat(np.arange(len(rows.y)), rows.weight.astype(int)))
    agree(case, value, case.call(repeated.y, repeated.scores), 1e-9)
    order = np.array([2, 0, 1])
    agree(case, value, case.call(np.argsort(order)[rows.y], rows.scores[:, order], sample_weight=rows.weight), 1e-9)
    names = np.array(["x", "a", "m"])
    agree(case, value, case.call(names[rows.y], rows.scores, sample_weight=rows.weight, labels=names))
    assert case.call(rows.y, np.eye(3)[rows.y]) == case.perfect


def raise_for_many(case, rows):
    """Measures of two classes refuse more; the variants of a measure that takes them are not asked again."""
    if case.name.startswith("ECE"):
        raise ca.errors.InputError
    case.call(rows.y, rows.scores)


@every
def test_ranking_measures_do_not_see_a_rising_map(case):
    if not case.ranks:
        return
    rows = binary_rows()
    z = np.log(rows.scores) - np.log1p(-rows.scores)
    value = case.call(rows.y, rows.scores, sample_weight=rows.weight)
    for moved in (z, np.exp(3 * z), z**3 + z, rows.scores * 1e-300, rows.scores * 1e300 - 5e299):
        agree(case, case.call(rows.y, moved, sample_weight=rows.weight), value, 0)


@every
def test_two_columns_and_text_labels_are_the_same_rows(case):
    rows = binary_rows()
    value = case.call(rows.y, rows.scores)
    agree(case, case.call(rows.y, np.column_stack([1 - rows.scores, rows.scores])), value)
    agree(case, case.call(np.where(rows.y == 1, "yes", "no"), rows.scores, pos_label="yes"), value)
    agree(case, case.call(np.where(rows.y == 1, "a", "b"), rows.scores, pos_label="a"), value)
    agree(case, case.call(2 * rows.y - 1, rows.scores[:, None]), value)


@every
def test_one_class_only(case):
    rows = binary_rows()
    for y in (np.zeros(len(rows.y), int), np.ones(len(rows.y), int)):
        if case.both:
            with pytest.raises(ca.errors.InputError, match=r"only the (positive|negative) class"):
                case.call(y, rows.scores)
        else:
            assert not np.isnan(case.values(case.call(y, rows.scores)) if case.values is float else 0)


def test_probabilities_rounded_beyond_the_ends_are_set_to_them():
    assert ca.brier_score([0, 1], [-1e-7, 1 + 1e-7]) == 0
    rows = np.array([[0.5, 0.3, 0.20005], [0.2, 0.7, 0.1]])
    assert ca.log_loss([0, 1], rows) == pytest.approx(
        ca.log_loss([0, 1], rows / rows.sum(axis=1, keepdims=True)), 1e-12
    )


# ---------------------------------------------------------------- exact second ways

some_rows = st.lists(
    st.tuples(st.integers(0, 16), st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=25
).filter(lambda rows: {y for _, y, w in rows if w} == {0, 1})


def exactly(rows):
    """Scores in sixteenths, labels and weights, as fractions."""
    return [(Fraction(p, 16), y, w) for p, y, w in rows if w]


def arrays(rows):
    p, y, w = np.array(rows, float).T
    return y.astype(int), p / 16, w


@given(some_rows)
def test_brier_in_fractions(rows):
    exact = exactly(rows)
    expected = sum(w * (p - y) ** 2 for p, y, w in exact) / sum(w for *_, w in exact)
    y, p, w = arrays(rows)
    assert ca.brier_score(y, p, sample_weight=w) == pytest.approx(float(expected), abs=1e-15)


@given(some_rows)
def test_auc_in_fractions(rows):
    exact = exactly(rows)
    pairs = [(v * w, (a > b) + Fraction(a == b, 2)) for a, i, v in exact if i for b, j, w in exact if not j]
    expected = sum(weight * share for weight, share in pairs) / sum(weight for weight, _ in pairs)
    y, p, w = arrays(rows)
    assert ca.roc_auc(y, p, sample_weight=w) == pytest.approx(float(expected), abs=1e-14)


@given(some_rows)
def test_average_precision_in_fractions(rows):
    exact = exactly(rows)
    positives = sum(w for _, y, w in exact if y)
    expected = Fraction(0)
    for threshold in {p for p, *_ in exact}:
        hits = sum(w for p, y, w in exact if y and p >= threshold)
        rise = sum(w for p, y, w in exact if y and p == threshold)
        expected += Fraction(rise, positives) * Fraction(hits, sum(w for p, _, w in exact if p >= threshold))
    y, p, w = arrays(rows)
    assert ca.average_precision(y, p, sample_weight=w) == pytest.approx(float(expected), abs=1e-14)


def bin_of(p, n_bins):
    """Index in `(lo, hi]` bins whose edges are those floats of `numpy.linspace`, as exact numbers."""
    edges = [Fraction(float(edge)) for edge in np.linspace(0, 1, n_bins + 1)]
    return max(sum(edge < p for edge in edges) - 1, 0)


def gaps_in_fractions(exact, n_bins):
    for place in range(n_bins):
        held = [(p, y, w) for p, y, w in exact if bin_of(p, n_bins) == place]
        if held:
            weight = sum(w for *_, w in held)
            yield weight, abs(sum(w * p for p, _, w in held) - sum(w * y for _, y, w in held)) / Fraction(weight)


@given(some_rows, st.integers(1, 20))
def test_calibration_error_in_fractions(rows, n_bins):
    gaps = list(gaps_in_fractions(exactly(rows), n_bins))
    total = sum(weight for weight, _ in gaps)
    y, p, w = arrays(rows)
    for norm, expected in (
        ("l1", float(sum(weight * gap for weight, gap in gaps) / total)),
        ("l2", math.sqrt(sum(weight * gap**2 for weight, gap in gaps) / total)),
        ("max", float(max(gap for _, gap in gaps))),
    ):
        value = ca.expected_calibration_error(y, p, sample_weight=w, n_bins=n_bins, norm=norm)
        assert value == pytest.approx(expected, abs=1e-14)


def isotonic_in_fractions(exact):
    """The min-max formula: at each score, the greatest of the least means of the runs around it."""
    scores = sorted({p for p, *_ in exact})
    hits = [sum(w for p, y, w in exact if y and p == score) for score in scores]
    weight = [sum(w for p, _, w in exact if p == score) for score in scores]
    size = range(len(scores))
    mean = lambda i, j: Fraction(sum(hits[i : j + 1]), sum(weight[i : j + 1]))  # noqa: E731
    return {scores[k]: max(min(mean(i, j) for j in size if j >= k) for i in size if i <= k) for k in size}


@given(some_rows)
def test_isotonic_fit_in_fractions(rows):
    fit = isotonic_in_fractions(exactly(rows))
    y, p, w = arrays(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ca.IsotonicCalibration().fit(p, y, w).map_
    np.testing.assert_allclose(made([float(score) for score in fit]), [float(v) for v in fit.values()], atol=1e-15)


@given(some_rows)
def test_corp_decomposition_in_fractions(rows):
    exact = exactly(rows)
    fit = isotonic_in_fractions(exact)
    total = sum(w for *_, w in exact)
    rate = Fraction(sum(w * y for _, y, w in exact), total)
    brier = lambda forecast: sum(w * (forecast(p) - y) ** 2 for p, y, w in exact) / total  # noqa: E731
    own, recalibrated, base = brier(lambda p: p), brier(fit.__getitem__), brier(lambda p: rate)
    y, p, w = arrays(rows)
    parts = ca.score_decomposition(y, p, sample_weight=w)
    expected = [own, own - recalibrated, base - recalibrated, base]
    got = [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty]
    np.testing.assert_allclose(got, [float(value) for value in expected], atol=1e-14)


@given(some_rows, st.sampled_from(["brier", "log"]), st.sampled_from(["isotonic", "bins", "distinct"]))
def test_decomposition_adds_up_and_no_term_is_negative(rows, score, method):
    y, p, w = arrays(rows)
    parts = ca.score_decomposition(y, p, sample_weight=w, score=score, method=method)
    total = ca.brier_score(y, p, sample_weight=w) if score == "brier" else ca.log_loss(y, p, sample_weight=w)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0
    assert parts.score == pytest.approx(total, abs=1e-14)
    if np.isfinite(total):
        whole = parts.miscalibration - parts.discrimination + parts.uncertainty + parts.within_bin
        assert abs(whole - parts.score) < 1e-12


@given(some_rows)
def test_roc_curve_holds_the_auc(rows):
    y, p, w = arrays(rows)
    curve = ca.roc_curve(y, p, sample_weight=w)
    x, h = curve.false_positive_rate, curve.true_positive_rate
    assert (x[0], h[0], x[-1], h[-1]) == (0, 0, 1, 1)
    assert np.all(np.diff(curve.thresholds) < 0)
    assert float(np.trapezoid(h, x)) == pytest.approx(ca.roc_auc(y, p, sample_weight=w), abs=1e-14)


@given(some_rows, st.integers(1, 9))
def test_equal_values_never_sit_in_two_equal_mass_bins(rows, n_bins):
    y, p, w = arrays(rows)
    curve = ca.reliability_curve(y, p, sample_weight=w, n_bins=n_bins, strategy="quantile")
    assert 1 <= len(curve.weight) <= n_bins
    assert curve.weight.sum() == pytest.approx(w.sum())
    assert np.all(curve.weight > 0)
    kept = p[w > 0]
    places = np.searchsorted(curve.edges, kept, side="left")
    for value in np.unique(kept):
        assert len(set(places[kept == value])) == 1


def test_log_loss_is_infinite_unless_floored():
    assert ca.log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert ca.log_loss([1, 0], [0.0, 0.5], eps=1e-6) == pytest.approx((-math.log(1e-6) + math.log(2)) / 2)
    assert ca.log_loss([1, 0], [1.0, 0.0], eps=1e-6) == 0
    assert ca.log_loss([1, 0], [0.0, 0.5], sample_weight=[0, 1]) == pytest.approx(math.log(2))
    assert ca.log_loss([2, 0], [[0.5, 0.5, 0.0], [1, 0, 0]]) == math.inf
    assert ca.score_decomposition([1, 0], [0.0, 0.5], score="log").miscalibration == math.inf


def test_known_values_of_three_classes():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    y = [0, 1, 2, 1]
    assert ca.brier_score(y, p) == pytest.approx((0.14 + 0.26 + 0.78 + 0.74) / 4)
    assert ca.log_loss(y, p) == pytest.approx(-(math.log(0.7) + math.log(0.6) + 2 * math.log(0.3)) / 4)
    # Confidences .7 .6 .5 .4, right right wrong wrong, in bins (0, 1/2] and (1/2, 1].
    assert ca.expected_calibration_error(y, p, n_bins=2) == pytest.approx((0.9 + 0.7) / 4)
    # One bin: |mean of the column - share of the class|, averaged over the classes.
    by_class = [abs(0.325 - 0.25), abs(0.4 - 0.5), abs(0.275 - 0.25)]
    assert ca.expected_calibration_error(y, p, n_bins=1, kind="classwise") == pytest.approx(np.mean(by_class))


def test_a_line_through_the_log_odds_is_found_again():
    rng = np.random.default_rng(5)
    z = rng.normal(scale=2, size=400_000)
    y = rng.uniform(size=len(z)) < expit(0.4 + 0.7 * z)
    line = ca.calibration_slope_intercept(y, expit(z))
    assert line.slope == pytest.approx(0.7, abs=0.02)
    assert line.intercept == pytest.approx(0.4, abs=0.02)
    shift = line.intercept_at_slope_one
    assert expit(z + shift).mean() == pytest.approx(y.mean(), abs=1e-12)


# ---------------------------------------------------------------- scikit-learn, where the definitions coincide


@pytest.fixture(params=[True, False], ids=["weighted", "plain"])
def rows(request):
    found = binary_rows(n=500, seed=7, ties=request.param)
    weight = np.random.default_rng(8).uniform(0.2, 3, len(found.y)) if request.param else None
    return found.y, found.scores, weight


def test_scores_of_sklearn(rows):
    y, p, w = rows
    assert ca.brier_score(y, p, sample_weight=w) == pytest.approx(sk.brier_score_loss(y, p, sample_weight=w), abs=1e-14)
    assert ca.log_loss(y, p, sample_weight=w) == pytest.approx(sk.log_loss(y, p, sample_weight=w), abs=1e-13)
    assert ca.roc_auc(y, p, sample_weight=w) == pytest.approx(sk.roc_auc_score(y, p, sample_weight=w), abs=1e-13)
    expected = sk.average_precision_score(y, p, sample_weight=w)
    assert ca.average_precision(y, p, sample_weight=w) == pytest.approx(expected, abs=1e-13)
    curve = ca.roc_curve(y, p, sample_weight=w)
    x, h, _ = sk.roc_curve(y, p, sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_positive_rate, x, atol=1e-14)
    np.testing.assert_allclose(curve.true_positive_rate, h, atol=1e-14)


def test_many_classes_of_sklearn():
    found = class_rows(n=300)
    w = np.random.default_rng(1).uniform(0.2, 3, 300)
    y, p = found.y, found.scores
    assert ca.log_loss(y, p, sample_weight=w) == pytest.approx(sk.log_loss(y, p, sample_weight=w), abs=1e-13)
    auc = sk.roc_auc_score(y, p, multi_class="ovr", sample_weight=w)
    assert ca.roc_auc(y, p, sample_weight=w) == pytest.approx(auc, abs=1e-13)
    assert ca.roc_auc(y, p, multi_class="ovo") == pytest.approx(sk.roc_auc_score(y, p, multi_class="ovo"), abs=1e-13)
    expected = sk.brier_score_loss(y, p, sample_weight=w, scale_by_half=False)
    assert ca.brier_score(y, p, sample_weight=w) == pytest.approx(expected, abs=1e-13)


def test_curve_of_sklearn(rows):
    y, p, _ = rows
    rate, mean = calibration_curve(y, p, n_bins=10)
    curve = ca.reliability_curve(y, p, n_bins=10)
    kept = curve.weight > 0
    np.testing.assert_allclose(curve.observed_rate[kept], rate, atol=1e-14)
    np.testing.assert_allclose(curve.mean_predicted[kept], mean, atol=1e-14)


def test_isotonic_of_sklearn(rows):
    y, p, w = rows
    theirs = IsotonicRegression(out_of_bounds="clip").fit(p, y, w)
    ours = ca.IsotonicCalibration(interpolation="linear").fit(p, y, w)
    x = np.linspace(0, 1, 999)
    np.testing.assert_allclose(ours.map_(p), theirs.predict(p), atol=1e-12)
    np.testing.assert_allclose(ours.map_(x), theirs.predict(x), atol=1e-9)


def test_sigmoids_of_sklearn(rows):
    y, p, w = rows
    z = np.log(p) - np.log1p(-p)
    exact = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(z[:, None], y, w)
    expected = exact.predict_proba(z[:, None])[:, 1]
    np.testing.assert_allclose(ca.AffineLogit().fit(p, y, w).map_(p), expected, atol=1e-7)
    np.testing.assert_allclose(ca.PlattScaling(target_correction=False).fit(z, y, w).map_(z), expected, atol=1e-7)
    np.testing.assert_allclose(ca.AffineLogit(from_logits=True).fit(z, y, w).map_(z), expected, atol=1e-7)
    if w is None:  # theirs counts rows in the targets, ours weights
        theirs = _SigmoidCalibration().fit(z, y)
        np.testing.assert_allclose(ca.PlattScaling().fit(z, y).map_(z), theirs.predict(z), atol=1e-5)


def test_temperature_by_a_grid():
    found = class_rows("logit")
    made = ca.TemperatureScaling(from_logits=True).fit(found.scores, found.y)
    loss = lambda t: -np.log(softmax(found.scores / t, axis=1)[np.arange(len(found.y)), found.y]).mean()  # noqa: E731
    around = made.temperature_ * np.exp(np.linspace(-0.5, 0.5, 101))
    assert loss(made.temperature_) <= min(map(loss, around)) + 1e-15
