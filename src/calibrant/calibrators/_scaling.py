"""Scaling of K classes at once, `softmax(L * w + b)`: what all such methods share, and a slope and intercept per class.

L is the log-softmax of the logits, or of log p with its floor. Every method is a penalised multinomial
likelihood with one optimum; the penalty is written as the total weight N times the mean, so that its strength is that
of a prior and fades as rows come in.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and `calibrant.calibrators._base`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from calibrant._checks import Floats, Label
from calibrant._kernels.class_blocks import ClassBlocks, Rows
from calibrant._kernels.multinomial import Fit, Multinomial, PerClass, minimise
from calibrant._kernels.temperature import fit_temperature
from calibrant._parameters import Flag, Number, Rule, Sequenced, optional
from calibrant.calibrators._base import Calibrator, forget
from calibrant.calibrators._class_stream import Blocks, open_stream
from calibrant.calibrators._misuse import certain_errors, warn_if_no_logits, warn_of_certain_errors
from calibrant.data._arrays import read_class_rows
from calibrant.errors import FitWarning
from calibrant.maps import ClassMap, VectorScalingMap

SHARED: Mapping[str, Rule] = {
    "from_logits": Flag(),
    "classes": optional(Sequenced("a list of the labels of the columns")),
}
STRENGTH = Number(0, 1e12, above=True)


class ClassCalibrator(Calibrator):
    """A calibrator of K classes: rows of scores (n, K) in, a map out."""

    from_logits: bool
    classes: Sequence[Any] | None

    @abstractmethod
    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> ClassMap:
        """The map of checked rows; learned attributes are set here."""

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map from scores and labels.

        Parameters
        ----------
        scores : array-like of shape (n, K)
            Probabilities, or logits with `from_logits`; float32 stays float32.
        y : array-like of shape (n,)
            Labels of the columns: those of `classes`, or 0..K-1. A class without rows keeps its column.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        reads = "logit" if self.from_logits else "probability"
        rows = read_class_rows(scores, y, sample_weight, self.classes, reads=reads, keep_float32=True)
        if self.from_logits:
            warn_if_no_logits(rows.scores)
        else:
            warn_of_certain_errors(certain_errors(rows.scores, rows.labels), len(rows.labels))
        forget(self)
        return self._fit_rows(ClassBlocks(rows.scores, rows.labels, rows.weights, self.from_logits), rows.classes)

    def fit_blocks(self, blocks: Blocks, classes: Sequence[Any] | None = None) -> Self:
        """Learn the map from rows that come block by block, and are never held together.

        Parameters
        ----------
        blocks : callable, or list
            Called once per pass; gives an iterator over `(scores, y)` or `(scores, y, sample_weight)`, the same rows
            each time. A list of such blocks works too.
        classes : sequence, optional
            The labels of the columns, in order; by default those of the constructor, else 0..K-1.

        Returns
        -------
        self
            As `fit` on all rows, up to rounding.

        Notes
        -----
        Every sum over the rows is one pass: one to count them, one for a sample to start from, then two or three for
        each Newton step, or with more than 600 parameters one for each product. Memory: one block, a few megabytes for
        each thread, at most 64 MB for the sample, and the square of up to 600 parameters.
        """
        self._check_parameters()
        stream, names = open_stream(blocks, self.classes if classes is None else classes, self.from_logits)
        forget(self)
        return self._fit_rows(stream, names)

    def _fit_rows(self, rows: Rows, classes: tuple[Label, ...]) -> Self:
        self.map_ = self._learn(rows, classes)
        self.classes_ = np.array(classes)
        self.n_features_in_ = rows.n_classes
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), columns in `classes_` order; rows sum to 1."""
        return np.asarray(self._fitted_map()(scores))


class Prepared(NamedTuple):
    """Rows after the temperature and the mixture, and both."""

    rows: Rows
    beta: float
    mix: float


def plain(rows: Rows) -> Prepared:
    """The rows as they are."""
    return Prepared(rows.after(1.0, 0.0), 1.0, 0.0)


def tempered(rows: Rows) -> Prepared:
    """The rows after the best temperature and a mixture with 1 / (N + 1) of the uniform distribution."""
    beta, _ = fit_temperature(rows)
    mix = 1 / (rows.total + 1)
    return Prepared(rows.after(beta, mix), beta, mix)


def fit_vector(given: Prepared, penalty: float) -> Fit:
    """Slopes and intercepts (K, 2) of least mean cross-entropy + penalty (|slope - 1|^2 + |intercept|^2)."""
    centre = np.tile([1.0, 0.0], (given.rows.n_classes, 1))
    return minimise(Multinomial(given.rows, PerClass(), np.full(centre.shape, penalty), centre))


