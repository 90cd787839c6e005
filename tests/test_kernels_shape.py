"""The terms of a cubic against exact arithmetic with fractions."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels import shape
from calibrant._kernels._design import SAMPLE
from calibrant._kernels.blocks import BLOCK

RNG = np.random.default_rng(0)
NORMAL = np.sort(RNG.normal(size=60))
SKEWED = np.sort(RNG.lognormal(0, 2, 60))
OUTLIER = np.append(NORMAL, 1e8)
SPECK = np.append(NORMAL * 1e-12, 1.0)
SPREAD_WEIGHTS = 10.0 ** RNG.uniform(0, 15, 60)
HEAVY = np.where(np.isin(np.arange(60), (5, 30, 50)), 1e12, 1.0)
FIVE = np.array([-5.0, -1, -0.5, 0, 0.5, 1, 7])
CASES = {
    "normal": (NORMAL, None, NORMAL[2], NORMAL[-3]),
    "skewed": (SKEWED, None, SKEWED[1], SKEWED[-2]),
    "far outlier": (OUTLIER, None, OUTLIER[1], OUTLIER[-2]),
    "all but one in a speck": (SPECK, None, SPECK[1], SPECK[-2]),
    "weights of 1 to 1e15": (NORMAL, SPREAD_WEIGHTS, NORMAL[1], NORMAL[-2]),
    "three heavy rows": (NORMAL, HEAVY, NORMAL[1], NORMAL[-2]),
    "limited to five values": (FIVE, np.array([1e-9, 1, 1, 1, 1, 1, 1e-9]), -1.0, 1.0),
    "limited to three values": (np.array([-9, -1, 0.3, 2, 11]), np.array([1, 1e6, 1e6, 1e6, 1]), -1.0, 2.0),
    "limited to two values": (np.array([-9.0, -1, 1, 11]), None, -1.0, 1.0),
    "four even values": (np.arange(4.0), None, 0.0, 3.0),
    "three even values": (np.arange(3.0), None, 0.0, 2.0),
    "one value": (np.array([-1.0, 0, 1]), None, 0.0, 0.0),
}


def exact_terms(z, weight, low, high):
    """Gram-Schmidt without rounding; the deviation alone is a float."""
    z, w = ([Fraction(float(value)) for value in column] for column in (z, weight))

    def inner(a, b):
        return sum(x * y * q for x, y, q in zip(a, b, w))

    one = [Fraction(1)] * len(z)
    limited = [min(max(value, Fraction(float(low))), Fraction(float(high))) for value in z]
    u = [value - inner(limited, one) / sum(w) for value in limited]
    deviation = float(inner(u, u) / sum(w)) ** 0.5
    before, found = [one, [value - inner(z, one) / sum(w) for value in z]], []
    for power in (2, 3):
        column = [value**power for value in u]
        for axis in before:
            share = inner(column, axis) / inner(axis, axis)
            column = [value - share * part for value, part in zip(column, axis)]
        found.append(np.array([float(v / Fraction(deviation) ** power) for v in column]) if any(column) else None)
        before += [column] if any(column) else []
    return found


@pytest.mark.parametrize("case", CASES)
def test_terms_are_those_of_exact_arithmetic(case):
    z, weight, low, high = CASES[case]
    w = np.ones(len(z)) if weight is None else weight
    limited = np.clip(z, low, high)
    centred = limited - w @ limited / w.sum()
    for power, term, exact in zip((2, 3), shape.terms(z, weight, low, high), exact_terms(z, w, low, high)):
        assert (term is None) == (exact is None)
        if exact is not None:
            whole = (centred / np.sqrt(w @ centred**2 / w.sum())) ** power
            error = term - exact
            assert np.sqrt(w @ error**2) <= 1e-15 * np.sqrt(w @ whole**2)
            assert np.abs(error).max() <= 4e-15 * np.abs(whole).max()
            assert np.sqrt(w @ error**2) <= 2e-15 * np.sqrt(w @ exact**2)


def test_weights_of_one_are_no_weights_in_every_block():
    z = np.sort(np.random.default_rng(1).normal(size=2 * BLOCK + 77))
    ones, y = np.ones(len(z)), (np.random.default_rng(2).random(len(z)) < 0.4).astype(np.uint8)
    for plain, weighted in zip(shape.terms(z, None, -2, 2), shape.terms(z, ones, -2, 2)):
        np.testing.assert_allclose(plain, weighted, rtol=0, atol=1e-13)
    assert shape.slope_error(z, None, 0.3, 2.0) == pytest.approx(shape.slope_error(z, ones, 0.3, 2.0), rel=1e-13)
    assert shape.identity_loss(z, y, None) == pytest.approx(shape.identity_loss(z, y * 1.0, ones), rel=1e-13)


def test_the_diagnosis_keeps_three_columns_beside_the_table():
    rng = np.random.default_rng(3)
    p = rng.random(400_000)
    y = (rng.random(len(p)) < p).astype(int)
    ca.shape_diagnosis(y, p)
    tracemalloc.start()
    ca.shape_diagnosis(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    sample = 8 * SAMPLE  # of which the fit of the cubic starts
    assert peak <= (8 + 2 + 3 * 8) * len(p) + 3 * 8 * sample + 8 * 8 * BLOCK
