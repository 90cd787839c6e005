"""Measures: how good, how honest and how well ranked probabilities are; from rows or from a score table."""

from __future__ import annotations

from calibrant.metrics._calibration import (
    CalibrationLine,
    ReliabilityCurve,
    calibration_slope_intercept,
    expected_calibration_error,
    reliability_curve,
)
from calibrant.metrics._classes import (
    ClassSummary,
    Confusion,
    class_summary,
    class_tables,
    classwise_reliability_curves,
    confusion_matrix,
    top_label_table,
)
from calibrant.metrics._estimate import compare, estimate
from calibrant.metrics._estimators import CalibrationLineEstimates, DecompositionEstimates
from calibrant.metrics._intervals import Estimate, calibration_error
from calibrant.metrics._ranking import RocCurve, average_precision, roc_auc, roc_curve
from calibrant.metrics._scores import ScoreDecomposition, brier_score, log_loss, score_decomposition
from calibrant.metrics._shape import ShapeDiagnosis, shape_diagnosis

__all__ = [
    "CalibrationLine",
    "CalibrationLineEstimates",
    "ClassSummary",
    "Confusion",
    "DecompositionEstimates",
    "Estimate",
    "ReliabilityCurve",
    "RocCurve",
    "ScoreDecomposition",
    "ShapeDiagnosis",
    "average_precision",
    "brier_score",
    "calibration_error",
    "calibration_slope_intercept",
    "class_summary",
    "class_tables",
    "classwise_reliability_curves",
    "compare",
    "confusion_matrix",
    "estimate",
    "expected_calibration_error",
    "log_loss",
    "reliability_curve",
    "roc_auc",
    "roc_curve",
    "score_decomposition",
    "shape_diagnosis",
    "top_label_table",
]
