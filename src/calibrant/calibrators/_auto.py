"""The automatic choice of a calibrator: every candidate is weighed, and the mixture is what is learned.

May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant import _checks
from calibrant._kernels import ranking
from calibrant._parameters import Choice, Either, Flag, Number, Rule, Seed, Sequenced, generator, optional
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._cross_fit import most_folds
from calibrant.calibrators._logistic import AffineLogit, PlattScaling
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
from calibrant.calibrators._polynomial import BetaCalibration, QuadraticLogit
from calibrant.calibrators._spline import SplineCalibration
from calibrant.calibrators._venn_abers import VennAbers
from calibrant.data import ScoreTable
from calibrant.errors import InputTypeError
from calibrant.maps import BinaryMap

FEW_ROWS = 100
MANY_ROWS = 500


class AutoCalibrator(BinaryCalibrator):
    """The best-evidenced map for the rows at hand: a mixture of candidates weighed by cross-validated log loss.

    The identity is always a candidate, so scores that are honest already are left nearly alone. The fewer the rows,
    the fewer and simpler the candidates. Binned calibration error plays no part.

    Parameters
    ----------
    candidates : sequence of binary calibrators, optional
        What to mix with the identity; None chooses by the number of rows.
    cv : int, default=5
        Folds of the cross-validation; fewer when the smaller class has fewer rows.
    from_logits : "auto" or bool, default="auto"
        Whether the scores are log-odds or margins (True) or probabilities (False); "auto" goes by their range.
    random_state : int, generator or None, default=0
        Draws the folds.

    Attributes
    ----------
    best_ : str
        The candidate with the greatest weight.
    results_ : tuple of CandidateResult
        For each candidate its out-of-fold log loss, standard error, folds and weight.
    reason_ : str
        The choice in a sentence.
    map_ : MixtureMap, or the map of the only candidate left
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Weights: the maximum of the out-of-fold log-likelihood of the mixture under a weak Dirichlet prior. Cost: `cv` fits
    of every candidate on at most 5,000 cells, then one fit of each on all rows. Evidence for mixing over picking is in
    the documentation.

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
        "candidates": optional(Sequenced("a list of binary calibrators")),
        "cv": Number(2, whole=True),
        "from_logits": Either((Choice(("auto",)), Flag())),
        "random_state": Seed(),
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
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.from_logits = from_logits
        self.random_state = random_state

    @property
    def _reads(self) -> str:
        return {"auto": "score", False: "probability", True: "logit"}[self.from_logits]

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Weigh the candidates and learn their mixture.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Probabilities, or log-odds and margins.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        self
        """
        return super().fit(scores, y, sample_weight)

    def _learn(self, table: ScoreTable) -> BinaryMap:
        distinct = table.distinct
        warn_if_falling(ranking.auc(distinct.positives, distinct.negatives) < 0.5)
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
        low, high = float(distinct.scores[0]), float(distinct.scores[-1])
        return low < -_checks.PROBABILITY_TOLERANCE or high > 1 + _checks.PROBABILITY_TOLERANCE

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
    few: list[BinaryCalibrator] = [PlattScaling()] if margins else [AffineLogit()]
    if rows < FEW_ROWS:
        return few
    few += [QuadraticLogit(margins), VennAbers()] if margins else [QuadraticLogit(), BetaCalibration(), VennAbers()]
    return few if rows < MANY_ROWS else [*few, SplineCalibration(from_logits=margins)]
