"""Calibrators: scikit-learn estimators that learn a map from scores to probabilities."""

from __future__ import annotations

from calibrant.calibrators._auto import AutoCalibrator
from calibrant.calibrators._classifier import CalibratedClassifier
from calibrant.calibrators._histogram import HistogramBinning
from calibrant.calibrators._logistic import AffineLogit, PlattScaling
from calibrant.calibrators._matrix_scaling import DirichletCalibration, MatrixScaling, StructuredMatrixScaling
from calibrant.calibrators._one_vs_rest import OneVsRest
from calibrant.calibrators._polynomial import BetaCalibration, QuadraticLogit
from calibrant.calibrators._recursive import RecursivePartitioning
from calibrant.calibrators._scaling import StructuredVectorScaling, VectorScaling
from calibrant.calibrators._spline import SplineCalibration
from calibrant.calibrators._stepwise import IsotonicCalibration
from calibrant.calibrators._temperature import TemperatureScaling
from calibrant.calibrators._venn_abers import VennAbers

__all__ = [
    "AffineLogit",
    "AutoCalibrator",
    "BetaCalibration",
    "CalibratedClassifier",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "OneVsRest",
    "PlattScaling",
    "QuadraticLogit",
    "RecursivePartitioning",
    "SplineCalibration",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
]
