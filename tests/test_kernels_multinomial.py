"""The multinomial likelihoods against a plain second writing of their definition and scipy's optimisers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import check_grad, minimize, minimize_scalar
from scipy.special import log_softmax

from calibrant._kernels import class_blocks, multinomial, temperature
from calibrant._kernels._one_thread import one_blas_thread
from calibrant._kernels.class_blocks import ClassBlocks
from calibrant._kernels.multinomial import AllPairs, Multinomial, PerClass, minimise

SHAPES = [PerClass, AllPairs]
every_shape = pytest.mark.parametrize("shape", SHAPES)


def problem_rows(n=300, k=4, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, k))
    p = np.exp(log_softmax(0.6 * logits @ (np.eye(k) + 0.2 * rng.normal(size=(k, k))), axis=1))
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return logits, y, rng.integers(1, 4, n).astype(float) if weighted else None


def of_logits(logits, y, weights=None):
    """Log-probabilities of logits, as they are."""
    return ClassBlocks(logits, y, weights, True).after(1.0, 0.0)


def problem(shape, rows, penalty=0.01):
    k = rows.n_classes
    centre = np.tile([1.0, 0.0], (k, 1)) if shape is PerClass else np.eye(k, k + 1)
    strength = penalty * (1 + np.arange(centre.size).reshape(centre.shape) % 3)
    return Multinomial(rows, shape(), strength, centre)


def definition(shape, logits, y, weights, penalty, centre):
    """The objective, written from its formula without any care for speed."""
    logs = log_softmax(logits, axis=1)
    weights = np.ones(len(y)) if weights is None else weights

    def objective(flat):
        theta = flat.reshape(centre.shape)
        eta = logs * theta[:, 0] + theta[:, 1] if shape is PerClass else logs @ theta[:, :-1].T + theta[:, -1]
        losses = -log_softmax(eta, axis=1)[np.arange(len(y)), y]
        return np.average(losses, weights=weights) + np.sum(penalty * (theta - centre) ** 2)

    return objective


@every_shape
@pytest.mark.parametrize("weighted", [False, True])
def test_optimum_is_at_least_as_low_as_scipys(shape, weighted):
    logits, y, weights = problem_rows(weighted=weighted)
    made = problem(shape, of_logits(logits, y, weights))
    fit = minimise(made)
    objective = definition(shape, logits, y, weights, made.penalty, made.centre)
    assert fit.objective == pytest.approx(objective(fit.theta.ravel()), rel=1e-12)
    peer = minimize(objective, made.centre.ravel(), method="BFGS", options={"gtol": 1e-8})
    assert fit.objective <= peer.fun + 1e-12
    assert_allclose(fit.theta.ravel(), peer.x, atol=1e-4)
    assert fit.gradient < 1e-10
    assert fit.converged


@every_shape
def test_gradient_and_curvature_against_differences(shape):
    logits, y, weights = problem_rows(n=60)
    made = problem(shape, of_logits(logits, y, weights))
    theta = made.centre + 0.3 * np.random.default_rng(1).normal(size=made.centre.shape)

    def value(flat):
        return made.at(flat.reshape(theta.shape)).objective

    def slope(flat):
        return made.at(flat.reshape(theta.shape)).gradient.ravel()

    assert check_grad(value, slope, theta.ravel()) < 1e-6
    curvature = made.curvature(theta)
    for axis, unit in enumerate(np.eye(theta.size)):
        difference = (slope(theta.ravel() + 1e-5 * unit) - slope(theta.ravel() - 1e-5 * unit)) / 2e-5
        assert_allclose(curvature[axis], difference, atol=1e-8)
        assert_allclose(made.product(theta)(unit.reshape(theta.shape)).ravel(), curvature[axis], atol=1e-13)


@every_shape
def test_conjugate_gradients_find_the_same_optimum(shape, monkeypatch):
    logits, y, weights = problem_rows()
    made = problem(shape, of_logits(logits, y, weights))
    exact = minimise(made)
    for widest in (multinomial.WIDEST_BLOCK, 2):
        monkeypatch.setattr(multinomial, "MOST_DENSE", 0)
        monkeypatch.setattr(multinomial, "WIDEST_BLOCK", widest)
        fit = minimise(made)
        assert_allclose(fit.theta, exact.theta, atol=1e-9)
        assert fit.converged


@every_shape
def test_rows_that_are_not_held_give_the_same(shape, monkeypatch):
    logits, y, weights = problem_rows(n=700)
    made = minimise(problem(shape, of_logits(logits, y, weights)))
    for name, value in {"HELD": 0, "CELLS": 64, "SPREAD": 0}.items():
        monkeypatch.setattr(class_blocks, name, value)
    monkeypatch.setattr(multinomial, "SAMPLE_ROWS", 50)
    monkeypatch.setattr(multinomial, "COSTLY", 0)
    monkeypatch.setattr(multinomial, "SAMPLE_CELLS", 100)
    monkeypatch.setattr(multinomial, "THIN", 3)
    rows = of_logits(logits, y, weights)
    assert not rows.held
    assert_allclose(minimise(problem(shape, rows)).theta, made.theta, atol=1e-7)
    monkeypatch.setattr(multinomial, "MOST_DENSE", 0)
    assert_allclose(minimise(problem(shape, rows)).theta, made.theta, atol=1e-7)


@every_shape
def test_float32_rows_give_nearly_the_same(shape):
    logits, y, weights = problem_rows()
    exact = minimise(problem(shape, of_logits(logits, y, weights)))
    short = minimise(problem(shape, of_logits(logits.astype(np.float32), y, weights)))
    assert_allclose(short.theta, exact.theta, atol=1e-5)
    assert short.gradient < 1e-10


@every_shape
def test_separable_rows_have_an_optimum(shape):
    logits = np.repeat(40 * np.eye(3), 5, axis=0)
    fit = minimise(problem(shape, of_logits(logits, np.repeat(np.arange(3), 5)), 1e-6))
    assert np.isfinite(fit.theta).all()
    assert fit.converged


@every_shape
def test_constant_rows_have_an_optimum(shape):
    fit = minimise(problem(shape, of_logits(np.zeros((6, 3)), np.array([0, 0, 0, 1, 1, 2])), 1e-9))
    eta = shape().logits(fit.theta, np.full((3, 1), -np.log(3)))
    assert_allclose(np.exp(log_softmax(eta, axis=0))[:, 0], [1 / 2, 1 / 3, 1 / 6], atol=1e-6)


def test_blocks_are_log_probabilities():
    logits, y, _ = problem_rows(n=50)
    logs = log_softmax(logits, axis=1)
    assert_allclose(of_logits(logits, y).block(0, 50).T, logs, atol=1e-14)
    assert_allclose(ClassBlocks(np.exp(logs), y, None, False).after(1, 0).block(7, 20).T, logs[7:20], atol=1e-14)
    less = ClassBlocks(logits, y, None, True).block(0, 50).T
    assert_allclose(less, logits - logits.max(axis=1, keepdims=True), atol=1e-14)
    mixed = ClassBlocks(logits, y, None, True).after(2.0, 0.1)
    q = np.exp(log_softmax(2 * logs, axis=1))
    assert_allclose(mixed.block(0, 50).T, np.log(0.9 * q + 0.1 / 4), atol=1e-14)
    assert_allclose(mixed.thinned(3).block(0, 17).T, np.log(0.9 * q + 0.1 / 4)[::3], atol=1e-14)


def test_blocks_of_exact_zeros_are_finite():
    rows = ClassBlocks(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), np.array([0, 1]), None, False)
    assert np.isfinite(rows.block(0, 2)).all()
    assert rows.block(0, 2).min() == pytest.approx(np.log(np.finfo(np.float32).tiny), rel=1e-6)


# ---------------------------------------------------------------- temperature


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e4, 1e200])
def test_temperature_at_any_scale(scale):
    logits, y, weights = problem_rows()

    def loss(log_beta):
        losses = -log_softmax(np.exp(log_beta) * logits, axis=1)[np.arange(len(y)), y]
        return np.average(losses, weights=weights)

    peer = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
    beta, outcome = temperature.fit_temperature(ClassBlocks(scale * logits, y, weights, True))
    assert outcome == temperature.FOUND
    assert beta * scale == pytest.approx(np.exp(peer.x), rel=1e-6)


def test_temperature_at_its_bounds():
    logits = 3 * np.eye(3)
    sharp, outcome = temperature.fit_temperature(ClassBlocks(logits, np.arange(3), None, True))
    assert outcome == temperature.TOO_SHARP
    assert np.log(sharp * 3) == pytest.approx(16)
    flat, outcome = temperature.fit_temperature(ClassBlocks(logits, np.array([1, 2, 0]), None, True))
    assert outcome == temperature.NO_SIGNAL
    assert np.log(flat * 3) == pytest.approx(-16)
    assert temperature.fit_temperature(ClassBlocks(np.ones((3, 3)), np.arange(3), None, True))[1] == -1


def test_temperature_starts_from_a_sample(monkeypatch):
    logits, y, weights = problem_rows(n=900)
    exact = temperature.fit_temperature(ClassBlocks(logits, y, weights, True))[0]
    monkeypatch.setattr(temperature, "SAMPLE", 50)
    assert temperature.fit_temperature(ClassBlocks(logits, y, weights, True))[0] == pytest.approx(exact, rel=1e-12)


def test_blas_threads_are_given_back():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with one_blas_thread(), one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before
