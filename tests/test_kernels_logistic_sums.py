"""One pass of a logistic fit against sixty digits, with and without the compiled kernel."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant import TemperatureScaling
from calibrant._kernels import logistic_roots, newton
from calibrant._kernels._compiled import MANY
from calibrant._kernels.likelihood import expit
from calibrant._kernels.logistic_sums import CELL, Rows, logistic_sums


def exact_sums(rows, centre, level, slope):
    """The six sums in sixty digits."""
    low, high = map(mpmath.mpf, rows.targets)
    weights = np.ones(len(rows.x)) if rows.totals is None else rows.totals
    terms = []
    with mpmath.workdps(60):
        for x, hit, t in zip(rows.x.tolist(), rows.positives.tolist(), weights.tolist()):
            u, t = mpmath.mpf(x) - centre, mpmath.mpf(t)
            eta = level + slope * u
            e = mpmath.exp(-eta)
            p = 1 / (1 + e)
            gap, bend = t * p - (low + (high - low) * hit), t * p * (e * p)
            terms.append((t * mpmath.log1p(e), gap, gap * u, bend, bend * u, bend * u * u))
        return [tuple(map(float, map(f, zip(*terms)))) for f in (mpmath.fsum, lambda c: mpmath.fsum(map(abs, c)))]


def some_rows(kind, n, many):
    rng = np.random.default_rng(3)
    x = rng.normal(-1.0, 2.0, n)
    labels = (rng.random(n) < 0.3).astype(np.uint8)
    weights = rng.choice([0.25, 1.0, 7.0, 1e-8, 1e8], n)
    positives, totals, targets = {
        "labels": (labels, None, (0.0, 1.0)),
        "targets": (labels, None, (0.01, 0.98)),
        "soft": (rng.random(n), None, (0.0, 1.0)),
        "weighted": (weights * labels, weights, (0.0, 1.0)),
    }[kind]
    return Rows(x, positives, totals, targets, float(np.abs(x + 1.0).max()), many)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", ["labels", "targets", "soft", "weighted"])
@pytest.mark.parametrize("line", [(0.3, 0.8), (-20.0, 3.0), (15.0, -6.0), (0.0, 60.0), (-650.0, 1.0), (5.0, 0.0)])
@pytest.mark.parametrize("n", [1, CELL, 2 * CELL + 17])
def test_sums_are_exact(many, kind, line, n):
    rows = some_rows(kind, n, many)
    expected, size = exact_sums(rows, -1.0, *line)
    found = logistic_sums(rows, -1.0, *line)
    # A rounded eta moves every term by as much as itself, 1 + e and p - s are rounded beside 1, sums of 512 as well.
    eta = abs(line[0]) + abs(line[1]) * rows.reach
    weight = np.ones(n) if rows.totals is None else rows.totals
    beside = weight.sum(), weight.sum(), weight @ np.abs(rows.x + 1.0), 0.0, 0.0, 0.0
    for name, value, wanted, most, one in zip(found._fields, found, expected, size, beside):
        assert abs(value - wanted) <= 4e-15 * (4 + eta) * most + 1e-15 * one, name


@pytest.mark.parametrize("many", [False, True])
def test_far_rows_are_a_line(many):
    x = np.array([-1e6, -3.0, 0.0, 2.0, 1e6])
    rows = Rows(x, np.array([0, 1, 0, 1, 1], dtype=np.uint8), None, (0.0, 1.0), 1e6, many)
    found = logistic_sums(rows, 0.0, 1.0, 2.0)
    expected, _ = exact_sums(rows, 0.0, 1.0, 2.0)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_agree_on_many_rows(weighted):
    rows = some_rows("weighted" if weighted else "labels", 3 * MANY + 5, True)
    both = [logistic_sums(rows._replace(many=many), -1.0, -0.2, 0.9) for many in (False, True)]
    assert_allclose(both[0], both[1], rtol=1e-12)


def nearly_separable(n):
    """Logits that separate the classes but for about one row in a thousand."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    return z, (rng.random(n) < expit(800 * z)).astype(np.uint8)


def test_temperature_of_nearly_separable_rows():
    z, labels = nearly_separable(2 * MANY)
    beta, code = logistic_roots.fit_temperature_binary(z, labels, None)
    assert code == 0
    near = np.abs(z) < 0.1  # the others are certain to more digits than a float has
    with mpmath.workdps(40):

        def slope(beta):
            return mpmath.fsum(
                mpmath.mpf(v) * (1 / (1 + mpmath.exp(-beta * mpmath.mpf(v))) - y)
                for v, y in zip(z[near].tolist(), labels[near].tolist())
            )

        exact = float(mpmath.findroot(slope, (mpmath.mpf(beta), mpmath.mpf(beta) * (1 + mpmath.mpf("1e-7")))))
    assert beta == pytest.approx(exact, rel=1e-11)


def test_rows_weights_and_counts_give_one_temperature():
    z, labels = nearly_separable(2 * MANY)
    z = np.round(z, 3)
    rows = logistic_roots.fit_temperature_binary(z, labels, None)
    weighted = logistic_roots.fit_temperature_binary(z, labels, np.ones(len(z)))
    values, place = np.unique(z, return_inverse=True)
    counts = np.bincount(place, labels), np.bincount(place).astype(float)
    counted = logistic_roots.fit_temperature_binary(values, *counts)
    assert rows[1] == weighted[1] == counted[1] == 0
    assert_allclose([weighted[0], counted[0]], rows[0], rtol=1e-11)


def test_a_line_through_nearly_separable_rows_is_that_of_their_counts():
    z, labels = nearly_separable(9 * newton.SAMPLE)
    z = np.round(z, 3)
    values, place = np.unique(z, return_inverse=True)
    rows = newton.fit_logistic((z,), labels, None)
    counted = newton.fit_logistic((values,), np.bincount(place, labels), np.bincount(place).astype(float))
    assert rows.outcome == counted.outcome == newton.OK
    assert_allclose(rows.coefficients, counted.coefficients, rtol=1e-10)
    assert rows.loss == pytest.approx(counted.loss, rel=1e-9)


def test_a_fit_to_many_rows_makes_no_copy_of_them():
    import tracemalloc

    rng = np.random.default_rng(1)
    z = rng.normal(size=20 * MANY)
    y = rng.random(len(z)) < 1 / (1 + np.exp(-z))
    TemperatureScaling(from_logits=True).fit(z, y)
    tracemalloc.start()
    TemperatureScaling(from_logits=True).fit(z, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * len(z)
