"""The automatic choice of a calibrator: every candidate is weighed, and the mixture is what is learned.

May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant import _checks
from calibrant._parameters import Choice, Either, Flag, Number, Rule, Seed, Sequenced, generator, optional
from calibrant.calibrators._auto_classes import learn_classes
from calibrant.calibrators._base import BinaryCalibrator, forget, warn_if_falling
from calibrant.calibrators._cross_fit import most_folds
from calibrant.calibrators._logistic import AffineLogit, PlattScaling
from calibrant.calibrators._misuse import warn_if_no_logits
from calibrant.calibrators._mixture import (
    CandidateResult,
    Identity,
    coarsened,
    in_sample,
    mixture,
    out_of_fold,
    prior_counts,
    quiet_map,
    reason,
    repeats,
    results,
    weigh,
)
from calibrant.calibrators._spline import SplineCalibration
from calibrant.calibrators._venn_abers import VennAbers
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, array_of, read_binary_rows, read_class_rows
from calibrant.errors import InputTypeError
from calibrant.maps import BinaryMap

TOLERANCE = _checks.PROBABILITY_TOLERANCE
FEW_ROWS = 100
MANY_ROWS = 500


class AutoCalibrator(BinaryCalibrator):
    """The best-evidenced map for the rows at hand: a mixture of candidates weighed by cross-validated log loss.

    The identity is always a candidate, so scores that are honest already are left nearly alone. The fewer the rows,
    the fewer and simpler the candidates. Binned calibration error plays no part.

    Parameters
    ----------
    candidates : sequence of calibrators, optional
        What to mix with the identity; None chooses by the number of rows.
    cv : int, default=5
        Folds of the cross-validation; fewer when the smaller class has fewer rows.
    from_logits : "auto" or bool, default="auto"
        Whether the scores are log-odds or margins (True) or probabilities (False); "auto" goes by their range.
    random_state : int, generator or None, default=0
        Draws the folds.
    classes : sequence, optional
        The labels of the columns, in order, when there are three or more and they are not 0..K-1.

    Attributes
    ----------
    best_ : str
        The candidate with the greatest weight.
    results_ : tuple of CandidateResult
        For each candidate its out-of-fold log loss, standard error, folds and weight.
    reason_ : str
        The choice in a sentence.
    map_ : MixtureMap, LogMixtureMap, or the map of the only candidate left
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels: negative and positive, or those of the columns.

    Notes
    -----
    Two classes: the candidates are a line on the log-odds, Venn-Abers from 100 rows on and a spline from 500 on; the
    weights maximise the out-of-fold log-likelihood of the mixture under a weak Dirichlet prior. K classes: temperature,
    structured vector and matrix scaling and one-versus-rest, as the rows allow, averaged in log-probability. Cost: `cv`
    fits of every candidate (two classes: on at most 5,000 cells), then one fit of each on all rows. Evidence for mixing
    over picking is in the documentation.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-z))
    >>> fitted = AutoCalibrator().fit(1 / (1 + np.exp(-3 * z)), y)
    >>> fitted.best_ != "Identity"
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "candidates": optional(Sequenced("a list of calibrators")),
        "cv": Number(2, whole=True),
        "from_logits": Either((Choice(("auto",)), Flag())),
        "random_state": Seed(),
        "classes": optional(Sequenced("a list of the labels of the columns")),
    }

    best_: str
    results_: tuple[CandidateResult, ...]
    reason_: str

    def __init__(
        self,
        candidates: Sequence[Any] | None = None,
        cv: int = 5,
        from_logits: Literal["auto"] | bool = "auto",
        random_state: Any = 0,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.from_logits = from_logits
        self.random_state = random_state
        self.classes = classes

    @property
    def _many_classes(self) -> bool:
        return True

    @property
    def _reads(self) -> str:
        return {"auto": "score", False: "probability", True: "logit"}[self.from_logits]

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Weigh the candidates and learn their mixture.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities, or log-odds, margins and logits.
        y : array-like of shape (n,)
            Labels; with three or more columns those of `classes`, or 0..K-1.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        self
        """
        array = array_of(scores, "scores")
        if array.ndim != 2 or array.shape[1] < 2:
            return super().fit(scores, y, sample_weight)
        self._check_parameters()
        if array.shape[1] > 2:
            return self._fit_classes(scores, y, sample_weight, self._margins_of(array))
        if self.from_logits == "auto" and self._margins_of(array):
            aligned(scores=scores, y=y, sample_weight=sample_weight)
            labels = array_of(y, "y")
            one = read_binary_rows(scores, labels, classes=self._coding(labels), reads="logit").scores
            super().fit(one, labels, sample_weight)
        else:
            super().fit(scores, y, sample_weight)
        self.n_features_in_ = 2
        return self

    def _fit_classes(self, scores: Any, y: Any, sample_weight: Any, logits: bool) -> Self:
        reads = "score" if logits else "probability"
        rows = read_class_rows(scores, y, sample_weight, self.classes, reads=reads)
        if logits:
            warn_if_no_logits(rows.scores)
        forget(self)
        choice = learn_classes(rows, logits, self.cv, generator(self.random_state), self.candidates)
        self.map_, self.results_, self.best_, self.reason_ = choice
        self.classes_ = np.array(rows.classes)
        self.n_features_in_ = rows.scores.shape[1]
        return self

    def _margins_of(self, array: Any) -> bool:
        """Whether the columns are logits: as told, or by their range."""
        if self.from_logits != "auto":
            return bool(self.from_logits)
        values = _checks.finite(_checks.numbers(array, "scores"), "scores")
        return bool(values.size) and not -TOLERANCE <= float(values.min()) <= float(values.max()) <= 1 + TOLERANCE

    def _coding(self, labels: Any) -> Any:
        return super()._coding(labels) if self.classes is None else _checks.class_names(self.classes, 2)

    def _learn(self, table: ScoreTable) -> BinaryMap:
        distinct = table.distinct
        warn_if_falling(distinct._auc < 0.5)
        margins = self._are_margins(distinct)
        candidates: list[BinaryCalibrator] = [Identity(margins), *self._others(distinct, margins)]
        coarse = coarsened(distinct)
        folds = min(self.cv, most_folds(coarse))
        if folds < 2:
            candidates = candidates[:1]
            outcome = in_sample(coarse, candidates)
            weights = np.ones(1)
        else:
            outcome = out_of_fold(coarse, candidates, folds, repeats(table.total_weight), generator(self.random_state))
            weights = weigh(outcome, prior_counts(len(candidates)))
        self.results_ = results(candidates, outcome, weights)
        self.best_ = self.results_[int(np.argmax(weights))].name
        self.reason_ = reason(self.results_, distinct, margins, folds)
        maps = [(quiet_map(one, table), weight) for one, weight in zip(candidates, weights) if weight > 0]
        return mixture(maps, table)

    def _are_margins(self, distinct: ScoreTable) -> bool:
        if self.from_logits != "auto":
            return bool(self.from_logits)
        return float(distinct.scores[0]) < -TOLERANCE or float(distinct.scores[-1]) > 1 + TOLERANCE

    def _others(self, distinct: ScoreTable, margins: bool) -> list[BinaryCalibrator]:
        if self.candidates is None:
            return usual_candidates(distinct, margins)
        for one in self.candidates:
            if not isinstance(one, BinaryCalibrator):
                raise InputTypeError(f"candidates must be binary calibrators of calibrant, but one is {one!r}.")
        return list(self.candidates)


def usual_candidates(distinct: ScoreTable, margins: bool) -> list[BinaryCalibrator]:
    """What is mixed with the identity: the fewer the rows, the fewer and simpler."""
    rows = distinct.total_weight
    line: BinaryCalibrator = PlattScaling() if margins else AffineLogit()
    if rows < FEW_ROWS:
        return [line]
    size = float(max(-distinct.scores[0], distinct.scores[-1]))
    if rows < MANY_ROWS or (margins and not 1e-50 < size < 1e50):  # a spline cannot bend on such a scale
        return [line, VennAbers()]
    return [line, VennAbers(), SplineCalibration(from_logits=margins)]
