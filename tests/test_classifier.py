"""CalibratedClassifier: out-of-fold scores for any estimator, splitter, labels and frame."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant as ca
from calibrant.errors import DataWarning, InputError

X, Y = load_breast_cancer(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y = X[ORDER], Y[ORDER]
NAMES = np.array(["malignant", "benign"])[Y]


def affine(estimator: Any = None, **options: Any) -> ca.CalibratedClassifier:
    return ca.CalibratedClassifier(estimator or GaussianNB(), ca.AffineLogit(), **options)


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}),
    ],
)
def test_scores_are_those_of_cross_val_predict(estimator: Any) -> None:
    fitted = affine(estimator, cv=StratifiedKFold(5)).fit(X, NAMES)
    wanted = cross_val_predict(estimator, X, NAMES, cv=StratifiedKFold(5), method="predict_proba")
    np.testing.assert_allclose(fitted.oof_scores_, wanted[:, 1], atol=1e-12)
    assert list(fitted.classes_) == ["benign", "malignant"]
    direct = ca.AffineLogit().fit(wanted[:, 1], NAMES == "malignant")
    assert fitted.calibrator_.slope_ == pytest.approx(direct.slope_)
    p = fitted.estimator_.predict_proba(X)[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], direct.map_(p), atol=1e-12)


def test_calibration_helps_an_over_confident_model_out_of_fold() -> None:
    fitted = ca.CalibratedClassifier(GaussianNB()).fit(X, NAMES)
    assert fitted.evaluation_.log_loss_after < 0.5 * fitted.evaluation_.log_loss_before
    assert fitted.evaluation_.rows == len(Y)


def test_margins_are_read_as_margins() -> None:
    fitted = ca.CalibratedClassifier(make_pipeline(StandardScaler(), LinearSVC())).fit(X, Y)
    assert np.isnan(fitted.evaluation_.log_loss_before)
    assert fitted.evaluation_.log_loss_after < 0.15


def test_time_series_rows_that_are_never_tested_take_no_part() -> None:
    fitted = affine(cv=TimeSeriesSplit(5)).fit(X, Y)
    first = len(Y) - 5 * (len(Y) // 6)
    assert np.isnan(fitted.oof_scores_[:first]).all()
    assert not np.isnan(fitted.oof_scores_[first:]).any()
    assert fitted.evaluation_.rows == len(Y) - first


def test_groups_reach_the_splitter() -> None:
    groups = np.arange(len(Y)) // 10
    fitted = affine(cv=GroupKFold(5)).fit(X, Y, groups=groups)
    wanted = cross_val_predict(GaussianNB(), X, Y, groups=groups, cv=GroupKFold(5), method="predict_proba")
    np.testing.assert_allclose(fitted.oof_scores_, wanted[:, 1], atol=1e-12)


def test_repeated_splits_are_averaged() -> None:
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    total = np.zeros(len(Y))
    for train, test in cv.split(X, Y):
        total[test] += GaussianNB().fit(X[train], Y[train]).predict_proba(X[test])[:, 1]
    np.testing.assert_allclose(affine(cv=cv).fit(X, Y).oof_scores_, total / 2, atol=1e-12)


def test_a_frozen_estimator_is_used_as_it_is() -> None:
    model = GaussianNB().fit(X[:300], Y[:300])
    fitted = affine(FrozenEstimator(model)).fit(X[300:], Y[300:])
    np.testing.assert_array_equal(fitted.oof_scores_, model.predict_proba(X[300:])[:, 1])
    assert fitted.estimator_.estimator is model


def test_an_ensemble_averages_models_and_maps() -> None:
    fitted = affine(ensemble=True, cv=3).fit(X, Y)
    assert len(fitted.calibrated_) == 3
    parts = [calibrator.map_(model.predict_proba(X)[:, 1]) for model, calibrator in fitted.calibrated_]
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], np.mean(parts, axis=0), atol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_of_features_give_the_same_answer(frame: Any) -> None:
    columns = {f"x{i}": X[:, i] for i in range(5)}
    fitted = affine().fit(frame(columns), NAMES)
    plain = affine().fit(X[:, :5], NAMES)
    np.testing.assert_allclose(fitted.predict_proba(frame(columns)), plain.predict_proba(X[:, :5]), atol=1e-12)
    assert list(fitted.feature_names_in_) == list(columns)


def test_weights_count_as_repeats_in_model_and_map() -> None:
    weight = np.where(np.arange(len(Y)) % 3 == 0, 2.0, 1.0)
    fitted = affine(make_pipeline(StandardScaler(), GaussianNB())).fit(X, Y, sample_weight=weight)
    split = list(StratifiedKFold(5).split(X, Y))
    scores = np.empty(len(Y))
    for train, test in split:
        model = make_pipeline(StandardScaler(), GaussianNB())
        scores[test] = model.fit(X[train], Y[train], gaussiannb__sample_weight=weight[train]).predict_proba(X[test])[
            :, 1
        ]
    np.testing.assert_allclose(fitted.oof_scores_, scores, atol=1e-12)
    assert fitted.calibrator_.slope_ == pytest.approx(ca.AffineLogit().fit(scores, Y, weight).slope_)


def test_many_classes_and_one_missing_from_a_fold() -> None:
    features, labels = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50:100, 100:105]
    folds = [
        (np.arange(100), np.arange(100, 105)),
        *StratifiedKFold(3, shuffle=True, random_state=0).split(features[keep], labels[keep]),
    ]
    unfitted = ca.CalibratedClassifier(GaussianNB(), ca.TemperatureScaling(mix=True), cv=folds)
    with pytest.warns(DataWarning, match="training part of split 0 of cv .* lacks 2"):
        fitted = unfitted.fit(features[keep], labels[keep])
    assert fitted.predict_proba(features).shape == (150, 3)
    np.testing.assert_allclose(fitted.predict_proba(features).sum(axis=1), 1)


def test_one_class_and_no_scores_are_clear_errors() -> None:
    with pytest.raises(ValueError, match="one class only"):
        affine().fit(X, np.ones(len(Y)))
    from sklearn.cluster import KMeans

    with pytest.raises(ValueError, match="neither predict_proba nor decision_function"):
        affine(KMeans(2)).fit(X, Y)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ("five", "cv must be"),
        (1, "cv must be a whole number of at least 2"),
        (True, "cv must be"),
        (2.5, "cv must be"),
        ({}, "cv must be"),
        (10**6, "the largest class has 357 rows: use fewer folds"),
        ([], "cv gives no split"),
        (3 * [np.arange(4)], "Split 0 of cv .* is no pair"),
        ([(np.arange(5, 400), np.array([], dtype=int))], "The test part of split 0 of cv .* is empty"),
        ([(np.arange(400), np.array([900]))], "must hold row numbers from 0 to 568"),
        ([(np.arange(400), np.array([0.5]))], "must hold row numbers from 0 to 568"),
        ([(np.flatnonzero(Y), np.arange(9))], "The training part of split 0 of cv .* holds one class only"),
        (GroupKFold(3), r"cv=GroupKFold\(.*\) cannot split these 569 rows: .*groups"),
        (StratifiedKFold(400), "cannot split these 569 rows"),
    ],
)
def test_folds_that_cannot_be_are_refused_in_our_words(cv: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        affine(cv=cv).fit(X, Y)


def test_texts_go_through_a_pipeline() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [f"size {int(row[0])} smooth {int(100 * row[4])}" for row in X]
    fitted = affine(make_pipeline(TfidfVectorizer(), LogisticRegression())).fit(texts, Y)
    assert fitted.predict_proba(texts[:5]).shape == (5, 2)
    assert fitted.n_features_in_ == 1


def test_splits_may_be_masks_and_count_from_the_end() -> None:
    train = np.arange(len(Y)) < 400
    for given in ((train, ~train), (np.flatnonzero(train).tolist(), np.arange(-169, 0))):
        fitted = affine(cv=[given]).fit(X, Y)
        wanted = GaussianNB().fit(X[:400], Y[:400]).predict_proba(X[400:])[:, 1]
        np.testing.assert_array_equal(fitted.oof_scores_[400:], wanted)
        assert np.isnan(fitted.oof_scores_[:400]).all()
    generator = (split for split in StratifiedKFold(3).split(X, Y))
    np.testing.assert_array_equal(
        affine(cv=generator).fit(X, Y).oof_scores_, affine(cv=StratifiedKFold(3)).fit(X, Y).oof_scores_
    )


def test_it_is_an_ordinary_estimator() -> None:
    search = GridSearchCV(affine(), {"estimator__var_smoothing": [1e-9, 1e-2]}, cv=3, scoring="neg_log_loss").fit(X, Y)
    assert search.best_score_ < 0
    out = cross_val_predict(affine(), X, Y, cv=3, method="predict_proba")
    assert out.shape == (len(Y), 2)
    assert clone(affine(cv=7)).cv == 7


@parametrize_with_checks([ca.CalibratedClassifier(LogisticRegression(), ca.TemperatureScaling(), cv=2)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_simulated_truth_is_recovered() -> None:
    features, labels = make_classification(4000, 8, n_informative=4, class_sep=0.7, random_state=0)
    fitted = ca.CalibratedClassifier(GaussianNB()).fit(features[:3000], labels[:3000])
    p = fitted.predict_proba(features[3000:])[:, 1]
    assert ca.calibration_slope_intercept(labels[3000:], p).slope == pytest.approx(1, abs=0.2)


# ------------------------------------------------------------ models and labels that do not fit together

FLOWERS, KINDS = load_iris(return_X_y=True)
TWO = KINDS < 2


def test_the_scores_of_a_row_do_not_depend_on_the_other_rows() -> None:
    """A model of two classes among three: its missing margin was once set below the lowest of the whole batch."""
    model = FrozenEstimator(LinearSVC().fit(FLOWERS[TWO], KINDS[TWO]))
    with pytest.warns(DataWarning, match="does not know 2, which y holds"):
        fitted = ca.CalibratedClassifier(model, ca.TemperatureScaling(from_logits=True)).fit(FLOWERS, KINDS)
    one_by_one = np.vstack([fitted.predict_proba(row[None]) for row in FLOWERS])
    np.testing.assert_allclose(fitted.predict_proba(FLOWERS), one_by_one, atol=1e-12)


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (KINDS, np.array([0, 1, 3])[KINDS]),  # the third column was taken for class 3
        (np.array(["setosa", "versicolor", "virginica"])[KINDS], KINDS),
        (KINDS, np.array([0, 0, 2])[KINDS]),  # y lacks a class
    ],
)
def test_a_frozen_model_of_other_classes_is_refused(known: Any, given: Any) -> None:
    model = FrozenEstimator(GaussianNB().fit(FLOWERS, known))
    with pytest.raises(InputError, match=r"The frozen estimator knows the classes .*, but y holds .*"):
        ca.CalibratedClassifier(model).fit(FLOWERS, given)


def test_labels_of_two_classes_are_not_matched_by_their_order() -> None:
    model = FrozenEstimator(GaussianNB().fit(X, NAMES))  # 'benign' sorts first, but is coded 1 in Y
    with pytest.raises(InputError, match="'benign', 'malignant', but y holds 0, 1"):
        affine(model).fit(X, Y)
    as_bool = FrozenEstimator(GaussianNB().fit(X, Y == 1))
    assert affine(as_bool).fit(X, Y).calibrator_.slope_ == affine(as_bool).fit(X, Y == 1).calibrator_.slope_


@pytest.mark.parametrize("n_classes", [3, 4])
def test_margins_of_pairs_of_classes_are_refused(n_classes: int) -> None:
    features, labels = make_classification(200, 8, n_informative=6, n_classes=n_classes, random_state=0)
    pairs = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    with pytest.raises(InputError, match="decision_function_shape='ovr'"):
        ca.CalibratedClassifier(pairs).fit(features, labels)


def test_a_class_that_a_training_part_lacks_is_named() -> None:
    """Sorted rows in unshuffled folds: a score of 0 gave the class away, and evaluation_ was far too good."""
    with (
        pytest.warns(DataWarning, match="In 150 of 150 rows the class that came has the probability 0"),
        pytest.warns(DataWarning, match=r"training part of split 0 of cv .* lacks 0, which its test part holds"),
    ):
        ca.CalibratedClassifier(GaussianNB(), ca.StructuredVectorScaling(), cv=KFold(3)).fit(FLOWERS, KINDS)


def test_test_rows_among_the_training_rows_are_named() -> None:
    with pytest.warns(DataWarning, match="369 rows of the test parts of cv are in the training part"):
        affine(cv=[(np.arange(569), np.arange(200, 569))]).fit(X, Y)


def test_an_ensemble_names_the_fold_that_has_no_map() -> None:
    rows = np.r_[np.flatnonzero(Y)[:97], np.flatnonzero(Y == 0)[:2]]
    with pytest.raises(InputError, match=r"The test part of split \d of cv .* holds one class only, so with ensemble"):
        affine(ensemble=True, cv=KFold(3, shuffle=True, random_state=0)).fit(X[rows], Y[rows])


def test_objects_as_labels() -> None:
    plain = affine().fit(X, Y == 1)
    assert affine().fit(X, (Y == 1).astype(object)).calibrator_.slope_ == plain.calibrator_.slope_
    with pytest.raises(InputError, match="y has 1 missing value, the first at row 3"):
        affine().fit(X, np.where(np.arange(569) == 3, None, NAMES.astype(object)))
