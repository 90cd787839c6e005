"""Proper scores and what they are made of.

`score = miscalibration - discrimination + uncertainty` holds for every decomposition here (plus `within_bin` on bins).
May import NumPy, the kernels and `calibrant.metrics._inputs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats, Label
from calibrant._kernels import bins, isotonic, likelihood
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input, read_input, row_weights

MOST_BINS = 1_000_000


def brier_score(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
) -> float:
    """Mean squared distance between probability and outcome; lower is better, 0 is perfect.

    Two classes: `mean((p - y)^2)` of the positive class, in [0, 1]. K >= 3 classes: the sum over the classes, in
    [0, 2], which for K = 2 would be twice the binary value.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities; the second of two columns is the positive class.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.
    labels : sequence, optional
        The classes of the columns.

    Returns
    -------
    float

    Notes
    -----
    Cost: one pass, O(nK), no copy. Source: Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> from calibrant import brier_score
    >>> round(brier_score([0, 1, 1], [0.1, 0.8, 0.6]), 4)
    0.07
    """
    read = read_input(y_true, y_prob, sample_weight, pos_label, labels)
    if isinstance(read, ScoreTable):
        return float(read.reduce(likelihood.squared_error, likelihood.squared_error_counts)) / read.total_weight
    weights = row_weights(read)
    chosen = np.take_along_axis(read.scores, read.labels[:, None], axis=1)[:, 0]
    rows = np.einsum("ij,ij->i", read.scores, read.scores) - chosen**2 + (1 - chosen) ** 2
    return float(weights @ rows / weights.sum())


def log_loss(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
    eps: float | None = None,
) -> float:
    """Mean negative natural logarithm of the probability given to what happened; lower is better, 0 is perfect.

    Nothing is clipped: probability 0 for an observed class gives infinity, as it should. With `eps` the probability
    of the observed class is floored at `eps`.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities; the second of two columns is the positive class.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.
    labels : sequence, optional
        The classes of the columns.
    eps : float, optional
        Floor of the observed class's probability, in (0, 1).

    Returns
    -------
    float
        In nats, in [0, inf].

    Notes
    -----
    Cost: one pass, O(n). Source: Good (1952), Rational decisions.

    Examples
    --------
    >>> from calibrant import log_loss
    >>> round(log_loss([0, 1], [0.2, 0.9]), 6)
    0.164252
    >>> log_loss([1, 0], [0.0, 0.5])
    inf
    """
    if eps is not None and not (isinstance(eps, Real) and 0 < eps < 1):
        raise InputError(f"eps must lie strictly between 0 and 1, but it is {eps!r}.")
    read = read_input(y_true, y_prob, sample_weight, pos_label, labels)
    if isinstance(read, ClassRows):
        chosen = np.take_along_axis(read.scores, read.labels[:, None], axis=1)[:, 0]
        return _mean_log(chosen, row_weights(read), eps)
    if eps is None:
        return (
            float(read.reduce(likelihood.neg_log_likelihood, likelihood.neg_log_likelihood_counts)) / read.total_weight
        )
    sums = (_floored_sum(read._at(at), float(eps)) for at in slices(len(read.scores)))
    return math.fsum(sums) / read.total_weight + 0.0


def _floored_sum(part: ScoreTable, eps: float) -> float:
    happened, did_not = (-np.log(np.maximum(p, eps)) for p in (part.scores, 1 - part.scores))
    return dot(part.positives, happened) + dot(part.negatives, did_not)


def _mean_log(chosen: Floats, weights: Floats, eps: float | None) -> float:
    kept = weights > 0
    floored = chosen[kept] if eps is None else np.maximum(chosen[kept], eps)
    with np.errstate(divide="ignore"):
        return float(-(weights[kept] @ np.log(floored)) / weights.sum()) + 0.0


@dataclass(frozen=True)
class ScoreDecomposition:
    """The parts of a score: `score = miscalibration - discrimination + uncertainty + within_bin`.

    Attributes
    ----------
    score : float
        The mean score.
    miscalibration : float
        What recalibration would gain; 0 is best.
    discrimination : float
        What the recalibrated forecast gains over the base rate; higher is better.
    uncertainty : float
        The score of the base rate; a fact of the data.
    within_bin : float
        What bins hide; 0 unless `method="bins"`.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    within_bin: float = 0.0


