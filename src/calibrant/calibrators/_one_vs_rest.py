"""One binary calibrator per class, then rows divided by their sum.

The division is not a calibrated operation: each column is calibrated on its own before it, not after.
May import scikit-learn's clone, NumPy, `calibrant.maps`, `calibrant.data`, `_base` and `_misuse`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from calibrant._checks import Floats
from calibrant._parameters import Instance, Rule, Sequenced, optional
from calibrant.calibrators._base import BinaryCalibrator, Calibrator, forget
from calibrant.calibrators._misuse import warn_if_no_logits
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows, ClassRows, read_class_rows
from calibrant.data._log_odds import class_log_odds
from calibrant.errors import InputTypeError
from calibrant.maps import OneVsRestMap, StepMap


class OneVsRest(Calibrator):
    """Any binary calibrator, one per class, for scores of shape (n, K).

    Each column is calibrated against "is it this class?"; the columns are then divided by the row sum, and a row whose
    values are all 0 becomes uniform. The division is not a calibrated operation; where rows are many a joint method is
    better.

    Parameters
    ----------
    calibrator : binary calibrator
        Cloned for each class.
    classes : sequence, optional
        The labels of the columns, in order, when they are not 0..K-1.

    Attributes
    ----------
    calibrators_ : list
        The fitted calibrator of each class; None for a class that has no rows, or all of them (its probability is the
        smoothed rate `(N_k + 1) / (N + 2)` before the division).
    map_ : OneVsRestMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Notes
    -----
    Cost: K times that of the calibrator. Source: Zadrozny and Elkan (2002), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import AffineLogit, OneVsRest
    >>> rows = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]
    >>> p = np.array(rows + rows)
    >>> fitted = OneVsRest(AffineLogit()).fit(p, [0, 1, 2, 0, 0, 2, 0, 1, 2, 1, 2, 1])
    >>> fitted.predict_proba(p).shape
    (12, 3)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "calibrator": Instance(("fit", "fit_table", "predict_proba"), "a binary calibrator"),
        "classes": optional(Sequenced("a list of the labels of the columns")),
    }

    def __init__(self, calibrator: Any, classes: Sequence[Any] | None = None) -> None:
        self.calibrator = calibrator
        self.classes = classes

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn one map per class.

        Parameters
        ----------
        scores : array-like of shape (n, K)
            A column per class.
        y : array-like of shape (n,)
            Labels of the columns: those of `classes`, or 0..K-1.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        self
        """
        self._check_parameters()
        if not isinstance(self.calibrator, BinaryCalibrator):
            raise InputTypeError(f"calibrator must be a binary calibrator of calibrant, not {self.calibrator!r}.")
        reads = self.calibrator._reads
        rows = read_class_rows(scores, y, sample_weight, self.classes, reads=reads)
        if reads == "logit":
            warn_if_no_logits(rows.scores)
            rows = rows._replace(scores=class_log_odds(rows.scores))
        forget(self)
        self.calibrators_ = [self._fit_class(rows, k) for k in range(rows.scores.shape[1])]
        maps = [_constant(rows, k) if one is None else one.map_ for k, one in enumerate(self.calibrators_)]
        self.map_ = OneVsRestMap(rows.classes, tuple(maps))
        self.classes_ = np.array(rows.classes)
        self.n_features_in_ = rows.scores.shape[1]
        return self

    def _fit_class(self, rows: ClassRows, k: int) -> Any:
        member = (rows.labels == k).view(np.uint8)
        weight = member if rows.weights is None else member * rows.weights
        total = len(member) if rows.weights is None else rows.weights.sum()
        if weight.sum() == 0 or weight.sum() == total:
            return None
        column = np.ascontiguousarray(rows.scores[:, k])
        return clone(self.calibrator)._fit_quietly(
            ScoreTable._of_rows(BinaryRows(column, member, rows.weights, (0, 1)))
        )

    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), columns in `classes_` order; rows sum to 1."""
        return np.asarray(self._fitted_map()(scores))


def _constant(rows: ClassRows, k: int) -> StepMap:
    """The map of a class that has no rows, or all of them: the smoothed rate `(N_k + 1) / (N + 2)`."""
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    rate = (weights[rows.labels == k].sum() + 1) / (weights.sum() + 2)
    return StepMap((0, 1), np.empty(0), np.array([rate]))
