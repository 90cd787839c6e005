"""The automatic choice for K classes: candidates weighed by cross-validated log loss, averaged in log-probability.

All candidates read probabilities that were first mixed with `1 / (N + 1)` of the uniform distribution, so that exact
zeros ruin none of them; the identity, always a candidate, is that mixture itself. A candidate's weight is
`exp(-SHARPNESS * its total out-of-fold log loss)`, divided by the sum of these.
May import NumPy, scikit-learn's clone, the kernels, `calibrant.maps`, `calibrant.data` and this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._kernels import newton, softmax
from calibrant.calibrators._base import BinaryCalibrator, Calibrator
from calibrant.calibrators._matrix_scaling import StructuredMatrixScaling
from calibrant.calibrators._mixture import CandidateResult, repeats
from calibrant.calibrators._one_vs_rest import OneVsRest
from calibrant.calibrators._scaling import ClassCalibrator, StructuredVectorScaling
from calibrant.calibrators._stepwise import IsotonicCalibration
from calibrant.calibrators._temperature import TemperatureScaling
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import CalibrantWarning
from calibrant.maps import AffineLogitMap, ClassIdentityMap, LogMixtureMap, Map

SHARPNESS = 0.25
"""How sharply out-of-fold losses decide: noisy differences count half of what a likelihood would make of them."""
LEAST_WEIGHT = 0.002
MOST_MATRIX, MOST_ONE_VS_REST = 30, 100
"""Most classes with a matrix, and with a calibrator each."""
ROWS_PER_CLASS = 10
"""Fewer rows than this for every class get a temperature alone."""
MOST_CELLS = 2**22
"""Cells of the rows that are cross-validated at most."""


class ClassIdentity(ClassCalibrator):
    """The probabilities as they are; what comes before has moved them off 0 and 1."""

    def __init__(self, from_logits: bool = False, classes: Sequence[Any] | None = None) -> None:
        self.from_logits = from_logits
        self.classes = classes

    def _learn(self, rows: ClassRows) -> ClassIdentityMap:
        return ClassIdentityMap(rows.classes, 0.0, self.from_logits)


class RidgeAffine(BinaryCalibrator):
    """An affine function of the log-odds with a normal prior of variance 1 on the slope."""

    @property
    def _reads(self) -> str:
        return "probability"

    def _learn(self, table: ScoreTable) -> AffineLogitMap:
        fit = newton.fit_logistic((fit_log_odds(table),), table.positives, table.weight, ridge=np.array([0.0, 1.0]))
        return AffineLogitMap(table.classes, float(fit.coefficients[1]), float(fit.coefficients[0]))


class Candidate(NamedTuple):
    """A calibrator of probability rows and what it is called."""

    name: str
    calibrator: Calibrator


class Choice(NamedTuple):
    """What the choice leaves: the map, a record per candidate, the name of the heaviest, a sentence."""

    map: LogMixtureMap
    results: tuple[CandidateResult, ...]
    best: str
    reason: str


def usual_class_candidates(total: float, n_classes: int) -> list[Candidate]:
    """What is weighed against the identity: the fewer the rows for the classes, the fewer and simpler."""
    found = [Candidate("TemperatureScaling", TemperatureScaling(mix=True))]
    if total < ROWS_PER_CLASS * n_classes:
        return found
    found.append(Candidate("StructuredVectorScaling", StructuredVectorScaling()))
    if n_classes <= MOST_MATRIX:
        light = StructuredMatrixScaling(penalty=0.1)
        found.append(Candidate("StructuredMatrixScaling", StructuredMatrixScaling()))
        found.append(Candidate("StructuredMatrixScaling(penalty=0.1)", light))
    if n_classes <= MOST_ONE_VS_REST:
        found.append(Candidate("OneVsRest(affine with a ridge)", OneVsRest(RidgeAffine())))
        found.append(Candidate("OneVsRest(IsotonicCalibration)", OneVsRest(IsotonicCalibration(smoothing=1.0))))
    return found


def learn_classes(
    rows: ClassRows,
    from_logits: bool,
    cv: int,
    rng: np.random.Generator,
    candidates: Sequence[Calibrator] | None = None,
) -> Choice:
    """Weigh the candidates and learn their mixture.

    Parameters
    ----------
    rows : ClassRows
        Checked rows: probabilities, or logits with `from_logits`.
    from_logits : bool
        Whether the scores are logits.
    cv : int
        Folds; fewer when there are fewer rows.
    rng : numpy.random.Generator
        Draws the folds.
    candidates : sequence of calibrators of K classes, optional
        What to weigh against the identity; they are given probabilities.
    """
    total = float(len(rows.labels)) if rows.weights is None else float(rows.weights.sum())
    mix = 1 / (total + 1)
    given = ClassRows(_moved(rows.scores, from_logits, mix), rows.labels, rows.weights, rows.classes)
    if len(rows.labels) < 2:
        others = []
    elif candidates is None:
        others = usual_class_candidates(total, given.scores.shape[1])
    else:
        others = [Candidate(_name_of(one), one) for one in candidates]
    listed = [Candidate("Identity", ClassIdentity()), *others]
    judged = _judged(given, listed, cv, rng, repeats(total))
    weights = _weights(judged, total)
    results = tuple(_result(one.name, k, judged, weights[k]) for k, one in enumerate(listed))
    parts = [(_quiet_map(one, given), float(weights[k])) for k, one in enumerate(listed) if weights[k] > 0]
    made = LogMixtureMap(
        rows.classes, np.array([weight for _, weight in parts]), tuple(one for one, _ in parts), mix, from_logits
    )
    best = results[int(np.argmax(weights))]
    return Choice(made, results, best.name, _reason(results, best, total, min(cv, len(rows.labels)), rows))


def _moved(scores: NDArray[Any], from_logits: bool, mix: float) -> NDArray[Any]:
    """Probabilities mixed with the uniform distribution, as precise as they were given."""
    p = softmax.softmax(scores) if from_logits else scores
    moved = p * scores.dtype.type(1 - mix)
    moved += scores.dtype.type(mix / scores.shape[1])
    return np.asarray(moved)


def _name_of(calibrator: Calibrator) -> str:
    inner = getattr(calibrator, "calibrator", None)
    return type(calibrator).__name__ + ("" if inner is None else f"({type(inner).__name__})")


def _quiet_map(candidate: Candidate, rows: ClassRows, kept: Any = slice(None)) -> Map:
    """The map of a fresh fit to some rows, without its warnings."""
    weights = None if rows.weights is None else rows.weights[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        made: Map = clone(candidate.calibrator).fit(rows.scores[kept], rows.labels[kept], weights).map_
    return replace(made, classes=rows.classes)


# ---------------------------------------------------------------- out of fold


class Judged(NamedTuple):
    """Out-of-fold log losses (m, C) of what was observed, the weight and the fold of each, folds of each repeat."""

    losses: Floats
    weights: Floats
    fold: NDArray[np.int64]


def _judged(rows: ClassRows, candidates: Sequence[Candidate], cv: int, rng: np.random.Generator, times: int) -> Judged:
    """Log losses of every candidate on every row, from fits without the row's fold."""
    order = _order(rows)
    most = max(2, MOST_CELLS // rows.scores.shape[1])
    if len(order) > most:
        order = order[np.sort(rng.permutation(len(order))[:most])]
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    folds = min(cv, len(order))
    if folds < 2:
        as_is = _losses(rows, order, [_quiet_map(one, rows) for one in candidates])
        return Judged(as_is, weights[order], np.zeros(len(order), dtype=np.int64))
    losses, counts, numbers = [], [], []
    for repeat in range(times):
        fold = _deal(rows.labels[order], folds, rng)
        for number in range(folds):
            held, rest = order[fold == number], order[fold != number]
            maps = [_quiet_map(one, rows, rest) for one in candidates]
            losses.append(_losses(rows, held, maps))
            counts.append(weights[held] / times)
            numbers.append(np.full(len(held), repeat * folds + number))
    return Judged(np.concatenate(losses), np.concatenate(counts), np.concatenate(numbers))


def _losses(rows: ClassRows, places: NDArray[Any], maps: Sequence[Map]) -> Floats:
    scores, labels = rows.scores[places], rows.labels[places]
    return np.column_stack([-softmax.log_floored(one(scores)[np.arange(len(labels)), labels]) for one in maps])


def _order(rows: ClassRows) -> NDArray[np.intp]:
    """An order of the rows that depends neither on theirs nor on that of the columns."""
    own = rows.scores[np.arange(len(rows.labels)), rows.labels]
    largest = np.sort(np.partition(rows.scores, -2, axis=1)[:, -2:], axis=1)
    keys = [largest[:, 0], largest[:, 1], own]
    return np.lexsort(keys if rows.weights is None else [rows.weights, *keys])


def _deal(labels: NDArray[np.int64], folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A fold for every row, at random, of equal size in every class and over all."""
    drawn = rng.permutation(len(labels))
    first = np.full(int(labels.max()) + 1, len(labels))
    np.minimum.at(first, labels, drawn)
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.lexsort([drawn, first[labels]])] = np.arange(len(labels)) % folds
    return fold


def _weights(judged: Judged, total: float) -> Floats:
    """Weights by total loss; the smallest are dropped."""
    mean = judged.weights @ judged.losses / judged.weights.sum()
    logs = -SHARPNESS * total * mean
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


# ---------------------------------------------------------------- in words


def _result(name: str, k: int, judged: Judged, weight: float) -> CandidateResult:
    losses, counts, total = judged.losses[:, k], judged.weights, judged.weights.sum()
    difference = losses - judged.losses[:, 0]
    away = difference - counts @ difference / total
    by_fold = np.bincount(judged.fold, counts * losses) / np.bincount(judged.fold, counts)
    error = float(np.sqrt(counts @ away**2) / total)
    return CandidateResult(name, float(counts @ losses / total), error, tuple(by_fold.tolist()), float(weight))


def _reason(
    results: tuple[CandidateResult, ...], best: CandidateResult, total: float, folds: int, rows: ClassRows
) -> str:
    """The choice in a sentence or two."""
    as_is, k = results[0], rows.scores.shape[1]
    evidence = f"{folds} folds of {total:,.0f} rows, {k} classes"
    few = " Rows are few for so many classes: more would allow richer maps." if total < ROWS_PER_CLASS * k else ""
    if len(results) == 1:
        return "There is a single row, too few to learn a map from: the scores are left as they are."
    if best is as_is:
        closest = min(results[1:], key=lambda one: one.log_loss)
        return (
            f"The scores are left nearly alone ({as_is.weight:.0%} of the weight): out of fold their log loss is "
            f"{as_is.log_loss:.4f}, and the best candidate, {closest.name}, has {closest.log_loss:.4f} "
            f"({evidence}).{few}"
        )
    return (
        f"{best.name} has most of the weight ({best.weight:.0%}): out of fold it brings the log loss from "
        f"{as_is.log_loss:.4f} to {best.log_loss:.4f}, a gain of {as_is.log_loss - best.log_loss:.4f} with a standard "
        f"error of {best.standard_error:.4f} ({evidence}).{few}"
    )
