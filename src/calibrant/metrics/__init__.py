"""Measures: how good, how honest and how well ranked probabilities are; from rows or from a score table."""

from __future__ import annotations

from calibrant.metrics._bands import ReliabilityBands, reliability_bands
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
from calibrant.metrics._groups import GroupedEvidence, GroupEvidence, calibration_by_group
from calibrant.metrics._intervals import Estimate, calibration_error
from calibrant.metrics._planning import rows_needed
from calibrant.metrics._ranking import RocCurve, average_precision, roc_auc, roc_curve
from calibrant.metrics._roc_surface import RocSurface, roc_convex_hull, roc_surface, volume_under_roc_surface
from calibrant.metrics._scores import ScoreDecomposition, brier_score, log_loss, score_decomposition
from calibrant.metrics._shape import ShapeDiagnosis, shape_diagnosis
from calibrant.metrics._smooth import smooth_calibration_error
from calibrant.metrics._tests import CalibrationTest, calibration_test
from calibrant.metrics._verdict import CalibrationVerdict, calibration_verdict

__all__ = [
    "CalibrationLine",
    "CalibrationLineEstimates",
    "CalibrationTest",
    "CalibrationVerdict",
    "ClassSummary",
    "Confusion",
    "DecompositionEstimates",
    "Estimate",
    "GroupEvidence",
    "GroupedEvidence",
    "ReliabilityBands",
    "ReliabilityCurve",
    "RocCurve",
    "RocSurface",
    "ScoreDecomposition",
    "ShapeDiagnosis",
    "average_precision",
    "brier_score",
    "calibration_by_group",
    "calibration_error",
    "calibration_slope_intercept",
    "calibration_test",
    "calibration_verdict",
    "class_summary",
    "class_tables",
    "classwise_reliability_curves",
    "compare",
    "confusion_matrix",
    "estimate",
    "expected_calibration_error",
    "log_loss",
    "reliability_bands",
    "reliability_curve",
    "roc_auc",
    "roc_convex_hull",
    "roc_curve",
    "roc_surface",
    "rows_needed",
    "score_decomposition",
    "shape_diagnosis",
    "smooth_calibration_error",
    "top_label_table",
    "volume_under_roc_surface",
]
