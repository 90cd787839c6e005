"""The report for K classes as one HTML page, in the style of the report for two.

Invariant: the page loads nothing, and every text that comes from the data is escaped: by the template, which escapes
everything but the charts, and by `_svg`, which escapes inside them.
May import the files beside this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from markupsafe import Markup

from calibrant.view import _charts, _class_charts
from calibrant.view._class_measured import ClassLine, ClassSide, Measured, OneClass, Panel
from calibrant.view._class_report import ClassReport
from calibrant.view._html import EMPTY, bin_decimals, bin_row, legend_mark, template
from calibrant.view._words import count, cut, decimals_for, fixed, percent, percent_decimals

MAP_CODES = (
    *("gain", "no-gain", "gain-unclear", "infinite-log-loss-after", "worse-than-base-rate"),
    *("not-cross-fitted", "after-still-off", "after-calibrated", "decisions-changed"),
)
SHOWN_CLASSES = 30
LEAST_SHOWN = 0.0005


def class_page(report: ClassReport) -> str:
    """The whole page."""
    return str(template("classes.html.jinja").render(**_content(report)))


def class_frame(report: ClassReport) -> str:
    """The page in a frame, for notebooks."""
    return (
        f'<iframe title="{escape(report.title)}" sandbox srcdoc="{escape(class_page(report))}" '
        f'style="width:100%;height:860px;border:0"></iframe>'
    )


def _content(report: ClassReport) -> dict[str, Any]:
    sides = [side for side in (report.before, report.after) if side is not None]
    lines = _class_lines(report)
    return {
        "report": report,
        "sides": sides,
        "found": _paragraphs(report),
        "measures": _measures(report, sides),
        "top_panels": [_top_panel(side, sides) for side in sides],
        "small_panels": [_small_panel(panel, k) for k, panel in enumerate(report.panels)],
        "lines": lines[:SHOWN_CLASSES],
        "more_lines": lines[SHOWN_CLASSES:],
        "candidates": _candidates(report),
        "matrix": _matrix(report),
        "marks": {side: Markup(legend_mark(side)) for side in ("before", "after")},
        "hollow_mark": Markup(legend_mark("before", hollow=True)),
        "has_hollow": any(0 < b.rows < _charts.FEW_ROWS for b in _all_bins(report, sides)),
    }


def _all_bins(report: ClassReport, sides: Sequence[ClassSide]) -> Any:
    for shown in (*(side.reliability for side in sides), *(panel.before for panel in report.panels)):
        yield from shown.bins


def _paragraphs(report: ClassReport) -> list[str]:
    """What was found, as a paragraph about the scores and one about the map."""
    scores = [sentence.text for sentence in report.headline.found if sentence.code not in MAP_CODES]
    on_map = [sentence.text for sentence in report.headline.found if sentence.code in MAP_CODES]
    return [" ".join(texts) for texts in (scores, on_map) if texts]


# ---------------------------------------------------------------- the numbers


class _Measure(NamedTuple):
    """One line of the table: each value with its interval, which can be empty."""

    name: str
    hint: str
    values: list[tuple[str, str]]


def _measures(report: ClassReport, sides: Sequence[ClassSide]) -> list[_Measure]:
    """The table at the top: one row per measure, one column per side."""
    data = report.data
    losses, briers = [side.log_loss for side in sides], [side.brier for side in sides]
    return [
        _row("Log loss", f"shares of the classes: {_like(losses, data.base_log_loss)}", losses),
        _row("Brier score", f"shares of the classes: {_like(briers, data.base_brier)}", briers),
        _percents("Accuracy", "of the likeliest class", [side.accuracy for side in sides], sides),
        _percents("Mean confidence", "honest: the accuracy", [side.mean_confidence for side in sides], sides),
        _row("Top-label calibration error", "beyond chance; 0 is honest", [side.top_error for side in sides], 3),
        _Measure(
            "Classwise calibration error",
            "beyond chance; mean of the classes",
            [(fixed(side.class_error, _error_places(sides)), "") for side in sides],
        ),
    ]


def _error_places(sides: Sequence[ClassSide]) -> int:
    return max(3, decimals_for([side.class_error for side in sides], 3))


def _like(numbers: Sequence[Measured], base: float) -> str:
    return fixed(base, decimals_for([number.value for number in numbers]))


def _row(name: str, hint: str, numbers: Sequence[Measured], decimals: int | None = None) -> _Measure:
    places = decimals_for([number.value for number in numbers]) if decimals is None else decimals
    return _Measure(name, hint, [(_shown(number, places), _between(number, places)) for number in numbers])


def _shown(number: Measured, places: int) -> str:
    return "infinite" if number.value is None else fixed(number.value, places)


def _between(number: Measured, places: int) -> str:
    if number.value is None or number.low is None or number.high is None:
        return ""
    return f"{fixed(number.low, places)} to {fixed(number.high, places)}"


def _percents(name: str, hint: str, values: Sequence[float], sides: Sequence[ClassSide]) -> _Measure:
    """Shares with the decimals that accuracy and confidence need side by side."""
    decimals = max(1, percent_decimals([share for side in sides for share in (side.accuracy, side.mean_confidence)]))
    return _Measure(name, hint, [(percent(value, decimals), "") for value in values])


# ---------------------------------------------------------------- diagrams


class _TopPanel(NamedTuple):
    name: str
    chart: Markup
    rows: list[list[str]]
    outside: float


def _top_panel(side: ClassSide, sides: Sequence[ClassSide]) -> _TopPanel:
    tallest = max(weight for one in sides for weight in one.reliability.bar_weights)
    decimals = bin_decimals([b for one in sides for b in one.reliability.bins])
    shown = [bin_row(b, decimals) for b in side.reliability.bins]
    chart = Markup(_class_charts.top_label_chart(side, tallest))
    return _TopPanel(side.name, chart, shown, side.reliability.outside_scale)


class _SmallPanel(NamedTuple):
    name: str
    weight: float
    chart: Markup


def _small_panel(panel: Panel, number: int) -> _SmallPanel:
    return _SmallPanel(cut(panel.name), panel.weight, Markup(_class_charts.class_chart(panel, number)))


# ---------------------------------------------------------------- classes


class _Line(NamedTuple):
    """Cells of one class: its name, what stands once, and the gaps with their intervals (starred when clear)."""

    name: str
    cells: list[str]
    gaps: list[tuple[str, str, bool]]
    ends: list[str]


def _class_lines(report: ClassReport) -> list[_Line]:
    rates = [rate for line in report.lines for rate in (line.share, line.before.mean_predicted)]
    gaps = [line.before.error.value or 0.0 for line in report.lines]
    places = _places(max(rates)), _places(max(gaps))
    return [_class_line(line, *places, report.after is not None) for line in report.lines]


def _places(largest: float) -> int:
    """Decimals of percentages of which this is the largest share."""
    return 1 if largest >= 0.05 else 2 if largest >= 0.01 else 3


def _class_line(line: ClassLine, decimals: int, gap_decimals: int, judged: bool) -> _Line:
    sides = [side for side in (line.before, line.after if judged else None) if side is not None]
    last = sides[-1]
    means = [fixed(100 * side.mean_predicted, decimals) for side in sides]
    return _Line(
        cut(line.name),
        [count(line.weight), fixed(100 * line.share, decimals), *means],
        [_gap(side, gap_decimals) for side in sides],
        [_number(line.before.roc_auc, 3), _percent(last.recall), _percent(last.precision)],
    )


def _gap(side: OneClass, decimals: int) -> tuple[str, str, bool]:
    value, low, high = (fixed(100 * (part or 0.0), decimals) for part in (side.error.value, *_ends(side.error)))
    return value, f"{low} – {high}", side.clear


def _ends(found: Measured) -> tuple[float | None, float | None]:
    return found.low, found.high


def _number(value: float | None, places: int) -> str:
    return EMPTY if value is None else fixed(value, places)


def _percent(value: float | None) -> str:
    return EMPTY if value is None else fixed(100 * value, 1)


# ---------------------------------------------------------------- map, decisions


def _candidates(report: ClassReport) -> list[list[str]]:
    """What was weighed, the best first; gains are over the first candidate, which leaves the scores as they are."""
    found = report.map.candidates
    places = decimals_for([one.log_loss for one in found])
    return [
        [
            one.name,
            fixed(one.log_loss, places),
            fixed(found[0].log_loss - one.log_loss, places),
            percent(one.weight if one.weight >= LEAST_SHOWN else 0.0),
        ]
        for one in sorted(found, key=lambda one: one.log_loss)
    ]


def _matrix(report: ClassReport) -> list[tuple[str, list[tuple[str, int]]]] | None:
    """Lines of the confusion matrix: the name of the class, and each cell with its shade from 0 to 9."""
    matrix = report.decisions.matrix
    if matrix is None:
        return None
    worst = max((one.share for one in report.decisions.mistakes), default=1.0)
    return [
        (cut(name), [(count(weight) if weight else "", _shade(weight, sum(line) * worst)) for weight in line])
        for name, line in zip(report.labels, matrix)
    ]


def _shade(weight: float, most: float) -> int:
    return 0 if weight == 0 else 1 + min(8, int(9 * weight / most))
