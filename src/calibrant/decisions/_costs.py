"""Decisions of least expected cost from probabilities and what errors cost.

Cost matrices have a row for every true class and a column for every action; for two classes and two actions
`[[true negative, false positive], [false negative, true positive]]`. Acting on a tie is the rule of two actions.
May import NumPy, `calibrant._checks`, `calibrant.data._arrays` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats
from calibrant.data._arrays import aligned, array_of
from calibrant.errors import DataWarning, InputError

EPS = float(np.finfo(np.float64).eps)
WORDS = ("true_negative", "false_positive", "false_negative", "true_positive")


class Costs(NamedTuple):
    """What each of the four outcomes costs: single numbers, or one for every row."""

    true_negative: Floats
    false_positive: Floats
    false_negative: Floats
    true_positive: Floats

    @property
    def of_false_alarm(self) -> Floats:
        """What acting on a negative row costs beyond leaving it alone."""
        return np.asarray(self.false_positive - self.true_negative)

    @property
    def of_miss(self) -> Floats:
        """What leaving a positive row alone costs beyond acting on it."""
        return np.asarray(self.false_negative - self.true_positive)

    @property
    def by_row(self) -> bool:
        """Whether the rows have costs of their own."""
        return any(value.ndim for value in self)


def read_costs(
    cost_matrix: Any = None,
    *,
    false_positive: Any = None,
    false_negative: Any = None,
    true_positive: Any = 0.0,
    true_negative: Any = 0.0,
) -> Costs:
    """Costs from a 2 by 2 matrix (or one for every row), or from four names."""
    if cost_matrix is not None:
        if false_positive is not None or false_negative is not None:
            raise InputError("Give cost_matrix, or false_positive and false_negative, not both.")
        return _of_matrix(cost_matrix)
    if false_positive is None or false_negative is None:
        raise InputError(
            "Give what errors cost: false_positive and false_negative, or cost_matrix=[[true negative, false positive],"
            " [false negative, true positive]]."
        )
    values = (true_negative, false_positive, false_negative, true_positive)
    aligned(**dict(zip(WORDS, values)))
    found = [_cost(value, name) for value, name in zip(values, WORDS)]
    lengths = {value.shape for value in found if value.ndim}
    if len(lengths) > 1:
        raise InputError(f"Costs by row must have one length, but the shapes are {_checks.shown(sorted(lengths))}.")
    return Costs(*found)


def _cost(value: Any, name: str) -> Floats:
    array = _checks.numbers(np.asarray(array_of(value, name)), name)
    if array.ndim == 0 and not np.isfinite(array):
        raise InputError(f"{name} must be a finite cost, but it is {float(array)}.")
    array = _checks.finite(array, name)
    if array.ndim > 1:
        raise InputError(f"{name} must be one cost, or one for every row, but its shape is {array.shape}.")
    return _checks.modest(array, name)


def _of_matrix(cost_matrix: Any) -> Costs:
    given = _checks.numbers(array_of(cost_matrix, "cost_matrix"), "cost_matrix")
    matrix = _checks.modest(_checks.finite(given, "cost_matrix"), "cost_matrix")
    if matrix.ndim not in (2, 3) or matrix.shape[-2:] != (2, 2):
        raise InputError(
            f"cost_matrix must be [[true negative, false positive], [false negative, true positive]], but its shape is "
            f"{matrix.shape}. Other actions are weighed by bayes_decision."
        )
    return Costs(*(np.asarray(matrix[..., row, column]) for row in (0, 1) for column in (0, 1)))


def optimal_threshold(
    cost_matrix: Any = None,
    *,
    false_positive: Any = None,
    false_negative: Any = None,
    true_positive: Any = 0.0,
    true_negative: Any = 0.0,
) -> Any:
    """The probability from which acting costs least: act when `p >= threshold`; a tie acts.

    Parameters
    ----------
    cost_matrix : array-like of shape (2, 2) or (n, 2, 2), optional
        `[[true negative, false positive], [false negative, true positive]]`: rows are the truth.
    false_positive, false_negative, true_positive, true_negative : float or array-like of shape (n,), optional
        The same by name; gains are negative costs. An array gives a threshold for every row.

    Returns
    -------
    float or ndarray of shape (n,)
        In [0, 1]; 0 where acting is always best and infinity where it never is, both with a warning.

    Raises
    ------
    InputError
        Costs that reward both errors (no threshold from below does that), or the same for both actions.

    Notes
    -----
    `(c_fp - c_tn) / (c_fp - c_tn + c_fn - c_tp)`. Right for calibrated probabilities. Source: Elkan (2001), eq. 2.

    Examples
    --------
    >>> from calibrant import optimal_threshold
    >>> optimal_threshold(false_positive=1, false_negative=9)
    0.1
    >>> optimal_threshold([[0, 1], [10, 0]])
    0.09090909090909091
    """
    costs = read_costs(
        cost_matrix,
        false_positive=false_positive,
        false_negative=false_negative,
        true_positive=true_positive,
        true_negative=true_negative,
    )
    alarm, miss = np.broadcast_arrays(costs.of_false_alarm, costs.of_miss)
    refuse_reversed(alarm, miss)
    _tell_degenerate(alarm, miss)
    threshold = threshold_of(alarm, miss)
    return float(threshold) if threshold.ndim == 0 else threshold


def threshold_of(alarm: NDArray[Any], miss: NDArray[Any]) -> Floats:
    """The threshold of every pair of costs; 0 where acting never costs more, infinity where it never costs less."""
    proper = (alarm > 0) & (miss > 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.where(np.isinf(alarm + miss), 1 / (1 + miss / alarm), alarm / (alarm + miss))
    return np.where(proper, inner, np.where(alarm <= 0, 0.0, np.inf))


def refuse_reversed(alarm: NDArray[Any], miss: NDArray[Any]) -> None:
    """Refuse costs from which no threshold follows: they reward both errors, or are the same for both actions."""
    strange = ((alarm < 0) & (miss < 0)) | ((alarm == 0) & (miss == 0))
    if not strange.any():
        return
    where = "" if alarm.ndim == 0 else f" in row {int(np.argmax(strange))} (counting from 0)"
    first = int(np.argmax(strange)) if alarm.ndim else ()
    if alarm[first] == 0:
        raise InputError(f"Both actions cost the same whatever happens{where}: there is no threshold to find.")
    raise InputError(
        f"These costs reward both errors{where}: a false positive costs less than a true negative, and a false "
        f"negative less than a true positive. Rows of the matrix are the truth, columns the action: perhaps gains are "
        f"given where costs are meant."
    )


def _tell_degenerate(alarm: NDArray[Any], miss: NDArray[Any]) -> None:
    always, never = int(np.sum(alarm <= 0)), int(np.sum((alarm > 0) & (miss <= 0)))
    for count, what, value in (
        (always, "acting is always best", "0"),
        (never, "never acting is always best", "infinity"),
    ):
        if count:
            rows = "" if alarm.ndim == 0 else f" in {_checks.plural(count, 'row')}"
            warnings.warn(
                f"With these costs {what}, whatever the probability{rows}: the threshold there is {value}.",
                DataWarning,
                stacklevel=3,
            )


# ---------------------------------------------------------------- any number of classes and actions


def bayes_decision(y_prob: Any, cost_matrix: Any) -> Any:
    """The action of least expected cost for every row, out of any number of actions.

    Parameters
    ----------
    y_prob : float, or array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Calibrated probabilities; one column is the event of two classes.
    cost_matrix : array-like of shape (K, A), or (n, K, A)
        Cost of every action (columns) for every true class (rows); or one such matrix for every row. Declining to
        decide is one more column: what it costs to ask someone.

    Returns
    -------
    int or ndarray of shape (n,)
        Index of the action. Two actions on two classes: action 1 when `p >= optimal_threshold(cost_matrix)`, a tie
        included. Otherwise the first of the cheapest; costs that differ by rounding only are equal.

    Raises
    ------
    InputError
        A matrix that does not fit the classes.

    Notes
    -----
    `argmin_a sum_k p_k c_ka`. Cost: O(nKA). Source: Elkan (2001), eq. 1; the reject option: Chow (1970).

    Examples
    --------
    >>> from calibrant import bayes_decision
    >>> bayes_decision([0.05, 0.1, 0.6], [[0, 1], [9, 0]])
    array([0, 1, 1])
    >>> bayes_decision([0.05, 0.4, 0.9], [[0, 1, 0.3], [1, 0, 0.3]])
    array([0, 2, 1])
    """
    array = array_of(y_prob, "y_prob")
    single = array.ndim == 0
    rows = _class_rows(array)
    matrix = _read_matrix(cost_matrix, rows)
    two = matrix.shape[-2:] == (2, 2)
    action = _two_actions(rows[:, 1], matrix) if two else _first_of_the_cheapest(rows, matrix)
    return int(action[0]) if single else action


def _class_rows(array: NDArray[Any]) -> Floats:
    if array.ndim == 2 and array.shape[1] >= 2:
        return np.asarray(_checks.class_scores(array, "y_prob", reads="probability"))
    p = _checks.binary_scores(np.atleast_1d(array), "y_prob", reads="probability")
    return np.column_stack([1 - p, p])


def _read_matrix(cost_matrix: Any, rows: Floats) -> Floats:
    given = _checks.numbers(array_of(cost_matrix, "cost_matrix"), "cost_matrix")
    matrix = _checks.modest(_checks.finite(given, "cost_matrix"), "cost_matrix")
    k = rows.shape[1]
    fits = matrix.ndim in (2, 3) and matrix.shape[-2] == k and matrix.shape[-1] >= 1
    if not fits or (matrix.ndim == 3 and len(matrix) != len(rows)):
        raise InputError(
            f"cost_matrix must have a row for each of the {k} classes and a column for each action, shape ({k}, A), or "
            f"one such matrix for each of the {len(rows):,} rows; its shape is {matrix.shape}."
        )
    return matrix


def _two_actions(p: Floats, matrix: Floats) -> NDArray[np.int64]:
    """Acting is compared as in `optimal_threshold`, and costs that reward errors from above."""
    alarm, miss = matrix[..., 0, 1] - matrix[..., 0, 0], matrix[..., 1, 0] - matrix[..., 1, 1]
    rewards = (alarm < 0) & (miss < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ceiling = alarm / (alarm + miss)
    acts = np.where(rewards, p <= ceiling, p >= threshold_of(alarm, miss))
    return acts.astype(np.int64)


def _first_of_the_cheapest(rows: Floats, matrix: Floats) -> NDArray[np.int64]:
    by_row = "nka" if matrix.ndim == 3 else "ka"
    expected = np.einsum(f"nk,{by_row}->na", rows, matrix)
    size = np.einsum(f"nk,{by_row}->na", rows, np.abs(matrix))
    cheapest = expected.min(axis=1, keepdims=True)
    tied = expected <= cheapest + 4 * EPS * size.max(axis=1, keepdims=True)
    return np.asarray(tied.argmax(axis=1), dtype=np.int64)
