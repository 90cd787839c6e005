"""Generative classifiers with additive statistics, and risk-based calibration of those statistics."""

from __future__ import annotations

from calibrant.generative._categorical import CategoricalNaiveBayes
from calibrant.generative._gaussian import GaussianNaiveBayes, LinearDiscriminantLogistic, QuadraticDiscriminant
from calibrant.generative._history import RiskHistory, reach, stages_history
from calibrant.generative._risk_based import RiskBasedCalibration
from calibrant.generative._statistics import CategoricalStatistics, MomentStatistics, RiskStep, merge
from calibrant.generative._steps import ClosedForm, risk_step

__all__ = [
    "CategoricalNaiveBayes",
    "CategoricalStatistics",
    "ClosedForm",
    "GaussianNaiveBayes",
    "LinearDiscriminantLogistic",
    "MomentStatistics",
    "QuadraticDiscriminant",
    "RiskBasedCalibration",
    "RiskHistory",
    "RiskStep",
    "merge",
    "reach",
    "risk_step",
    "stages_history",
]
