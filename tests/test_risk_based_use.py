"""Risk-based calibration in use: estimators of others, frames, files, searches, bad input, speed."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

from calibrant.errors import InputError, InputTypeError, NotFittedError
from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    QuadraticDiscriminant,
    RiskBasedCalibration,
    reach,
    risk_step,
    stages_history,
)
from generative_cases import FAMILIES, rows

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


# ---------------------------------------------------------------- estimators of others


class PoissonNaiveBayes(ClassifierMixin, BaseEstimator):
    """Counts that are Poisson within a class: the two functions of the protocol, and probabilities."""

    def statistics(self, X, weights):
        return np.concatenate([weights.sum(axis=0)[:, None], weights.T @ X], axis=1)

    def fit_statistics(self, statistics, classes=None):
        self.classes_ = np.arange(len(statistics)) if classes is None else classes
        weight = np.maximum(statistics[:, 0], 1e-9)
        self.log_prior_ = np.log(weight / weight.sum())
        self.rates_ = np.maximum(statistics[:, 1:] / weight[:, None], 1e-9)
        return self

    def predict_proba(self, X):
        log_joint = self.log_prior_ + X @ np.log(self.rates_).T - self.rates_.sum(axis=1)
        return np.exp(log_softmax(log_joint, axis=1))


def test_any_estimator_with_the_two_functions():
    rng = np.random.default_rng(6)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    X = rng.poisson(np.array([[2, 5, 3], [3, 4, 4], [4, 4, 2]])[np.searchsorted(["a", "b", "c"], y)])
    X[:, 2] = X[:, 0] + rng.integers(0, 2, 300)  # not independent: the plain fit is too sure
    model = RiskBasedCalibration(PoissonNaiveBayes(), learning_rate=0.2).fit(pd.DataFrame(X, columns=list("uvw")), y)
    assert model.history_.log_loss[-1] < model.history_.log_loss[0]
    assert set(model.predict(pd.DataFrame(X, columns=list("uvw")))) <= {"a", "b", "c"}
    assert len(list(model.staged_predict_proba(pd.DataFrame(X, columns=list("uvw"))))) == 65
    frame = pd.DataFrame(X, columns=list("uvw"))
    np.testing.assert_allclose(model.predict_log_proba(frame), np.log(model.predict_proba(frame)), atol=1e-14)
    step = risk_step(model.estimator_, X, y)
    np.testing.assert_allclose(step.correction.sum(axis=0), 0, atol=1e-9)


def test_halve_asks_the_estimator():
    with pytest.raises(InputError, match="statistics_are_valid"):
        RiskBasedCalibration(PoissonNaiveBayes(), guard="halve").fit([[1], [2]], [0, 1])


# ---------------------------------------------------------------- use


def test_the_improved_estimator_serves_alone():
    X, y = rows(True)
    model = RiskBasedCalibration(CategoricalNaiveBayes(), max_iter=4).fit(X, y)
    served = pickle.loads(pickle.dumps(model.estimator_))
    np.testing.assert_array_equal(served.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(served.predict_log_proba(X), model.predict_log_proba(X))
    assert served.n_features_in_ == model.n_features_in_ == 4


def test_frames_keep_their_names():
    X, y = rows(False)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == model.estimator_.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("badc")])


def test_a_grid_search_turns_both():
    X, y = rows(False)
    X = np.column_stack([X, X, X])  # far from independent: the plain fit is too sure
    grid = {"learning_rate": [0.0, 0.1], "estimator__prior_strength": [0.0, 10.0]}
    search = GridSearchCV(RiskBasedCalibration(GaussianNaiveBayes(), max_iter=5), grid, scoring="neg_log_loss", cv=3)
    assert search.fit(X, y).best_params_["learning_rate"] == 0.1


def test_a_refit_forgets():
    X, y = rows(False)
    model = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=3, early_stopping=True).fit(X, y)
    model.set_params(early_stopping=False, max_iter=1).fit(X[:, :2], y % 2)
    assert model.history_.validation_error is None
    assert (model.n_iter_, model.n_features_in_, model.classes_.tolist()) == (1, 2, [0, 1])


def test_bad_input_is_refused():
    X, y = rows(False, n=20)
    fit = RiskBasedCalibration(GaussianNaiveBayes())
    with pytest.raises(InputError, match="one class only"):
        fit.fit(X, np.zeros(20))
    with pytest.raises(NotFittedError, match="fit_statistics"):
        risk_step(GaussianNaiveBayes(), X, y)
    with pytest.raises(NotFittedError, match="fit_blocks"):
        fit.predict_proba(X)
    with pytest.raises(InputTypeError, match="must be functions"):
        fit.fit_blocks([(X, y)], [0, 1, 2])
    with pytest.raises(InputError, match="must be a tuple"):
        fit.fit_blocks(lambda: [X], [0, 1, 2])
    once = iter([(X, y)])
    with pytest.raises(InputError, match="used up"):
        fit.fit_blocks(lambda: once, [0, 1, 2])


@pytest.mark.parametrize("name", sorted(RiskBasedCalibration._rules))
def test_bad_parameters_are_refused(name):
    X, y = rows(False, n=20)
    for value in RiskBasedCalibration._rules[name].refused():
        given = {"estimator": GaussianNaiveBayes()} | {name: value}
        with pytest.raises(InputError, match=name):
            RiskBasedCalibration(**given).fit(X, y)


def test_blocks_of_other_columns_are_refused():
    X, y = rows(False, n=20)
    model = GaussianNaiveBayes().fit(X, y)
    with pytest.raises(InputError, match="X has 2 features, but the model was fitted with 4"):
        risk_step(model, X[:, :2], y)


def test_a_category_of_held_out_rows_alone_is_no_error():
    X, y = rows(True, n=100)
    X[:, 0] = np.arange(100)
    fit = RiskBasedCalibration(CategoricalNaiveBayes(1.0, unseen="error"), early_stopping=True, max_iter=3)
    assert np.isfinite(fit.fit(X, y).history_.validation_log_loss).all()


def test_a_file_is_read_block_by_block(tmp_path):
    X, y = rows(False)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fit = RiskBasedCalibration(QuadraticDiscriminant(), max_iter=3, block_size=50)
    p = clone(fit).fit(X.astype(np.float32), y).predict_proba(X)
    np.testing.assert_array_equal(fit.fit(mapped, y).predict_proba(X), p)


def test_reach():
    assert reach([0.3, 0.2, 0.1], 0.3) == 0
    assert reach([0.3, 0.2, 0.1], 0.15) == 2
    assert reach([0.3, 0.2, 0.1], 0.05) is None


@every_family
def test_stages_give_the_history_back(family):
    X, y = rows(family.categorical)
    model = RiskBasedCalibration(family.make(prior_strength=1.0), max_iter=4).fit(X, y)
    again = stages_history(y, model.staged_predict_proba(X))
    for name in ("error", "soft_error", "log_loss"):
        np.testing.assert_allclose(getattr(again, name), getattr(model.history_, name), atol=1e-10)
    with pytest.raises(InputError, match="classes="):
        stages_history(y[y < 2], (p[y < 2] for p in model.staged_predict_proba(X)))
    with pytest.raises(InputError, match="empty"):
        stages_history(y, [])


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sixty_four_iterations_take_under_half_a_minute(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 1_000_000)
    X = np.stack([rng.integers(0, size, len(y)) for size in rng.integers(4, 9, 20)], axis=1)
    numbers = rng.normal(size=(100_000, 20)) + 0.2 * y[:100_000, None]
    for model, given in ((CategoricalNaiveBayes(), X), (QuadraticDiscriminant(), numbers)):
        start = time.process_time()  # of one core: other work on the machine does not count
        RiskBasedCalibration(model, max_iter=64).fit(given, y[: len(given)])
        assert time.process_time() - start < 30
