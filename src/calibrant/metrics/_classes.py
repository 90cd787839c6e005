"""Many classes one at a time: a score table per class and for the top label, and what they say class by class.

Everything binary works on these tables. A table per class holds "is it this class?" against its column; that of the
top label "was the likeliest class right?" against its probability.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows, array_of
from calibrant.data._cells import LEAST, check_most
from calibrant.data._columns import MAX_DISTINCT
from calibrant.errors import InputError
from calibrant.metrics._calibration import ReliabilityCurve, _column_table, _curve, _top_label_table
from calibrant.metrics._inputs import FrameColumns, class_input, class_rows, row_weights
from calibrant.metrics._scores import _one_of, brier_score


def class_tables(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    scores: Sequence[Hashable] | None = None,
    label: Hashable | None = None,
    weight: Hashable | None = None,
    missing: Literal["error", "drop"] = "error",
    max_distinct: int = MAX_DISTINCT,
) -> tuple[ScoreTable, ...]:
    """One score table per class: is it this class, against the probability of this class.

    Give labels and probabilities, `class_tables(y, p)`, or a frame and the names of its columns,
    `class_tables(frame, scores=["p_cat", "p_dog", "p_fox"], label="animal")`. A lazy frame (Polars, DuckDB, Spark) is
    added up in its engine, and only the tables come back.

    Parameters
    ----------
    y_true : array-like of shape (n,), or frame
        Labels; or any frame that narwhals reads.
    y_prob : array-like of shape (n, K), K >= 3
        Probabilities.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    labels : sequence, optional
        The classes of the columns.
    scores : list of K names, label, weight : name
        With a frame: its columns.
    missing : {"error", "drop"}
        With a frame: what to do with rows in which one of these columns is missing.
    max_distinct : int
        The most distinct scores, of all tables together, that a lazy frame may bring back before they are put into
        cells as in `ScoreTable.from_frame`.

    Returns
    -------
    tuple of ScoreTable
        In the order of the columns; every binary measure, calibrator and display takes them.

    Notes
    -----
    Cost: one pass, O(nK). Lazy frames: a query for what cannot be used and one per class, about one group-by of nK
    values in all; memory for the distinct scores.

    Examples
    --------
    >>> from calibrant import class_tables
    >>> tables = class_tables([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> [round(table.prevalence, 3) for table in tables]
    [0.333, 0.333, 0.333]
    """
    check_most("class_tables", max_distinct)
    columns = FrameColumns(scores, label, weight, missing)
    rows = class_input(y_true, y_prob, sample_weight, labels, columns, "class_tables")
    if isinstance(rows, ClassRows):
        return tuple(_column_table(rows, k) for k in range(rows.scores.shape[1]))
    each = max(max_distinct // len(rows.classes), LEAST)
    return tuple(ScoreTable._of_counts(*rows.column(k, each)) for k in range(len(rows.classes)))


def top_label_table(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    scores: Sequence[Hashable] | None = None,
    label: Hashable | None = None,
    weight: Hashable | None = None,
    missing: Literal["error", "drop"] = "error",
    max_distinct: int = MAX_DISTINCT,
) -> ScoreTable:
    """The score table of the top label: was the likeliest class right, against its probability.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, scores, label, weight, missing, max_distinct
        As in `class_tables`, a frame included; of equally likely classes the first is the top one.

    Returns
    -------
    ScoreTable
        `reliability_curve` of it is the usual picture of confidence against accuracy.

    Notes
    -----
    Cost: one pass, O(nK). Source: Guo, Pleiss, Sun, Weinberger (2017), section 2.

    Examples
    --------
    >>> from calibrant import top_label_table
    >>> table = top_label_table([0, 1, 0], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> table.n_rows, round(table.prevalence, 3)
    (3, 0.667)
    """
    check_most("top_label_table", max_distinct)
    columns = FrameColumns(scores, label, weight, missing)
    rows = class_input(y_true, y_prob, sample_weight, labels, columns, "top_label_table")
    return _top_label_table(rows) if isinstance(rows, ClassRows) else ScoreTable._of_counts(*rows.top(max_distinct))


def classwise_reliability_curves(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile", "isotonic"] = "uniform",
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
) -> tuple[ReliabilityCurve, ...]:
    """The reliability curve of every class against the rest.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As in `class_tables`.
    n_bins, strategy
        As in `reliability_curve`.

    Returns
    -------
    tuple of ReliabilityCurve
        In the order of the columns. The mean of their `calibration_error()` is the classwise calibration error.

    Notes
    -----
    Cost: as `reliability_curve`, K times. Source: Kull et al. (2019), section 2.

    Examples
    --------
    >>> from calibrant import classwise_reliability_curves
    >>> curves = classwise_reliability_curves([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]], n_bins=2)
    >>> [curve.rows.tolist() for curve in curves]
    [[2.0, 1.0], [3.0, 0.0], [2.0, 1.0]]
    """
    _one_of("strategy", strategy, ("uniform", "quantile", "isotonic"))
    tables = class_tables(y_true, y_prob, sample_weight=sample_weight, labels=labels)
    return tuple(_curve(table, n_bins, strategy) for table in tables)


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """A table with a line per class.

    Attributes
    ----------
    labels : tuple
        The classes, in the order of the columns.
    weight : ndarray of shape (K,)
        Weight of the rows of the class.
    observed_rate, mean_predicted : ndarray of shape (K,)
        Share of the class in the rows, and the mean of its column; equal when the class is right on average.
    calibration_error : ndarray of shape (K,)
        Binned l1 error of the class against the rest, with the bins that were asked for.
    brier : ndarray of shape (K,)
        Mean squared error of the column; the multiclass Brier score is their sum.
    roc_auc : ndarray of shape (K,)
        Of the class against the rest; NaN where the class has no rows, or all.
    predicted : ndarray of shape (K,)
        Weight of the rows whose likeliest class it is.
    recall, precision : ndarray of shape (K,)
        Share of the class's rows that are predicted as it, and of the rows predicted as it that are; NaN for 0 of 0.
    """

    labels: tuple[Label, ...]
    weight: Floats
    observed_rate: Floats
    mean_predicted: Floats
    calibration_error: Floats
    brier: Floats
    roc_auc: Floats
    predicted: Floats
    recall: Floats
    precision: Floats

    @property
    def worst_first(self) -> tuple[int, ...]:
        """Indices of the classes, the greatest calibration error first."""
        return tuple(np.argsort(-self.calibration_error, kind="stable").tolist())


def class_summary(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
) -> ClassSummary:
    """Size, calibration, score and ranking of every class.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As in `class_tables`.
    n_bins, strategy
        Bins of the calibration error.

    Returns
    -------
    ClassSummary

    Notes
    -----
    Cost: O(nK), and a sort per class for the AUC.

    Examples
    --------
    >>> from calibrant import class_summary
    >>> summary = class_summary([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> summary.mean_predicted.round(3)
    array([0.3  , 0.333, 0.367])
    >>> summary.recall
    array([1., 1., 1.])
    """
    _one_of("strategy", strategy, ("uniform", "quantile"))
    rows = class_rows(y_true, y_prob, sample_weight, labels, "class_summary")
    k = rows.scores.shape[1]
    tables = [_column_table(rows, one) for one in range(k)]
    counts = _counts(rows.labels, rows.scores.argmax(axis=1), row_weights(rows), k)
    return summary_of_tables(rows.classes, tables, counts, n_bins, strategy)


def summary_of_tables(
    labels: tuple[Label, ...], tables: Sequence[ScoreTable], counts: Floats, n_bins: int, strategy: Any
) -> ClassSummary:
    """The summary from a table per class, and the weight of the rows of each class (lines) by their likeliest class."""
    weight, predicted, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    total = float(weight.sum())
    with np.errstate(invalid="ignore"):
        recall, precision = right / weight, right / predicted
    return ClassSummary(
        labels=labels,
        weight=weight,
        observed_rate=weight / total,
        mean_predicted=np.array([float(table.weight @ table.scores) for table in tables]) / total,
        calibration_error=np.array([_curve(table, n_bins, strategy).calibration_error() for table in tables]),
        brier=np.array([brier_score(table) for table in tables]),
        roc_auc=np.array([_area(table) for table in tables]),
        predicted=predicted,
        recall=recall,
        precision=precision,
    )


@dataclass(frozen=True, eq=False)
class Confusion:
    """What was decided against what was true.

    Attributes
    ----------
    labels : tuple
        The classes, of the lines and of the columns (of the lines only when the actions are others).
    weights : ndarray of shape (K, A)
        Weight of the rows of class `labels[k]` for which action a was taken.
    cost : float
        Mean cost of a row; without a cost matrix the share of wrong decisions.
    expected_cost : float
        What the probabilities promised it would be. A calibrated forecast keeps its promise on average.
    """

    labels: tuple[Label, ...]
    weights: Floats
    cost: float
    expected_cost: float


def confusion_matrix(
    y_true: Any,
    y_prob: Any,
    *,
    cost_matrix: Any = None,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
) -> Confusion:
    """Decisions of least expected cost against the truth.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As in `class_tables`.
    cost_matrix : array-like of shape (K, A), optional
        Cost of every action (columns) for every true class (lines); None costs 1 for a wrong class, and the likeliest
        class is taken.

    Returns
    -------
    Confusion
        Of equally cheap actions the first is taken.

    Notes
    -----
    Action `argmin_a sum_k p_k cost_ka`. Cost: one pass, O(nKA). Source: Elkan (2001), eq. 1.

    Examples
    --------
    >>> from calibrant import confusion_matrix
    >>> found = confusion_matrix([0, 1, 0], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> found.weights
    array([[1., 0., 1.],
           [0., 1., 0.],
           [0., 0., 0.]])
    >>> round(found.cost, 3), round(found.expected_cost, 3)
    (0.333, 0.4)
    """
    rows = class_rows(y_true, y_prob, sample_weight, labels, "confusion_matrix")
    k, weights = rows.scores.shape[1], row_weights(rows)
    costs = 1.0 - np.eye(k) if cost_matrix is None else _costs(cost_matrix, k)
    expected = 1.0 - rows.scores if cost_matrix is None else rows.scores @ costs
    action = expected.argmin(axis=1)
    counts = _counts(rows.labels, action, weights, k, costs.shape[1])
    promised = np.take_along_axis(expected, action[:, None], axis=1)[:, 0]
    total = float(weights.sum())
    return Confusion(rows.classes, counts, float(np.vdot(counts, costs)) / total, float(weights @ promised) / total)


def _costs(cost_matrix: Any, n_classes: int) -> Floats:
    given = _checks.numbers(array_of(cost_matrix, "cost_matrix"), "cost_matrix")
    costs = _checks.modest(_checks.finite(given, "cost_matrix"), "cost_matrix")
    if costs.ndim != 2 or costs.shape[0] != n_classes or costs.shape[1] < 2:
        raise InputError(
            f"cost_matrix must have a line for each of the {n_classes} classes and a column for each of two or more "
            f"actions, but its shape is {costs.shape}."
        )
    return costs


def _counts(truth: Any, decided: Any, weights: Floats, n_classes: int, n_actions: int | None = None) -> Floats:
    width = n_classes if n_actions is None else n_actions
    counts = np.bincount(truth * width + decided, weights, minlength=n_classes * width)
    return np.asarray(counts.reshape(n_classes, width))


def _area(table: ScoreTable) -> float:
    if table.total_positives == 0 or table.total_negatives == 0:
        return float("nan")
    return table._auc
