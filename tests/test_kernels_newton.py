"""Logistic fits against Newton's method in sixty digits, at any scale, and what happens where there is no optimum."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant._kernels import logistic_roots, newton

mpmath.mp.dps = 60


def exact_fit(columns, soft, totals, ridge=None, start=None):
    """Coefficients and loss by Newton's method in multiple precision, from near the optimum."""
    design = [[mpmath.mpf(float(v)) for v in row] for row in zip(np.ones(len(soft)), *columns)]
    soft, totals = [mpmath.mpf(float(v)) for v in soft], [mpmath.mpf(float(v)) for v in totals]
    width = len(columns) + 1
    ridge = [mpmath.mpf(0)] * width if ridge is None else [mpmath.mpf(float(v)) for v in ridge]
    beta = mpmath.matrix([mpmath.mpf(float(v)) for v in start])
    for _ in range(6):
        gradient = mpmath.matrix([ridge[j] * beta[j] for j in range(width)])
        curvature = mpmath.diag(ridge)
        loss = mpmath.mpf(0)
        for x, s, t in zip(design, soft, totals):
            eta = mpmath.fdot(x, beta)
            p = 1 / (1 + mpmath.exp(-eta))
            loss += t * mpmath.log1p(mpmath.exp(eta)) - s * eta
            for j in range(width):
                gradient[j] += (t * p - s) * x[j]
                for k in range(width):
                    curvature[j, k] += t * p * (1 - p) * x[j] * x[k]
        beta = beta - mpmath.lu_solve(curvature, gradient)
    assert mpmath.norm(gradient, 1) < mpmath.mpf(10) ** -30 * mpmath.norm(curvature, 1)
    return np.array([float(b) for b in beta]), float(loss)


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    totals = rng.integers(1, 5, n).astype(float)
    soft = totals * np.clip(0.5 + 0.3 * np.sign(x + rng.normal(size=n)) + 0.1 * rng.random(n), 0, 1)
    return x, soft, totals


@pytest.mark.parametrize("width", [0, 1, 2, 4])
@pytest.mark.parametrize("penalised", [False, True])
def test_coefficients_to_twelve_digits(width, penalised):
    x, soft, totals = data()
    rng = np.random.default_rng(width)
    columns = tuple([x, x**2, *rng.normal(size=(4, len(x)))][:width])
    ridge = np.array([0.5, 2.0, 0.0, 7.0, 1.0][: width + 1]) if penalised else None
    fit = newton.fit_logistic(columns, soft, totals, ridge=ridge)
    beta, loss = exact_fit(columns, soft, totals, ridge, fit.coefficients)
    assert (fit.converged, fit.outcome) == (True, newton.OK)
    assert_allclose(fit.coefficients, beta, rtol=1e-12)
    assert fit.loss == pytest.approx(loss, rel=1e-13)
    again = newton.fit_logistic(columns, soft, totals, ridge=ridge, start=fit.coefficients)
    assert_allclose(again.coefficients, beta, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e-9, 1e7, 1e120, 1e300])
@pytest.mark.parametrize("shift", [0.0, 3.0, 1000.0])
def test_any_scale_and_any_origin(scale, shift):
    x, soft, totals = data()
    columns = ((x + shift) * scale, x**2)
    fit = newton.fit_logistic(columns, soft, totals)
    expected = exact_fit(((x + shift), x**2), soft, totals, None, fit.coefficients * [1.0, scale, 1.0])[0]
    assert fit.converged
    assert_allclose(fit.coefficients * [1.0, scale, 1.0], expected, rtol=1e-9 if shift == 1000.0 else 1e-12)


def test_rows_of_weight_0_do_not_count():
    x, soft, totals = data()
    more = np.concatenate((x, [1e250, -3.0]))
    fit = newton.fit_logistic((more,), np.append(soft, [0.0, 0.0]), np.append(totals, [0.0, 0.0]))
    assert_allclose(fit.coefficients, newton.fit_logistic((x,), soft, totals).coefficients, rtol=1e-14)
    assert fit.outcome == newton.OK


def test_rows_are_the_soft_targets():
    rng = np.random.default_rng(3)
    x = rng.normal(size=500) * 3
    y = (rng.random(500) < 1 / (1 + np.exp(-x))).astype(np.uint8)
    weights = rng.integers(0, 3, 500).astype(float)
    low, high = 0.004, 0.995
    targets = np.where(y == 1, high, low)
    for w in (None, weights):
        ones = np.ones(500) if w is None else w
        fit = newton.fit_logistic((x,), y, w, targets=(low, high))
        beta, loss = exact_fit((x,), ones * targets, ones, None, fit.coefficients)
        assert_allclose(fit.coefficients, beta, rtol=1e-12)
        assert fit.loss == pytest.approx(loss, rel=1e-13)


