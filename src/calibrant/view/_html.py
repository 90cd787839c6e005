"""The report as one HTML page: rows of text from the record, charts from `_charts`, markup from the template.

Invariant: the page loads nothing (its own policy forbids it), and every text that comes from the data is escaped: by
the template, which escapes everything but the charts, and by `_svg`, which escapes inside them.
May import Jinja (the only place that does) and the files beside this one.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calibrant.view import _charts, _svg
from calibrant.view._curves import SWEEP_BINS, Bin
from calibrant.view._measured import Number, Side
from calibrant.view._operating_page import operating_page
from calibrant.view._proof import Interval, Proof
from calibrant.view._report import Report
from calibrant.view._shape_card import p_value_text, shape_chart
from calibrant.view._words import count, counted, cut, decimals_for, fixed, general, percent, percent_decimals, signed

EMPTY = "–"
MAP_CODES = (
    "gain",
    "no-gain",
    "gain-unclear",
    "infinite-log-loss-after",
    "map-misses",
    "worse-than-base-rate",
    "not-cross-fitted",
    "calibrated-within-margin-after",
    "miscalibrated-beyond-margin-after",
    "margin-undecided-after",
)


def page(report: Report) -> str:
    """The whole page."""
    return str(template("report.html.jinja").render(**_content(report)))


def frame(report: Report) -> str:
    """The page in a frame, for notebooks."""
    return (
        f'<iframe title="{escape(report.title)}" sandbox srcdoc="{escape(page(report))}" '
        f'style="width:100%;height:860px;border:0"></iframe>'
    )


@lru_cache(maxsize=2)
def template(name: str) -> Any:
    """A page to be filled in."""
    environment = Environment(
        loader=PackageLoader("calibrant.view", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cut=cut, count=count, counted=counted, percent=percent, general=general)
    return environment.get_template(name)


def _content(report: Report) -> dict[str, Any]:
    sides = [side for side in (report.before, report.after) if side is not None]
    return {
        "report": report,
        "sides": sides,
        "found": _paragraphs(report),
        "measures": _measures(report),
        "panels": [_panel(side, sides) for side in sides],
        "has_hollow": any(0 < b.rows < _charts.FEW_ROWS for side in sides for b in side.reliability.bins),
        "examples": _examples(report),
        "map_chart": Markup(_charts.map_chart(report.map)),
        "shape_tests": [p_value_text(p) for p in (report.shape.p_value, report.shape.falling_p_value)]
        if report.shape
        else [],
        "shape_chart": Markup(shape_chart(report.shape)) if report.shape else "",
        "parts": _parts(sides),
        "part_charts": _part_charts(sides),
        "sweep": _sweep(sides),
        "sweep_bins": SWEEP_BINS,
        "sweep_chart": Markup(_charts.sweep_chart([row for side in sides for row in side.sweep])) if sides else "",
        "sweep_range": _sweep_range(sides),
        "groups": _groups(report),
        "roc_chart": Markup(_charts.roc_chart(report.roc, report.roc_after, _roc_words(report))),
        "operating": operating_page(report.operating),
        "marks": {side: Markup(legend_mark(side)) for side in ("before", "after")},
        "hollow_mark": Markup(legend_mark("before", hollow=True)),
    }


def _paragraphs(report: Report) -> list[str]:
    """What was found, as a paragraph about the scores and one about the map."""
    scores = [sentence.text for sentence in report.headline.found if sentence.code not in MAP_CODES]
    on_map = [sentence.text for sentence in report.headline.found if sentence.code in MAP_CODES]
    return [" ".join(texts) for texts in (scores, on_map) if texts]


def legend_mark(side: str, hollow: bool = False) -> str:
    """The mark of a side, for a legend."""
    shape = _svg.mark((8.0, 8.0), side, hollow=hollow)
    return f'<svg class="key" viewBox="0 0 16 16" aria-hidden="true">{shape}</svg>'


# ---------------------------------------------------------------- the numbers


class _Measure(NamedTuple):
    """One line of the table: each value with its interval, which can be empty."""

    name: str
    hint: str
    values: list[tuple[str, str]]


def _measures(report: Report) -> list[_Measure]:
    """The table at the top: one row per measure, one column per side."""
    sides = [side for side in (report.before, report.after) if side is not None]
    proofs = [side.proof for side in sides]
    rows = [
        _row("Log loss", "lower is better", [side.log_loss.score for side in sides], [p.log_loss for p in proofs]),
        _row("Brier score", "lower is better", [side.brier.score for side in sides], [p.brier for p in proofs]),
        _calibration_error(proofs),
        _means(sides, report.data.prevalence),
        _row("Calibration slope", "below 1 is over-confident", [s.slope for s in sides], [p.slope for p in proofs], 2),
        _row("Calibration intercept", "0 is honest", [s.intercept for s in sides], [p.intercept for p in proofs], 2),
        _row("AUC", "0.5 is guessing", [Number(s.roc_auc) for s in sides], [p.roc_auc for p in proofs], 3),
        _row(
            "Average precision",
            "the event rate is guessing",
            [Number(side.average_precision) for side in sides],
            [p.average_precision for p in proofs],
            3,
        ),
    ]
    return rows if sides else []


def _row(
    name: str,
    hint: str,
    numbers: list[Number],
    ends: list[Interval | None] | list[Interval],
    decimals: int | None = None,
) -> _Measure:
    places = decimals_for([number.value for number in numbers]) if decimals is None else decimals
    return _Measure(name, hint, [(_shown(n, places), _between(end, places)) for n, end in zip(numbers, ends)])


def _between(found: Interval | None, places: int) -> str:
    if found is None or found.value is None or found.low is None:
        return ""
    return f"{fixed(found.low, places)} to {'infinity' if found.high is None else fixed(found.high, places)}"


def _calibration_error(proofs: list[Proof]) -> _Measure:
    found = [proof.calibration_error for proof in proofs]
    places = max(3, decimals_for([one.high for one in found], 3))
    values = [(fixed(one.value or 0.0, places), _between(one, places)) for one in found]
    return _Measure("Calibration error", "beyond chance; 0 is honest", values)


def _shown(number: Number, places: int) -> str:
    if number.value is not None:
        return fixed(number.value, places)
    return "infinite" if (number.reason or "").startswith("infinite") else "none"


def _means(sides: list[Side], prevalence: float) -> _Measure:
    """Mean predictions beside the event rate, with the same decimals."""
    means = [side.mean_predicted for side in sides]
    decimals = percent_decimals([prevalence, *means])
    return _Measure(
        "Mean prediction",
        f"event rate {percent(prevalence, decimals)}",
        [(percent(mean, decimals), "") for mean in means],
    )


# ---------------------------------------------------------------- reliability


class _Panel(NamedTuple):
    name: str
    chart: Markup
    rows: list[list[str]]
    outside: float


def _panel(side: Side, sides: list[Side]) -> _Panel:
    tallest = max(weight for one in sides for weight in one.reliability.bar_weights)
    decimals = bin_decimals([b for one in sides for b in one.reliability.bins])
    return _Panel(
        side.name,
        Markup(_charts.reliability_chart(side, tallest)),
        [bin_row(b, decimals) for b in side.reliability.bins],
        side.reliability.outside_scale,
    )


def bin_decimals(bins: list[Bin]) -> int:
    """Decimals of the percentages in the tables of bins: one usually, more where all rates are close to 0 or to 1."""
    rates = [rate for b in bins for rate in (b.mean_predicted, b.observed_rate) if rate is not None]
    reach = min(max(rates), 1 - min(rates))
    return 1 if reach >= 0.05 else 2 if reach >= 0.01 else 3 if reach >= 0.001 else 4


def bin_row(b: Bin, decimals: int) -> list[str]:
    """Cells of one bin in a table of bins."""
    whole = all(abs(100 * end - round(100 * end)) < 1e-9 for end in (b.low, b.high))
    ends = "–".join(_plain(end, 0 if whole else decimals) for end in (b.low, b.high))
    if b.mean_predicted is None or b.observed_rate is None or b.gap is None:
        return [ends, "0", EMPTY, EMPTY, EMPTY, EMPTY]
    rates = [_plain(b.mean_predicted, decimals), _plain(b.observed_rate, decimals)]
    limits = "–".join(_plain(end or 0.0, decimals) for end in (b.rate_low, b.rate_high))
    return [ends, count(b.rows), *rates, limits, signed(100 * b.gap, decimals)]


def _plain(share: float, decimals: int) -> str:
    """A percentage without its sign, for columns that say so."""
    return fixed(100 * share, decimals)


# ---------------------------------------------------------------- map, parts, sweep, ranking


def _examples(report: Report) -> list[list[str]]:
    if report.data.scale == "log-odds":
        return [[general(e.score), percent(e.before or 0.0), percent(e.after)] for e in report.map.examples]
    if report.data.scale == "probability":
        return [[percent(e.score), percent(e.after)] for e in report.map.examples]
    return [[general(e.score), percent(e.after)] for e in report.map.examples]


def _parts(sides: list[Side]) -> list[list[str]]:
    """Rows of the decomposition: score, side, total, miscalibration, discrimination, uncertainty."""
    rows = []
    for label, name in (("Log loss", "log_loss"), ("Brier score", "brier")):
        parts = [getattr(side, name) for side in sides]
        places = decimals_for([value for p in parts for value in (p.score.value, p.uncertainty)])
        for side, p in zip(sides, parts):
            values = [_shown(p.score, places), _shown(p.miscalibration, places)]
            rows.append([label, side.name, *values, fixed(p.discrimination, places), fixed(p.uncertainty, places)])
    return rows


def _part_charts(sides: list[Side]) -> list[tuple[str, Markup]]:
    if not sides:
        return []
    return [
        (label, Markup(_charts.decomposition_chart(name, label, [(side.name, getattr(side, field)) for side in sides])))
        for label, name, field in (
            ("Log loss", "parts-log", "log_loss"),
            ("Brier score", "parts-brier", "brier"),
        )
    ]


def _sweep(sides: list[Side]) -> list[list[str]]:
    rows = [row for side in sides for row in side.sweep]
    places = max(4, decimals_for([value for row in rows for value in row.values], 3))
    kinds = {"uniform": "equal width", "quantile": "equal mass"}
    return [
        [row.side, kinds[row.strategy], *(_swept(v, n, asked, places) for v, n, asked in _cells(row))] for row in rows
    ]


def _cells(row: Any) -> Any:
    return zip(row.values, row.bins_used, SWEEP_BINS)


def _swept(value: float, used: int, asked: int, places: int) -> str:
    return fixed(value, places) + ("" if used == asked else f" ({used})")


def _sweep_range(sides: list[Side]) -> list[tuple[str, str, str]]:
    """For each side, the least and the greatest calibration error of all bins."""
    found = []
    for side in sides:
        values = [value for row in side.sweep for value in row.values]
        places = max(3, decimals_for(values, 3))
        found.append((side.name, fixed(min(values), places), fixed(max(values), places)))
    return found


def _groups(report: Report) -> list[list[str]]:
    if report.groups is None:
        return []
    return [
        [
            line.group or "(none)",
            count(line.rows),
            *(_plain(rate, 1) for rate in (line.mean_predicted, line.observed_rate)),
            *(_with_ends(part) for part in (line.calibration_error, line.roc_auc)),
            line.verdict,
        ]
        for line in report.groups.lines
    ]


def _with_ends(found: Interval | None) -> str:
    return EMPTY if found is None else f"{fixed(found.value or 0.0, 3)} ({_between(found, 3)})"


def _roc_words(report: Report) -> str:
    after = "" if report.after is None else f"; of the cross-fitted probabilities {fixed(report.after.roc_auc, 3)}"
    return f"AUC of the scores {fixed(report.ranking.roc_auc, 3)}{after}."
