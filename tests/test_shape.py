"""The diagnosis names the distortion that was simulated, and rarely cries wolf."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import calibrant as ca

Distortion = Callable[[np.ndarray], np.ndarray]


def simulated(truth: Distortion, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and log-odds whose true log-odds are `truth(z)`."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.3, 1.5, n)
    return (rng.random(n) < 1 / (1 + np.exp(-truth(z)))).astype(int), z


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(
    ("truth", "n", "verdict"),
    [
        (lambda z: z, 5000, "calibrated"),
        (lambda z: 0.5 * z + 0.2, 2000, "affine"),
        (lambda z: z + 0.12 * z**2, 4000, "bent"),
        (lambda z: z**3 / 4, 4000, "S-shaped"),
        (lambda z: 2 * np.abs(z) - 1, 2000, "not monotone"),
        (lambda z: z, 100, "not enough rows to tell"),
    ],
)
def test_verdict(truth: Distortion, n: int, verdict: str) -> None:
    y, z = simulated(truth, n)
    assert ca.shape_diagnosis(y, sigmoid(z)).verdict == verdict


def test_margins_have_a_line_but_no_identity() -> None:
    y, z = simulated(lambda z: z, 3000)
    found = ca.shape_diagnosis(y, 7 * z - 3)
    assert found.verdict == "affine"
    assert np.isnan(found.identity_p_value)
    assert found.slope == pytest.approx(1 / 7, rel=0.1)


def test_rows_and_table_agree_and_the_picture_adds_up() -> None:
    y, z = simulated(lambda z: z + 0.3 * z**2, 3000)
    table = ca.ScoreTable.from_arrays(sigmoid(z), y)
    a, b = ca.shape_diagnosis(y, sigmoid(z)), ca.shape_diagnosis(table)
    assert a.statistic == pytest.approx(b.statistic, rel=1e-9)
    assert a.weight.sum() == 3000
    assert np.all(np.diff(a.predicted) > 0)


def test_the_line_is_that_of_the_calibration_slope() -> None:
    y, z = simulated(lambda z: 0.7 * z, 1000)
    line = ca.calibration_slope_intercept(y, sigmoid(z))
    found = ca.shape_diagnosis(y, sigmoid(z))
    assert (found.slope, found.intercept) == pytest.approx((line.slope, line.intercept), rel=1e-9)


def test_separable_and_constant_scores_have_no_line() -> None:
    with pytest.raises(ValueError, match="separate the classes"):
        ca.shape_diagnosis([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    with pytest.raises(ValueError, match="all the same"):
        ca.shape_diagnosis([0, 1, 0, 1], [0.3] * 4)


@pytest.mark.slow
def test_calibrated_scores_are_rarely_called_distorted() -> None:
    wrong = 0
    for seed in range(400):
        y, z = simulated(lambda z: z, 1500, seed)
        wrong += ca.shape_diagnosis(y, sigmoid(z)).verdict not in ("calibrated", "not enough rows to tell")
    assert wrong / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("scale", [2.0**1018, 2.0**-1018, 1e160, 1e-160])
def test_margins_of_any_size_have_the_same_shape(scale: float) -> None:
    y, z = simulated(lambda z: z + 0.3 * z**2, 2000)
    a, b = (ca.shape_diagnosis(y, scores, from_logits=True) for scores in (z, z * scale))
    assert b.verdict == a.verdict
    assert b.statistic == pytest.approx(a.statistic, rel=1e-9)
    assert b.slope * scale == pytest.approx(a.slope, rel=1e-9)
    assert b.slope_error * scale == pytest.approx(a.slope_error, rel=1e-9)
