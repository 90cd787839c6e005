"""What kind of distortion the scores have: the diagnosis of the shape in words, and the picture of what is left.

May import the standard library, NumPy, `calibrant.metrics`, and `_svg`, `_words` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics import ShapeDiagnosis, shape_diagnosis
from calibrant.view import _svg
from calibrant.view._svg import Frame
from calibrant.view._words import fixed

WORDS = {
    "calibrated": "No distortion shows in these rows: neither a slope, nor a bend, nor an S-shape.",
    "affine": "A straight line on the log-odds is all the correction that these rows support.",
    "bent": "A straight line does not do: the correction bends. QuadraticLogit, SplineCalibration or AutoCalibrator "
    "can follow it.",
    "S-shaped": "A straight line does not do: the correction is S-shaped. BetaCalibration, SplineCalibration or "
    "AutoCalibrator can follow it.",
    "not monotone": "Somewhere the event gets rarer as the score rises. No rising map can mend that: look for two "
    "kinds of rows mixed in one score, or for a broken feature.",
    "not enough rows to tell": "The rows are too few to tell a distortion from chance.",
}


@dataclass(frozen=True)
class Residual:
    """A group of rows: log-odds after the best line, and what the event's log-odds differ from it, with 95 % limits."""

    predicted: float
    left: float
    low: float
    high: float


@dataclass(frozen=True)
class ShapeCard:
    """The verdict, its words and tests, and the residuals."""

    verdict: str
    words: str
    slope: float
    intercept: float
    slope_error: float
    p_value: float
    falling_p_value: float
    residuals: tuple[Residual, ...]


def shape_card(table: ScoreTable, from_logits: bool) -> ShapeCard | None:
    """The card of a table; None where there is no line to compare with (separable or constant scores)."""
    try:
        found = shape_diagnosis(table, from_logits=from_logits)
    except InputError:
        return None
    return ShapeCard(
        found.verdict,
        WORDS[found.verdict],
        found.slope,
        found.intercept,
        found.slope_error,
        found.p_value,
        found.falling_p_value,
        _residuals(found),
    )


def _residuals(found: ShapeDiagnosis) -> tuple[Residual, ...]:
    rate = 1 / (1 + np.exp(-found.observed))
    reach = 1.96 / np.sqrt((found.weight + 1) * rate * (1 - rate))
    left = found.observed - found.predicted
    rows = np.column_stack([found.predicted, left, left - reach, left + reach])
    return tuple(Residual(*row) for row in rows.tolist())


def p_value_text(value: float) -> str:
    """`0.034`, or `below 0.001`."""
    return "below 0.001" if value < 0.001 else f"= {fixed(value, 3)}"


def shape_chart(card: ShapeCard) -> str:
    """What is left after the best line, group by group, on the log-odds."""
    rows = card.residuals
    xs = [row.predicted for row in rows]
    low, high = min(xs), max(xs)
    margin = 0.06 * (high - low) or 1.0
    tallest = _svg.nice_top(min(max(max(abs(row.low), abs(row.high)) for row in rows), 6.0))
    plot = Frame(56, 32, 352, 210, (low - margin, high + margin), (-tallest, tallest))
    x_ticks, y_ticks = _svg.steps(low, high, 4), [-tallest, -tallest / 2, 0.0, tallest / 2, tallest]
    parts = [
        plot.ground(x_ticks, y_ticks),
        _svg.line(plot.at(low - margin, 0.0), plot.at(high + margin, 0.0), "diagonal"),
        *(_mark(plot, row, tallest) for row in rows),
        plot.x_labels(x_ticks, [fixed(tick, 1) for tick in x_ticks]),
        plot.y_labels(y_ticks, [fixed(tick, 2) for tick in y_ticks]),
        plot.x_name("log-odds after the best straight line"),
        plot.y_name("log-odds of the event beyond the line, with 95 % limits"),
    ]
    words = (
        f"Verdict: {card.verdict}. Each mark is a group of rows of equal size; marks off the middle line show a bend."
    )
    return _svg.picture("shape", (428, 292), "What a straight line leaves", words, parts)


def _mark(plot: Frame, row: Residual, tallest: float) -> str:
    def inside(value: float) -> float:
        return min(max(value, -tallest), tallest)

    limits = _svg.line(plot.at(row.predicted, inside(row.low)), plot.at(row.predicted, inside(row.high)), "gap before")
    title = f"{fixed(row.left, 2)} beyond the line, limits {fixed(row.low, 2)} to {fixed(row.high, 2)}"
    return limits + _svg.mark(plot.at(row.predicted, inside(row.left)), "before", title=title)
