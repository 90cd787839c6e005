"""Scaling of K classes at once, `softmax(L W' + b)`: every class's logit depends on all columns.

L is the log-softmax of the logits, or of log p with its floor; the methods differ in what their penalty holds back.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and `calibrant.calibrators._scaling`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from calibrant._checks import Floats, Label
from calibrant._kernels.class_blocks import Rows
from calibrant._kernels.multinomial import AllPairs, Fit, Multinomial, minimise
from calibrant._parameters import Rule
from calibrant.calibrators._scaling import SHARED, STRENGTH, ClassCalibrator, Prepared, plain, tempered, warn_unfinished
from calibrant.maps import MatrixScalingMap


def fit_matrix(given: Prepared, off_diagonal: float, diagonal: float, intercept: float) -> Fit:
    """Weights and intercepts (K, K + 1) of least mean cross-entropy + penalty around the identity."""
    k = given.rows.n_classes
    penalty = np.full((k, k + 1), off_diagonal)
    penalty[np.arange(k), np.arange(k)] = diagonal
    penalty[:, k] = intercept
    return minimise(Multinomial(given.rows, AllPairs(), penalty, np.eye(k, k + 1)))


class MatrixScaling(ClassCalibrator):
    """A full matrix and intercepts, `softmax(L W' + b)`, with a light ridge.

    Without any penalty matrix scaling diverges on real models; the default keeps it finite, no more. Where rows are
    few for K^2 parameters, `StructuredMatrixScaling` is better.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are logits instead of probabilities.
    penalty : float, default=0.5
        Strength of the pull to `W = 1`, `b = 0`; 0.5 is a normal prior of variance 1 around the identity.
    classes : sequence, optional
        The labels of the columns, in order, when they are not 0..K-1.

    Attributes
    ----------
    weights_ : ndarray of shape (K, K)
        W; a row makes the logit of one class.
    intercepts_ : ndarray of shape (K,)
        b. A class without rows has its row from the penalty and the other classes: its probability is small, not 0.
    objective_ : float
        The penalised mean cross-entropy at the optimum.
    map_ : MatrixScalingMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Notes
    -----
    Minimises `mean cross-entropy + penalty / N (|W - 1|^2 + |b|^2)`. Cost: Newton steps, O(n K^4) each up to 24
    classes, conjugate gradients of O(n K^2) a product above; memory of the input and O(K^3). Source: Guo, Pleiss, Sun,
    Weinberger (2017), section 4.2, there without a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import MatrixScaling
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> MatrixScaling().fit(p, [0, 1, 2, 1, 1]).weights_.shape
    (3, 3)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**SHARED, "penalty": STRENGTH}

    weights_: Floats
    intercepts_: Floats
    objective_: float

    def __init__(self, from_logits: bool = False, penalty: float = 0.5, classes: Sequence[Any] | None = None) -> None:
        self.from_logits = from_logits
        self.penalty = penalty
        self.classes = classes

    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> MatrixScalingMap:
        given = plain(rows)
        strength = self.penalty / given.rows.total
        return _matrix_map(self, classes, given, fit_matrix(given, strength, strength, strength))


class DirichletCalibration(ClassCalibrator):
    """Dirichlet calibration, `softmax(log P W' + b)`, with penalties off the diagonal and on the intercepts.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are logits instead of probabilities.
    off_diagonal : float, default=0.01
        Penalty on the mean square of the off-diagonal weights.
    intercept : float, default=0.01
        Penalty on the mean square of the intercepts.
    classes : sequence, optional
        The labels of the columns, in order, when they are not 0..K-1.

    Attributes
    ----------
    weights_ : ndarray of shape (K, K)
        W; a row makes the logit of one class.
    intercepts_ : ndarray of shape (K,)
        b. A class without rows has its row from the penalty and the other classes: its probability is small, not 0.
    objective_ : float
        The penalised mean cross-entropy at the optimum.
    map_ : MatrixScalingMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Notes
    -----
    Minimises `mean cross-entropy + off_diagonal / (K (K - 1)) |offdiag W|^2 + intercept / K |b|^2 + 1 / (2 N) |diag W -
    1|^2`; the last term, a normal prior of variance 1, is ours: without it a class without rows has no optimum. Cost:
    as `MatrixScaling`. Source: Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import DirichletCalibration
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> DirichletCalibration().fit(p, [0, 1, 2, 1, 1]).predict_proba(p).shape
    (5, 3)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**SHARED, "off_diagonal": STRENGTH, "intercept": STRENGTH}

    weights_: Floats
    intercepts_: Floats
    objective_: float

    def __init__(
        self,
        from_logits: bool = False,
        off_diagonal: float = 0.01,
        intercept: float = 0.01,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.from_logits = from_logits
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.classes = classes

    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> MatrixScalingMap:
        given = plain(rows)
        k = given.rows.n_classes
        fit = fit_matrix(given, self.off_diagonal / (k * (k - 1)), 0.5 / given.rows.total, self.intercept / k)
        return _matrix_map(self, classes, given, fit)


class StructuredMatrixScaling(ClassCalibrator):
    """Temperature and mixing, then a matrix whose off-diagonal part is penalised most ("SMS").

    Few rows give little more than a temperature, more give slopes and intercepts, many the whole matrix. The best
    single method for up to some tens of classes.

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
    weights_ : ndarray of shape (K, K)
        `1 + W`; a row makes the logit of one class.
    intercepts_ : ndarray of shape (K,)
        b. A class without rows has its row from the penalty and the other classes: its probability is small, not 0.
    objective_ : float
        The penalised mean cross-entropy at the optimum.
    map_ : MatrixScalingMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Notes
    -----
    `L <- log((1 - e) softmax(L / T) + e / K)`, `e = 1 / (N + 1)`; then `softmax(L + L W' + b)` minimises `mean
    cross-entropy + penalty K / N (|b|^2 + |diag W|^2 + (K - 1) |offdiag W|^2)`. Cost: as `MatrixScaling`. Source:
    structured matrix scaling, arXiv 2511.03685.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import StructuredMatrixScaling
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    >>> StructuredMatrixScaling().fit(p, [0, 1, 2, 1, 1]).predict_proba(p).shape
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

    def _learn(self, rows: Rows, classes: tuple[Label, ...]) -> MatrixScalingMap:
        given = tempered(rows)
        self.temperature_ = 1 / given.beta
        strength = self.penalty * given.rows.n_classes / given.rows.total
        return _matrix_map(
            self, classes, given, fit_matrix(given, (given.rows.n_classes - 1) * strength, strength, strength)
        )


def _matrix_map(owner: Any, classes: tuple[Label, ...], given: Prepared, fit: Fit) -> MatrixScalingMap:
    owner.weights_, owner.intercepts_ = fit.theta[:, :-1].copy(), fit.theta[:, -1].copy()
    owner.objective_ = fit.objective
    warn_unfinished(owner, fit)
    return MatrixScalingMap(classes, owner.weights_, owner.intercepts_, given.beta, given.mix, owner.from_logits)
