"""Calibrating a scikit-learn classifier on scores of rows it was not fitted on.

May import scikit-learn, NumPy, `calibrant.data`, `calibrant.metrics` and this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _num_samples, column_or_1d, has_fit_parameter, indexable

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._labels import distinct_labels
from calibrant._parameters import Flag, Instance, Rule, check_parameters, optional
from calibrant.calibrators._auto import AutoCalibrator
from calibrant.calibrators._base import NotFitted, forget
from calibrant.calibrators._folds import CV, Split, check_maps_of_parts, splits_of, warn_of_splits
from calibrant.calibrators._misuse import SEPARATED
from calibrant.calibrators._model_scores import check_frozen_classes, model_scores
from calibrant.data._arrays import aligned, array_of
from calibrant.data._copies import hashes_of_copies
from calibrant.errors import DataWarning, InputError
from calibrant.metrics import brier_score, log_loss, roc_auc

MANY_COPIES = 0.1
MOST_TO_TRY = 20_000
FAR_BETTER = 0.05


@dataclass(frozen=True)
class OutOfFoldEvaluation:
    """Scores of rows judged by models and maps that never saw them.

    Attributes
    ----------
    rows : int
        Rows with an out-of-fold score.
    log_loss_before, log_loss_after : float
        Of the estimator's own probabilities and of the calibrated ones; NaN before for scores that are not
        probabilities.
    brier_before, brier_after : float
        The Brier score likewise.
    """

    rows: int
    log_loss_before: float
    log_loss_after: float
    brier_before: float
    brier_after: float


class _Part(NamedTuple):
    """One fold: the model fitted without it, its rows and their scores."""

    model: Any
    held: NDArray[np.intp]
    scores: Floats


def _estimator_has(name: str) -> Any:
    return lambda self: hasattr(self.estimator, name)


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are calibrated on its own out-of-fold scores.

    `fit` scores every row with a model that was fitted without it, learns the map from those scores, and then refits
    the classifier on all rows. A `FrozenEstimator` is used as it is: the rows given to `fit` must then be rows that it
    was not fitted on.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier with `predict_proba` or `decision_function`; pipelines and searches too.
    calibrator : calibrator, default=None
        Cloned before use; None means `AutoCalibrator()`.
    cv : int, splitter or iterable of splits, default=5
        As in scikit-learn; splitters by group and by time work. Rows that are in no test part (time series) do not
        take part in the calibration.
    ensemble : bool, default=False
        True keeps one model and one map per fold and averages their probabilities; False refits one model on all rows.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    estimator_ : classifier
        The model on all rows (`ensemble=False`).
    calibrator_ : calibrator
        The fitted calibrator (`ensemble=False`).
    calibrated_ : list of tuple
        Model and calibrator of each fold (`ensemble=True`).
    oof_scores_ : ndarray of shape (n,) or (n, K)
        Out-of-fold scores; NaN where a row was in no test part.
    evaluation_ : OutOfFoldEvaluation
        Log loss and Brier score before and after, every row judged by a model and a map fitted without it.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Scores are `predict_proba` where the estimator has it, else `decision_function`. Cost: `cv` + 1 fits of the
    estimator. Source: Platt (1999), section 2.2; Niculescu-Mizil and Caruana (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant import AffineLogit, CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> fitted = CalibratedClassifier(GaussianNB(), AffineLogit()).fit(X, y)
    >>> fitted.evaluation_.log_loss_after < fitted.evaluation_.log_loss_before
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "estimator": Instance(("fit",), "a scikit-learn classifier"),
        "calibrator": optional(Instance(("fit", "predict_proba"), "a calibrator")),
        "cv": CV,
        "ensemble": Flag(),
    }

    def __init__(self, estimator: Any, calibrator: Any = None, cv: Any = 5, ensemble: bool = False) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble

    # ------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Score out of fold, learn the map, refit the estimator.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Features, handed to the estimator as they are.
        y : array-like of shape (n,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n,), optional
            Frequencies, used by the estimator (where it takes them) and by the calibrator.
        groups : array-like of shape (n,), optional
            For splitters by group.

        Returns
        -------
        self
        """
        check_parameters(type(self).__name__, vars(self), self._rules)
        X, labels, weights = self._read_rows(X, y, sample_weight)
        forget(self)
        _check_feature_names(self, X, reset=True)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y holds one class only ({self.classes_.tolist()[0]!r}): two or more are needed to calibrate."
            )
        parts = list(self._parts(X, labels, weights, groups))
        self.oof_scores_ = _gathered(parts, len(labels))
        held = ~np.isnan(self.oof_scores_).reshape(len(labels), -1).any(axis=1)
        scored = (self.oof_scores_[held], codes[held], _at(weights, held))
        self.evaluation_ = self._judge(*scored)
        if self.ensemble:
            self.calibrated_ = [
                (
                    part.model,
                    self._calibrator(part.scores, codes[part.held], _at(weights, part.held)),
                )
                for part in parts
            ]
        else:
            self.calibrator_ = self._calibrator(*scored)
            self.estimator_ = parts[0].model if _is_frozen(self.estimator) else self._model(X, labels, weights)
        self.n_features_in_ = getattr(parts[0].model, "n_features_in_", None) or (*np.shape(X), 1)[1]  # texts: 1
        return self

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[Any], Floats | None]:
        aligned(X=X, y=y, sample_weight=sample_weight)
        labels = _plain_labels(array_of(y, "y"))
        check_classification_targets(labels)
        labels = column_or_1d(labels, warn=True)
        X, labels = indexable(X, labels)
        if _num_samples(X) == 0:
            raise InputError("X is empty (0 sample(s)): at least two rows of each class are needed.")
        weights = None if sample_weight is None else np.asarray(array_of(sample_weight, "sample_weight"))
        return X, labels, _checks.weights(weights, _num_samples(X))

    def _parts(self, X: Any, labels: NDArray[Any], weights: Floats | None, groups: Any) -> Iterator[_Part]:
        if _is_frozen(self.estimator):
            model = self.estimator
            check_frozen_classes(model, self.classes_)
            scores = model_scores(model, X, self.classes_)
            self._warn_if_trained_on(X, labels, scores)
            yield _Part(model, np.arange(len(labels)), scores)
            return
        splits = splits_of(self.cv, X, labels, groups)
        warn_of_splits(splits, labels)
        if self.ensemble:
            check_maps_of_parts(splits, labels)
        _warn_of_copies(X, splits)
        for train, test in splits:
            model = self._model(_safe_indexing(X, train), labels[train], _at(weights, train))
            yield _Part(model, test, model_scores(model, _safe_indexing(X, test), self.classes_))

    def _warn_if_trained_on(self, X: Any, labels: NDArray[Any], scores: Floats) -> None:
        """Say that a frozen model knows these rows: it ranks them far better than a copy that has not seen them."""
        model = getattr(self.estimator, "estimator", None)
        if len(self.classes_) != 2 or len(labels) > MOST_TO_TRY or not isinstance(model, BaseEstimator):
            return
        half, other = next(StratifiedKFold(2, shuffle=True, random_state=0).split(labels, labels))
        copy = clone(model).fit(_safe_indexing(X, half), labels[half])
        fresh = model_scores(copy, _safe_indexing(X, other), self.classes_)
        event = (labels[other] == self.classes_[1]).astype(int)
        known, unknown = roc_auc(event, scores[other]), roc_auc(event, fresh)
        error = np.sqrt(max(unknown * (1 - unknown), 0.01) / max(min(event.sum(), len(event) - event.sum()), 1))
        if known - unknown > max(FAR_BETTER, 3 * error):
            warnings.warn(
                f"The frozen estimator ranks these rows far better (AUC {known:.3f}) than a copy of it, fitted to half "
                f"of them, ranks the other half ({unknown:.3f}): they look like its training rows. Calibrate on rows "
                f"that it has not seen, or leave FrozenEstimator out.",
                DataWarning,
                stacklevel=5,
            )

    def _model(self, X: Any, labels: NDArray[Any], weights: Floats | None) -> Any:
        model = clone(self.estimator)
        if weights is None:
            return model.fit(X, labels)
        name = _weight_argument(model)
        if name is None:
            warnings.warn(
                f"{type(model).__name__} does not take sample_weight: the weights are used in the calibration only.",
                DataWarning,
                stacklevel=5,
            )
            return model.fit(X, labels)
        return model.fit(X, labels, **{name: weights})

    def _calibrator(self, scores: Floats, codes: NDArray[np.intp], weights: Floats | None) -> Any:
        made = AutoCalibrator() if self.calibrator is None else clone(self.calibrator)
        with warnings.catch_warnings():
            if not _is_frozen(self.estimator):  # these scores are out of fold
                warnings.filterwarnings("ignore", message=SEPARATED, category=DataWarning)
            return made.fit(scores, codes, sample_weight=weights)

    def _judge(self, scores: Floats, codes: NDArray[np.intp], weights: Floats | None) -> OutOfFoldEvaluation:
        after = self._cross_fitted(scores, codes, weights)
        columns = scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])
        honest = columns.min() >= 0 and columns.max() <= 1
        return OutOfFoldEvaluation(
            len(codes),
            log_loss(codes, columns, sample_weight=weights) if honest else float("nan"),
            log_loss(codes, after, sample_weight=weights),
            brier_score(codes, columns, sample_weight=weights) if honest else float("nan"),
            brier_score(codes, after, sample_weight=weights),
        )

    def _cross_fitted(self, scores: Floats, codes: NDArray[np.intp], weights: Floats | None) -> Floats:
        folds = int(min(5, np.bincount(codes)[np.unique(codes)].min()))
        if folds < 2:
            raise InputError("A class has a single row with an out-of-fold score: two or more are needed to calibrate.")
        after = np.empty((len(codes), len(self.classes_)))
        splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(scores, codes)
        for train, test in splits:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = self._calibrator(scores[train], codes[train], _at(weights, train))
            after[test] = made.predict_proba(scores[test])
        return after

    # ------------------------------------------------------------ predicting

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Columns in `classes_` order; rows sum to 1.
        """
        if not hasattr(self, "classes_"):
            raise NotFitted("This CalibratedClassifier is not fitted yet. Call fit(X, y) first.")
        _check_feature_names(self, X, reset=False)
        pairs = self.calibrated_ if self.ensemble else [(self.estimator_, self.calibrator_)]
        total = sum(calibrator.predict_proba(model_scores(model, X, self.classes_)) for model, calibrator in pairs)
        return np.asarray(total / len(pairs))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest calibrated probability; for two classes a tie is the positive one."""
        p = self.predict_proba(X)
        chosen = (p[:, 1] >= p[:, 0]).astype(np.intp) if p.shape[1] == 2 else p.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects looked through for missing values, and true and false in their own type."""
    if labels.dtype.kind != "O" or labels.ndim != 1 or labels.size == 0:
        return labels
    found, _ = distinct_labels(labels)
    return labels.astype(bool) if all(isinstance(label, bool | np.bool_) for label in found) else labels


def _is_frozen(estimator: Any) -> bool:
    from sklearn.frozen import FrozenEstimator

    return isinstance(estimator, FrozenEstimator)


def _weight_argument(model: Any) -> str | None:
    """The keyword that hands weights to the model, or to the last step of a pipeline."""
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    steps = getattr(model, "steps", None)
    if steps:
        inner = _weight_argument(steps[-1][1])
        return None if inner is None else f"{steps[-1][0]}__{inner}"
    inner = getattr(model, "estimator", None)
    return _weight_argument(inner) if inner is not None else None


def _at(weights: Floats | None, rows: Any) -> Floats | None:
    return None if weights is None else weights[rows]


def _gathered(parts: list[_Part], n_rows: int) -> Floats:
    """Each row's score, averaged over the test parts it is in; NaN for none."""
    shape = (n_rows, *parts[0].scores.shape[1:])
    total, times = np.zeros(shape), np.zeros(n_rows)
    for part in parts:
        np.add.at(total, part.held, part.scores)
        np.add.at(times, part.held, 1)
    with np.errstate(invalid="ignore"):
        return total / np.where(times > 0, times, np.nan).reshape(-1, *[1] * (len(shape) - 1))


def _warn_of_copies(X: Any, splits: list[Split]) -> None:
    """Say that many rows have a copy among the rows that their model is fitted on."""
    hashes = hashes_of_copies(X, MANY_COPIES) if _num_samples(X) >= 100 else None
    if hashes is None:
        return
    held = sum(len(test) for _, test in splits)
    copies = sum(int(np.isin(hashes[test], hashes[train]).sum()) for train, test in splits)
    if copies > MANY_COPIES * held:
        warnings.warn(
            f"{copies / held:.0%} of the rows of X are copies of others in another fold. Their scores are then those "
            f"of rows that the model has seen, and look better than they are: drop the copies, or give groups and a "
            f"splitter by group (such as StratifiedGroupKFold).",
            DataWarning,
            stacklevel=5,
        )
