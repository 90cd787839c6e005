"""Calibrators: scikit-learn estimators that learn a map from scores to probabilities."""

from __future__ import annotations

from calibrant.calibrators._logistic import AffineLogit, PlattScaling
from calibrant.calibrators._one_vs_rest import OneVsRest
from calibrant.calibrators._stepwise import IsotonicCalibration
from calibrant.calibrators._temperature import TemperatureScaling

__all__ = ["AffineLogit", "IsotonicCalibration", "OneVsRest", "PlattScaling", "TemperatureScaling"]
