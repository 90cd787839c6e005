"""Sums of losses, the logistic function and the log-odds against sixty digits."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calibrant._kernels import likelihood

mpmath.mp.dps = 60
SIZES = [0, 1, 15, 16, 17, 33, 500]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    p = np.concatenate((rng.random(n), 10.0 ** rng.uniform(-30, 0, n // 2)))[:n]
    return p, (rng.random(n) < p).astype(np.uint8), rng.integers(0, 4, n).astype(float)


def exact(loss, p, labels, weights):
    return float(mpmath.fsum(mpmath.mpf(w) * loss(mpmath.mpf(q), y) for q, y, w in zip(p, labels, weights) if w))


def square(q, y):
    return (q - int(y)) ** 2


def log_loss(q, y):
    return -mpmath.log(q if y else 1 - q)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name, loss", [("squared_error", square), ("neg_log_likelihood", log_loss)])
def test_sums_of_rows_and_of_counts(name, loss, n):
    p, labels, weights = rows(n)
    rows_sum, counts_sum = getattr(likelihood, name), getattr(likelihood, name + "_counts")
    tolerance = 1e-15 * max(n, 1)
    assert rows_sum(p, labels, None) == pytest.approx(exact(loss, p, labels, np.ones(n)), rel=1e-14, abs=tolerance)
    weighted = exact(loss, p, labels, weights)
    assert rows_sum(p, labels, weights) == pytest.approx(weighted, rel=1e-14, abs=tolerance)
    hits = weights * labels
    assert counts_sum(p, hits, weights - hits) == pytest.approx(weighted, rel=1e-14, abs=tolerance)


@pytest.mark.parametrize("name", ["squared_error", "neg_log_likelihood"])
def test_many_blocks_add_up(name):
    n = 3 * likelihood.BLOCK + 21
    p, labels, weights = rows(n)
    both = np.stack((p, p), axis=1)
    function, counts = getattr(likelihood, name), getattr(likelihood, name + "_counts")
    parts = [slice(0, 1000), slice(1000, 70000), slice(70000, n)]
    whole = function(both[:, 0], labels, None)
    assert whole == pytest.approx(sum(function(p[at], labels[at], None) for at in parts), rel=1e-14)
    whole = function(p, labels, weights)
    assert whole == pytest.approx(sum(function(p[at], labels[at], weights[at]) for at in parts), rel=1e-14)
    assert counts(p, weights * labels, weights * (1 - labels)) == pytest.approx(whole, rel=1e-14)


def test_products_of_tiny_probabilities_do_not_vanish():
    p = np.full(64, 1e-300)
    assert likelihood.neg_log_likelihood(p, np.ones(64, np.uint8), None) == pytest.approx(64 * 300 * np.log(10))
    p[5] = 5e-324
    assert likelihood.neg_log_likelihood(p, np.ones(64, np.uint8), None) < 64 * 745


def test_an_impossible_event_costs_infinitely_much_unless_its_weight_is_0():
    p, labels = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 1, 1, 0], dtype=np.uint8)
    assert likelihood.neg_log_likelihood(p, labels, None) == np.inf
    assert likelihood.neg_log_likelihood(p[:2], labels[:2], None) == 0.0
    assert likelihood.neg_log_likelihood(p, labels, np.array([1.0, 1.0, 0.0, 2.0])) == np.inf
    assert likelihood.neg_log_likelihood(p, labels, np.array([1.0, 1.0, 0.0, 0.0])) == 0.0
    assert (
        likelihood.neg_log_likelihood_counts(p, np.array([0.0, 3.0, 0.0, 3.0]), np.array([2.0, 0.0, 2.0, 0.0])) == 0.0
    )
    assert likelihood.neg_log_likelihood_counts(p[:1], np.ones(1), np.ones(1)) == np.inf


def test_expit():
    z = np.concatenate((np.linspace(-50, 50, 301), [-745.0, -700.0, 700.0, 1e300, -1e300, np.inf, -np.inf, -0.0]))
    expected = [float(1 / (1 + mpmath.exp(-mpmath.mpf(value)))) for value in z[:-3]] + [1.0, 0.0, 0.5]
    assert likelihood.expit(z) == pytest.approx(np.array(expected), rel=5e-16, abs=5e-324)
    assert likelihood.expit(np.array([[0.0, 1.0]])).shape == (1, 2)
    many = np.random.default_rng(0).normal(size=(2, likelihood.BLOCK)) * 5
    assert_array_equal(likelihood.expit(many)[1, -5:], likelihood.expit(many[1, -5:]))
    assert np.all(np.diff(likelihood.expit(np.sort(many, axis=None))) >= 0)


def test_log_odds():
    p = np.concatenate((np.random.default_rng(1).random(200), 10.0 ** np.linspace(-37, -1, 50), [np.nextafter(1, 0)]))
    expected = [float(mpmath.log(mpmath.mpf(q)) - mpmath.log1p(-mpmath.mpf(q))) for q in p]
    assert likelihood.log_odds(p) == pytest.approx(np.array(expected), rel=4e-16, abs=2e-16)
    floor = float(mpmath.log(mpmath.mpf(float(np.finfo(np.float32).tiny))))
    assert floor == likelihood.LOG_FLOOR
    assert_array_equal(likelihood.log_odds(np.array([0.0, 5e-324, 1.0, 0.5])), [floor, floor, -floor, 0.0])
    assert_array_equal(likelihood.log_odds(np.array([0.0, 1.0]), floor=-3.0), [-3.0, 3.0])
