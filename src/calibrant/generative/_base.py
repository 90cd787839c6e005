"""What every generative classifier shares: rows to statistics, statistics to parameters, parameters to probabilities.

A concrete family says what a block becomes (`_encode`), its sums (`_sums`), the closed form (`_learn`) and the rule
(`_log_joint`); `fit`, `partial_fit` and prediction are the same for all.
May import scikit-learn's base, NumPy, `calibrant.data`, `calibrant._checks`, `calibrant._fitting`,
`calibrant._parameters`, the kernels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._fitting import NotFitted, forget
from calibrant._kernels._one_thread import one_blas_thread
from calibrant._kernels.generative import by_class, softmax_rows
from calibrant._parameters import Number, Rule, check_parameters
from calibrant.data._arrays import array_of
from calibrant.errors import InputError, InputTypeError
from calibrant.generative._features import checked_blocks, matrix, two_dimensional
from calibrant.generative._frame_passes import FramePasses, rows_of_frame
from calibrant.generative._frames import named_columns
from calibrant.generative._prediction import ClassProbabilities
from calibrant.generative._rows import Labelled, block_rows, blocks_of, labelled, several_classes
from calibrant.generative._statistics import merge


class GenerativeClassifier(ClassProbabilities):
    """A classifier with additive statistics and a closed form."""

    _rules: ClassVar[Mapping[str, Rule]] = {"prior_strength": Number(0)}

    _categorical: ClassVar[bool] = False
    """Whether features are categories."""

    prior_strength: float
    statistics_: Any
    n_features_in_: int

    # ---------------------------------------------------------------- what a family says

    @abstractmethod
    def _prepare(self, block: NDArray[Any]) -> Any:
        """What the statistics of a fresh block are laid out by: an origin, or categories."""

    @abstractmethod
    def _encode(self, block: NDArray[Any], layout: Any) -> Any:
        """A block as the sums and the rule want it."""

    @abstractmethod
    def _sums(self, encoded: Any, weights: Floats, layout: Any) -> Any:
        """Statistics of an encoded block under row weights (n, K)."""

    @abstractmethod
    def _learn(self, statistics: Any) -> None:
        """The closed form: learned attributes from statistics."""

    @abstractmethod
    def _log_joint(self, encoded: Any) -> Floats:
        """`log p(x, y)` of an encoded block up to a term without y, (n, K)."""

    # the same in columns of a frame, that may be anything with `+` and `*`

    _squares_move: ClassVar[bool] = True
    """Whether a correction moves the sums of products."""

    @abstractmethod
    def _products_of_columns(self, z: Sequence[Any]) -> list[Any]:
        """The products of columns that statistics need sums of."""

    @abstractmethod
    def _joint_of_columns(self, z: Sequence[Any]) -> list[Any]:
        """`log p(x, y)` of each class up to a term without y."""

    @abstractmethod
    def _of_sums(self, layout: Any, sums: Floats) -> Any:
        """Statistics from the sums of 1, of each column and of products, (1 + columns + products, K).

        Without sums of products they are those of a correction that does not move them.
        """

    def _read(self, block: NDArray[Any]) -> Any:
        """A block to predict; a family says here what is strange about it."""
        return self._encode(block, self._layout)

    @property
    @abstractmethod
    def _layout(self) -> Any:
        """The layout that the fitted parameters belong to."""

    @abstractmethod
    def statistics_are_valid(self, statistics: Any) -> bool:
        """Whether the closed form needs no floor at these statistics."""

    def _warn_after_fit(self) -> None:
        """Say what is unusual about a plain fit."""

    # ---------------------------------------------------------------- the two functions

    def statistics(self, X: Any, weights: Any) -> Any:
        """Statistics of weighted rows: the first of the two functions.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.
        weights : array-like of shape (n, K)
            The weight of each row in each class: one-hot labels for a plain fit; they may be negative.

        Returns
        -------
        record
            Frozen sums that add (`+`), scale (`*`) and are linear in the weights.
        """
        return self._statistics(matrix(X), _class_weights(weights, len(X)))

    def _statistics(self, block: NDArray[Any], weights: Floats) -> Any:
        layout = self._prepare(block)
        return self._sums(self._encode(block, layout), weights, layout)

    def fit_statistics(self, statistics: Any, classes: Any = None) -> Self:
        """Parameters from statistics, in closed form: the second of the two functions.

        Parameters
        ----------
        statistics : record
            As `statistics` or `block_statistics` gives them, merged over all blocks.
        classes : sequence of K labels, optional
            The classes of the columns, in order; default 0..K-1, or those of an earlier fit.

        Returns
        -------
        self

        Raises
        ------
        InputError
            When the number of classes is not that of the statistics.

        Notes
        -----
        Cost: that of the parameters alone; no rows are read.
        """
        self._check_parameters()
        n_features, n_classes = _n_features(statistics), len(statistics.counts)
        if classes is None:
            classes = getattr(self, "classes_", np.arange(n_classes))
        classes = np.asarray(classes)
        if len(classes) != n_classes:
            raise InputError(f"classes names {len(classes)} classes, but the statistics have {n_classes} columns.")
        self._learn(statistics)
        self.statistics_ = statistics
        self.classes_ = classes
        self.n_features_in_ = n_features
        return self

    def block_statistics(self, X: Any, y: Any, classes: Any, sample_weight: Any = None) -> Any:
        """Statistics of a labelled block: the map of a map-reduce, with `merge` as its reduce.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of the block.
        y : array-like of shape (n,)
            Labels out of `classes`.
        classes : sequence of K labels
            All classes, the same for every block; a block need not have rows of each.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows.

        Returns
        -------
        record
            To be merged, then given to `fit_statistics`.

        Notes
        -----
        Needs no fit, and reads the parameters of the model only. Beyond the block, time and memory are O(n (d + K)).
        """
        rows = labelled(X, y, sample_weight, classes)
        return self._block_sums(rows)

    def _block_sums(self, rows: Labelled) -> Any:
        size = block_rows(rows.features.shape[1], len(rows.classes))
        with one_blas_thread():
            return merge(
                self._statistics(rows.features[part], rows.weights_of(part)) for part in blocks_of(len(rows), size)
            )

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count or add up the rows, then the closed form.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            When y holds one class only, or values are missing.
        """
        self._check_parameters()
        rows = labelled(X, y, sample_weight)
        several_classes(rows.classes, type(self).__name__)
        forget(self)
        self._remember_features(X, rows.features, reset=True)
        self.fit_statistics(self._block_sums(rows), rows.classes)
        self._warn_after_fit()
        return self

    def fit_frame(self, frame: Any, *, features: Any, label: Hashable, weight: Hashable | None = None) -> Self:
        """Fit on the rows of a frame; those of a lazy one are added up in its engine.

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

        Returns
        -------
        self
            As `fit` on the same rows, to 1e-9.

        Raises
        ------
        InputError
            When values are missing (of which columns, how many), there is one class only, or a query would ask for
            more than 1,000 sums: K (1 + 2 d) of them, for `QuadraticDiscriminant` K (1 + d + d (d + 1) / 2), for
            `CategoricalNaiveBayes` K times the number of categories.
        ColumnError
            When the frame has no such column.

        Notes
        -----
        Cost of a lazy frame: two queries, and one for each column of text; sums come back, no rows. Cache a Spark
        frame that takes long to make.

        Examples
        --------
        >>> import duckdb
        >>> from calibrant.generative import GaussianNaiveBayes
        >>> rows = duckdb.sql("select * from (values (0.0, 'no'), (2.0, 'no'), (4.0, 'yes'), (6.0, 'yes')) t(x, y)")
        >>> GaussianNaiveBayes().fit_frame(rows, features=["x"], label="y").means_.ravel()
        array([1., 5.])
        """
        self._check_parameters()
        names = named_columns(features, label, weight)
        rows = rows_of_frame(frame, names, self._categorical)
        several_classes(rows.classes, type(self).__name__)
        forget(self)
        self.fit_statistics(self._sums_of(rows), rows.classes)
        names.remember(self)
        self._warn_after_fit()
        return self

    def frame_statistics(
        self, frame: Any, classes: Any, *, features: Any, label: Hashable, weight: Hashable | None = None
    ) -> Any:
        """Statistics of the rows of a frame: `block_statistics` in the engine of a lazy one.

        Parameters
        ----------
        frame, features, label, weight
            As `fit_frame` takes them.
        classes : sequence of K labels
            All classes, the same for every frame; a frame need not have rows of each.

        Returns
        -------
        record
            To be merged with those of other frames or blocks, then given to `fit_statistics`.
        """
        return self._sums_of(rows_of_frame(frame, named_columns(features, label, weight), self._categorical, classes))

    def _sums_of(self, rows: Labelled | FramePasses) -> Any:
        return self._block_sums(rows) if isinstance(rows, Labelled) else rows.statistics(self)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of one block to the plain statistics.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of the block.
        y : array-like of shape (n,)
            Labels of the block.
        classes : sequence of labels, optional
            All classes; needed at the first call.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        self
            Fitted as if all the rows so far had been given to `fit`.

        Raises
        ------
        InputError
            When classes are missing at the first call, differ from the first, or lack a label of y.
        """
        self._check_parameters()
        first = not hasattr(self, "classes_")
        known = _known_classes(self, classes)
        rows = labelled(X, y, sample_weight, known)
        several_classes(rows.classes, type(self).__name__)
        self._remember_features(X, rows.features, reset=first)
        sums = self._block_sums(rows)
        return self.fit_statistics(sums if first else self.statistics_ + sums, rows.classes)

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, vars(self), self._rules)

    def _remember_features(self, X: Any, rows: NDArray[Any], reset: bool) -> None:
        validate_data(self, X=X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)

    # ---------------------------------------------------------------- prediction

    def _probabilities(self, X: Any, log: bool) -> Floats:
        rows = self._fitted_rows(X)
        result = by_class(len(rows), len(self.classes_))
        with one_blas_thread():
            parts = blocks_of(len(rows), block_rows(rows.shape[1], len(self.classes_)))
            for part, block in checked_blocks(rows, parts):
                result[part] = softmax_rows(self._rate(block), log)
        return result

    def _rate(self, block: NDArray[Any]) -> Floats:
        """`log p(x, y)` of a block to predict, up to a term without y, (n, K)."""
        return self._log_joint(self._read(block))

    def _fitted_rows(self, X: Any) -> NDArray[Any]:
        if not hasattr(self, "statistics_"):
            name = type(self).__name__
            raise NotFitted(f"This {name} is not fitted yet. Call fit(X, y), partial_fit or fit_statistics first.")
        rows = two_dimensional(X, "X")
        self._remember_features(X, rows, reset=False)
        return rows


def _known_classes(model: GenerativeClassifier, classes: Any) -> NDArray[Any]:
    if not hasattr(model, "classes_"):
        if classes is None:
            raise InputError("classes must name all classes at the first call to partial_fit.")
        return np.unique(array_of(classes, "classes"))
    if classes is not None and not np.array_equal(model.classes_, np.unique(array_of(classes, "classes"))):
        raise InputError(
            f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {model.classes_!r}. "
            f"Statistics of other classes do not add: start with a new model."
        )
    return model.classes_


def _class_weights(weights: Any, n_rows: int) -> Floats:
    array = _checks.numbers(array_of(weights, "weights"), "weights")
    if array.ndim != 2 or len(array) != n_rows:
        raise InputError(f"weights must have shape (n, K) with n = {n_rows} rows, but its shape is {array.shape}.")
    return np.asfortranarray(_checks.finite(array, "weights"))


def _n_features(statistics: Any) -> int:
    if not hasattr(statistics, "counts"):
        raise InputTypeError(f"statistics must be a record as block_statistics gives it, not {statistics!r:.60}.")
    return len(statistics.cells) if hasattr(statistics, "cells") else len(statistics.origin)
