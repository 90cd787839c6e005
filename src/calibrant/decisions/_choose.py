"""One threshold: the best under an objective and limits, with intervals and, if asked for, a guarantee.

May import NumPy, `calibrant.data`, `_inputs` and `_intervals` of `calibrant.metrics`, and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Label
from calibrant._parameters import Choice, Number, Seed, check_parameters, optional
from calibrant.data import ScoreTable
from calibrant.decisions._costs import Costs, read_costs, refuse_reversed, threshold_of
from calibrant.decisions._curve import ThresholdCurve, curve_of, with_costs
from calibrant.decisions._guarantee import Certified, Limit, certified_thresholds
from calibrant.decisions._rates import LIMITS, OBJECTIVES, Scale, cells_of, estimate_of, values_of
from calibrant.errors import InputError, InputTypeError
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import Estimate, worth

Objective = Literal["cost", "recall", "precision", "f1", "accuracy", "youden"]
RATES = ("recall", "precision", "false_positive_rate", "alert_rate", "accuracy", "f1")


@dataclass(frozen=True)
class LimitCheck:
    """One limit at the chosen threshold.

    Attributes
    ----------
    name : str
        What is limited.
    bound : float
        The limit.
    at_least : bool
        Whether it is a lower limit.
    estimate : Estimate
        The value on these rows, with its interval.
    met : bool
        Whether the value keeps the limit on these rows.
    """

    name: str
    bound: float
    at_least: bool
    estimate: Estimate
    met: bool


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """A threshold and what it does: act when `p >= threshold`.

    Attributes
    ----------
    threshold : float
        Infinity means never acting.
    objective : str
        What was made best.
    value, low, high : float
        The objective at the threshold, with its interval; a cost is that of one row.
    level : float
        Level of the intervals.
    feasible : bool
        Whether a threshold that acts meets all limits (with a guarantee: is shown to); if not, it is infinity.
    guarantee : float or None
        The probability delta with which a limit may be missed in the population, where it was asked for.
    method : str
        How threshold and interval were found.
    tp, fp, fn, tn : float
        Weight of the rows of each outcome.
    rates : dict of Estimate
        Recall, precision, false-positive rate, alert rate, accuracy and F1 at the threshold.
    limits : tuple of LimitCheck
        The limits, and whether they are met.
    cost_threshold : float or None
        The threshold that the costs imply for calibrated probabilities (`optimal_threshold`).
    regret : float or None
        Cost of a row that miscalibration causes there: the cost of using `cost_threshold` less the least cost that any
        threshold has on these rows. 0 is best; it is never below 0. Both are None without costs, and for scores that
        are no probabilities.
    """

    threshold: float
    objective: str
    value: float
    low: float
    high: float
    level: float
    feasible: bool
    guarantee: float | None
    method: str
    tp: float
    fp: float
    fn: float
    tn: float
    rates: dict[str, Estimate]
    limits: tuple[LimitCheck, ...]
    cost_threshold: float | None
    regret: float | None


class _Question(NamedTuple):
    """What was asked, checked."""

    objective: str
    limits: tuple[Limit, ...]
    costs: Costs | None
    scale: Scale
    level: float


def choose_threshold(
    y_true: Any,
    y_prob: Any = None,
    *,
    objective: Objective = "cost",
    false_positive: float | None = None,
    false_negative: float | None = None,
    true_positive: float = 0.0,
    true_negative: float = 0.0,
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    guarantee: float | None = None,
    expected_rows: float | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> OperatingPoint:
    """The best threshold under an objective and limits: act when `p >= threshold`.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone. Rows that the model was not trained on.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities, or any scores of which higher ones are likelier positive.
    objective : {"cost", "recall", "precision", "f1", "accuracy", "youden"}
        "cost" is made least, the others greatest. Of equal thresholds the highest is taken (for precision the lowest).
    false_positive, false_negative, true_positive, true_negative : float, optional
        Costs; needed for the objective and limits on "cost".
    at_least, at_most : mapping of names to bounds, optional
        Limits, for example `{"precision": 0.9}` or `{"false_positive_rate": 0.01, "alerts": 500}`. Names are those of
        the objectives, "alerts", "alert_rate" (a top share) and "false_positive_rate".
    guarantee : float, optional
        Delta in (0, 0.5]: the limits are met in the population with probability at least 1 - delta. For limits on
        recall, precision, false-positive rate, alert rate, alerts and accuracy. Without it they are met on these rows.
    expected_rows : float, optional
        Rows that "alerts" are counted over, for example the rows of a day; by default the rows given.
    confidence : float
        Level of the intervals.
    random_state : seed
        Draws the pilot rows of a guarantee that needs some.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InputError
        One class only, an unknown name, costs that are missing or that no threshold follows from.

    Notes
    -----
    Every distinct score is tried. Intervals are exact (Clopper-Pearson) or put together from exact ones; they take the
    threshold as given, so on few rows they are a little optimistic. The guarantee tests thresholds in a fixed sequence
    with exact binomial p-values: on all rows where limits get easier towards one end, else on nine rows in ten, the
    tenth choosing where to start. Cost: one sort, O(n log n). Source: Elkan (2001); Angelopoulos et al. (2021), Learn
    then test, section 2.3; Bates et al. (2021), theorem 1.

    Examples
    --------
    >>> from calibrant import choose_threshold
    >>> y, p = [0, 1, 1, 1, 0, 0, 0], [0.6, 0.7, 0.4, 0.3, 0.2, 0.15, 0.1]
    >>> found = choose_threshold(y, p, false_positive=10, false_negative=20)
    >>> found.threshold, round(found.value, 3), round(found.regret, 3)
    (0.3, 1.429, 2.857)
    >>> choose_threshold(y, p, objective="recall", at_most={"alerts": 3}).threshold
    0.4
    """
    _check(objective, guarantee, expected_rows, confidence, random_state)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, reads="score", what="choose_threshold")
    _checks.both_classes(table.total_positives, table.total_negatives, "choose_threshold")
    limits = _limits(at_least, at_most)
    costs = _costs(objective, limits, false_positive, false_negative, true_positive, true_negative)
    total = table.total_weight
    scale = Scale(total if expected_rows is None else float(expected_rows), worth(table) / total)
    question = _Question(objective, limits, costs, scale, confidence)
    curve = curve_of(table) if costs is None else with_costs(curve_of(table), costs)
    certified = None
    if guarantee is not None:
        certified = certified_thresholds(
            table, question.limits, guarantee, scale, partial(_aim, question=question), random_state
        )
    return _point(table, curve, question, certified, guarantee)


# ---------------------------------------------------------------- what was asked


def _check(objective: Any, guarantee: Any, expected_rows: Any, confidence: Any, random_state: Any) -> None:
    values = {"objective": objective, "expected_rows": expected_rows, "random_state": random_state}
    rules = {"objective": Choice(OBJECTIVES), "expected_rows": optional(Number(0, above=True)), "random_state": Seed()}
    check_parameters("choose_threshold", values, rules)
    if not Number(0, 1).accepts(confidence) or confidence in (0, 1):
        raise InputError(f"confidence must lie strictly between 0 and 1, but it is {confidence!r}.")
    if not optional(Number(0, 0.5, above=True)).accepts(guarantee):
        raise InputError(
            f"guarantee must be the probability with which a limit may be missed, above 0 and at most 0.5, but it is "
            f"{guarantee!r}."
        )


def _costs(objective: str, limits: tuple[Limit, ...], fp: Any, fn: Any, tp: Any, tn: Any) -> Costs | None:
    needed = objective == "cost" or any(limit.name == "cost" for limit in limits)
    if not needed and fp is None and fn is None:
        return None
    costs = read_costs(false_positive=fp, false_negative=fn, true_positive=tp, true_negative=tn)
    if costs.by_row:
        raise InputError(
            "choose_threshold needs one cost for all rows. With costs by row every row has its own threshold: "
            "optimal_threshold and bayes_decision give it."
        )
    refuse_reversed(costs.of_false_alarm, costs.of_miss)
    return costs


def _limits(at_least: Any, at_most: Any) -> tuple[Limit, ...]:
    found = []
    for argument, given in (("at_least", at_least), ("at_most", at_most)):
        if given is not None and not isinstance(given, Mapping):
            raise InputTypeError(f'{argument} must be a mapping such as {{"precision": 0.9}}, but it is {given!r:.60}.')
        for name, bound in (given or {}).items():
            if not isinstance(name, str) or name not in LIMITS:
                raise InputError(f"{argument} knows {', '.join(LIMITS)}, but not {name!r}.")
            _check_bound(argument, name, bound)
            found.append(Limit(name, float(bound), argument == "at_least"))
    return tuple(found)


def _check_bound(argument: str, name: str, bound: Any) -> None:
    rule = {"cost": Number(), "alerts": Number(0), "youden": Number(-1, 1)}.get(name, Number(0, 1))
    if not rule.accepts(bound):
        raise InputError(f"{argument}: the bound of {name} must be {rule.describe()}, but it is {bound!r}.")


# ---------------------------------------------------------------- the best of the thresholds


def _allowed(curve: ThresholdCurve, limits: tuple[Limit, ...], scale: Scale) -> Any:
    allowed = np.ones(len(curve.thresholds), dtype=bool)
    for limit in limits:
        values = values_of(limit.name, curve, scale)
        allowed &= _keeps(values, limit)
    return allowed


def _keeps(values: Any, limit: Limit) -> Any:
    slack = 1e-12 * max(1.0, abs(limit.bound))
    return values >= limit.bound - slack if limit.at_least else values <= limit.bound + slack


def _best(curve: ThresholdCurve, question: _Question, allowed: Any) -> int:
    """Index of the best allowed entry; never acting when there is none."""
    if not allowed.any():
        return len(curve.thresholds) - 1
    values = values_of(question.objective, curve, question.scale)
    if question.objective == "cost":
        np.negative(values, out=values)
    values[~allowed | np.isnan(values)] = -np.inf
    most = float(values.max())
    best = values >= most - 1e-12 * max(1.0, abs(most))
    best &= allowed
    return int(best.argmax()) if question.objective == "precision" else len(best) - 1 - int(best[::-1].argmax())


def _aim(table: ScoreTable, question: _Question) -> float:
    """Where the objective would go if there were no limits."""
    if question.objective in ("recall", "precision"):
        return -np.inf if question.objective == "recall" else np.inf
    curve = curve_of(table) if question.costs is None else with_costs(curve_of(table), question.costs)
    return float(curve.thresholds[_best(curve, question, np.ones(len(curve.thresholds), dtype=bool))])


def _point(
    table: ScoreTable, curve: ThresholdCurve, question: _Question, certified: Certified | None, guarantee: float | None
) -> OperatingPoint:
    if certified is None:
        allowed = _allowed(curve, question.limits, question.scale)
    else:
        allowed = np.zeros(len(curve.thresholds), dtype=bool)
        allowed[np.searchsorted(curve.thresholds, certified.thresholds)] = True
    at = _best(curve, question, allowed)
    feasible = bool(allowed[:-1].any()) or (bool(allowed[-1]) and question.objective in ("cost", "accuracy"))
    if not feasible:
        at = len(curve.thresholds) - 1
    cells = cells_of(curve, at)
    found = {name: estimate_of(name, cells, question.scale, None, question.level) for name in RATES}
    value = estimate_of(question.objective, cells, question.scale, question.costs, question.level)
    implied, regret = _regret(curve, question.costs)
    how = "every distinct score tried" if certified is None else certified.method
    return OperatingPoint(
        threshold=float(curve.thresholds[at]),
        objective=question.objective,
        value=value.value,
        low=value.low,
        high=value.high,
        level=question.level,
        feasible=feasible,
        guarantee=guarantee,
        method=f"{how}; interval: {value.method}",
        tp=float(cells.tp),
        fp=float(cells.fp),
        fn=float(cells.fn),
        tn=float(cells.tn),
        rates=found,
        limits=_checked_limits(cells, question),
        cost_threshold=implied,
        regret=regret,
    )


def _checked_limits(cells: Any, question: _Question) -> tuple[LimitCheck, ...]:
    checked = []
    for limit in question.limits:
        found = estimate_of(limit.name, cells, question.scale, question.costs, question.level)
        checked.append(LimitCheck(limit.name, limit.bound, limit.at_least, found, bool(_keeps(found.value, limit))))
    return tuple(checked)


def _regret(curve: ThresholdCurve, costs: Costs | None) -> tuple[float | None, float | None]:
    """The threshold that the costs imply, and what using it costs beyond the best one; None where there is none."""
    if costs is None or curve.cost is None or not curve.of_probabilities:
        return None, None
    implied = float(threshold_of(costs.of_false_alarm, costs.of_miss))
    least = float(curve.cost.min())
    at = curve.at(implied)
    return implied, max(0.0, (float(curve.cost[at]) - least) / curve.total_weight)
