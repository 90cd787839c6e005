"""How good the decisions are when nobody has labels yet: what calibrated probabilities say about themselves.

If the map holds, a row with probability p is an event with probability p, so every sum over events has an expectation.
May import NumPy, the kernels, `calibrant._checks` and `calibrant.data`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels import areas, likelihood
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant._parameters import Number
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows, aligned, array_of
from calibrant.errors import InputError


@dataclass(frozen=True)
class ExpectedPerformance:
    """What the probabilities promise, if they hold.

    Attributes
    ----------
    prevalence, brier_score, log_loss : float
        Expected share of events and expected scores of a row.
    roc_auc : float or None
        Expected ranking; None where all probabilities are equal to 0 or to 1.
    threshold, alert_rate, precision, recall : float or None
        At a threshold, where one was given; None also where there is nothing to divide by.
    """

    prevalence: float
    brier_score: float
    log_loss: float
    roc_auc: float | None = None
    threshold: float | None = None
    alert_rate: float | None = None
    precision: float | None = None
    recall: float | None = None


def expected_performance(
    y_prob: Any, *, threshold: float | None = None, sample_weight: Any = None
) -> ExpectedPerformance:
    """Expected performance of calibrated probabilities without labels; true as long as the map holds.

    Parameters
    ----------
    y_prob : array-like of shape (n,), (n, 1) or (n, 2), or ScoreTable
        Calibrated probabilities; the labels of a table are not looked at.
    threshold : float, optional
        Where one acts, `p >= threshold`.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    ExpectedPerformance

    Notes
    -----
    Each row counts as p of a positive and 1 - p of a negative row: Brier score `mean p (1 - p)`, log loss the mean
    entropy, precision `mean of p above the threshold`. Cost: one sort, O(n log n). Source: Guo et al. (2017) for what
    calibration means; the estimate is the conditional expectation.

    Examples
    --------
    >>> from calibrant import expected_performance
    >>> found = expected_performance([0.1, 0.2, 0.9, 0.6], threshold=0.5)
    >>> round(found.prevalence, 3), round(found.precision, 3), round(found.recall, 3)
    (0.45, 0.75, 0.833)
    """
    p, weight = _read(y_prob, sample_weight)
    total, events, brier, entropy = map(math.fsum, zip(*(_sums(*part) for part in _parts(p, weight))))
    auc = _expected_auc(p, weight) if 0 < events < total else None
    if threshold is None:
        return ExpectedPerformance(events / total, brier / total, entropy / total, auc)
    if not Number().accepts(threshold) and threshold not in (math.inf, -math.inf):
        raise InputError(f"expected_performance: threshold must be a number, but it is {threshold!r}.")
    acted = ((q[q >= float(threshold)], w[q >= float(threshold)]) for q, w in _parts(p, weight))
    alerts, found = map(math.fsum, zip(*((float(w.sum()), dot(w, q)) for q, w in acted)))
    precision = found / alerts if alerts > 0 else None
    recall = found / events if events > 0 else None
    return ExpectedPerformance(
        events / total, brier / total, entropy / total, auc, float(threshold), alerts / total, precision, recall
    )


def _parts(p: Floats, weight: Floats | None) -> Iterator[tuple[Floats, Floats]]:
    """Probabilities and weights, block by block."""
    for at in slices(len(p)):
        yield p[at], np.ones(at.stop - at.start) if weight is None else weight[at]


def _sums(p: Floats, weight: Floats) -> tuple[float, float, float, float]:
    """Weight, events, squared error and entropy that the probabilities promise."""
    hits = weight * p
    entropy = likelihood.neg_log_likelihood_counts(p, hits, weight - hits)
    return float(weight.sum()), float(hits.sum()), dot(hits, 1 - p), entropy


def _expected_auc(p: Floats, weight: Floats | None) -> float:
    """Area under the ROC curve where each p stands for p of a positive and 1 - p of a negative row."""
    alike = None if weight is None or np.all(weight == 1) else weight
    rows = BinaryRows(p, np.zeros(len(p), dtype=np.uint8), alike, (0, 1))
    distinct = ScoreTable._of_rows(rows).distinct
    if distinct._labels is not None:
        return areas.auc(distinct.scores, 1 - distinct.scores)
    hits = distinct.scores * distinct.negatives
    return areas.auc(hits, distinct.negatives - hits)


def _read(y_prob: Any, sample_weight: Any) -> tuple[Floats, Floats | None]:
    if isinstance(y_prob, ScoreTable):
        if sample_weight is not None:
            raise InputError("A ScoreTable holds its weights already: leave sample_weight out.")
        weight = y_prob._weights if y_prob._labels is not None else y_prob.weight
        return _checks.probabilities(y_prob.scores, "y_prob.scores"), weight
    aligned(y_prob=y_prob, sample_weight=sample_weight)
    p = _checks.binary_scores(np.atleast_1d(array_of(y_prob, "y_prob")), "y_prob", reads="probability")
    if len(p) == 0:
        raise InputError("y_prob is empty: at least one row is needed.")
    given = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    return p, _checks.weights(given, len(p), "y_prob")
