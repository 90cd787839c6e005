"""Evidence against "nothing has changed" that may be looked at after every batch: e-processes.

Two of them. *Labels*: under the null hypothesis the event of each row has the probability p that was given, so the
likelihood ratio of any other curve q is a martingale; a hundred curves (other levels, slopes, bends and bumps) share
the evidence. Over a bin the mean p is used: its product of expected ratios is at most 1, because the geometric mean is
at most the arithmetic one. *Scores*: under the null hypothesis scores come from the distribution of the reference, so
the mean of a feature h lies in the interval that the reference gives it, and `1 + bet (h - end)` has an expectation of
at most 1; five features, both directions, four sizes of the bet share the evidence.
A change can begin with any batch. Each curve's capital is spread over all beginnings, one share being staked at each
batch, so that evidence does not wear off while nothing happens: capital = active + reserve, and with each batch
`active <- (active + released) * ratio`. The expectation of the total never exceeds 1, so it ever reaches 1 / alpha with
probability at most alpha (Ville).
Source: Shafer and Vovk (2019); Waudby-Smith and Ramdas (2024), section 4 (bets on bounded means); Shin, Ramdas and
Rinaldo (2023), E-detectors (changes at unknown times).
May import NumPy, the kernels and `_sums`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import intervals, likelihood
from calibrant.monitoring._sums import Reference, Sums

SHARES = {"labels": 0.6, "scores": 0.2, "reference": 0.2}
"""How alpha is divided: the two tests, and the intervals that the reference gives to the features."""
LEVELS = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.6)
SLOPES = (0.5, 0.65, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)
SLOPE_LEVELS = (-0.9, -0.4, -0.15, 0.0, 0.15, 0.4, 0.9)
BENDS = (0.1, 0.2, 0.4, 0.8)
TURNS = (0.05, 0.1, 0.2)
BUMPS = (0.25, 0.5, 1.0)
N_BUMPS = 5
BETS = (0.05, 0.12, 0.3, 0.7)


@dataclass(frozen=True, eq=False)
class Frame:
    """What the tests take from the reference: the scale of the log-odds, and features of the bins."""

    reference: Reference

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of the mean probability of each bin."""
        return self.log_odds_of(self.reference.mean_p)

    def log_odds_of(self, mean_p: Floats) -> Floats:
        """Log-odds with 0 and 1 moved to the floor."""
        floor = self.reference.floor
        return likelihood.log_odds(np.clip(mean_p, floor, 1 - floor))

    @cached_property
    def centre_and_spread(self) -> tuple[float, float]:
        """Mean and deviation of the log-odds, each bin weighted by what its labels tell."""
        p = self.reference.mean_p
        told = self.reference.weight * np.maximum(p * (1 - p), self.reference.floor)
        centre = float(np.average(self.log_odds, weights=told))
        spread = float(np.sqrt(np.average((self.log_odds - centre) ** 2, weights=told)))
        return centre, max(spread, 1e-3)

    def standardised(self, z: Floats) -> Floats:
        """Log-odds in units of the reference, far ones drawn in."""
        centre, spread = self.centre_and_spread
        return np.clip((z - centre) / spread, -4.0, 4.0)

    def curves(self, z: Floats) -> Floats:
        """What every alternative adds to the log-odds, (curves, B)."""
        u = self.standardised(z)
        spread = self.centre_and_spread[1]
        one = np.ones_like(u)
        rows = [sign * level * one for level in LEVELS for sign in (1, -1)]
        rows += [level * one + (slope - 1) * spread * u for slope, level in product(SLOPES, SLOPE_LEVELS)]
        rows += [sign * bend * (u**2 - 1) for bend in BENDS for sign in (1, -1)]
        rows += [sign * turn * (u**3 - 3 * u) for turn in TURNS for sign in (1, -1)]
        groups = np.arange(len(u)) * N_BUMPS // len(u)
        rows += [sign * bump * (groups == g) for bump in BUMPS for sign in (1, -1) for g in range(N_BUMPS)]
        return np.clip(np.array(rows, dtype=np.float64), -5.0, 5.0)

    @cached_property
    def features(self) -> Floats:
        """Five numbers in [0, 1] for every bin, (5, B): rank, spread, the two tails, the probability itself."""
        share = self.reference.weight / self.reference.weight.sum()
        rank = np.cumsum(share) - share / 2
        p = self.reference.mean_p / max(float(self.reference.mean_p.max()), 1e-12)
        return np.stack([rank, np.abs(2 * rank - 1), rank > 0.9, rank < 0.1, p]).astype(np.float64)

    def bets(self, alpha: float) -> Floats:
        """Logarithms of what each bet pays for a row in each bin, (bets, B)."""
        share = self.reference.weight / self.reference.weight.sum()
        z = intervals.normal_quantile(1 - alpha * SHARES["reference"] / len(self.features))
        rows = []
        for h in self.features:
            mean = float((share * h).sum())
            deviation = max(float(np.sqrt((share * (h - mean) ** 2).sum())), 1e-9)
            margin = z * deviation / np.sqrt(self.reference.rows) + z**2 / (3 * self.reference.rows)
            for bet, sign in product(BETS, (1, -1)):
                gain = sign * (h - mean) - margin
                rows.append(np.log1p(min(bet / deviation, 0.9 / max(-float(gain.min()), 1e-9)) * gain))
        return np.array(rows)


