"""Views: what people look at. A report is a record of numbers and texts first, a page second."""

from __future__ import annotations

from calibrant.view._class_report import ClassReport
from calibrant.view._displays import ReliabilityDisplay
from calibrant.view._partition_curve import LeafCurve, PartitionCurveDisplay
from calibrant.view._report import Report, build_report
from calibrant.view._risk_based import RiskBasedDisplay
from calibrant.view._roc_surface_display import RocSurfaceDisplay, SimplexDisplay
from calibrant.view._threshold_display import ThresholdDisplay

__all__ = [
    "ClassReport",
    "LeafCurve",
    "PartitionCurveDisplay",
    "ReliabilityDisplay",
    "Report",
    "RiskBasedDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
    "ThresholdDisplay",
    "build_report",
]
