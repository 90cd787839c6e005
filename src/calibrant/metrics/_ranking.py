"""How well scores rank: areas and curves that see only the order of the scores.

Ties are exact: a tied pair of a positive and a negative counts one half. A strictly rising map changes nothing here.
May import NumPy, the kernels and `calibrant.metrics._inputs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import areas
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows, ClassRows
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input, read_input


def roc_auc(
    y_true: Any,
    y_score: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
    multi_class: Literal["ovr", "ovo"] = "ovr",
) -> float:
    """Probability that a positive row scores above a negative one, ties one half; higher is better, 0.5 is chance.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    y_score : array-like of shape (n,), (n, 2) or (n, K)
        Any real scores.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.
    labels : sequence, optional
        The classes of the columns.
    multi_class : {"ovr", "ovo"}
        K >= 3: mean over classes of one against the rest, or mean over ordered pairs of classes (Hand and Till).

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        Rows of one class only.

    Notes
    -----
    `sum over pairs of w_i w_j (1[s_i > s_j] + 1[s_i = s_j] / 2) / sum of w_i w_j`. Cost: one sort, O(n log n).
    Source: Hanley and McNeil (1982); many classes: Hand and Till (2001), eq. 7.

    Examples
    --------
    >>> from calibrant import roc_auc
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    if not isinstance(multi_class, str) or multi_class not in ("ovr", "ovo"):
        raise InputError(f"multi_class must be 'ovr' or 'ovo', but it is {multi_class!r}.")
    read = read_input(y_true, y_score, sample_weight, pos_label, labels, reads="score")
    if isinstance(read, ScoreTable):
        _checks.both_classes(read.total_positives, read.total_negatives, "roc_auc")
        return read.distinct._auc
    return _mean_over_classes(read) if multi_class == "ovr" else _mean_over_pairs(read)


def _class_table(rows: ClassRows, k: int, keep: Any = slice(None)) -> ScoreTable:
    """Class k against the other rows that are kept."""
    member = (rows.labels[keep] == k).view(np.uint8)
    weights = None if rows.weights is None else rows.weights[keep]
    return ScoreTable._of_rows(BinaryRows(np.ascontiguousarray(rows.scores[keep, k]), member, weights, (0, 1)))


def _mean_over_classes(rows: ClassRows) -> float:
    tables = [_class_table(rows, k) for k in range(rows.scores.shape[1])]
    for k, table in enumerate(tables):
        _checks.both_classes(
            table.total_positives, table.total_negatives, f"roc_auc of class {rows.classes[k]!r} against the rest"
        )
    return float(np.mean([table._auc for table in tables]))


def _mean_over_pairs(rows: ClassRows) -> float:
    values = []
    for a in range(rows.scores.shape[1]):
        for b in range(rows.scores.shape[1]):
            if a != b:
                table = _class_table(rows, a, np.flatnonzero((rows.labels == a) | (rows.labels == b)))
                pair = f"roc_auc of the pair {rows.classes[a]!r}, {rows.classes[b]!r}"
                _checks.both_classes(table.total_positives, table.total_negatives, pair)
                values.append(table._auc)
    return float(np.mean(values))


def average_precision(
    y_true: Any, y_score: Any = None, *, sample_weight: Any = None, pos_label: Label | None = None
) -> float:
    """Precision averaged over the recall it is reached at; higher is better, the prevalence is chance.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    y_score : array-like of shape (n,) or (n, 2)
        Any real scores.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    `sum_n (R_n - R_(n-1)) P_n` over the distinct scores from the highest down, without interpolation. Cost: one sort,
    O(n log n). Source: Manning, Raghavan, Schuetze (2008), section 8.4.

    Examples
    --------
    >>> from calibrant import average_precision
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    table = binary_input(y_true, y_score, sample_weight, pos_label, reads="score", what="average_precision")
    _checks.both_classes(table.total_positives, table.total_negatives, "average_precision")
    distinct = table.distinct
    if distinct._labels is not None:
        return areas.average_precision_of_rows(distinct._labels)
    return areas.average_precision(distinct.positives, distinct.negatives)


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The points of a ROC curve, from "nobody is positive" to "everybody is".

    Attributes
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (m,)
        Rising from 0 to 1.
    thresholds : ndarray of shape (m,)
        A row is positive when its score is at least this; the first is infinity.
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    thresholds: Floats


def roc_curve(
    y_true: Any, y_score: Any = None, *, sample_weight: Any = None, pos_label: Label | None = None
) -> RocCurve:
    """True and false positive rate at every distinct score.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label
        As in `average_precision`.

    Returns
    -------
    RocCurve
        One point per distinct score, and the point (0, 0).

    Notes
    -----
    Cost: one sort, O(n log n).

    Examples
    --------
    >>> from calibrant import roc_curve
    >>> roc_curve([0, 1, 1], [0.2, 0.2, 0.7]).true_positive_rate
    array([0. , 0.5, 1. ])
    """
    table = binary_input(y_true, y_score, sample_weight, pos_label, reads="score", what="roc_curve")
    _checks.both_classes(table.total_positives, table.total_negatives, "roc_curve")
    distinct = table.distinct
    hits = distinct.positives if distinct._labels is None else distinct._labels
    misses = distinct.negatives if distinct._labels is None else 1 - distinct._labels
    rates = _rising(misses, distinct.total_negatives), _rising(hits, distinct.total_positives)
    return RocCurve(*rates, np.concatenate([[np.inf], distinct.scores[::-1]]))


def _rising(values: Any, total: float) -> Floats:
    """The share of the total that lies at or above each score, from the highest down, after a first 0."""
    rate = np.zeros(len(values) + 1)
    rate[1:] = values[::-1]
    np.cumsum(rate, out=rate)
    rate /= total
    rate[-1] = 1.0
    return rate
