"""`calibrant threshold`: where to act, what that does and costs, and what it would do at another prevalence.

May import `calibrant.decisions`, `calibrant.maps`, `calibrant.data`, and the modules of this folder.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from calibrant.cli import _console
from calibrant.cli._evaluate import _mapped
from calibrant.cli._reading import Request, Rows, as_probabilities, range_of, read_rows
from calibrant.cli._words import number, percent, rows_read
from calibrant.data import ScoreTable
from calibrant.decisions import OperatingPoint, choose_threshold
from calibrant.decisions._prevalence import at_prevalence
from calibrant.maps import load_map
from calibrant.metrics import Estimate


@dataclass(frozen=True)
class Question:
    """What the command was asked for."""

    objective: str
    costs: dict[str, float | None]
    at_least: dict[str, float]
    at_most: dict[str, float]
    guarantee: float | None
    expected_rows: float | None
    prevalence: float | None


def run_threshold(request: Request, question: Question, *, map_path: Path | None, as_json: bool) -> None:
    """Read, map if asked, choose, tell."""
    record = None if map_path is None else load_map(map_path)
    rows = read_rows(request)
    table = rows.table if record is None else _mapped(Rows(rows.table, rows.dropped), record)
    with _console.working("Trying every threshold"):
        moved = table if question.prevalence is None else at_prevalence(as_probabilities(table), question.prevalence)
        found = _choose(moved, question)
        on_scores = found.threshold if question.prevalence is None else _same_place(table, moved, found.threshold)
    if as_json:
        _console.show_raw(json.dumps(_as_dict(request, rows, found, question, on_scores), ensure_ascii=False, indent=1))
        return
    _console.show(rows_read(rows.table, request.path.name, rows.dropped))
    if record is not None:
        _console.show(f"Scores are mapped by {map_path}.")
    if question.prevalence is not None:
        _console.show(
            f"Probabilities, counts and costs are moved from a prevalence of {percent(table.prevalence)} to "
            f"{percent(question.prevalence)}."
        )
    _tell(found, question, on_scores, "probability" if range_of(table).inside else "score")


def _choose(table: ScoreTable, question: Question) -> OperatingPoint:
    return choose_threshold(
        table,
        objective=question.objective,  # type: ignore[arg-type]
        **{name: cost for name, cost in question.costs.items() if cost is not None},
        at_least=question.at_least,
        at_most=question.at_most,
        guarantee=question.guarantee,
        expected_rows=question.expected_rows,
    )


def _same_place(table: ScoreTable, moved: ScoreTable, threshold: float) -> float:
    """The threshold on the scores before they were moved."""
    if math.isinf(threshold):
        return threshold
    place = int(moved.scores.searchsorted(threshold))
    return float(table.distinct.scores[place])


def _as_dict(
    request: Request, rows: Rows, found: OperatingPoint, question: Question, on_scores: float
) -> dict[str, Any]:
    content = {key: value for key, value in asdict(found).items() if key not in ("rates", "limits")}
    limits = [
        {"name": c.name, "bound": c.bound, "at_least": c.at_least, "met": c.met, **asdict(c.estimate)}
        for c in found.limits
    ]
    return for_json(
        {
            "source": str(request.path),
            "rows": rows.table.n_rows,
            "dropped": rows.dropped,
            "prevalence": rows.table.prevalence if question.prevalence is None else question.prevalence,
            "never_act": math.isinf(found.threshold),
            "score_threshold": on_scores,
            **content,
            "rates": {name: asdict(rate) for name, rate in found.rates.items()},
            "limits": limits,
        }
    )


def for_json(content: dict[str, Any]) -> dict[str, Any]:
    """The same with None for what JSON cannot say."""
    return {key: _sayable(value) for key, value in content.items()}


def _sayable(value: Any) -> Any:
    if isinstance(value, dict):
        return for_json(value)
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---------------------------------------------------------------- telling

GOALS = {
    "cost": "the least expected cost",
    "recall": "the greatest recall",
    "precision": "the greatest precision",
    "f1": "the greatest F1",
    "accuracy": "the greatest accuracy",
    "youden": "the greatest recall less false-positive rate",
}
NAMES = {
    "recall": "Recall",
    "precision": "Precision",
    "false_positive_rate": "False-positive rate",
    "alert_rate": "Alert rate",
    "alerts": "Alerts",
    "accuracy": "Accuracy",
    "f1": "F1",
    "youden": "Recall less false-positive rate",
    "cost": "Cost of a row",
}
MEANINGS = {
    "recall": "of the events, acted on",
    "precision": "of the rows acted on, events",
    "false_positive_rate": "of the other rows, acted on",
    "alert_rate": "of all rows, acted on",
    "accuracy": "of all rows, decided right",
    "f1": "precision and recall together",
}


def _tell(found: OperatingPoint, question: Question, on_scores: float, what: str) -> None:
    from rich.text import Text

    _console.show("", Text(_headline(found, what), style="bold"))
    if question.prevalence is not None and math.isfinite(found.threshold):
        _console.show(f"That is where the score is at least {_exact(on_scores)} as the file gives it.")
    for line in _why(found):
        _console.show(line)
    _console.show("", _outcomes(found), "", _rates(found))
    if found.limits:
        _console.show("", _limits(found))
    for line in _costs(found):
        _console.show("", line)


def _headline(found: OperatingPoint, what: str) -> str:
    if not found.feasible:
        shown = "can be shown to meet" if found.guarantee else "meets"
        return f"Never act: no threshold that acts {shown} the limits."
    if math.isinf(found.threshold):
        return "Never act: that costs least."
    return f"Act when the {what} is at least {_exact(found.threshold)}."


def _exact(value: float) -> str:
    """The very number, to be typed back in: one rounded up would leave the rows out that are exactly there."""
    return repr(float(value))


def _why(found: OperatingPoint) -> list[str]:
    goal = GOALS[found.objective] + (" within the limits" if found.limits else "")
    lines = [f"It has {goal} on these rows." if found.feasible and found.guarantee is None else ""]
    if found.guarantee is not None:
        chance = percent(1 - found.guarantee)
        lines = [f"With a chance of {chance} at least, the limits hold for all such rows, not only for these."]
    return [line for line in lines if line]


def _grid() -> Any:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")


def _outcomes(found: OperatingPoint) -> Any:
    table = _grid()
    for name in ("", "acted on", "left alone"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_row("events", _count(found.tp), _count(found.fn))
    table.add_row("other rows", _count(found.fp), _count(found.tn))
    return table


def _count(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 else f"{value:,.1f}"


def _rates(found: OperatingPoint) -> Any:
    table = _grid()
    for name, side in (("", "left"), ("", "right"), (f"{100 * found.level:.4g} % interval", "left"), ("", "left")):
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=name == "" and side == "right")
    if found.objective in ("cost", "youden"):
        low, high = number(found.low), number(found.high)
        table.add_row(NAMES[found.objective], number(found.value), f"{low} to {high}", "")
    for name, rate in found.rates.items():
        table.add_row(NAMES[name], _value(rate), _interval(rate), MEANINGS[name])
    return table


def _value(rate: Estimate) -> str:
    return "-" if math.isnan(rate.value) else number(rate.value)


def _interval(rate: Estimate) -> str:
    return "" if math.isnan(rate.value) else f"{number(rate.low)} to {number(rate.high)}"


def _limits(found: OperatingPoint) -> Any:
    table = _grid()
    for name in ("limit", "", "here", ""):
        table.add_column(name, justify="right" if name == "here" else "left", no_wrap=True)
    for check in found.limits:
        side = "at least" if check.at_least else "at most"
        table.add_row(
            NAMES[check.name], f"{side} {check.bound:g}", _value(check.estimate), "met" if check.met else "not met"
        )
    return table


def _costs(found: OperatingPoint) -> list[str]:
    if found.cost_threshold is None or found.regret is None:
        return []
    if not 0 < found.cost_threshold <= 1:
        what = "always act" if found.cost_threshold == 0 else "never act"
        return [f"With these costs one would {what}, whatever the probability: check them."]
    head = f"Were the probabilities honest, the costs alone would say: act from {_exact(found.cost_threshold)}."
    if found.regret < 1e-12:
        return [f"{head} On these rows no other threshold costs less."]
    return [
        f"{head} Acting there instead costs {number(found.regret)} more for each row here: the price of "
        f"miscalibration, and of chance."
    ]
