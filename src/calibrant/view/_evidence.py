"""What the sentences are written from: the facts of the data, the ranking, both sides, and the verdict they lead to.

Invariant: a verdict never rests on a difference that chance explains (two standard errors), and few rows never count
as proof of anything.
May import the standard library and `_measured` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibrant.view._measured import CLEAR, Gain, Side

FEW = 64
"""Below this many rows of the smaller class, twice the standard error of its rate is a quarter of the rate."""
TINY = 10
BARELY = 0.03
SATURATED = 0.005

Verdict = Literal[
    "constant",
    "not-cross-fitted",
    "decisions",
    "flipped",
    "separable",
    "no-signal",
    "cannot-tell",
    "map-not-enough",
    "leave-alone",
    "small-gain",
    "use-map",
]


@dataclass(frozen=True)
class Data:
    """The rows. `scale` says how the scores were read; weights are frequencies."""

    rows: int
    weighted: bool
    total_weight: float
    events: float
    prevalence: float
    event: str
    other: str
    distinct_scores: int
    lowest_score: float
    highest_score: float
    share_at_zero: float
    share_at_one: float
    scale: Literal["probability", "log-odds", "score"]

    @property
    def smaller_class(self) -> float:
        """Weight of the rarer of the two classes."""
        return min(self.events, self.total_weight - self.events)

    @property
    def hard_labels(self) -> bool:
        """Whether the scores are only 0 and 1."""
        ends = self.scale == "probability" and (self.lowest_score, self.highest_score) == (0.0, 1.0)
        return ends and self.distinct_scores == 2

    @property
    def saturated(self) -> bool:
        """Whether more than a few scores are exactly 0 or 1."""
        return self.share_at_zero + self.share_at_one >= SATURATED

    @property
    def rarer_share(self) -> float:
        """Share of the rarer class."""
        return min(self.prevalence, 1 - self.prevalence)


@dataclass(frozen=True)
class Ranking:
    """How well the scores as given rank; `chance_error` is the standard error of the AUC of a worthless score."""

    roc_auc: float
    average_precision: float
    chance_error: float
    separable: bool

    @property
    def within_chance(self) -> bool:
        """Whether the AUC cannot be told from one half."""
        return abs(self.roc_auc - 0.5) <= CLEAR * self.chance_error

    @property
    def barely(self) -> bool:
        """Whether the AUC is one half for all practical purposes."""
        return self.within_chance or abs(self.roc_auc - 0.5) < BARELY

    @property
    def falls(self) -> bool:
        """Whether the score clearly falls as the event gets likelier."""
        return self.roc_auc < 0.5 and not self.barely


@dataclass(frozen=True)
class Evidence:
    """All that the headline may speak of."""

    data: Data
    ranking: Ranking
    calibrator: str
    before: Side | None
    after: Side | None
    gain: Gain | None
    distortion: str | None
    """The verdict of the shape diagnosis."""


# ---------------------------------------------------------------- judgements


def shapes(side: Side, data: Data) -> tuple[str, ...]:
    """Which way the probabilities are off, where it is clear: of the slope, and on the whole."""
    found = []
    if side.slope.value is not None and side.slope_error is not None:
        off = side.slope.value - 1
        if abs(off) > CLEAR * side.slope_error:
            found.append("under-confident" if off > 0 else "over-confident")
    shift = data.prevalence - side.mean_predicted
    if abs(shift) > max(CLEAR * side.mean_error, 1e-12):
        found.append("too low" if shift > 0 else "too high")
    return tuple(found)


def misses(side: Side, data: Data) -> bool:
    """Whether the bins miss clearly and by an amount that matters."""
    enough = data.smaller_class >= TINY
    return enough and side.misfit.clear and side.misfit.typical_gap > min(0.02, 0.2 * data.rarer_share)


def worse_than_base_rate(side: Side) -> bool:
    """Whether predicting the base rate for every row would have had the better score, by 1 % or more."""
    parts = side.log_loss if side.log_loss.score.value is not None else side.brier
    return parts.score.value is not None and parts.score.value > 1.01 * parts.uncertainty


def small(gain: Gain) -> bool:
    """Whether the gain is clear but changes little: under 1 %, and under half a point for a typical row."""
    return gain.gain < 0.01 * gain.baseline and (gain.mean_move or 0.0) < 0.005


def verdict(evidence: Evidence) -> Verdict:
    """The one-word answer, the worst news first."""
    if evidence.data.distinct_scores == 1:
        return "constant"
    if evidence.after is None or evidence.gain is None:
        return "not-cross-fitted"
    if evidence.data.hard_labels:
        return "decisions"
    if evidence.ranking.falls:
        return "flipped"
    if evidence.ranking.separable:
        return "separable"
    few = evidence.data.smaller_class < FEW
    if evidence.data.smaller_class < TINY or (few and evidence.ranking.within_chance):
        return "cannot-tell"
    if evidence.ranking.barely:
        return "no-signal"
    return _verdict_on_map(evidence, evidence.after, evidence.gain)


def _verdict_on_map(evidence: Evidence, after: Side, gain: Gain) -> Verdict:
    if gain.clear:
        if misses(after, evidence.data) or worse_than_base_rate(after) or certain_and_wrong(after):
            return "map-not-enough"
        return "small-gain" if small(gain) else "use-map"
    if evidence.before is None or evidence.data.smaller_class < FEW:
        return "cannot-tell"
    return "map-not-enough" if misses(evidence.before, evidence.data) else "leave-alone"


def certain_and_wrong(side: Side) -> bool:
    """Whether something happened that had probability 0."""
    return side.log_loss.score.value is None
