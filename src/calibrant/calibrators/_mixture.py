"""Mixing candidates: weights by out-of-fold log loss, and the weighted average of their maps.

Every candidate predicts each row from a fit without its fold; the mixture of these forecasts with the least log loss
(under a weak prior) gives the weights, and the learned map is the same mixture of the candidates fitted to all rows.
The identity, moved off 0 and 1 by `1 / (N + 1)` of the uniform distribution, is always a candidate.
May import NumPy, scikit-learn's clone, the kernels, `calibrant.maps`, `calibrant.data` and this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._kernels import mixing, smooth
from calibrant.calibrators._base import BinaryCalibrator
from calibrant.calibrators._cross_fit import columns_of, fold_tables
from calibrant.data import ScoreTable
from calibrant.errors import CalibrantWarning, InputError
from calibrant.maps import BinaryMap, IdentityMap, MixtureMap
from calibrant.metrics import shape_diagnosis

MOST_EVIDENCE = 1e12
"""Rows beyond which the prior is nothing anyway; more would drown it in rounding."""
LEAST_WEIGHT = 0.002
PRIOR_IDENTITY = 0.5
PRIOR_OTHER = 0.2
MOST_CELLS = 5_000
STEPS_OF_REPEATS = ((1_000, 5), (10_000, 2))


class Identity(BinaryCalibrator):
    """The scores as they are, moved off 0 and 1 by `1 / (N + 1)` of the uniform distribution."""

    def __init__(self, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    @property
    def _reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _learn(self, table: ScoreTable) -> IdentityMap:
        return IdentityMap(table.classes, 1 / (table.total_weight + 1), self.from_logits)


@dataclass(frozen=True)
class CandidateResult:
    """How one candidate did on rows it was not fitted on.

    Attributes
    ----------
    name : str
        The class of the candidate.
    log_loss, standard_error : float
        Mean out-of-fold log loss, and the standard error of its difference to the identity's.
    folds : tuple of float
        Log loss of each fold.
    weight : float
        Its weight in the mixture, in [0, 1].
    """

    name: str
    log_loss: float
    standard_error: float
    folds: tuple[float, ...]
    weight: float


class Outcome(NamedTuple):
    """Out-of-fold forecasts: probability given to what was observed (m, C), counts and fold of each observation."""

    chosen: Floats
    counts: Floats
    fold: Floats


def out_of_fold(
    table: ScoreTable, candidates: Sequence[BinaryCalibrator], folds: int, repeats: int, rng: np.random.Generator
) -> Outcome:
    """Forecasts of every candidate for every row, from fits without the row's fold; averaged over repeats as counts."""
    chosen, counts, fold_of = [], [], []
    for repeat in range(repeats):
        for number, (held, rest) in enumerate(fold_tables(table, folds, rng)):
            p = np.column_stack([quiet_map(one, rest)(held.scores) for one in candidates])
            chosen += [p, 1 - p]
            counts += [held.positives / repeats, held.negatives / repeats]
            fold_of.append(np.full(2 * len(held), repeat * folds + number))
    seen = np.concatenate(counts) > 0
    return Outcome(np.concatenate(chosen)[seen], np.concatenate(counts)[seen], np.concatenate(fold_of)[seen])