def label_ratios(frame: Frame, batch: Sums) -> Floats:
    """Logarithm of the likelihood ratio of every curve on the labelled rows of a batch."""
    used = batch.labelled > 0
    mean_p = batch.sum_p[used] / batch.labelled[used]
    z = frame.log_odds_of(mean_p)
    full = frame.log_odds.copy()
    full[used] = z
    shift = frame.curves(full)[:, used]
    floor = frame.reference.floor
    # Where p is 0 (or 1), only curves above (below) can be told from it without an unfair gain.
    shift = np.where(mean_p < floor, np.maximum(shift, 0), np.where(mean_p > 1 - floor, np.minimum(shift, 0), shift))
    base = np.logaddexp(0, z)
    moved = np.logaddexp(0, z + shift)
    ratios = batch.positives[used] * shift - batch.labelled[used] * (moved - base)
    return np.asarray(ratios.sum(axis=1) / max(batch.largest, 1.0))


def score_ratios(bets: Floats, batch: Sums) -> Floats:
    """Logarithm of what every bet pays on the scores of a batch."""
    return np.asarray((bets * batch.scored).sum(axis=1) / max(batch.largest, 1.0))


@dataclass(frozen=True, eq=False)
class Capital:
    """The e-process of one test: capital at work for each alternative, and what is still in reserve (logarithms)."""

    active: Floats
    reserve: float

    @staticmethod
    def start(n_alternatives: int) -> Capital:
        """Everything in reserve."""
        return Capital(np.full(n_alternatives, -np.inf), 0.0)

    def after(self, log_ratios: Floats) -> Capital:
        """One batch later: a share of the reserve is staked with the rest."""
        staked = 2 * self.reserve - np.log1p(np.exp(self.reserve))
        left = self.reserve - np.log1p(np.exp(self.reserve))
        return Capital(np.logaddexp(self.active, staked) + log_ratios, float(left))

    @property
    def log_value(self) -> float:
        """Logarithm of the mean capital over the alternatives."""
        return float(np.logaddexp.reduce(np.logaddexp(self.active, self.reserve)) - np.log(len(self.active)))

    def times(self, other: Capital) -> Capital:
        """The capital of two independent streams, one staked on the other."""
        both = np.logaddexp(self.active, self.reserve) + np.logaddexp(other.active, other.reserve)
        reserve = self.reserve + other.reserve
        with np.errstate(divide="ignore"):
            active = both + np.log(-np.expm1(np.minimum(reserve - both, 0.0)))
        return Capital(active, reserve)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None is nothing at work."""
        return {"active": [None if np.isinf(v) else v for v in self.active.tolist()], "reserve": self.reserve}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Capital:
        """The capital that `to_dict` wrote."""
        active = [-np.inf if value is None else value for value in content["active"]]
        return Capital(np.array(active, dtype=np.float64), float(content["reserve"]))