class VectorScaling(ClassCalibrator):
    """A slope and an intercept for every class, `softmax(L * w + b)`, with a light ridge.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are logits instead of probabilities.
    penalty : float, default=0.5
        Strength of the pull to `w = 1`, `b = 0`; 0.5 is a normal prior of variance 1 around the identity.
    classes : sequence, optional
        The labels of the columns, in order, when they are not 0..K-1.

    Attributes
    ----------
    weights_, intercepts_ : ndarray of shape (K,)
        w and b. A class without rows has them from the penalty and the other classes: its probability is small, not 0.
    objective_ : float
        The penalised mean cross-entropy at the optimum.
    map_ : VectorScalingMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    See Also
    --------
    StructuredVectorScaling : after a temperature, with a stronger penalty; better when rows are few for K.

    Notes
    -----
    Minimises `mean cross-entropy + penalty / N (|w - 1|^2 + |b|^2)`. Cost: Newton steps, O(n K^2) each up to 300
    classes, a few passes O(nK) each above; memory of the input. Source: Guo, Pleiss, Sun, Weinberger (2017), section
    4.2, there without a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import VectorScaling
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> VectorScaling().fit(p, [0, 1, 2, 1, 1]).intercepts_.argmax()
    np.int64(1)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**SHARED, "penalty": STRENGTH}

    weights_: Floats
    intercepts_: Floats
    objective_: float

    def __init__(self, from_logits: bool = False, penalty: float = 0.5, classes: Sequence[Any] | None = None) -> None:
        self.from_logits = from_logits
        self.penalty = penalty
        self.classes = classes

    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> VectorScalingMap:
        given = plain(rows)
        return _vector_map(self, classes, given, fit_vector(given, self.penalty / given.rows.total))


class StructuredVectorScaling(ClassCalibrator):
    """Temperature and mixing, then a slope and an intercept for every class ("SVS").

    The penalty grows with the number of classes and fades with the rows, so that few rows give little more than a
    temperature. The best single method for hundreds of classes or more.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are logits instead of probabilities.
    penalty : float, default=1.0
        Factor of the penalty of the source.
    classes : sequence, optional
        The labels of the columns, in order, when they are not 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T of the first step.
    weights_, intercepts_ : ndarray of shape (K,)
        `1 + v` and b. A class without rows has them from the penalty and the other classes: its probability is small,
        not 0.
    objective_ : float
        The penalised mean cross-entropy at the optimum.
    map_ : VectorScalingMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Notes
    -----
    `L <- log((1 - e) softmax(L / T) + e / K)`, `e = 1 / (N + 1)`; then `softmax(L * (1 + v) + b)` minimises `mean
    cross-entropy + penalty K / N (|v|^2 + |b|^2)`. Cost: Newton steps, O(n K^2) each up to 300 classes, a few passes
    O(nK) each above; memory of the input. Source: structured matrix scaling, arXiv 2511.03685.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import StructuredVectorScaling
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> StructuredVectorScaling().fit(p, [0, 1, 2, 1, 1]).predict_proba(p).shape
    (5, 3)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**SHARED, "penalty": STRENGTH}

    temperature_: float
    weights_: Floats
    intercepts_: Floats
    objective_: float

    def __init__(self, from_logits: bool = False, penalty: float = 1.0, classes: Sequence[Any] | None = None) -> None:
        self.from_logits = from_logits
        self.penalty = penalty
        self.classes = classes

    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> VectorScalingMap:
        given = tempered(rows)
        self.temperature_ = 1 / given.beta
        return _vector_map(
            self, classes, given, fit_vector(given, self.penalty * given.rows.n_classes / given.rows.total)
        )


def _vector_map(owner: Any, classes: tuple[Label, ...], given: Prepared, fit: Fit) -> VectorScalingMap:
    owner.weights_, owner.intercepts_ = fit.theta[:, 0].copy(), fit.theta[:, 1].copy()
    owner.objective_ = fit.objective
    warn_unfinished(owner, fit)
    return VectorScalingMap(classes, owner.weights_, owner.intercepts_, given.beta, given.mix, owner.from_logits)


def warn_unfinished(owner: Any, fit: Fit) -> None:
    if not fit.converged:
        warnings.warn(
            f"{type(owner).__name__}: the search ended after {fit.steps} steps with a gradient of {fit.gradient:.1g} "
            f"(relative). The map is finite; scores on a smaller scale or a stronger penalty would settle it.",
            FitWarning,
            stacklevel=4,
        )
