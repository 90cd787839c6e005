"""The section of the operating point in words and rows of text, for the page's template.

May import the records and words beside this file, and markupsafe.
"""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from calibrant.view._operating import AtPrevalence, Operating, cost_chart
from calibrant.view._words import count, decimals_for, fixed, percent, percent_decimals


class OperatingPage(NamedTuple):
    """What the template shows."""

    head: str
    costs: str
    effect: str
    chart: Markup
    cells: list[list[str]]
    prevalences: list[list[str]]
    sides: list[str]
    moved: str


def operating_page(shown: Operating | None) -> OperatingPage | None:
    """The texts of the section; None when there is none."""
    if shown is None:
        return None
    return OperatingPage(
        head=f"Where to act: from {_threshold(shown.threshold)} on",
        costs=_costs(shown),
        effect=_effect(shown),
        chart=Markup(cost_chart(shown)),
        cells=[
            ["events", count(round(shown.tp, 6)), count(round(shown.fn, 6))],
            ["other rows", count(round(shown.fp, 6)), count(round(shown.tn, 6))],
        ],
        prevalences=_rows(shown),
        sides=[curve.side for curve in shown.curves],
        moved=_moved(shown),
    )


def _threshold(value: float) -> str:
    return percent(value, max(1, percent_decimals([value])))


def _costs(shown: Operating) -> str:
    alarm, miss = f"{shown.false_positive:g}", f"{shown.false_negative:g}"
    prices = f"a false alarm costs {alarm} and a missed event {miss}"
    rule = "so acting pays from a probability of "
    rule += f"{alarm} / ({alarm} + {miss}) = {_threshold(shown.threshold)}."
    if shown.costs_given:
        return f"Here {prices}, {rule}"
    return (
        f"No costs were given, so here {prices}, which makes acting on everybody and on nobody cost about the same; "
        f"{rule} Give your own with false_positive and false_negative (--false-positive, --false-negative)."
    )


def _effect(shown: Operating) -> str:
    places = decimals_for([shown.cost, shown.always, shown.never], 3)
    whose = "cross-fitted probabilities" if shown.side == "after" else "probabilities as given"
    text = (
        f"On the {whose} that costs {fixed(shown.cost, places)} a row ({fixed(shown.cost_low, places)} to "
        f"{fixed(shown.cost_high, places)}), where acting on everybody costs {fixed(shown.always, places)} and on "
        f"nobody {fixed(shown.never, places)}."
    )
    if shown.cost_before is not None:
        text += f" The same threshold on the probabilities as given costs {fixed(shown.cost_before, places)}."
    share = shown.regret / shown.cost if shown.cost else 0.0
    if shown.regret == 0:
        return f"{text} No other threshold is cheaper on these rows."
    best = "never acting" if shown.best_threshold is None else f"{_threshold(shown.best_threshold)}"
    return (
        f"{text} The cheapest threshold on these rows, {best}, would save {percent(share)} of that: chance, and what "
        f"miscalibration is left."
    )


def _rows(shown: Operating) -> list[list[str]]:
    listed = shown.prevalences
    shares = percent_decimals([row.prevalence for row in listed])
    places = decimals_for([row.cost_unmoved for row in listed], 3)
    return [_row(row, shares, places, shown) for row in listed]


def _row(row: AtPrevalence, shares: int, places: int, shown: Operating) -> list[str]:
    precision = "–" if row.precision is None else percent(row.precision)
    cells = [
        percent(row.recall),
        precision,
        percent(row.alert_rate),
        fixed(row.cost, places),
        fixed(row.cost_unmoved, places),
    ]
    return [percent(row.prevalence, shares), _threshold(row.threshold), *cells]


def _moved(shown: Operating) -> str:
    own = min(shown.prevalences, key=lambda row: abs(row.cost - row.cost_unmoved))
    return (
        f"If events become rarer or more frequent while the scores of each class stay as they are, the probabilities "
        f"must move too (adjust_prior, --prevalence). On the moved ones one acts from {_threshold(shown.threshold)} as "
        f"before; on those that are right at {percent(own.prevalence)}, from the threshold in the table. In its last "
        f"column neither probabilities nor threshold move."
    )
