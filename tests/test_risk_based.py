"""Risk-based calibration: what it conserves, where it goes, and that blocks, weights and parts are nothing."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from calibrant.errors import FitWarning, InputError
from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    LinearDiscriminantLogistic,
    QuadraticDiscriminant,
    RiskBasedCalibration,
    merge,
    risk_step,
)
from generative_cases import FAMILIES, dense_calibration, flat, rows

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def calibrated(family, strength=1.0, **options):
    return RiskBasedCalibration(family.make(prior_strength=strength), **options)


# ---------------------------------------------------------------- the definition


@every_family
@pytest.mark.parametrize("strength", [0.0, 10.0])
def test_every_iterate_is_that_of_dense_matrices(family, strength):
    X, y = rows(family.categorical)
    model = calibrated(family, strength, max_iter=6, return_best=False).fit(X, y)
    wanted = dense_calibration(family, X, y, 3, strength, 0.1, 6)
    for (p, loss), stage, found in zip(wanted, model.staged_predict_proba(X), model.history_.log_loss, strict=True):
        np.testing.assert_allclose(stage, p, atol=1e-10)
        assert found == pytest.approx(loss, abs=1e-10)
    np.testing.assert_allclose(model.predict_proba(X), wanted[-1][0], atol=1e-10)


@every_family
def test_no_rate_is_the_plain_fit(family):
    X, y = rows(family.categorical)
    model = calibrated(family, learning_rate=0, max_iter=3).fit(X, y)
    plain = family.make(prior_strength=1.0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.best_iter_ == 0


@every_family
def test_sums_over_classes_never_move(family):
    X, y = rows(family.categorical)
    model = calibrated(family, max_iter=20, return_best=False).fit(X, y)
    first, last = model.stages_[0], model.stages_[-1]
    assert last.counts.sum() == pytest.approx(len(y), rel=1e-12)
    if family.categorical:
        for before, after in zip(first.cells, last.cells):
            np.testing.assert_allclose(after.sum(axis=1), before.sum(axis=1), atol=1e-10)
            np.testing.assert_allclose(after.sum(axis=0), last.counts, atol=1e-10)
    else:
        np.testing.assert_allclose(last.sums.sum(axis=0), first.sums.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(last.total_squares(), first.total_squares(), atol=1e-9)


def test_no_step_when_certain_and_right():
    X, y = np.array([[-1000.0], [-1001.0], [1000.0], [1001.0]]), [0, 0, 1, 1]
    model = GaussianNaiveBayes().fit(X, y)
    assert not flat(risk_step(model, X, y).correction).any()


@every_family
def test_the_step_is_minus_the_gradient_of_the_summed_log_loss(family):
    """In the weights W of the log-linear form `log h = log_softmax(psi W)`, by central differences."""
    X, y = rows(family.categorical, n=60)
    model = family.make(prior_strength=2.0).fit(X, y)
    psi, _ = family.dense(X, 3, 2.0)
    start = np.linalg.lstsq(psi, model.predict_log_proba(X), rcond=None)[0]
    np.testing.assert_allclose(log_softmax(psi @ start, axis=1), model.predict_log_proba(X), atol=1e-6)

    def loss(w):
        return -log_softmax(psi @ w, axis=1)[np.arange(len(y)), y].sum()

    correction = psi.T @ (np.eye(3)[y] - model.predict_proba(X))
    for place in [(0, 0), (1, 2), (len(start) - 1, 1)]:
        shift = np.zeros_like(start)
        shift[place] = 1e-5
        slope = (loss(start + shift) - loss(start - shift)) / 2e-5
        assert correction[place] == pytest.approx(-slope, abs=1e-4)
    found = risk_step(model, X, y).correction
    if family.categorical:
        ours = np.concatenate([found.counts[None], *found.cells])
    else:
        found = found.about(np.zeros(X.shape[1]))
        ours = np.concatenate([found.counts[None], found.sums.T])
    np.testing.assert_allclose(ours, correction[: len(ours)], atol=1e-9)


# ---------------------------------------------------------------- where it goes


def test_it_converges_to_maximum_likelihood_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, -0.7, 0.3] + rng.logistic(size=400) > 0.2).astype(int)
    model = RiskBasedCalibration(LinearDiscriminantLogistic(), learning_rate=0.5, max_iter=1500).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(X, y)
    coefficients = model.estimator_.coef_[1] - model.estimator_.coef_[0]
    np.testing.assert_allclose(coefficients, theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_naive_bayes_converges_to_one_hot_logistic_regression():
    X, y = rows(True, n=600, d=3, k=2)
    one_hot = np.concatenate([np.eye(size)[column] for size, column in zip(X.max(axis=0) + 1, X.T)], axis=1)
    model = RiskBasedCalibration(CategoricalNaiveBayes(), learning_rate=0.5, max_iter=400).fit(X, y)
    theirs = LogisticRegression(C=1e8, tol=1e-12, max_iter=10_000).fit(one_hot, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(one_hot), atol=1e-5)


@every_family
def test_the_log_loss_falls(family):
    X, y = rows(family.categorical)
    history = calibrated(family).fit(X, y).history_
    assert history.log_loss[-1] < history.log_loss[0]
    assert len(history.error) == len(history.soft_error) == len(history.learning_rate) == 65


@pytest.mark.parametrize("make", [GaussianNaiveBayes, QuadraticDiscriminant, LinearDiscriminantLogistic])
def test_units_are_nothing(make):
    X, y = rows(False)
    scale, shift = np.array([1e-4, 1.0, 1e4, 30.0]), np.array([0.0, 1e3, -1e6, 3.0])
    fit = RiskBasedCalibration(make(prior_strength=2.0), max_iter=10)
    p = clone(fit).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(fit.fit(X * scale + shift, y).predict_proba(X * scale + shift), p, atol=1e-7)


# ---------------------------------------------------------------- rows, blocks, weights, parts


@every_family
@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_blocks_are_nothing(family, size):
    X, y = rows(family.categorical)
    one = calibrated(family, max_iter=8).fit(X, y)
    other = calibrated(family, max_iter=8, block_size=size).fit(X, y)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(other.history_.log_loss, one.history_.log_loss, atol=1e-12)
    np.testing.assert_array_equal(other.history_.error, one.history_.error)


@every_family
def test_blocks_that_come_anew_give_the_same_fit(family):
    X, y = rows(family.categorical)
    weight = np.random.default_rng(1).integers(1, 3, len(y)).astype(float)
    cuts = np.array_split(np.arange(len(y)), 7)
    streamed = calibrated(family, max_iter=8).fit_blocks(lambda: ((X[c], y[c], weight[c]) for c in cuts), [0, 1, 2])
    whole = calibrated(family, max_iter=8).fit(X, y, weight)
    np.testing.assert_allclose(streamed.predict_proba(X), whole.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(streamed.history_.soft_error, whole.history_.soft_error, atol=1e-12)


@every_family
def test_weights_are_repeats(family):
    X, y = rows(family.categorical, n=90)
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    once = calibrated(family, max_iter=8).fit(X, y, weight)
    repeated = calibrated(family, max_iter=8).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(once.predict_proba(X), repeated.predict_proba(X), atol=1e-11)
    for name in ("error", "soft_error", "log_loss"):
        np.testing.assert_allclose(getattr(once.history_, name), getattr(repeated.history_, name), atol=1e-11)


@every_family
def test_steps_of_parts_merge_to_the_step_of_the_whole(family):
    X, y = rows(family.categorical)
    model = family.make(prior_strength=1.0).fit(X, y)
    whole = risk_step(model, X, y)
    parts = merge(risk_step(model, X[c], y[c]) for c in np.array_split(np.arange(len(y)), [1, 50, 51]))
    np.testing.assert_allclose(flat(parts.correction), flat(whole.correction), atol=1e-11)
    assert (parts.error, parts.weight) == (whole.error, whole.weight)
    assert parts.log_loss == pytest.approx(whole.log_loss, rel=1e-12)


@every_family
def test_a_loop_of_merged_steps_is_the_fit(family):
    X, y = rows(family.categorical)
    cuts = np.array_split(np.arange(len(y)), 3)
    model = family.make(prior_strength=1.0)
    model.fit_statistics(merge(model.block_statistics(X[c], y[c], [0, 1, 2]) for c in cuts), [0, 1, 2])
    for _ in range(5):
        step = merge(risk_step(model, X[c], y[c]) for c in cuts)
        model.fit_statistics(model.statistics_ + step.correction * 0.1)
    fitted = calibrated(family, max_iter=5, return_best=False).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("make", [CategoricalNaiveBayes, QuadraticDiscriminant])
def test_memory_is_that_of_a_block(make):
    rng = np.random.default_rng(3)
    n = 60_000
    X, y = rng.integers(0, 4, (n, 10)), rng.integers(0, 2, n)
    X = X if make is CategoricalNaiveBayes else X + rng.random(X.shape)
    fit = RiskBasedCalibration(make(), max_iter=2, block_size=1000)
    fit.fit(X[:3000], y[:3000])
    tracemalloc.start()
    fit.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # labels of 8 bytes and sorting them, 2 bytes a group of features, and the rest for a block of 1,000 rows
    assert peak < n * 40 + 1000 * 8 * 10 * 10


# ---------------------------------------------------------------- guards, steps, stopping


def test_clip_goes_on_where_statistics_leave_the_valid_set():
    X, y = load_iris(return_X_y=True)
    codes = np.digitize(X, [1, 2, 3, 4, 5, 6])
    clip = RiskBasedCalibration(CategoricalNaiveBayes(), return_best=False).fit(codes, y)
    assert min(table.min() for table in clip.statistics_.cells) < 0
    assert np.isfinite(clip.history_.log_loss).all()
    assert clip.n_iter_ == 64


@pytest.mark.parametrize("strength", [0.0, 5.0])
def test_halve_keeps_statistics_valid(strength):
    X, y = load_iris(return_X_y=True)
    codes = np.digitize(X, [1, 2, 3, 4, 5, 6])
    fit = RiskBasedCalibration(CategoricalNaiveBayes(strength), guard="halve", learning_rate=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fit.fit(codes, y)
    assert all(fit.estimator_.statistics_are_valid(stage) for stage in fit.stages_)


def test_halve_says_when_it_stops():
    X, y = np.array([[0], [0], [1], [1], [1]]), [0, 0, 0, 1, 1]  # class 1 never holds category 0
    with pytest.warns(FitWarning, match='guard="clip"'):
        model = RiskBasedCalibration(CategoricalNaiveBayes(), guard="halve", learning_rate=1.0).fit(X, y)
    assert model.n_iter_ < 64
    assert np.isfinite(model.predict_proba(X)).all()


@every_family
def test_step_control_never_raises_the_loss(family):
    X, y = rows(family.categorical, n=80)
    model = calibrated(family, learning_rate=20.0, step_control=True, max_iter=30).fit(X, y)
    assert (np.diff(model.history_.log_loss) <= 0).all()
    assert (np.diff(model.history_.learning_rate[1:]) <= 0).all()


@every_family
@pytest.mark.parametrize("scoring", ["log_loss", "error", "soft_error"])
def test_the_best_iterate_is_restored(family, scoring):
    X, y = rows(family.categorical)
    model = calibrated(family, learning_rate=1.0, scoring=scoring).fit(X, y)
    scores = getattr(model.history_, scoring)
    assert scores[model.best_iter_] == scores.min()
    np.testing.assert_allclose(list(model.staged_predict_proba(X))[model.best_iter_], model.predict_proba(X), atol=0)


def test_early_stopping_protects_from_over_training():
    X, y = rows(True, n=120, d=12)
    model = calibrated(FAMILIES[0], early_stopping=True, learning_rate=0.5, max_iter=200).fit(X, y)
    watched = model.history_.validation_log_loss
    assert model.n_iter_ < 200
    assert model.n_iter_ - model.best_iter_ == 5
    assert watched[model.best_iter_] == watched.min()
    assert model.history_.log_loss[-1] < model.history_.log_loss[model.best_iter_]
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.history_.validation_error, model.history_.validation_error)


def test_early_stopping_on_blocks_watches_the_given_rows():
    X, y = rows(True, n=120, d=12)
    fit = calibrated(FAMILIES[0], early_stopping=True, learning_rate=0.5, max_iter=200)
    with pytest.raises(InputError, match="validation="):
        fit.fit_blocks(lambda: [(X, y)], [0, 1, 2])
    fit.fit_blocks(lambda: [(X[:80], y[:80])], [0, 1, 2], validation=lambda: [(X[80:], y[80:])])
    p = fit.predict_proba(X[80:])
    assert fit.history_.validation_error[fit.best_iter_] == pytest.approx((p.argmax(axis=1) != y[80:]).mean())


def test_too_few_rows_to_hold_out():
    with pytest.raises(InputError, match="no row to hold out"):
        RiskBasedCalibration(GaussianNaiveBayes(), early_stopping=True).fit([[0.0], [1.0]], [0, 1])
