"""The one table of method names: what `--method` may be, the class behind each, and what it is good for.

May import `calibrant.errors`; the class is imported when one is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators._base import BinaryCalibrator


class Method(StrEnum):
    """The names."""

    AUTO = "auto"
    AFFINE = "affine"
    TEMPERATURE = "temperature"
    QUADRATIC = "quadratic"
    BETA = "beta"
    SPLINE = "spline"
    PLATT = "platt"
    ISOTONIC = "isotonic"
    VENN_ABERS = "venn-abers"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Entry:
    """A class of `calibrant.calibrators`, whether it works on log-odds, and itself in a few words."""

    calibrator: str
    on_log_odds: bool
    words: str


TABLE = {
    Method.AUTO: Entry(
        "AutoCalibrator", True, "mixes the candidates that the rows support, the scores as they are included"
    ),
    Method.AFFINE: Entry("AffineLogit", True, "slope and intercept on the log-odds"),
    Method.TEMPERATURE: Entry("TemperatureScaling", True, "one slope on the log-odds"),
    Method.QUADRATIC: Entry("QuadraticLogit", True, "a bend on the log-odds"),
    Method.BETA: Entry("BetaCalibration", False, "a slope for each end of the probabilities"),
    Method.SPLINE: Entry("SplineCalibration", True, "a smooth curve on the log-odds, for thousands of rows"),
    Method.PLATT: Entry("PlattScaling", False, "sigmoid of a score on any scale"),
    Method.ISOTONIC: Entry("IsotonicCalibration", False, "rising steps, for many rows"),
    Method.VENN_ABERS: Entry("VennAbers", False, "isotonic with room for doubt"),
    Method.HISTOGRAM: Entry("HistogramBinning", False, "the event rate of each bin"),
}

HELP = "; ".join(f"{method.value}: {entry.words}" for method, entry in TABLE.items())


def named(name: str | None) -> Method | None:
    """The method of that name; None stays None."""
    if name is None or name in list(Method):
        return None if name is None else Method(name)
    known = ", ".join(repr(method.value) for method in Method)
    raise InputError(f"--method: {name!r} is not one of {known}. For many classes, with --scores, there are others.")


def make(method: Method, from_logits: bool) -> BinaryCalibrator:
    """A calibrator with its defaults."""
    from calibrant import calibrators

    entry = TABLE[method]
    made = getattr(calibrators, entry.calibrator)
    if not from_logits:
        return made()  # type: ignore[no-any-return]
    if not entry.on_log_odds:
        able = ", ".join(name.value for name, other in TABLE.items() if other.on_log_odds)
        raise InputError(
            f"--from-logits is for the methods that work on log-odds ({able}); --method {method.value} takes any score "
            f"as it is. Leave --from-logits out, or choose one of those."
        )
    return made(from_logits=True)  # type: ignore[no-any-return]