def quiet_map(candidate: BinaryCalibrator, table: ScoreTable) -> BinaryMap:
    """The map of a fresh fit, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        made: BinaryMap = clone(candidate)._fit_quietly(table).map_
    return made


def coarsened(distinct: ScoreTable) -> ScoreTable:
    """At most 5,000 cells of nearby scores, each at its mean score."""
    if len(distinct) <= MOST_CELLS:
        return distinct
    largest = max(float(distinct.scores[-1]), -float(distinct.scores[0]))
    found = smooth.gather(distinct.scores, columns_of(distinct), distinct.total_weight, largest, MOST_CELLS)
    mean = np.clip(largest * found.moment / (found.positives + found.negatives), found.least, found.greatest)
    given = (vars(distinct).get("rows"), vars(distinct).get("squared_weights"))
    rows, squares = (None if sums is None else np.add.reduceat(sums, found.starts) for sums in given)
    return ScoreTable._of_counts(
        mean, found.positives, found.negatives, rows, squares, distinct.classes, ascending=True
    )


def in_sample(table: ScoreTable, candidates: Sequence[BinaryCalibrator]) -> Outcome:
    """Forecasts of fits to the very rows: only for the identity, which fits nothing."""
    p = np.column_stack([quiet_map(one, table)(table.scores) for one in candidates])
    counts = np.concatenate([table.positives, table.negatives])
    seen = counts > 0
    return Outcome(np.concatenate([p, 1 - p])[seen], counts[seen], np.zeros(int(seen.sum())))


def repeats(rows: float) -> int:
    """How often the folds are drawn: more often when rows are few."""
    return next((times for most, times in STEPS_OF_REPEATS if rows < most), 1)


def prior_counts(candidates: int) -> Floats:
    """Dirichlet prior of the weights, the identity first."""
    return np.concatenate([[PRIOR_IDENTITY], np.full(candidates - 1, PRIOR_OTHER)])


def weigh(outcome: Outcome, prior: Floats) -> Floats:
    """Weights of the mixture with the least log loss; the smallest are dropped."""
    total = float(outcome.counts.sum())
    counts = outcome.counts if total <= MOST_EVIDENCE else outcome.counts * (MOST_EVIDENCE / total)
    weights = mixing.mixture_weights(outcome.chosen, counts, prior)
    kept = np.where(weights >= LEAST_WEIGHT, weights, 0.0)
    return np.asarray(kept / kept.sum())


def mixture(parts: Sequence[tuple[BinaryMap, float]], table: ScoreTable) -> BinaryMap:
    """The weighted average of the maps; a single one is itself."""
    if len(parts) == 1:
        return parts[0][0]
    return MixtureMap(table.classes, np.array([weight for _, weight in parts]), tuple(one for one, _ in parts))


def results(candidates: Sequence[BinaryCalibrator], outcome: Outcome, weights: Floats) -> tuple[CandidateResult, ...]:
    """A record per candidate; the identity is the first."""
    with np.errstate(divide="ignore"):
        losses = -np.log(outcome.chosen)
    total = float(outcome.counts.sum())
    made = []
    for k, candidate in enumerate(candidates):
        by_fold = _by_fold(losses[:, k], outcome)
        difference = losses[:, k] - losses[:, 0]
        error = np.inf
        if np.isfinite(difference).all():
            mean = float(outcome.counts @ difference / total)
            error = float(np.sqrt(outcome.counts @ (difference - mean) ** 2) / total)
        made.append(
            CandidateResult(
                type(candidate).__name__,
                float(outcome.counts @ losses[:, k] / total),
                error,
                tuple(by_fold.tolist()),
                float(weights[k]),
            )
        )
    return tuple(made)


def _by_fold(losses: Floats, outcome: Outcome) -> Floats:
    fold = outcome.fold.astype(np.int64)
    return np.asarray(np.bincount(fold, outcome.counts * losses) / np.bincount(fold, outcome.counts))


SHAPES = {
    "calibrated": "No distortion shows in these rows.",
    "affine": "A straight line on the log-odds explains the distortion.",
    "bent": "Beyond a straight line on the log-odds there is a bend.",
    "S-shaped": "Beyond a straight line on the log-odds there is an S-shape.",
    "not monotone": "The event rate falls somewhere as the score rises: look at the reliability diagram.",
    "not enough rows to tell": "The rows are too few to tell the shape of the distortion.",
}


def shape_in_words(table: ScoreTable, margins: bool) -> str:
    """What the diagnosis of the shape says; nothing where there is no line to compare with."""
    try:
        return " " + SHAPES[shape_diagnosis(table, from_logits=margins).verdict]
    except InputError:
        return ""


def reason(found: tuple[CandidateResult, ...], table: ScoreTable, margins: bool, folds: int) -> str:
    """The choice in a few sentences."""
    as_is = found[0]
    start = "The scores go beyond [0, 1], so they were read as margins, not as probabilities. " if margins else ""
    if len(found) == 1:
        return f"{start}A class has a single row, too few to learn a map from: the scores are left as they are."
    best = max(found, key=lambda one: one.weight)
    rows = f"{folds} folds of {table.total_weight:,.0f} rows"
    shape = shape_in_words(table, margins)
    closest = min(found[1:], key=lambda one: one.log_loss)
    if best is as_is:
        return (
            f"{start}The scores are left nearly alone ({as_is.weight:.0%} of the weight): out of fold their log loss "
            f"is {as_is.log_loss:.4f}, and the best candidate, {closest.name}, has {closest.log_loss:.4f} "
            f"({rows}).{shape}"
        )
    gain = as_is.log_loss - best.log_loss
    return (
        f"{start}{best.name} has most of the weight ({best.weight:.0%}): out of fold it brings the log loss from "
        f"{as_is.log_loss:.4f} to {best.log_loss:.4f}, a gain of {gain:.4f} with a standard error of "
        f"{best.standard_error:.4f} ({rows}).{shape}"
    )
