"""Risk-based calibration: move the statistics of a closed-form classifier until its decisions improve.

    s_0 = s(X, Y);  s_{t+1} = s_t + rate * sum_i (s(x_i, y_i) - sum_y h_t(y | x_i) s(x_i, y));  h_t from theta(s_t)

Invariant: the weights of a correction add up to zero over the classes of a row, so the sum of the statistics over
classes never moves. May import scikit-learn's base, NumPy and the modules of `calibrant.generative`.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from calibrant._checks import Floats
from calibrant._fitting import NotFitted, forget
from calibrant._parameters import Choice, Flag, Instance, Number, Rule, Seed, check_parameters, generator, optional
from calibrant.data._arrays import array_of
from calibrant.errors import InputError, InputTypeError
from calibrant.generative._base import GenerativeClassifier
from calibrant.generative._features import matrix
from calibrant.generative._frame_passes import FramePasses, rows_of_frame
from calibrant.generative._frames import is_lazy, named_columns
from calibrant.generative._history import RiskHistory, Track
from calibrant.generative._iterations import Passes, iterate
from calibrant.generative._prediction import ClassProbabilities
from calibrant.generative._rows import Labelled, block_rows, labelled, several_classes
from calibrant.generative._steps import Rows, Source, Stream, hold_out


class RiskBasedCalibration(ClassProbabilities):
    """Lower the error of a generative classifier by moving its statistics, and keep its parameters and serving code.

    Each pass adds to the statistics of the true class what the model did not expect, `1 - h(y | x)`, takes it from the
    others, and refits in closed form. That is a descent along the gradient of the training log loss (mirror descent);
    lower error follows, and probabilities often, but not always, improve. It is not post-hoc calibration: it learns
    from the training rows, so calibrate afterwards on other rows if probabilities matter.

    Parameters
    ----------
    estimator : generative classifier
        One of `calibrant.generative`, or any with the two functions of `ClosedForm`. It is cloned.
    learning_rate : float, default=0.1
        Size of a step; 0 is the plain fit. 0.05 to 0.1 rarely raises the loss, 1 often does.
    max_iter : int, default=64
        Most iterations; each is one pass over the rows.
    guard : {"clip", "halve"}, default="clip"
        What to do when statistics leave the valid set (a negative count, a covariance that is not positive): "clip"
        lets them and floors the parameters; "halve" halves the step until they are valid, and stops where that fails.
    early_stopping : bool, default=False
        Hold out rows of each class, choose the best iterate by them and stop when `n_iter_no_change` iterations brought
        no better one. It is the regulariser of this method: `prior_strength` sets the start, not the end.
    validation_fraction : float, default=0.2
        Share of the rows held out.
    scoring : {"log_loss", "error", "soft_error"}, default="log_loss"
        What the best iterate is lowest in: on held-out rows with `early_stopping`, else on the rows learned from.
        Ties go to the lower soft error, then to the earlier iterate.
    step_control : bool, default=False
        Halve the learning rate, for good, whenever a step would raise the training log loss.
    return_best : bool, default=True
        Restore the best iterate; False keeps the last.
    random_state : int, generator or None, default=0
        Draws the held-out rows.
    n_iter_no_change : int, default=5
        Patience of `early_stopping`, in iterations.
    block_size : int, optional
        Rows of a block; by default about 2^20 numbers. It changes speed and memory, not the result.

    Attributes
    ----------
    estimator_ : classifier
        The improved estimator, usable alone.
    classes_ : ndarray of shape (K,)
        Labels of the classes.
    history_ : RiskHistory
        Error, soft error and log loss by iteration; index 0 is the plain fit.
    best_iter_ : int
        The best iterate.
    n_iter_ : int
        Iterations done.
    statistics_ : record
        Statistics of the restored iterate.
    stages_ : tuple of records
        Statistics of every iterate, for `staged_predict_proba`; delete it to make a pickle smaller.
    n_features_in_ : int
        Number of features.

    Warns
    -----
    FitWarning
        When the guard finds no valid step, or the loss stops being a number.

    Notes
    -----
    Cost: `max_iter + 1` passes over the rows, each one prediction and one sum of statistics. Memory beyond the rows:
    a few arrays of the size of a block (8 MB each), the statistics of every iterate, and for categories their codes
    (2 bytes per row and group of features). Source: Perez, Echegoyen and Santafe, Risk-based Calibration for
    Probabilistic Classifiers (arXiv 2409.03542), the update of the statistics; the rest (step, iterations, guards,
    stopping) is ours.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibrant.generative import GaussianNaiveBayes, RiskBasedCalibration
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=32).fit(X, y)
    >>> bool(model.history_.log_loss[-1] < model.history_.log_loss[0])
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "estimator": Instance(("statistics", "fit_statistics", "predict_proba"), "a classifier in closed form"),
        "learning_rate": Number(0, 1e6),
        "max_iter": Number(0, whole=True),
        "guard": Choice(("clip", "halve")),
        "early_stopping": Flag(),
        "validation_fraction": Number(0, 0.9, above=True),
        "scoring": Choice(("log_loss", "error", "soft_error")),
        "step_control": Flag(),
        "return_best": Flag(),
        "random_state": Seed(),
        "n_iter_no_change": Number(1, whole=True),
        "block_size": optional(Number(1, whole=True)),
    }

    estimator_: Any
    history_: RiskHistory
    best_iter_: int
    n_iter_: int
    n_features_in_: int
    statistics_: Any
    stages_: tuple[Any, ...]

    def __init__(
        self,
        estimator: Any,
        learning_rate: float = 0.1,
        max_iter: int = 64,
        guard: str = "clip",
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        scoring: str = "log_loss",
        step_control: bool = False,
        return_best: bool = True,
        random_state: Any = 0,
        n_iter_no_change: int = 5,
        block_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.guard = guard
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.step_control = step_control
        self.return_best = return_best
        self.random_state = random_state
        self.n_iter_no_change = n_iter_no_change
        self.block_size = block_size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit in closed form, then calibrate the statistics.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; a memory-mapped array is read a block at a time.
        y : array-like of shape (n,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows (but is held out as one).

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = labelled(X, y, sample_weight)
        several_classes(rows.classes, type(self).__name__)
        forget(self)
        validate_data(self, X=X if hasattr(X, "columns") else rows.features, reset=True, skip_check_array=True)
        if not self.early_stopping:
            return self._learn(self._passes(rows), None)
        train, watched = self._held_out(rows)
        return self._learn(self._passes(train), self._passes(watched))

    def fit_blocks(self, blocks: Source, classes: Any, validation: Source | None = None) -> Self:
        """Fit on rows that come block by block, and are never held together.

        Parameters
        ----------
        blocks : callable
            Called once per pass; gives an iterator over tuples `(X, y)` or `(X, y, sample_weight)`, the same rows each
            time.
        classes : sequence of K labels
            All classes; they are sorted.
        validation : callable, optional
            Held-out rows in the same form; needed with `early_stopping`.

        Returns
        -------
        self
            As `fit` on all the rows, up to rounding.

        Notes
        -----
        Memory: one block of the caller's, a few arrays of at most its size, and the statistics of every iterate. Cost:
        `max_iter + 2` passes.
        """
        self._check_parameters()
        if not callable(blocks) or not (validation is None or callable(validation)):
            raise InputTypeError("blocks and validation must be functions that give an iterator over (X, y) blocks.")
        if self.early_stopping and validation is None:
            raise InputError("early_stopping on blocks needs validation=: a function that gives the held-out blocks.")
        known = np.unique(array_of(classes, "classes"))
        several_classes(known, type(self).__name__)
        forget(self)
        watched = Stream(validation, known) if validation is not None and self.early_stopping else None
        return self._learn(Stream(blocks, known), watched)

    def fit_frame(
        self,
        frame: Any,
        *,
        features: Any,
        label: Hashable,
        weight: Hashable | None = None,
        validation: Any = None,
    ) -> Self:
        """Fit on the rows of a frame; every pass over those of a lazy one is a query that adds them up in its engine.

        Parameters
        ----------
        frame : dataframe
            Of pandas, Polars, PyArrow; or lazy: of Polars, DuckDB, Spark. The named columns of a Dask frame are
            computed.
        features : sequence of str
            Names of the columns to learn from.
        label : str
            Name of the column of labels, two or more classes.
        weight : str, optional
            Name of a column of frequencies: a row of weight 2 counts as two rows.
        validation : dataframe, optional
            Held-out rows with the same columns, for `early_stopping`; needed if `frame` is lazy.

        Returns
        -------
        self
            As `fit` on the same rows, to 1e-9. Where two classes are equally probable but for rounding, an engine may
            take the other one: `history_.error` may differ by such rows.

        Raises
        ------
        InputError, ColumnError
            As `fit_frame` of the estimator.

        Notes
        -----
        Cost: `max_iter + 3` queries that each read the frame once. Cache a Spark frame first (`frame.cache()`). The
        combinations of categories of `CategoricalNaiveBayes` are counted by one query if there are at most 2^18.
        """
        self._check_parameters()
        model = self.estimator
        if not isinstance(model, GenerativeClassifier):
            raise InputTypeError(
                f"fit_frame works with the classifiers of calibrant.generative, whose rules an engine can be told, but "
                f"the estimator is {type(model).__name__}. Read the rows in blocks with fit_blocks."
            )
        names = named_columns(features, label, weight)
        if self.early_stopping and validation is None and is_lazy(frame):
            raise InputError("early_stopping on a lazy frame needs validation=: a frame of the held-out rows.")
        train, watched = rows_of_frame(frame, names, model._categorical), None
        several_classes(train.classes, type(self).__name__)
        if self.early_stopping and validation is not None:
            watched = rows_of_frame(validation, names, model._categorical, train.classes)
        elif self.early_stopping and isinstance(train, Labelled):
            train, watched = self._held_out(train)
        forget(self)
        names.remember(self)
        return self._learn(self._passes(train), None if watched is None else self._passes(watched))

    def _held_out(self, rows: Labelled) -> tuple[Labelled, Labelled]:
        return hold_out(rows, self.validation_fraction, generator(self.random_state))

    def _passes(self, rows: Labelled | FramePasses) -> Rows | FramePasses:
        if not isinstance(rows, Labelled):
            return rows
        return Rows(rows, self.block_size or block_rows(rows.features.shape[1], len(rows.classes)))

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, vars(self), self._rules)
        if self.guard == "halve" and not hasattr(self.estimator, "statistics_are_valid"):
            raise InputError(
                f'RiskBasedCalibration: guard="halve" asks the estimator whether statistics are valid, but '
                f"{type(self.estimator).__name__} has no statistics_are_valid(statistics). Add it, or use "
                f'guard="clip" and floor the parameters in fit_statistics.'
            )

    def _learn(self, rows: Passes, watched: Passes | None) -> Self:
        model = clone(self.estimator)
        if isinstance(model, GenerativeClassifier):
            model._check_parameters()
        self.classes_ = rows.classes
        return self._finish(model, iterate(self, model, rows, watched))

    def _finish(self, model: Any, track: Track) -> Self:
        self.history_ = track.history()
        self.best_iter_ = track.best
        self.n_iter_ = len(track.steps) - 1
        self.statistics_ = track.statistics[self.best_iter_ if self.return_best else self.n_iter_]
        self.estimator_ = model.fit_statistics(self.statistics_, self.classes_)
        self.stages_ = tuple(track.statistics)
        for name in ("feature_names_in_", "n_features_in_"):
            if hasattr(self, name) and isinstance(model, GenerativeClassifier):
                setattr(model, name, getattr(self, name))
        if not hasattr(self, "n_features_in_") and hasattr(model, "n_features_in_"):
            self.n_features_in_ = model.n_features_in_
        return self

    # ---------------------------------------------------------------- prediction

    def _probabilities(self, X: Any, log: bool) -> Floats:
        model = self._fitted()
        rows = self._rows(X)
        if log and hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(rows))
        p = np.asarray(model.predict_proba(rows))
        with np.errstate(divide="ignore"):
            return np.log(p) if log else p

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Probabilities after each iteration, the plain fit first.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.

        Yields
        ------
        ndarray of shape (n, K)
            As `predict_proba`; `n_iter_ + 1` of them.
        """
        model = copy.copy(self._fitted())
        rows = self._rows(X)
        for statistics in self.stages_:
            yield np.asarray(model.fit_statistics(statistics, self.classes_).predict_proba(rows))

    def _fitted(self) -> Any:
        if not hasattr(self, "estimator_"):
            raise NotFitted("This RiskBasedCalibration is not fitted yet. Call fit(X, y) or fit_blocks first.")
        return self.estimator_

    def _rows(self, X: Any) -> Any:
        """The rows as the estimator was fitted with them: frames keep their names for estimators that read them."""
        rows = matrix(X)
        validate_data(self, X=X if hasattr(X, "columns") else rows, reset=False, skip_check_array=True)
        return X if isinstance(self.estimator_, GenerativeClassifier) else rows