@pytest.mark.parametrize("order", ["random", "sorted", "periodic", "outlier"])
def test_many_rows_end_where_few_do(order):
    """Rows from 200 values, so that the fit to their counts is the reference; the sample at the start is of no help."""
    rng = np.random.default_rng(4)
    n = 8 * newton.SAMPLE + 5
    values = np.sort(rng.normal(size=200))
    if order == "outlier":
        values[-1] = 1e6
    place = rng.integers(0, 200, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * np.minimum(values[place], 3) - 1))).astype(np.uint8)
    arrange = np.arange(n)
    if order == "sorted":
        arrange = np.lexsort((place, y))
    elif order == "periodic":
        arrange[::8] = np.sort(arrange[::8][np.argsort(place[::8], kind="stable")])
        y[::8] = 1
    x, y, place = values[place][arrange], y[arrange], place[arrange]
    fit = newton.fit_logistic((x,), y, None)
    totals, soft = np.bincount(place, minlength=200).astype(float), np.bincount(place, weights=y, minlength=200)
    few = newton.fit_logistic((values,), soft, totals)
    assert fit.converged
    assert_allclose(fit.coefficients, few.coefficients, rtol=1e-11)
    assert fit.loss == pytest.approx(few.loss, rel=1e-12)


@pytest.mark.parametrize("n", [10, 8 * newton.SAMPLE + 100])
@pytest.mark.parametrize("shared", [False, True])
def test_separable_rows_have_no_optimum(n, shared):
    x = np.linspace(-1, 1, n)
    if shared:  # both classes at the border, and nowhere else
        x[n // 2] = x[n // 2 - 1]
    y = (np.arange(n) >= n // 2).astype(np.uint8)
    fit = newton.fit_logistic((x,), y, None)
    assert (fit.converged, fit.outcome) == (False, newton.SEPARABLE)
    assert_allclose(fit.coefficients, [math.log(y.mean() / (1 - y.mean())), 0.0], atol=1e-12)
    corrected = newton.fit_logistic((x,), y, None, targets=(1e-4, 1 - 1e-4))
    assert (corrected.converged, corrected.outcome) == (True, newton.OK)


def test_one_overlapping_row_is_enough_for_an_optimum():
    x = np.linspace(-1, 1, 4000)
    y = (x > 0).astype(np.uint8)
    y[[1990, 2005]] = 1, 0
    fit = newton.fit_logistic((x,), y, None)
    assert fit.converged
    assert fit.coefficients[1] > 100


def test_a_row_far_out_hides_nothing():
    rng = np.random.default_rng(9)
    x = rng.normal(size=40)
    y = (rng.random(40) < 1 / (1 + np.exp(-2 * x))).astype(np.uint8)
    near = newton.fit_logistic((x,), y, None)
    for far in (1e3, 1e6, 1e9):
        fit = newton.fit_logistic((np.append(x, far),), np.append(y, 1).astype(np.uint8), None)
        assert fit.outcome == newton.OK
        assert_allclose(fit.coefficients, near.coefficients, rtol=1e-9)
        assert fit.loss == pytest.approx(near.loss, rel=1e-9)


def test_two_columns_that_separate_are_found_out():
    rng = np.random.default_rng(10)
    x, z = rng.normal(size=(2, 200))
    hits = (x + z > 0).astype(float)
    assert newton.fit_logistic((x, z), hits, None).outcome == newton.SEPARABLE
    hits[0] = 1 - hits[0]
    assert newton.fit_logistic((x, z), hits, None).outcome == newton.OK


def test_rare_events():
    rng = np.random.default_rng(6)
    x = rng.normal(size=300)
    totals = np.full(300, 1e6)
    soft = np.round(totals * 1e-6 * np.exp(0.5 * x) * 3)
    fit = newton.fit_logistic((x,), soft, totals)
    beta = exact_fit((x,), soft, totals, None, fit.coefficients)[0]
    assert_allclose(fit.coefficients, beta, rtol=1e-12)


def test_dependent_columns_are_reported_with_the_base_rate():
    x, soft, totals = data()
    share = soft.sum() / totals.sum()
    for columns in ((np.full(60, 0.3),), (x, 2 * x), (x, np.full(60, -7.0)), (np.zeros(60),)):
        fit = newton.fit_logistic(columns, soft, totals)
        assert (fit.converged, fit.outcome) == (False, newton.SINGULAR)
        assert fit.coefficients[0] == pytest.approx(math.log(share / (1 - share)))
        assert not fit.coefficients[1:].any()
    ridge = np.array([0.0, 1.0, 1.0])
    fit = newton.fit_logistic((x, 2 * x), soft, totals, ridge=ridge)
    assert_allclose(fit.coefficients, exact_fit((x, 2 * x), soft, totals, ridge, fit.coefficients)[0], rtol=1e-12)


def exact_temperature(z, positives, negatives, start):
    def slope(beta):
        return mpmath.fsum(
            mpmath.mpf(v) * ((p + q) / (1 + mpmath.exp(-beta * mpmath.mpf(v))) - p)
            for v, p, q in zip(z, map(mpmath.mpf, positives), map(mpmath.mpf, negatives))
        )

    return float(mpmath.findroot(slope, (mpmath.mpf(start), mpmath.mpf(start) * (1 + mpmath.mpf("1e-9")))))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_temperature(scale):
    rng = np.random.default_rng(7)
    z = rng.normal(size=80) * 4
    positives = rng.binomial(9, 1 / (1 + np.exp(-0.4 * z))).astype(float)
    beta, code = logistic_roots.fit_temperature_binary(z * scale, positives, np.full(80, 9.0))
    assert code == 0
    assert beta * scale == pytest.approx(exact_temperature(z, positives, 9.0 - positives, beta * scale), rel=1e-12)


def test_temperature_of_many_rows_is_that_of_their_counts():
    rng = np.random.default_rng(8)
    values = rng.normal(size=100) * 20
    place = rng.integers(0, 100, 10 * newton.SAMPLE)
    hits = (rng.random(len(place)) < 1 / (1 + np.exp(-0.05 * values[place]))).astype(float)
    counts = np.bincount(place, weights=hits, minlength=100), np.bincount(place, minlength=100).astype(float)
    beta, code = logistic_roots.fit_temperature_binary(values[place], hits, None)
    assert code == 0
    assert beta == pytest.approx(logistic_roots.fit_temperature_binary(values, *counts)[0], rel=1e-12)


def test_temperature_bounds():
    z = np.array([-2.0, -1.0, 1.0, 3.0])
    hits = np.array([0.0, 0.0, 1.0, 1.0])
    beta, code = logistic_roots.fit_temperature_binary(z, hits, None)
    assert (code, beta) == (1, pytest.approx(math.exp(16) / 6))
    beta, code = logistic_roots.fit_temperature_binary(z, 1 - hits, None)
    assert (code, beta) == (-1, pytest.approx(math.exp(-16) / 6))
    assert logistic_roots.fit_temperature_binary(np.zeros(3), np.ones(3), np.full(3, 2.0)) == (1.0, -1)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999999])
