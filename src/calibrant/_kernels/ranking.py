"""Rows sorted and summed by distinct score, and what needs nothing but that order.

A distinct table has strictly ascending scores (-0.0 is 0.0) and, for each, the weight of its positive and of its
negative rows, the number of rows, and the sum of the squared weights. Rows of weight 0 are absent.

May import: NumPy, and `_compiled` when there are many rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Distinct(NamedTuple):
    """One entry for each distinct score, ascending; all columns are float64 of one length."""

    scores: Floats
    positives: Floats
    negatives: Floats
    rows: Floats
    squared_weights: Floats


def distinct_rows(scores: Floats, labels: NDArray[np.uint8], weights: Floats | None) -> Distinct:
    """Sum rows by distinct score."""
    if weights is None:
        positives = labels.astype(np.float64)
        ones = np.ones(len(scores))
        return _sum_by_score(scores, positives, 1.0 - positives, ones, ones)
    positives = weights * labels
    return _sum_by_score(scores, positives, weights - positives, np.ones(len(scores)), weights * weights)


def distinct_counts(
    scores: Floats, positives: Floats, negatives: Floats, rows: Floats, squared_weights: Floats
) -> Distinct:
    """Sum counted scores by distinct score."""
    return _sum_by_score(scores, positives, negatives, rows, squared_weights)


def _sum_by_score(scores: Floats, *columns: Floats) -> Distinct:
    keep = np.flatnonzero(columns[0] + columns[1] > 0)
    order = keep[np.argsort(scores[keep], kind="stable")]
    ordered = scores[order] + 0.0
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)])
    if len(starts) == 0:
        return Distinct(ordered, *(np.zeros(0) for _ in columns))
    return Distinct(ordered[starts], *(np.add.reduceat(column[order], starts) for column in columns))


def auc(positives: Floats, negatives: Floats) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative), a tie counting half."""
    below = np.cumsum(negatives)
    pairs = float(np.dot(positives, below - 0.5 * negatives))
    return pairs / (float(below[-1]) * float(positives.sum()))


def average_precision(positives: Floats, negatives: Floats) -> float:
    """Average precision: sum over falling thresholds of (rise of recall) times precision."""
    hits = np.cumsum(positives[::-1])
    taken = hits + np.cumsum(negatives[::-1])
    return float(np.dot(positives[::-1], hits / taken)) / float(hits[-1])
