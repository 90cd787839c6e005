"""The lists that the laws run over. A new calibrator or measure is added here, and every law is asked of it.

A calibrator says what it reads, and which laws it is excused from, with the reason beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import calibrant as ca
from calibrant.calibrators._base import BinaryCalibrator, Calibrator


@dataclass(frozen=True)
class Binary:
    """A binary calibrator on trial."""

    name: str
    make: Callable[[], Any]
    reads: str = "probability"
    monotone: bool = True
    """Whether the map never falls, on scores that rank better than chance."""
    folds: bool = False
    """Folds are drawn: 'weight 2 = row twice' and mirrored labels hold in kind only."""
    constant: str = "rate"
    """What a constant score gives: the "rate", the "smoothed" rate (n1 + 1) / (N + 2) or nearby, or "other"."""
    mirrors: bool = True
    """Whether swapped labels and mirrored scores give the mirrored map."""
    steps: bool = False
    """Whether the map jumps: compared at the calibration scores only, where no jump is."""
    tolerance: float = 1e-9
    """How far two fits of the same rows, summed in another order, may be apart."""
    reach: float = 1e300
    """Scores are tried at this scale and at its inverse."""
    pulled: bool = False
    """Whether it is pulled towards the identity, so that the answer changes with the scale of the scores."""


@dataclass(frozen=True)
class Many:
    """A calibrator of K classes on trial."""

    name: str
    make: Callable[..., Any]
    reads: str = "probability"
    shifts: bool = field(default=False)
    """Whether its scores are logits, of which only differences within a row matter."""
    tolerance: float = 1e-9
    permutes: bool = True
    """Whether permuted columns give permuted answers; not where a row that ties goes to the first class."""
    folds: bool = False
    """Whether folds are drawn: 'weight 2 = row twice' holds in kind only."""


BINARY = [
    Binary("Platt", ca.PlattScaling, "score", constant="smoothed"),
    Binary("Platt without targets", lambda: ca.PlattScaling(target_correction=False), "score", constant="near"),
    Binary("affine", ca.AffineLogit, constant="near"),
    Binary("affine of logits", lambda: ca.AffineLogit(from_logits=True), "logit", constant="near"),
    # A temperature cannot move a constant: p stays on its side of one half.
    Binary("temperature", ca.TemperatureScaling, constant="other"),
    Binary("temperature, mixed", lambda: ca.TemperatureScaling(mix=True), constant="other"),
    Binary("temperature of logits", lambda: ca.TemperatureScaling(from_logits=True), "logit", constant="other"),
    Binary("quadratic", ca.QuadraticLogit, constant="near", tolerance=1e-7),
    # The coefficient of the square has to be a float.
    Binary(
        "quadratic of logits",
        lambda: ca.QuadraticLogit(from_logits=True),
        "logit",
        constant="near",
        tolerance=1e-7,
        reach=1e150,
    ),
    Binary("beta", ca.BetaCalibration, constant="near", tolerance=1e-7),
    # The pull towards the identity keeps a constant score from the bare rate; the bend may fall where rows are few.
    Binary("spline", ca.SplineCalibration, monotone=False, folds=True, constant="other", tolerance=1e-6),
    Binary(
        "spline, monotone", lambda: ca.SplineCalibration(monotone=True), folds=True, constant="other", tolerance=1e-6
    ),
    Binary("isotonic", ca.IsotonicCalibration, "score", steps=True),
    Binary("isotonic, linear", lambda: ca.IsotonicCalibration(interpolation="linear"), "score"),
    Binary("isotonic, centred", lambda: ca.IsotonicCalibration(centered=True), "score"),
    Binary(
        "isotonic, smoothed", lambda: ca.IsotonicCalibration(smoothing=1.0), "score", steps=True, constant="smoothed"
    ),
    Binary("isotonic in folds", lambda: ca.IsotonicCalibration(n_folds=4), "score", folds=True, constant="near"),
    # Bins are not pooled, and a bin's last score is its own: neither order nor the mirror image is promised.
    Binary("histogram", ca.HistogramBinning, "score", monotone=False, mirrors=False, steps=True),
    Binary(
        "histogram, equal width",
        lambda: ca.HistogramBinning(n_bins=5, strategy="uniform"),
        monotone=False,
        mirrors=False,
        steps=True,
    ),
    # p1 / (1 - p0 + p1) of a constant score: between the rates with one row more.
    Binary("Venn-Abers", ca.VennAbers, "score", steps=True, constant="near"),
    # For two classes isotonic regression; leaf means are moved a little towards one half.
    Binary("recursive partitioning", ca.RecursivePartitioning, steps=True, constant="near"),
    # Bootstrap samples and folds are drawn from the distinct rows; the target varies inside a leaf.
    Binary(
        "recursive partitioning, averaged and shrunk",
        lambda: ca.RecursivePartitioning(toward="temperature", n_trees=3, max_leaves="cv"),
        folds=True,
        constant="other",
    ),
    # A mixture holds the identity and Venn-Abers: it may fall, and a constant is moved part of the way.
    Binary("automatic", lambda: ca.AutoCalibrator(from_logits=False), monotone=False, folds=True, constant="other"),
    Binary(
        "automatic of logits",
        lambda: ca.AutoCalibrator(from_logits=True),
        "logit",
        monotone=False,
        folds=True,
        constant="other",
        reach=1e150,
        pulled=True,
    ),
]

MANY = [
    Many("temperature", ca.TemperatureScaling),
    Many("temperature, mixed", lambda **given: ca.TemperatureScaling(mix=True, **given)),
    Many("temperature of logits", lambda **given: ca.TemperatureScaling(from_logits=True, **given), "logit", True),
    Many("vector", ca.VectorScaling),
    Many("vector of logits", lambda **given: ca.VectorScaling(from_logits=True, **given), "logit", True),
    Many("matrix", ca.MatrixScaling),
    Many("matrix of logits", lambda **given: ca.MatrixScaling(from_logits=True, **given), "logit", True),
    Many("Dirichlet", ca.DirichletCalibration),
    Many("Dirichlet of logits", lambda **given: ca.DirichletCalibration(from_logits=True, **given), "logit", True),
    Many("structured vector", ca.StructuredVectorScaling),
    Many(
        "structured vector of logits",
        lambda **given: ca.StructuredVectorScaling(from_logits=True, **given),
        "logit",
        True,
    ),
    Many("structured matrix", ca.StructuredMatrixScaling),
    Many(
        "structured matrix of logits",
        lambda **given: ca.StructuredMatrixScaling(from_logits=True, **given),
        "logit",
        True,
    ),
    Many("recursive partitioning", ca.RecursivePartitioning, permutes=False),
    Many(
        "recursive partitioning, averaged and shrunk",
        lambda **given: ca.RecursivePartitioning(toward="temperature", n_trees=3, max_leaves="cv", **given),
        permutes=False,
        folds=True,
    ),
    Many("one-vs-rest affine", lambda **given: ca.OneVsRest(ca.AffineLogit(), **given)),
    Many(
        "one-vs-rest affine of logits",
        lambda **given: ca.OneVsRest(ca.AffineLogit(from_logits=True), **given),
        "logit",
        True,
    ),
    Many("one-vs-rest isotonic", lambda **given: ca.OneVsRest(ca.IsotonicCalibration(), **given)),
    Many("one-vs-rest Platt", lambda **given: ca.OneVsRest(ca.PlattScaling(), **given), "score"),
]


@dataclass(frozen=True)
class Measure:
    """A measure on trial: `values` turns its answer into numbers."""

    name: str
    call: Callable[..., Any]
    values: Callable[[Any], Any] = float
    perfect: float | None = None
    """Its value for a perfect forecast; None where it has none."""
    ranks: bool = False
    """Whether only the order of the scores counts."""
    both: bool = False
    """Whether it needs rows of both classes."""
    many: bool = False
    """Whether it takes K >= 3 columns."""


def _fields(*names: str) -> Callable[[Any], Any]:
    return lambda record: np.concatenate([np.atleast_1d(np.asarray(getattr(record, name), float)) for name in names])


_CURVE = _fields("edges", "mean_predicted", "observed_rate", "weight")
_PARTS = _fields("score", "miscalibration", "discrimination", "uncertainty", "within_bin")
_ESTIMATED_PARTS = _fields("score", "miscalibration", "discrimination", "uncertainty")
_ROC = _fields("false_positive_rate", "true_positive_rate")


def _with(measure: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda *given, **more: measure(*given, **options, **more)


MEASURES = [
    Measure("brier", ca.brier_score, perfect=0.0, many=True),
    Measure("log loss", ca.log_loss, perfect=0.0, many=True),
    Measure("log loss, floored", _with(ca.log_loss, eps=1e-3), perfect=0.0, many=True),
    Measure("ECE", ca.expected_calibration_error, perfect=0.0, many=True),
    Measure("ECE, equal mass", _with(ca.expected_calibration_error, strategy="quantile"), perfect=0.0),
    Measure("ECE, l2", _with(ca.expected_calibration_error, norm="l2", n_bins=7), perfect=0.0),
    Measure("ECE, max", _with(ca.expected_calibration_error, norm="max", n_bins=7), perfect=0.0),
    Measure("curve", ca.reliability_curve, _CURVE),
    Measure("curve, equal mass", _with(ca.reliability_curve, strategy="quantile", n_bins=6), _CURVE),
    Measure("curve, isotonic", _with(ca.reliability_curve, strategy="isotonic"), _CURVE),
    Measure("decomposition", ca.score_decomposition, _PARTS),
    Measure("decomposition, log bins", _with(ca.score_decomposition, score="log", method="bins"), _PARTS),
    Measure("decomposition, distinct", _with(ca.score_decomposition, method="distinct"), _PARTS),
    Measure(
        "slope and intercept",
        ca.calibration_slope_intercept,
        _fields("slope", "intercept", "intercept_at_slope_one"),
        both=True,
    ),
    Measure("AUC", ca.roc_auc, perfect=1.0, ranks=True, both=True, many=True),
    Measure("average precision", ca.average_precision, perfect=1.0, ranks=True, both=True),
    Measure("ROC", ca.roc_curve, _ROC, ranks=True, both=True),
    # Estimates by their value: their intervals see how many rows a weight stands for.
    Measure("debiased calibration error", ca.calibration_error),
    Measure("debiased calibration error, equal width", _with(ca.calibration_error, strategy="uniform", n_bins=7)),
    Measure("smooth calibration error", ca.smooth_calibration_error, perfect=0.0),
    Measure("estimate of AUC", partial(ca.estimate, ca.roc_auc), ranks=True, both=True),
    Measure("estimate of average precision", partial(ca.estimate, ca.average_precision), ranks=True, both=True),
    Measure(
        "estimate of slope and intercept",
        partial(ca.estimate, ca.calibration_slope_intercept),
        _fields("slope", "intercept", "intercept_at_slope_one"),
        both=True,
    ),
    Measure("estimate of decomposition", partial(ca.estimate, ca.score_decomposition), _ESTIMATED_PARTS),
    Measure("bands", _with(ca.reliability_bands, n_resamples=20), _fields("predicted", "observed", "weight")),
    Measure("bands of bins", _with(ca.reliability_bands, strategy="quantile"), _fields("predicted", "observed")),
]


def named(entries: list[Any]) -> dict[str, Any]:
    """Arguments of `pytest.mark.parametrize` for a list."""
    return {"argvalues": entries, "ids": [entry.name for entry in entries]}


def concrete(base: type) -> list[type]:
    """Every public class of the package below a base."""
    found = [getattr(ca, name) for name in ca.__all__ if isinstance(getattr(ca, name), type)]
    return [item for item in found if issubclass(item, base)]


BINARY_CLASSES = concrete(BinaryCalibrator)
CALIBRATOR_CLASSES = concrete(Calibrator)


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class Rows:
    """Scores as a calibrator reads them, labels and whole-numbered weights."""

    scores: Any
    y: Any
    weight: Any = None

    def at(self, places: Any) -> Rows:
        return Rows(self.scores[places], self.y[places], None if self.weight is None else self.weight[places])


def as_read(p: Any, reads: str) -> Any:
    """Probabilities as a score of the given kind."""
    if reads == "probability":
        return p
    z = np.log(p) - np.log1p(-p)
    return z if reads == "logit" else 2.5 * z - 1.0


def mirrored(scores: Any, reads: str) -> Any:
    """The score of the other class."""
    return 1 - scores if reads == "probability" else -scores


def binary_rows(reads: str = "probability", n: int = 160, seed: int = 0, *, ties: bool = True) -> Rows:
    """Over-confident probabilities with ties, in sixteenths so that 1 - p is exact; weights of 0 to 3."""
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 64, n) / 64 if ties else rng.uniform(0.02, 0.98, n)
    z = np.log(p) - np.log1p(-p)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(0.3 - 0.6 * z))).astype(int)
    return Rows(as_read(p, reads), y, rng.integers(0, 4, n).astype(float))


def class_rows(reads: str = "probability", n: int = 240, k: int = 3, seed: int = 0) -> Rows:
    """Over-confident rows of K classes; weights of 0 to 3."""
    rng = np.random.default_rng(seed)
    logits = 1.6 * rng.normal(size=(n, k))
    soft = np.exp(0.5 * logits)
    soft /= soft.sum(axis=1, keepdims=True)
    y = (rng.uniform(size=(n, 1)) > soft.cumsum(axis=1)).sum(axis=1)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    return Rows(p if reads == "probability" else logits, y, rng.integers(0, 4, n).astype(float))
