"""What a fit leaves: small frozen records that turn scores into probabilities, and their files.

Applying a map needs no estimator, no scikit-learn and no pickle.
"""

from __future__ import annotations

from calibrant.maps._base import BinaryMap, ClassMap, Map
from calibrant.maps._class_records import ClassIdentityMap, LogMixtureMap, MatrixScalingMap, VectorScalingMap
from calibrant.maps._files import load_map
from calibrant.maps._prior_shift import ClassPriorShiftMap, PriorShiftMap
from calibrant.maps._records import (
    AffineLogitMap,
    IdentityMap,
    LineMap,
    MixtureMap,
    OneVsRestMap,
    PlattMap,
    StepMap,
    TemperatureMap,
)
from calibrant.maps._smooth import BetaMap, QuadraticLogitMap, SplineMap
from calibrant.maps._tree import AverageMap, CorrectedMap, TreeMap
from calibrant.maps._venn_abers import VennAbersMap

__all__ = [
    "AffineLogitMap",
    "AverageMap",
    "BetaMap",
    "BinaryMap",
    "ClassIdentityMap",
    "ClassMap",
    "ClassPriorShiftMap",
    "CorrectedMap",
    "IdentityMap",
    "LineMap",
    "LogMixtureMap",
    "Map",
    "MatrixScalingMap",
    "MixtureMap",
    "OneVsRestMap",
    "PlattMap",
    "PriorShiftMap",
    "QuadraticLogitMap",
    "SplineMap",
    "StepMap",
    "TemperatureMap",
    "TreeMap",
    "VectorScalingMap",
    "VennAbersMap",
    "load_map",
]
