"""The generative classifiers: published closed forms, scikit-learn, and the laws of additive statistics."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant.errors import FitWarning, InputError, NotFittedError
from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    LinearDiscriminantLogistic,
    QuadraticDiscriminant,
    RiskBasedCalibration,
    merge,
)
from generative_cases import FAMILIES, dense_calibration, flat, rows

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
every_prior = pytest.mark.parametrize("strength", [0.0, 10.0])


# ---------------------------------------------------------------- closed forms


@every_family
@every_prior
def test_the_fit_is_the_closed_form_of_dense_statistics(family, strength):
    X, y = rows(family.categorical)
    p = family.make(prior_strength=strength).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, dense_calibration(family, X, y, 3, strength, 0.1, 0)[0][0], atol=1e-12)


def test_naive_bayes_is_scikit_learns_where_the_definitions_coincide():
    X, y = rows(True, n=300)
    X[: X.max() + 1] = np.arange(X.max() + 1)[:, None] % (X.max(axis=0) + 1)
    y = np.arange(300) % 3  # balanced: scikit-learn does not smooth the class prior
    X = X % 3  # three categories for each feature, so that the pseudo-counts of all cells are equal
    theirs = CategoricalNB(alpha=0.7).fit(X, y)
    ours = CategoricalNaiveBayes(prior_strength=0.7 * 3 * 3).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-13)
    for mine, other in zip(ours.feature_log_prob_, theirs.feature_log_prob_):
        np.testing.assert_allclose(mine, other, atol=1e-13)


def test_codes_that_do_not_occur_are_categories_as_in_scikit_learn():
    X, y = np.array([[0], [4], [4], [0]]), [0, 0, 1, 1]
    ours = CategoricalNaiveBayes(prior_strength=2 * 5.0).fit(X, y)
    theirs = CategoricalNB(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(ours.feature_log_prob_[0], theirs.feature_log_prob_[0], atol=1e-14)


def test_gaussian_naive_bayes_is_scikit_learns():
    X, y = rows(False)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y, weight)
    ours = GaussianNaiveBayes().fit(X, y, weight)
    np.testing.assert_allclose(ours.means_, theirs.theta_, atol=1e-12)
    np.testing.assert_allclose(ours.variances_, theirs.var_, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)


def test_quadratic_discriminant_is_scikit_learns():
    X, y = rows(False)
    ours = QuadraticDiscriminant().fit(X, y)
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=1e-12)
    count = np.bincount(y)
    # Some versions divide by the weight, some by the weight - 1.
    same = np.allclose(ours.covariances_[0], theirs.covariance_[0], rtol=1e-9)
    factor = np.ones(3) if same else count / (count - 1)
    for mine, other, times in zip(ours.covariances_, theirs.covariance_, factor):
        np.testing.assert_allclose(mine * times, other, atol=1e-12)
    if same:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)


def test_the_map_fit_is_the_mode_of_a_normal_wishart_prior():
    """kappa0 = m0/K, mu0 = pooled mean, Psi0 = kappa0 diag(pooled variance), nu0 = kappa0 - d - 2."""
    X, y = rows(False)
    d, kappa = X.shape[1], 10 / 3
    model = QuadraticDiscriminant(prior_strength=10).fit(X, y)
    for k in range(3):
        own = X[y == k]
        n, bar, mu0 = len(own), own.mean(axis=0), X.mean(axis=0)
        scatter = (own - bar).T @ (own - bar)
        top = kappa * np.diag(X.var(axis=0)) + scatter + kappa * n / (kappa + n) * np.outer(bar - mu0, bar - mu0)
        np.testing.assert_allclose(model.covariances_[k], top / (kappa - d - 2 + n + d + 2), atol=1e-12)
        np.testing.assert_allclose(model.means_[k], (n * bar + kappa * mu0) / (n + kappa), atol=1e-12)


def test_logistic_coefficients_serve_alone():
    X, y = rows(False)
    model = LinearDiscriminantLogistic(prior_strength=3).fit(X + 50, y)
    logits = (X + 50) @ model.coef_.T + model.intercept_
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(p / p.sum(axis=1, keepdims=True), model.predict_proba(X + 50), atol=1e-10)


# ---------------------------------------------------------------- additive statistics


@every_family
@every_prior
def test_parts_merge_to_the_whole(family, strength):
    X, y = rows(family.categorical)
    model = family.make(prior_strength=strength)
    whole = model.block_statistics(X, y, [0, 1, 2])
    order = np.argsort(X[:, 0], kind="stable")  # parts that do not look alike
    cuts = np.split(order, [7, 90, 91])
    parts = merge(model.block_statistics(X[part], y[part], [0, 1, 2]) for part in cuts)
    parts = parts.about(whole.origin) if hasattr(parts, "about") else parts
    np.testing.assert_allclose(flat(parts), flat(whole), rtol=1e-12, atol=1e-11)
    from_parts = clone(model).fit_statistics(parts, [0, 1, 2])
    np.testing.assert_allclose(from_parts.predict_proba(X), model.fit(X, y).predict_proba(X), atol=1e-12)


@every_family
def test_partial_fit_is_fit(family):
    X, y = rows(family.categorical)
    model = family.make(prior_strength=1.0)
    for part in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(model.predict_proba(X), clone(model).fit(X, y).predict_proba(X), atol=1e-12)


@every_family
@every_prior
def test_weights_are_repeats_and_zero_is_absence(family, strength):
    X, y = rows(family.categorical, n=90)
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weight[:3] = 0
    X[0] = 40  # a row of weight 0 does not even lend its categories
    weighted = family.make(prior_strength=strength).fit(X, y, weight)
    repeated = family.make(prior_strength=strength).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X[3:]), repeated.predict_proba(X[3:]), atol=1e-12)


@every_family
def test_order_of_rows_is_nothing(family):
    X, y = rows(family.categorical)
    turned = np.random.default_rng(3).permutation(len(y))
    p = family.make().fit(X[turned], y[turned]).predict_proba(X)
    np.testing.assert_allclose(p, family.make().fit(X, y).predict_proba(X), atol=1e-12)


@every_family
def test_statistics_are_linear_in_the_weights(family):
    X, _ = rows(family.categorical, n=50)
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    model = family.make()
    together = flat(model.statistics(X, 2 * a + b))
    np.testing.assert_allclose(together, flat(model.statistics(X, a) * 2 + model.statistics(X, b)), atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_linear_rule_is_the_same_with_and_without_centring(shift, n_classes):
    rng = np.random.default_rng(5)
    y = rng.integers(n_classes, size=300)
    X = rng.normal(size=(300, 3)) + y[:, None] + shift
    model = LinearDiscriminantLogistic().fit(X, y)
    centred = LinearDiscriminantLogistic().fit(X - shift, y)
    np.testing.assert_allclose(model.predict_proba(X), centred.predict_proba(X - shift), rtol=1e-9, atol=1e-12)
    joint = model._log_joint(model._read(X))
    rated = model._rate(X)
    np.testing.assert_allclose(rated - rated[:, :1], joint - joint[:, :1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [GaussianNaiveBayes, QuadraticDiscriminant, LinearDiscriminantLogistic])
@every_prior
def test_units_are_nothing(make, strength):
    X, y = rows(False)
    scale, shift = np.array([1e-6, 1.0, 1e5, 30.0]), np.array([0.0, 1e4, -1e7, 3.0])
    p = make(prior_strength=strength).fit(X, y).predict_proba(X)
    moved = make(prior_strength=strength).fit(X * scale + shift, y)
    np.testing.assert_allclose(moved.predict_proba(X * scale + shift), p, atol=1e-8)


def test_digits_survive_far_from_zero():
    X, y = rows(False)
    near, far = QuadraticDiscriminant().fit(X, y), QuadraticDiscriminant().fit(X + 1e8, y)
    np.testing.assert_allclose(far.predict_proba(X + 1e8), near.predict_proba(X), atol=1e-5)


# ---------------------------------------------------------------- bad input and odd input


@every_family
def test_one_class_only(family):
    X, _ = rows(family.categorical, n=10)
    with pytest.raises(InputError, match="one class only"):
        family.make().fit(X, np.zeros(10))


@every_family
def test_missing_values_are_counted_over_all_rows(family):
    X, y = np.zeros((400_000, 8)), np.arange(400_000) % 2
    X[300_000, 1] = np.nan
    with pytest.raises(InputError, match="row 300000"):
        family.make().fit(X, y)
    text = np.full((300_000, 1), "a", dtype=object)
    text[200_000, 0] = None
    with pytest.raises(InputError, match="feature 0 at row 200000"):
        CategoricalNaiveBayes().fit(text, y[:300_000])


@every_family
def test_missing_values(family):
    X, y = rows(family.categorical, n=20)
    X = X.astype(float)
    X[4, 1] = np.nan
    with pytest.raises(InputError, match="row 4"):
        family.make().fit(X, y)


@pytest.mark.parametrize("make", [GaussianNaiveBayes, QuadraticDiscriminant, LinearDiscriminantLogistic])
def test_text_features_name_the_feature_and_the_way_out(make):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]})
    with pytest.raises(TypeError, match=r"feature 1 .*'red'.*CategoricalNaiveBayes"):
        make().fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize("make", [GaussianNaiveBayes, QuadraticDiscriminant, LinearDiscriminantLogistic])
@pytest.mark.parametrize("constant", [0.0, 7.3, 1e9 / 3, -1e-12])
def test_a_constant_feature_is_no_evidence(make, constant):
    X, y = rows(False)
    wide = np.column_stack([X, np.full(len(X), constant)])
    elsewhere = np.column_stack([X, np.full(len(X), constant + 100)])
    model = make().fit(wide, y)
    p = make().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(wide), p, atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(elsewhere), p, atol=1e-10)


def test_a_class_with_few_rows_is_said_and_stays_finite():
    X, y = rows(False, d=6)
    keep = np.concatenate([np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:3]])
    with pytest.warns(FitWarning, match=r"class 2 is singular .*3 rows, fewer than features \+ 1 = 7"):
        model = QuadraticDiscriminant().fit(X[keep], y[keep])
    assert np.isfinite(model.predict_log_proba(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QuadraticDiscriminant(prior_strength=5.0).fit(X[keep], y[keep])


def test_collinear_features_are_said():
    X, y = rows(False)
    with pytest.warns(FitWarning, match="nearly functions of the others"):
        QuadraticDiscriminant().fit(np.column_stack([X, X[:, 0]]), y)


@every_family
def test_a_class_that_has_no_rows_yet_gets_no_probability(family):
    X, y = rows(family.categorical)
    model = family.make().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert p[:, 2].max() < 1e-3
    model.partial_fit(X[y == 2], y[y == 2])
    np.testing.assert_allclose(model.predict_proba(X), family.make().fit(X, y).predict_proba(X), atol=1e-12)


def test_unseen_categories():
    X, y = [["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]], [0, 1, 0, 1]
    strange = [["c", "x"], ["a", "x"]]
    with pytest.warns(UserWarning, match=r"feature 0 holds 'c'.* \(2 are known\).*no evidence"):
        p = CategoricalNaiveBayes(prior_strength=1).fit(X, y).predict_proba(strange)
    quiet = CategoricalNaiveBayes(prior_strength=1, unseen="ignore").fit(X, y)
    np.testing.assert_array_equal(quiet.predict_proba(strange), p)
    alone = CategoricalNaiveBayes(prior_strength=1).fit([[row[1]] for row in X], y)
    np.testing.assert_allclose(p[0], alone.predict_proba([["x"]])[0], atol=1e-14)
    with pytest.raises(InputError, match="Map it to a known category"):
        CategoricalNaiveBayes(unseen="error").fit(X, y).predict(strange)


@pytest.mark.parametrize(
    "X, words",
    [
        ([[0.5], [1.0]], "KBinsDiscretizer"),
        ([[10**9], [1]], "number its categories from 0"),
        ([[2.0**60], [1]], "2\\^53"),
        ([["a"], [None]], "missing value"),
        (np.array([["a"], [1]], dtype=object), "mixes text and numbers"),
        ([1, 2], "Reshape your data"),
        (np.empty((0, 2)), "At least one row"),
    ],
)
def test_bad_categories(X, words):
    with pytest.raises((InputError, TypeError), match=words):
        CategoricalNaiveBayes().fit(X, [0, 1][: len(X)])


def test_text_where_numbers_were_and_the_other_way_round():
    with pytest.raises(TypeError, match="Feature 0 holds text, but the model was fitted with numbers"):
        CategoricalNaiveBayes().fit([[0], [1]], [0, 1]).predict([["a"]])
    with pytest.raises(TypeError, match="Feature 0 holds numbers, but the model was fitted with text"):
        CategoricalNaiveBayes().fit([["a"], ["b"]], [0, 1]).predict([[1]])


def test_negative_codes_and_many_categories():
    rng = np.random.default_rng(5)
    X, y = np.column_stack([rng.integers(-3, 4, 500), rng.integers(0, 70_000, 500)]), rng.integers(0, 2, 500)
    model = CategoricalNaiveBayes(prior_strength=4).fit(X, y)
    assert model.categories_[0].tolist() == list(range(-3, 4))
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_numbers_that_overflow():
    with pytest.raises(InputError, match="beyond 1e100"):
        GaussianNaiveBayes().fit([[1e200], [0.0]], [0, 1])


def test_classes_that_do_not_match():
    model = GaussianNaiveBayes()
    parts = [model.block_statistics([[0.0], [1.0]], [0, 1], [0, 1]), model.block_statistics([[0.0]], [0], [0, 1, 2])]
    with pytest.raises(InputError, match="same classes"):
        merge(parts)
    with pytest.raises(InputError, match="2 columns"):
        model.fit_statistics(parts[0], ["a", "b", "c"])
    with pytest.raises(InputError, match="not among the classes"):
        model.block_statistics([[0.0]], [5], [0, 1])
    with pytest.raises(TypeError, match="must be a record"):
        model.fit_statistics(np.zeros((2, 2)))
    with pytest.raises(InputError, match="at least one part"):
        merge([])


@every_family
def test_before_fit_and_after_a_pickle(family):
    X, y = rows(family.categorical, n=60)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        family.make().predict(X)
    model = family.make().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


@every_family
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(family, frame):
    X, y = rows(family.categorical, n=60)
    names = ["a", "b", "c", "d"]
    held = frame(dict(zip(names, X.T)))
    model = family.make().fit(held, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict_proba(held), family.make().fit(X, y).predict_proba(X))


def test_labels_may_be_text():
    X, y = rows(False, n=60)
    model = GaussianNaiveBayes().fit(X, np.array(["no", "maybe", "yes"])[y])
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert set(model.predict(X)) <= {"maybe", "no", "yes"}


# ---------------------------------------------------------------- scikit-learn's own checks

EXCUSED = {
    "check_supervised_y_2d": "a column of labels is taken as it is, without a warning, as everywhere here",
    "check_dtype_object": "an object that is no number is refused by row and value, in our own words",
}
EXCUSED_CATEGORICAL = {
    "check_supervised_y_2d": EXCUSED["check_supervised_y_2d"],
    "check_sample_weight_equivalence_on_dense_data": "draws real numbers, which are no categories",
}


def _excused(estimator):
    inner = getattr(estimator, "estimator", estimator)
    return EXCUSED_CATEGORICAL if isinstance(inner, CategoricalNaiveBayes) else EXCUSED


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        CategoricalNaiveBayes(),
        GaussianNaiveBayes(),
        QuadraticDiscriminant(),
        LinearDiscriminantLogistic(),
        RiskBasedCalibration(GaussianNaiveBayes(), max_iter=4),
        RiskBasedCalibration(CategoricalNaiveBayes(), max_iter=4),
    ],
    expected_failed_checks=_excused,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
