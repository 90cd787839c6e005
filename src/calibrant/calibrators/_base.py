"""What every calibrator shares: the walk from rows to the table, from the table to a map, and the map's use.

A concrete binary calibrator says what it reads (`_reads`) and how a table becomes a map (`_learn`); nothing else
differs between `fit` and `fit_table`.
May import scikit-learn's base, NumPy, `calibrant.maps`, `calibrant.data`, `calibrant._checks`, `calibrant._parameters`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._fitting import NotFitted as NotFitted
from calibrant._fitting import forget as forget
from calibrant._parameters import Rule, check_parameters
from calibrant.calibrators._misuse import warn_of_misuse
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows, array_of, read_binary_rows
from calibrant.errors import DataWarning, InputTypeError
from calibrant.maps import BinaryMap, Map


class Calibrator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What binary and multiclass calibrators share: parameters, prediction, tags."""

    _rules: ClassVar[Mapping[str, Rule]] = {}

    map_: Map
    classes_: NDArray[Any]
    n_features_in_: int

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, vars(self), self._rules)

    def _fitted_map(self) -> Map:
        if not hasattr(self, "map_"):
            name = type(self).__name__
            raise NotFitted(f"This {name} is not fitted yet. Call fit(scores, y) or fit_table(table) first.")
        return self.map_

    @abstractmethod
    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), columns in `classes_` order."""

    def predict(self, scores: Any) -> NDArray[Any]:
        """The class with the highest calibrated probability; for two classes a tie is the positive one.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_`.
        """
        p = self.predict_proba(scores)
        chosen = (p[:, 1] >= p[:, 0]).astype(np.intp) if p.shape[1] == 2 else p.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


class BinaryCalibrator(Calibrator):
    """A calibrator of two classes: a table in, a map out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._many_classes
        tags.input_tags.one_d_array = True
        return tags

    @property
    def _many_classes(self) -> bool:
        """Whether `fit` takes a column per class too."""
        return False

    @property
    def _reads(self) -> str:
        """What the scores are: "score", "probability" or "logit"."""
        return "score"

    def _coding(self, labels: NDArray[Any]) -> Any:
        """The pair (negative, positive) that codes the labels; None leaves it to the rule of the gate for numbers."""
        return _sorted_text_classes(labels)

    @property
    def _rows_needed(self) -> int:
        """Rows below which `fit` says that the method overfits; 0 for none."""
        return 0

    @abstractmethod
    def _learn(self, table: ScoreTable) -> BinaryMap:
        """The map of a checked table; learned attributes are set here."""

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map from scores and labels.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Scores of the positive class, or the two columns of `predict_proba`.
        y : array-like of shape (n,)
            Labels of two classes; the greater is positive (text is sorted, as in scikit-learn).
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        if isinstance(scores, ScoreTable):
            raise InputTypeError("fit needs scores and labels by row; a ScoreTable goes to fit_table(table).")
        labels = array_of(y, "y")
        rows = read_binary_rows(scores, y, sample_weight, classes=self._coding(labels), reads=self._reads)
        table = ScoreTable._of_rows(BinaryRows(*rows))
        self._fit_checked(table)
        warn_of_misuse(table, self.map_.reads, type(self).__name__, self._rows_needed)
        given = array_of(scores, "scores")
        self.classes_ = _class_array(self.map_.classes, labels)
        self.n_features_in_ = given.shape[1] if given.ndim == 2 else 1
        return self

    def fit_table(self, table: ScoreTable) -> Self:
        """Learn the map from a score table; the same map as from its rows.

        Parameters
        ----------
        table : ScoreTable
            Scores with the weight of positives and of negatives.

        Returns
        -------
        self
        """
        self._fit_quietly(table)
        warn_of_misuse(table, self.map_.reads, type(self).__name__, self._rows_needed)
        return self

    def _fit_quietly(self, table: ScoreTable) -> Self:
        """`fit_table` without the signs of misuse: for folds, and for parts of another method."""
        self._check_parameters()
        if not isinstance(table, ScoreTable):
            raise InputTypeError(
                f"fit_table needs a ScoreTable, not {type(table).__name__}. Use fit(scores, y) for rows."
            )
        if self._reads == "probability":
            inside = _checks.probabilities(table.scores, "table.scores")
            table = table if inside is table.scores else table.with_scores(inside)  # its order is kept
        self._fit_checked(table)
        self.classes_ = np.array(table.classes)
        self.n_features_in_ = 1
        return self

    def _fit_checked(self, table: ScoreTable) -> None:
        forget(self)
        _checks.both_classes(table.total_positives, table.total_negatives, f"{type(self).__name__}.fit")
        self.map_ = self._learn(table)

    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
            Columns in `classes_` order; rows sum to 1.
        """
        p = self._fitted_map()(scores)
        return p if np.ndim(p) == 2 else np.column_stack([1 - p, p])


OTHER_EVENT = (
    "fit takes the greater label as the event (of text the last in the alphabet); for the other one: "
    "fit_table(ScoreTable.from_arrays(scores, y, pos_label=...))."
)


def warn_if_falling(falls: bool) -> None:
    """Say that the score falls as the event gets likelier, and how to name the other event."""
    if falls:
        warnings.warn(
            f"The score falls as the event gets likelier (AUC below one half): the label may be flipped, or the score "
            f"may be of the other class. {OTHER_EVENT} Or give 1 - p (or -score) if that is what you mean. With an AUC "
            f"near one half it may be chance: the score then says nothing about these labels.",
            DataWarning,
            stacklevel=5,
        )


def _sorted_text_classes(labels: NDArray[Any]) -> Any:
    """Text labels sorted, as scikit-learn does; numbers follow the rule of the gate."""
    if labels.dtype.kind not in "OUST":
        return None
    flat = np.ravel(_checks.text_of_bytes(labels)).tolist()
    found = set(flat) if all(issubclass(kind, str) for kind in set(map(type, flat))) else set()
    if not 1 <= len(found) <= 2:
        return None
    return tuple(sorted(found)) if len(found) == 2 else (None, *found)


def _class_array(classes: tuple[Any, ...], labels: NDArray[Any]) -> NDArray[Any]:
    """`classes_` in the labels' own type, as scikit-learn keeps it."""
    kind = labels.dtype if labels.dtype.kind in "fiubU" else None
    return np.array(classes, dtype=kind)
