"""Numbers, maps and messages as a person at a terminal would write them.

May import the standard library; the words for a map need `calibrant.maps` when they are asked for.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.data import ScoreTable
    from calibrant.maps import Map

_NAMED = r"\w+=(?:\"[^\"]*\"|'[^']*'|\w+)"
_ON_THE_COMMAND_LINE = (
    # an argument of Python with the option beside it: only the option is kept
    (re.compile(rf"{_NAMED}(?:(?:, | and ){_NAMED})*(?: on a file with semicolons)? \((--[^()]*)\)"), r"\1"),
    (re.compile(r"\bfit takes the greater label as the event.*pos_label=\.\.\.\)\)\."), "Check --pos-label."),
    (re.compile(r"\bfrom_logits=True, or PlattScaling\b"), "--from-logits, or --method platt"),
    (re.compile(r"\bfrom_logits=True( to it)?"), "--from-logits"),
    (re.compile(r"\bpos_label=('[^']*'|\w+)"), r"--pos-label \1"),
    (re.compile(r"\bpos_label\b"), "--pos-label"),
    (re.compile(r"\bclasses= \(--classes\)"), "--classes"),
    (re.compile(r"\bscores=(?='|\")"), "--scores "),
    (re.compile(r"\b(score|label|weight|group)=(?='|\")"), r"--\1 "),
    (re.compile(r"\b(separator|decimal)=(?='|\")"), r"--\1 "),
    (re.compile(r"^(separator|decimal) must"), r"--\1 must"),
    (re.compile(r"\buse PlattScaling\b"), "use --method platt"),
    (re.compile(r"\bAutoCalibrator, AffineLogit or smoothing=1\.0 is safer"), "--method auto or affine is safer"),
    (re.compile(r"^y (?=hold|must hold)"), "The label column "),
    (re.compile(r"\bfalse_positive and false_negative, or cost_matrix=.*$"), "--false-positive and --false-negative."),
    (re.compile(r"^at_(least|most)\b"), r"--at-\1"),
    (re.compile(r"^(guarantee|prevalence) (?=must)"), r"--\1 "),
    (re.compile(r"^expected_rows (?=must)"), "--expected-rows "),
    (re.compile(r"^new_prior (?=must)"), "--prevalence "),
    (re.compile(r"^train_prior (?=must)"), "--fitted-prevalence "),
    (re.compile(r"^calibration_(?:verdict|by_group): margin\b"), "--margin"),
    (re.compile(r"^Invalid value for '(--?[^']*)': (?:Value error, )?"), r"\1: "),
)


def for_command_line(message: str) -> str:
    """A message of the library on one line, with the names of options instead of those of Python arguments."""
    text = " ".join(message.split())
    for pattern, replacement in _ON_THE_COMMAND_LINE:
        text = pattern.sub(replacement, text)
    return text


def percent(share: float) -> str:
    """A share in percent, to three digits; never rounded to 0 % or 100 % unless it is that."""
    value = 100 * share
    text = f"{value:.3g}"
    if value < 100 and float(text) == 100:
        text = ">99.9"
    elif 0 < value < 1e-4:
        text = "<0.0001"
    return f"{text} %" if "e" not in text else f"{value:.6f} %"


def number(value: float, digits: int = 4) -> str:
    """A measure or a coefficient: fixed decimals, or a power of ten where those would hide it."""
    if math.isinf(value):
        return "infinite"
    if abs(value) >= 1e5 or 1e-14 < abs(value) < 1e-3:
        return f"{value:.{digits}g}" if abs(value) >= 1e5 else f"{value:.2e}"
    return f"{0.0 if abs(value) <= 1e-14 else value:.{digits}f}"


def rows_read(table: ScoreTable, name: str, dropped: int) -> str:
    """`1,797 rows of scores.csv, 174 with the event (9.68 %)`."""
    rows = f"{table.n_rows:,} row{'' if table.n_rows == 1 else 's'}"
    weighted = "" if table.total_weight == table.n_rows else f", total weight {table.total_weight:,.6g}"
    event = "" if table.classes[1] in (1, True) else f" {table.classes[1]!r}"
    left = f" Left out: {dropped:,} with missing cells." if dropped else ""
    return (
        f"{rows} of {name}{weighted}: the event{event} in {table.total_positives:,.9g} "
        f"({percent(table.prevalence)}).{left}"
    )


def map_in_words(record: Map) -> list[str]:
    """What a fitted map does, a line for its formula and a line for what that means."""
    from calibrant import maps

    if isinstance(record, maps.AffineLogitMap):
        formula = f"log-odds -> {number(record.intercept)} + {number(record.slope)} x log-odds"
        return [formula, _slope_in_words(record.slope)]
    if isinstance(record, maps.TemperatureMap):
        formula = f"log-odds -> log-odds / {number(1 / record.beta)}" if record.beta else "constant"
        return [formula, _slope_in_words(record.beta)]
    if isinstance(record, maps.PlattMap):
        formula = f"p = 1 / (1 + exp(-({number(record.intercept)} + {number(record.slope)} x score)))"
        half = f"p = 0.5 at a score of {number(-record.intercept / record.slope)}" if record.slope else "constant"
        return [formula, half]
    if isinstance(record, maps.StepMap):
        low, high = number(float(record.values[0])), number(float(record.values[-1]))
        return [f"{len(record.values):,} steps from p = {low} to p = {high}"]
    if isinstance(record, maps.LineMap):
        return [f"straight lines between {len(record.knots):,} points"]
    if isinstance(record, maps.MixtureMap):
        parts = ", ".join(f"{percent(weight)} {part.kind}" for weight, part in zip(record.weights, record.maps))
        return [f"a weighted average of {len(record.maps):,} maps: {parts}"]
    if isinstance(record, maps.QuadraticLogitMap):
        start, line, bend = (number(value) for value in (record.intercept, record.linear, record.square))
        return [f"log-odds -> {start} + {line} x log-odds + {bend} x log-odds^2"]
    if isinstance(record, maps.BetaMap):
        return [f"log-odds -> {number(record.c)} + {number(record.a)} x log p - {number(record.b)} x log(1 - p)"]
    if isinstance(record, maps.SplineMap):
        return [f"a smooth curve of the log-odds through {len(record.knots):,} knots"]
    if isinstance(record, maps.VennAbersMap):
        return [f"two rising staircases with {len(record.lower):,} steps, merged to one probability"]
    if isinstance(record, maps.IdentityMap):
        return ["the scores as they are, moved a little off 0 and 1" if record.mix else "the scores as they are"]
    return [f"a map of the kind {record.kind!r}"]


def _slope_in_words(slope: float) -> str:
    if slope < 0:
        return "slope below 0: the map turns the order of the scores round"
    if slope == 0:
        return "slope 0: the same probability for every score"
    if abs(slope - 1) < 0.005:
        return "slope 1: log-odds keep their size"
    if slope < 1:
        return "slope below 1: log-odds are drawn in, which is what over-confident scores need"
    return "slope above 1: log-odds are spread out, which is what under-confident scores need"
