"""Misuse is named, with the next step; ordinary scores give no warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import DataWarning


def rows(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident probabilities and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return 1 / (1 + np.exp(-2 * z)), (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


@pytest.mark.parametrize(
    "calibrator",
    [ca.AffineLogit(), ca.IsotonicCalibration(), ca.VennAbers(), ca.SplineCalibration(), ca.AutoCalibrator()],
)
def test_ordinary_scores_give_no_warning(calibrator: ca.AffineLogit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrator.fit(*rows())


def test_a_flipped_label_is_named() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="label may be flipped"):
        ca.AffineLogit().fit(p, 1 - y)


def test_training_scores_are_suspected() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="trained on these rows"):
        ca.VennAbers().fit(np.where(y == 1, 0.6, 0.1) + 0.3 * p, y)


def test_top_label_confidence_is_recognised() -> None:
    p, y = rows()
    confidence, right = np.maximum(p, 1 - p), ((p > 0.5) == y).astype(int)
    with pytest.warns(DataWarning, match="confidence of the most likely class"):
        ca.AffineLogit().fit(confidence, right)


def test_rounded_scores_are_named() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="take only 11 different values in 4,000 rows"):
        ca.IsotonicCalibration().fit(np.round(p, 1), y)


def test_clipped_scores_are_named() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="share the highest score, 0.9"):
        ca.IsotonicCalibration().fit(np.minimum(p, 0.9), y)


def test_too_few_rows_for_isotonic_are_named() -> None:
    p, y = rows(300)
    with pytest.warns(DataWarning, match="300 rows; under about 1,000 it overfits"):
        ca.IsotonicCalibration().fit(p, y)


def test_logits_given_as_probabilities_are_refused_with_the_option() -> None:
    p, y = rows()
    with pytest.raises(ValueError, match="from_logits=True"):
        ca.AffineLogit().fit(np.log(p / (1 - p)), y)


def test_copies_across_folds_are_named() -> None:
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    with pytest.warns(DataWarning, match="copies of others"):
        ca.CalibratedClassifier(GaussianNB(), ca.AffineLogit()).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))


def test_training_rows_of_a_frozen_model_are_recognised() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.frozen import FrozenEstimator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = (X[:, 0] + 1.5 * rng.normal(size=1200) > 0).astype(int)
    frozen = FrozenEstimator(RandomForestClassifier(50, random_state=0).fit(X[:600], y[:600]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ca.CalibratedClassifier(frozen, ca.AffineLogit()).fit(X[:600], y[:600])
    assert any("they look like its training rows" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ca.CalibratedClassifier(frozen, ca.AffineLogit()).fit(X[600:], y[600:])