@pytest.mark.parametrize("kind", ["spread", "constant", "far"])
@pytest.mark.parametrize("weighted", [False, True])
def test_shift_solves_its_equation(rate, kind, weighted):
    rng = np.random.default_rng(4)
    z = {"spread": rng.normal(size=40_000), "constant": np.full(7, -3.0), "far": rng.choice([-87.0, 87.0], 500)}[kind]
    weights = rng.integers(1, 5, len(z)).astype(float) if weighted else None
    total = float(len(z)) if weights is None else float(weights.sum())
    w = np.ones(len(z)) if weights is None else weights
    found = logistic_roots.fit_shift(z, rate * w, weights)
    short, long = (float(w @ (1 / (1 + np.exp(-(z + found + by))))) - rate * total for by in (-1e-12, 1e-12))
    slack = 1e-12 * rate * total
    assert short <= slack
    assert long >= -slack


def test_a_line_far_out_beside_heavy_rows():
    """The loss is small beside its straight part, whose rounding must not hide it."""
    rng = np.random.default_rng(9)
    x, totals = rng.normal(size=1000), 10.0 ** rng.uniform(-12, 12, 1000)
    above = x > 0.3
    hits, misses = totals[above].sum(), totals[~above].sum()
    soft = totals * np.where(above, (hits + 1) / (hits + 2), 1 / (misses + 2))
    fit = newton.fit_logistic((x,), soft, totals)
    assert fit.converged
    beta, loss = exact_fit((x,), soft, totals, start=fit.coefficients)
    assert_allclose(fit.coefficients, beta, rtol=1e-9)
    assert_allclose(fit.loss, loss, rtol=1e-7)
