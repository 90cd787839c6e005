"""Scaling of K classes: each objective as its docstring writes it, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import calibrant as ca
from catalogue import class_rows

K = 4
ROWS = class_rows("logit", n=300, k=K)
EVERY = [
    ca.VectorScaling,
    ca.MatrixScaling,
    ca.DirichletCalibration,
    ca.StructuredVectorScaling,
    ca.StructuredMatrixScaling,
]
every = pytest.mark.parametrize("make", EVERY)


def prepared(est, total):
    """L: log-softmax, after the temperature and the mixture where there is one."""
    logs = log_softmax(ROWS.scores, axis=1)
    if not hasattr(est, "temperature_"):
        return logs
    return np.log((1 - 1 / (total + 1)) * softmax(logs / est.temperature_, axis=1) + 1 / (total + 1) / K)


def penalty(est, total, weights, intercepts):
    """The penalty as the docstring writes it."""
    if isinstance(est, ca.VectorScaling):
        return 0.5 / total * (np.sum((weights - 1) ** 2) + np.sum(intercepts**2))
    if isinstance(est, ca.StructuredVectorScaling):
        return K / total * (np.sum((weights - 1) ** 2) + np.sum(intercepts**2))
    away = weights - np.eye(K)
    diagonal = np.sum(np.diag(away) ** 2)
    off = np.sum(away**2) - diagonal
    if isinstance(est, ca.MatrixScaling):
        return 0.5 / total * (off + diagonal + np.sum(intercepts**2))
    if isinstance(est, ca.DirichletCalibration):
        return 0.01 / (K * (K - 1)) * off + 0.01 / K * np.sum(intercepts**2) + 0.5 / total * diagonal
    return K / total * (np.sum(intercepts**2) + diagonal) + K * (K - 1) / total * off


@every
@pytest.mark.parametrize("weights", [None, ROWS.weight])
def test_objective_is_the_documented_one_and_at_least_as_low_as_scipys(make, weights):
    est = make(from_logits=True).fit(ROWS.scores, ROWS.y, weights)
    count = np.ones(len(ROWS.y)) if weights is None else weights
    total = count.sum()
    logs = prepared(est, total)
    shape = est.weights_.shape

    def objective(flat):
        w, b = flat[:-K].reshape(shape), flat[-K:]
        eta = logs * w + b if w.ndim == 1 else logs @ w.T + b
        losses = -log_softmax(eta, axis=1)[np.arange(len(ROWS.y)), ROWS.y]
        return count @ losses / total + penalty(est, total, w, b)

    start = np.concatenate([(np.ones(K) if len(shape) == 1 else np.eye(K)).ravel(), np.zeros(K)])
    peer = minimize(objective, start, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9})
    found = np.concatenate([est.weights_.ravel(), est.intercepts_])
    assert est.objective_ == pytest.approx(objective(found), rel=1e-12)
    assert est.objective_ <= peer.fun + 1e-12
    eta = logs * est.weights_ if est.weights_.ndim == 1 else logs @ est.weights_.T
    assert_allclose(est.map_(ROWS.scores), softmax(eta + est.intercepts_, axis=1), atol=1e-12)


@pytest.mark.parametrize("make", EVERY[3:])
def test_the_first_step_is_the_temperature(make):
    est = make(from_logits=True).fit(ROWS.scores, ROWS.y)
    first = ca.TemperatureScaling(from_logits=True).fit(ROWS.scores, ROWS.y)
    assert est.temperature_ == pytest.approx(first.temperature_, rel=1e-12)


@pytest.mark.parametrize("make", EVERY[3:])
def test_a_huge_penalty_leaves_the_mixed_temperature(make):
    est = make(from_logits=True, penalty=1e12).fit(ROWS.scores, ROWS.y)
    mixed = ca.TemperatureScaling(from_logits=True, mix=True).fit(ROWS.scores, ROWS.y)
    assert_allclose(est.map_(ROWS.scores), mixed.map_(ROWS.scores), atol=1e-8)


@pytest.mark.parametrize("make", EVERY[:2])
def test_a_huge_penalty_leaves_the_identity(make):
    est = make(from_logits=True, penalty=1e12).fit(ROWS.scores, ROWS.y)
    assert_allclose(est.map_(ROWS.scores), softmax(ROWS.scores, axis=1), atol=1e-8)


@every
def test_float32_gives_nearly_the_same(make):
    exact = make(from_logits=True).fit(ROWS.scores, ROWS.y)
    short = ROWS.scores.astype(np.float32)
    assert_allclose(make(from_logits=True).fit(short, ROWS.y).map_(short), exact.map_(ROWS.scores), atol=1e-5)
    p = softmax(ROWS.scores, axis=1).astype(np.float32)
    assert_allclose(make().fit(p, ROWS.y).map_(p), exact.map_(ROWS.scores), atol=1e-5)


@every
def test_rows_that_sum_to_one_only_in_float32(make):
    p = softmax(ROWS.scores, axis=1).astype(np.float32)
    assert not np.all(p.sum(axis=1, dtype=np.float64) == 1)
    exact = p.astype(np.float64) / p.sum(axis=1, dtype=np.float64)[:, None]
    assert_allclose(make().fit(p, ROWS.y).map_(exact), make().fit(exact, ROWS.y).map_(exact), atol=1e-6)
    with pytest.raises(ca.errors.InputError, match="sum to 1"):
        make().fit(p * np.float32(1.01), ROWS.y)
    with pytest.raises(ca.errors.InputError, match=r"probabilities in \[0, 1\]"):
        make().fit(ROWS.scores.astype(np.float32), ROWS.y)
    with pytest.raises(ca.errors.InputError, match="missing value"):
        make().fit(np.where(p == p.max(), np.float32(np.nan), p), ROWS.y)


@every
def test_exact_zeros_and_separable_rows_are_finite(make):
    p = np.repeat(np.eye(3), 4, axis=0)
    y = np.repeat(np.arange(3), 4)
    q = make().fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()
    assert (q.argmax(axis=1) == y).all()
    y[0] = 2
    with pytest.warns(ca.errors.DataWarning, match="In 1 of 12 rows the class that came has the probability 0"):
        q = make().fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()


@every
def test_an_absent_class_becomes_unlikely_but_not_impossible(make):
    kept = ROWS.y != 1
    q = make(from_logits=True).fit(ROWS.scores[kept], ROWS.y[kept]).predict_proba(ROWS.scores)
    assert 0 < q[:, 1].max() < 1
    assert q[:, 1].mean() < softmax(ROWS.scores, axis=1)[:, 1].mean()


@every
def test_rows_of_one_class_only(make):
    q = make(from_logits=True).fit(ROWS.scores, np.zeros(len(ROWS.y), dtype=int)).predict_proba(ROWS.scores)
    assert np.isfinite(q).all()
    assert q[:, 0].mean() > 0.9


@every
def test_two_classes_are_nearly_the_affine_fit(make):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=4_000)
    y = (rng.random(4_000) < 1 / (1 + np.exp(0.4 - 0.6 * z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    two = np.column_stack([1 - p, p])
    affine = ca.AffineLogit().fit(p, y)
    # The log-probabilities of two classes bend where their difference does not: near, not equal.
    assert_allclose(make().fit(two, y).predict_proba(two), affine.predict_proba(p), atol=0.04)


def test_structured_matrix_approaches_the_truth_as_rows_come_in():
    rng = np.random.default_rng(3)
    true = 1.5 * rng.normal(size=(20_000, 3))
    truth = softmax(true, axis=1)
    y = (rng.random((20_000, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    logits = true @ (1.4 * np.eye(3) + 0.6 * np.roll(np.eye(3), 1, axis=1))
    gaps = []
    for n in (200, 2_000, 20_000):
        q = ca.StructuredMatrixScaling(from_logits=True).fit(logits[:n], y[:n]).predict_proba(logits)
        gaps.append(np.abs(q - truth).mean())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01


@pytest.mark.parametrize("value", [0, -1, np.inf, "1"])
def test_penalties_are_above_zero(value):
    with pytest.raises(ca.errors.InputError, match="penalty"):
        ca.MatrixScaling(penalty=value).fit(softmax(ROWS.scores, axis=1), ROWS.y)
