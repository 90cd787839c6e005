"""A repaired map: proposed from the rows since a change, judged on rows that came later.

Prevalence: a prior shift. Level and slope: a line on the log-odds. Shape: a smooth curve on the log-odds.
The judge is the likelihood ratio of the repaired map against the present one on later labelled rows: if the present
map were right, it would ever reach 1 / alpha with probability at most alpha.
May import NumPy, `calibrant.maps`, `calibrant.calibrators`, `_sums`, `_evidence` and `_cause`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import intervals, likelihood
from calibrant.calibrators import SplineCalibration
from calibrant.data import ScoreTable
from calibrant.maps import AffineLogitMap, IdentityMap, Map, PriorShiftMap
from calibrant.monitoring._cause import LEVEL, PREVALENCE, SCORES, SHAPE, Diagnosis
from calibrant.monitoring._evidence import Frame
from calibrant.monitoring._sums import Sums

LEAST_EVENTS = 20
"""Events, and other rows, that a repair is fitted on at least."""


@dataclass(frozen=True, eq=False)
class Repair:
    """A repaired map and how it does on later rows.

    Attributes
    ----------
    map : Map
        From the probabilities that are given now to repaired ones.
    cause : str
        What it repairs.
    fitted_rows, tested_rows : float
        Weight of the labelled rows it was fitted on, and of the later ones it was tested on.
    gain : float
        Log loss that it takes off on the later rows, all together; its exponential is the likelihood ratio.
    low, high : float
        95 % interval of the gain for one row; infinite up to one row.
    confirmed : bool
        Whether the likelihood ratio reached 1 / alpha: it may be adopted.
    """

    map: Map
    cause: str
    fitted_rows: float
    tested_rows: float = 0.0
    gain: float = 0.0
    squares: float = 0.0
    confirmed: bool = False

    @property
    def low(self) -> float:
        """Lower end of the gain for one row."""
        return self._end(-1)

    @property
    def high(self) -> float:
        """Upper end of the gain for one row."""
        return self._end(1)

    def _end(self, sign: int) -> float:
        if self.tested_rows <= 1:  # one row has no spread
            return sign * np.inf
        mean = self.gain / self.tested_rows
        variance = max(self.squares / self.tested_rows - mean**2, 0.0)
        return float(mean + sign * intervals.normal_quantile(0.95) * np.sqrt(variance / (self.tested_rows - 1)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("cause", "fitted_rows", "tested_rows", "gain", "squares", "confirmed")
        return {"map": self.map.to_dict(), **{name: getattr(self, name) for name in names}}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Repair:
        """The repair that `to_dict` wrote."""
        return Repair(**{**content, "map": Map.from_dict(content["map"])})


def proposed(frame: Frame, sums: Sums, found: Diagnosis) -> Repair | None:
    """A repair of what was found, where labels support one."""
    events, others = float(sums.positives.sum()), float(sums.negatives.sum())
    if found.cause in (None, SCORES) or min(events, others) < LEAST_EVENTS:
        return None
    return Repair(_map(frame, sums, found), str(found.cause), events + others)


def _map(frame: Frame, sums: Sums, found: Diagnosis) -> Map:
    classes = frame.reference.classes
    if found.cause == SHAPE:
        return _curve(frame, sums)
    if found.cause == PREVALENCE:
        share = float(sums.positives.sum() / sums.labelled.sum())
        return PriorShiftMap(classes, frame.reference.prevalence, share, (IdentityMap(classes),))
    level = float(found.curve[0])
    if found.cause == LEVEL:
        return AffineLogitMap(classes, 1.0, level)
    centre, spread = frame.centre_and_spread
    tilt = float(found.curve[1]) / spread
    return AffineLogitMap(classes, 1.0 + tilt, level - tilt * centre)


def _curve(frame: Frame, sums: Sums) -> Map:
    used = sums.labelled > 0
    mean_p, weight = sums.sum_p[used] / sums.labelled[used], sums.labelled[used]
    counts = (np.round(sums.positives[used]), np.round(sums.negatives[used]))
    table = ScoreTable._of_counts(mean_p, *counts, weight, weight, frame.reference.classes)
    return SplineCalibration()._fit_quietly(table).map_


def tested(repair: Repair, frame: Frame, batch: Sums, alpha: float) -> Repair:
    """The repair after the labelled rows of one more batch."""
    used = batch.labelled > 0
    if not used.any():
        return repair
    hits, misses = batch.positives[used], batch.negatives[used]
    z = frame.log_odds_of(batch.sum_p[used] / batch.labelled[used])
    moved = _log_odds_after(repair.map, z, frame)
    worth = 1 / max(batch.largest, 1.0)
    hit = np.logaddexp(0, -z) - np.logaddexp(0, -moved)
    miss = np.logaddexp(0, z) - np.logaddexp(0, moved)
    gain = repair.gain + worth * float((hits * hit + misses * miss).sum())
    squares = repair.squares + worth * float((hits * hit**2 + misses * miss**2).sum())
    rows = repair.tested_rows + worth * float(batch.labelled.sum())
    confirmed = repair.confirmed or bool(gain >= -np.log(alpha))
    return replace(repair, gain=gain, squares=squares, tested_rows=rows, confirmed=confirmed)


def _log_odds_after(record: Map, z: Floats, frame: Frame) -> Floats:
    return frame.log_odds_of(record(likelihood.expit(z)))
