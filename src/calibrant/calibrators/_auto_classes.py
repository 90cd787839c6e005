"""The automatic choice for K classes: candidates weighed by cross-validated log loss, averaged in log-probability.

Candidates read probabilities that were first mixed with `1 / (N + 1)` of the uniform distribution, so that exact zeros
ruin none of them. The identity, always there, is the mixture with a tenth of that: enough for a finite loss, and too
little to cost a good model anything. With g the gain of a candidate over the identity in mean out-of-fold log loss and
s its standard error, its weight goes with `exp(SHARPNESS * N * (g - CAUTION * s))`; half of the weight is the
identity's before any evidence.
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
from calibrant.calibrators._scaling import StructuredVectorScaling
from calibrant.calibrators._stepwise import IsotonicCalibration
from calibrant.calibrators._temperature import TemperatureScaling
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import CalibrantWarning, InputTypeError
from calibrant.maps import AffineLogitMap, ClassIdentityMap, LogMixtureMap, Map

SHARPNESS, CAUTION = 0.25, 1.0
"""How sharply gains decide, and how many standard errors are taken off them first."""
SHARE_IDENTITY = 0.1
"""Part of 1 / (N + 1) that the identity is mixed with."""
LEAST_WEIGHT = 0.002
MOST_MATRIX, MOST_ONE_VS_REST = 30, 100
"""Most classes with a matrix, and with a calibrator each."""
ROWS_PER_CLASS = 10
"""Fewer rows than this for every class get a temperature alone."""
MOST_CELLS = 2**22
"""Cells of the rows that are cross-validated at most."""


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
    others = _others(candidates, rows, total)
    judged = _judged(given, _as_is(rows, from_logits, SHARE_IDENTITY * mix), others, cv, rng, repeats(total))
    found = _results(judged, ["Identity", *(one.name for one in others)], total)
    kept = [(one, result.weight) for one, result in zip(others, found[1:]) if result.weight > 0]
    made = LogMixtureMap(
        rows.classes,
        np.array([found[0].weight, *(weight for _, weight in kept)]),
        np.array([SHARE_IDENTITY * mix, *(mix for _ in kept)]),
        (ClassIdentityMap(rows.classes), *(_quiet_map(one, given) for one, _ in kept)),
        from_logits,
    )
    best = max(found, key=lambda one: one.weight)
    return Choice(made, found, best.name, _reason(found, best, total, min(cv, len(rows.labels))))


def _others(candidates: Sequence[Calibrator] | None, rows: ClassRows, total: float) -> list[Candidate]:
    """What is weighed against the identity."""
    if len(rows.labels) < 2:
        return []
    if candidates is None:
        return usual_class_candidates(total, rows.scores.shape[1])
    for one in candidates:
        if not isinstance(one, Calibrator):
            raise InputTypeError(f"candidates must be calibrators of calibrant, but one is {one!r}.")
    return [Candidate(_name_of(one), one) for one in candidates]


def _own_log(rows: ClassRows) -> Floats:
    """Log-softmax of the logits at the labels."""
    top = rows.scores.max(axis=1)
    total = np.exp(rows.scores - top[:, None]).sum(axis=1, dtype=np.float64)
    return np.asarray(rows.scores[np.arange(len(top)), rows.labels] - top - np.log(total))


def _as_is(rows: ClassRows, from_logits: bool, mix: float) -> Floats:
    """Log losses of the identity, row by row."""
    given = rows.scores[np.arange(len(rows.labels)), rows.labels].astype(np.float64)
    own = np.exp(_own_log(rows)) if from_logits else given
    return np.asarray(-np.log((1 - mix) * own + mix / rows.scores.shape[1]))


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
    """Out-of-fold log losses (m, C) of what was observed, the identity first; weight and fold of each."""

    losses: Floats
    weights: Floats
    fold: NDArray[np.int64]


def _judged(
    rows: ClassRows, as_is: Floats, candidates: Sequence[Candidate], cv: int, rng: np.random.Generator, times: int
) -> Judged:
    """Log losses of every candidate on every row, from fits without the row's fold."""
    order = _order(rows)
    most = max(2, MOST_CELLS // rows.scores.shape[1])
    if len(order) > most:
        order = order[np.sort(rng.permutation(len(order))[:most])]
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    folds = min(cv, len(order))
    if not candidates:
        return Judged(as_is[order][:, None], weights[order], np.zeros(len(order), dtype=np.int64))
    losses, counts, numbers = [], [], []
    for repeat in range(times):
        fold = _deal(rows.labels[order], folds, rng)
        for number in range(folds):
            held, rest = order[fold == number], order[fold != number]
            maps = [_quiet_map(one, rows, rest) for one in candidates]
            losses.append(np.column_stack([as_is[held], _losses(rows, held, maps)]))
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


def _weights(gains: Floats, errors: Floats, total: float) -> Floats:
    """Weights by gain less its standard error; the identity, with a gain of 0, is first and never dropped.

    Before any evidence it has half of the weight, and the others share the rest.
    """
    logs = SHARPNESS * total * (gains - CAUTION * errors)
    logs[0] += np.log(max(1, len(logs) - 1))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    weights[1:][weights[1:] < LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def _results(judged: Judged, names: Sequence[str], total: float) -> tuple[CandidateResult, ...]:
    """A record per candidate, the identity first."""
    counts, seen = judged.weights, judged.weights.sum()
    means = counts @ judged.losses / seen
    differences = judged.losses - judged.losses[:, :1]
    errors = np.sqrt(counts @ (differences - (means - means[0])) ** 2) / seen
    weights = _weights(means[0] - means, errors, total)
    by_fold = [np.bincount(judged.fold, counts * column) for column in judged.losses.T]
    size = np.bincount(judged.fold, counts)
    return tuple(
        CandidateResult(name, float(means[k]), float(errors[k]), tuple((by_fold[k] / size).tolist()), float(weights[k]))
        for k, name in enumerate(names)
    )


def _reason(results: tuple[CandidateResult, ...], best: CandidateResult, total: float, folds: int) -> str:
    """The choice in a sentence or two."""
    as_is = results[0]
    if len(results) == 1:
        return "There is a single row, too few to learn a map from: the scores are left as they are."
    evidence = f"{folds} folds of {total:,.0f} rows"
    few = " Rows are few for so many classes: more would allow richer maps." if len(results) == 2 else ""
    floor = f"with {SHARE_IDENTITY / (total + 1):.1g} of the uniform distribution mixed in, which keeps it finite"
    if best is as_is:
        closest = min(results[1:], key=lambda one: one.log_loss)
        return (
            f"The scores are left nearly alone ({as_is.weight:.0%} of the weight): their log loss, {floor}, is "
            f"{as_is.log_loss:.4f}, and the best candidate, {closest.name}, has {closest.log_loss:.4f} out of fold "
            f"({evidence}).{few}"
        )
    gain = as_is.log_loss - best.log_loss
    return (
        f"{best.name} has most of the weight ({best.weight:.0%}): out of fold it brings the log loss from "
        f"{as_is.log_loss:.4f} (of the scores as they are, {floor}) to {best.log_loss:.4f}, a gain of {gain:.4f} with "
        f"a standard error of {best.standard_error:.4f} ({evidence}).{few}"
    )
