"""Areas that need nothing but the order of the scores: under the ROC curve, and under precision over recall.

Given is the weight of positives and of negatives at each of the ascending distinct scores, or the labels of rows whose
scores strictly ascend.

May import: NumPy, `_compiled`, `_dot`.
"""

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled
from calibrant._kernels._dot import dot

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]


def auc(positives: Floats, negatives: Floats) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative), a tie counting half."""
    if len(positives) >= MANY:
        return float(_auc(positives, negatives))
    below = np.cumsum(negatives)
    pairs = dot(positives, below - 0.5 * negatives)
    return pairs / (float(below[-1]) * float(positives.sum()))


@compiled("FF")
def _auc(positives: Floats, negatives: Floats) -> float:
    below, hits, pairs = 0.0, 0.0, 0.0
    for i in range(len(positives)):
        pairs += positives[i] * (below + 0.5 * negatives[i])
        below += negatives[i]
        hits += positives[i]
    return pairs / (below * hits)


def auc_of_rows(labels: Bytes) -> float:
    """The same, given the labels of rows whose scores strictly ascend."""
    if len(labels) >= MANY:
        return float(_auc_of_rows(labels))
    hits = np.flatnonzero(labels)
    pairs = int(hits.sum()) - len(hits) * (len(hits) - 1) // 2
    return pairs / (len(hits) * (len(labels) - len(hits)))


@compiled("B")
def _auc_of_rows(labels: Bytes) -> float:
    below, pairs, one = np.int64(0), np.int64(0), np.int64(1)
    for i in range(len(labels)):
        label = np.int64(labels[i])
        pairs += label * below
        below += one - label
    return float(pairs) / float(below * (len(labels) - below))


def average_precision(positives: Floats, negatives: Floats) -> float:
    """Average precision: sum over falling thresholds of (rise of recall) times precision."""
    if len(positives) >= MANY:
        return float(_average_precision(positives, negatives))
    hits = np.cumsum(positives[::-1])
    taken = hits + np.cumsum(negatives[::-1])
    return dot(positives[::-1], hits / taken) / float(hits[-1])


def average_precision_of_rows(labels: Bytes) -> float:
    """The same, given the labels of rows whose scores strictly ascend."""
    if len(labels) >= MANY:
        return float(_average_precision_of_rows(labels))
    taken = np.flatnonzero(labels[::-1]) + 1
    return float((np.arange(1, len(taken) + 1) / taken).sum()) / len(taken)


@compiled("B")
def _average_precision_of_rows(labels: Bytes) -> float:
    hits, total, size = 0, 0.0, len(labels)
    for i in range(size - 1, -1, -1):
        if labels[i]:
            hits += 1
            total += hits / (size - i)
    return total / hits


@compiled("FF")
def _average_precision(positives: Floats, negatives: Floats) -> float:
    hits, misses, total = 0.0, 0.0, 0.0
    for i in range(len(positives) - 1, -1, -1):
        hits += positives[i]
        misses += negatives[i]
        total += positives[i] * (hits / (hits + misses))
    return total / hits