def score_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: Literal["brier", "log"] = "brier",
    method: Literal["isotonic", "bins", "distinct"] = "isotonic",
    n_bins: int = 10,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> ScoreDecomposition:
    """Split a proper score into miscalibration, discrimination and uncertainty.

    The older names are calibration or reliability (miscalibration), resolution (discrimination), refinement
    (uncertainty - discrimination).

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    score : {"brier", "log"}
        The score to split.
    method : {"isotonic", "bins", "distinct"}
        The recalibrated forecast: the isotonic fit (no choice of bins), equal-width bins, or every distinct value.
    n_bins : int
        For "bins".
    sample_weight, pos_label
        As in `brier_score`.

    Returns
    -------
    ScoreDecomposition
        Every term is at least 0 (`within_bin` has either sign).

    Notes
    -----
    Cost: one sort for "isotonic" and "distinct", one pass for "bins". Source: Murphy (1973); bins: Stephenson, Coelho,
    Jolliffe (2008), eq. 7; isotonic: Dimitriadis, Gneiting, Jordan (2021), eqs. 3 to 5.

    Examples
    --------
    >>> from calibrant import score_decomposition
    >>> parts = score_decomposition([0, 0, 1, 1], [0.2, 0.4, 0.3, 0.9])
    >>> abs(parts.miscalibration - parts.discrimination + parts.uncertainty - parts.score) < 1e-12
    True
    """
    _one_of("score", score, ("brier", "log"))
    _one_of("method", method, ("isotonic", "bins", "distinct"))
    edges = uniform_edges(n_bins)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="score_decomposition")
    forecast, rate, weight = _groups(table, method, edges)
    total, base = table.total_weight, table.prevalence
    entropy = _brier_entropy if score == "brier" else _log_entropy
    mean = brier_score(table) if score == "brier" else log_loss(table)
    uncertainty = float(entropy(np.array([base]))[0])
    refined = float(weight @ entropy(rate)) / total
    discrimination = max(0.0, uncertainty - refined)
    if method != "bins":
        return ScoreDecomposition(mean, max(0.0, mean - refined), discrimination, uncertainty)
    divergence = (forecast - rate) ** 2 if score == "brier" else _log_divergence(rate, forecast)
    miscalibration = float(weight @ divergence) / total
    within = mean - (miscalibration - discrimination + uncertainty) if np.isfinite(miscalibration) else 0.0
    return ScoreDecomposition(mean, miscalibration, discrimination, uncertainty, within)


def _groups(table: ScoreTable, method: str, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean forecast, event rate and weight of the groups that the recalibrated forecast is constant on."""
    if method == "bins":
        sums = bin_sums(table, edges)
        kept = sums.weight > 0
        weight = sums.weight[kept]
        return sums.sum_p[kept] / weight, sums.positives[kept] / weight, weight
    distinct = table.distinct
    if method == "distinct":
        weight = distinct.positives + distinct.negatives
        return distinct.scores, distinct.positives / weight, weight
    blocks, weight = pooled(distinct)
    return blocks.values, blocks.values, weight


def pooled(distinct: ScoreTable) -> tuple[isotonic.Blocks, Floats]:
    """Blocks of the isotonic fit of an ascending table, and their weights."""
    if distinct._labels is not None:
        blocks = isotonic.pool_rows(distinct._labels)
        return blocks, np.diff(blocks.starts, append=len(distinct.scores)).astype(np.float64)
    blocks = isotonic.pool_counts(distinct.positives, distinct.negatives)
    hits, misses = (np.add.reduceat(column, blocks.starts) for column in (distinct.positives, distinct.negatives))
    return blocks, hits + misses


def _brier_entropy(rate: Floats) -> Floats:
    return rate * (1 - rate)


def _log_entropy(rate: Floats) -> Floats:
    inner = np.clip(rate, 1e-300, 1.0)
    other = np.clip(1 - rate, 1e-300, 1.0)
    return -rate * np.log(inner) - (1 - rate) * np.log(other)


def _log_divergence(rate: Floats, forecast: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(rate > 0, rate * np.log(rate / forecast), 0.0)
        zero = np.where(rate < 1, (1 - rate) * np.log((1 - rate) / (1 - forecast)), 0.0)
    return one + zero


# ---------------------------------------------------------------- bins, shared with the calibration measures


def uniform_edges(n_bins: int) -> Floats:
    """Edges of equal-width bins on [0, 1]."""
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or not 1 <= n_bins <= MOST_BINS:
        raise InputError(f"n_bins must be a whole number from 1 to {MOST_BINS:,}, but it is {n_bins!r}.")
    return np.linspace(0, 1, int(n_bins) + 1)


def mass_starts(distinct: ScoreTable, n_bins: int) -> NDArray[np.int64]:
    """First entry of each bin of equal mass of an ascending table; equal scores stay together."""
    if distinct._labels is not None:
        ends = bins.quantile_row_ends(len(distinct.scores), n_bins)
    else:
        ends = bins.quantile_bin_ends(distinct.weight, n_bins)
    return np.append(0, ends[:-1] + 1)


def bin_sums(table: ScoreTable, edges: Floats) -> bins.BinSums:
    """Weight, positives, sum of p and rows in bins `(lo, hi]`, 0 in the first."""
    sums: bins.BinSums = table.reduce(
        lambda p, labels, weights: bins.uniform_bin_sums_rows(p, labels, weights, edges),
        lambda p, positives, negatives: bins.uniform_bin_sums(
            p, positives, negatives, table.rows, table.squared_weights, edges
        ),
    )
    return sums


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, but it is {value!r}.")
