"""Bands of reliability curves: what they hold, and the second way to each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta

import calibrant as ca
from calibrant._kernels import isotonic, isotonic_bands


def sample(n=1000, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    return (rng.uniform(size=n) < expit(slope * z)).astype(int), expit(z)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("kind", ["confidence", "consistency"])
def test_bins_have_exact_binomial_limits(strategy, kind):
    y, p = sample()
    bands = ca.reliability_bands(y, p, strategy=strategy, n_bins=8, kind=kind)
    curve = ca.reliability_curve(y, p, strategy=strategy, n_bins=8)
    np.testing.assert_allclose(bands.observed, curve.observed_rate)
    np.testing.assert_allclose(bands.predicted, curve.mean_predicted)
    centre = curve.observed_rate if kind == "confidence" else curve.mean_predicted
    k, n = centre * curve.rows, curve.rows
    np.testing.assert_allclose(bands.low, beta.ppf(0.025, k, n - k + 1), atol=1e-12)
    np.testing.assert_allclose(bands.high, beta.ppf(0.975, k + 1, n - k), atol=1e-12)


def test_empty_bins_are_left_out_and_weights_count_as_rows_they_are_worth():
    bands = ca.reliability_bands([0, 1, 1, 0], [0.05, 0.06, 0.92, 0.95], strategy="uniform")
    assert len(bands.predicted) == 2
    y, p = sample(400)
    one = ca.reliability_bands(y, p, strategy="quantile")
    two = ca.reliability_bands(y, p, strategy="quantile", sample_weight=np.full(400, 2.0))
    np.testing.assert_allclose(one.low, two.low)


@pytest.mark.parametrize("kind", ["confidence", "consistency"])
def test_the_curve_is_the_isotonic_fit(kind):
    y, p = sample(300)
    bands = ca.reliability_bands(y, p, kind=kind, n_resamples=100)
    fitted = ca.IsotonicCalibration().fit(p, y).map_(bands.predicted)
    np.testing.assert_allclose(bands.observed, fitted)
    assert np.all(np.diff(bands.predicted) > 0)
    assert np.all((bands.low >= 0) & (bands.low <= bands.high) & (bands.high <= 1))
    assert bands.weight.sum() == pytest.approx(300)
    if kind == "confidence":
        assert np.all((bands.low <= bands.observed) & (bands.observed <= bands.high))
        assert np.all(np.diff(bands.low) >= 0)
        assert np.all(np.diff(bands.high) >= 0)


def test_kernel_fits_are_those_of_the_calibrator():
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 5, 200).astype(float)
    hits = rng.binomial(weight.astype(int), np.linspace(0.1, 0.9, 200)).astype(float)
    blocks = isotonic.pool_adjacent(hits, weight)
    expected = np.repeat(blocks.values, blocks.ends - blocks.starts + 1)
    np.testing.assert_allclose(isotonic_bands.fit_at(hits, weight, np.arange(200)), expected)


def test_calibrated_inside_and_distorted_outside_the_consistency_band():
    inside = ca.reliability_bands(*sample(2000), kind="consistency")
    assert np.mean((inside.low <= inside.observed) & (inside.observed <= inside.high)) > 0.8
    outside = ca.reliability_bands(*sample(2000, slope=0.4), kind="consistency")
    assert np.mean((outside.low <= outside.observed) & (outside.observed <= outside.high)) < 0.5


def test_the_same_seed_gives_the_same_band_and_no_other_does(monkeypatch):
    y, p = sample(200)
    one = ca.reliability_bands(y, p, n_resamples=60)
    monkeypatch.setattr(isotonic_bands, "side_by_side", lambda tasks: [task() for task in tasks])
    again = ca.reliability_bands(y, p, n_resamples=60)
    other = ca.reliability_bands(y, p, n_resamples=60, rng=1)
    np.testing.assert_array_equal(one.low, again.low)
    assert np.any(one.low != other.low)


def test_small_and_odd_tables():
    for y, p in (([1], [0.3]), ([0, 1], [0.5, 0.5]), ([0, 0, 0], [0.1, 0.2, 0.3]), ([0, 1], [0.0, 1.0])):
        for strategy in ("isotonic", "uniform", "quantile"):
            bands = ca.reliability_bands(y, p, strategy=strategy, n_resamples=20)
            assert np.all(np.isfinite(bands.low) & np.isfinite(bands.high))
            assert np.all(bands.low <= bands.high)


def test_refusals():
    y, p = sample(50)
    for options, message in (
        ({"kind": "x"}, "kind must be one of"),
        ({"strategy": "x"}, "strategy must be one of"),
        ({"confidence": 1}, "confidence must be"),
        ({"n_resamples": 0}, "n_resamples must be"),
    ):
        with pytest.raises(ca.errors.InputError, match=message):
            ca.reliability_bands(y, p, **options)
