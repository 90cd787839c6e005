"""Classifiers with Gaussian classes: naive, with full covariances, or with one shared variance per feature.

Invariant: nothing depends on the units or the zero of a feature. Floors are 1e-6 of its pooled variance, a MAP fit
pulls towards its pooled mean and variance, and a constant feature is no evidence.
May import NumPy, the kernels and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats, plural
from calibrant._kernels import generative as kernels
from calibrant._kernels.generative import PROBABILITY_FLOOR, VARIANCE_FLOOR, Pooled
from calibrant.errors import FitWarning
from calibrant.generative._base import GenerativeClassifier
from calibrant.generative._features import numeric
from calibrant.generative._rules import linear_rule, products, quadratic_rule, symmetric, triangle
from calibrant.generative._statistics import MomentStatistics

FAR = 1e3
"""Log-odds that the origin of the features may move; beyond it they are centred first, for the digits of the sum."""


class _Fitted(NamedTuple):
    """Statistics with the prior's pseudo-rows, as class means about the origin."""

    pooled: Pooled
    counts: Floats
    sums: Floats
    means: Floats
    share: float
    present: NDArray[np.bool_]
    """Whether a class has weight; one that has not takes the pooled mean and variance."""


class _GaussianClassifier(GenerativeClassifier):
    """What the three share: moments about an origin, pseudo-rows of the prior."""

    def __init__(self, prior_strength: float = 0.0) -> None:
        self.prior_strength = prior_strength

    statistics_: MomentStatistics
    class_prior_: Floats
    means_: Floats
    _offset: Floats
    _whitening: Floats

    @property
    def _layout(self) -> Floats:
        return self.statistics_.origin

    def _prepare(self, block: NDArray[Any]) -> Floats:
        """The mean of the block; of a constant feature its value, so that its squares are exact zeros."""
        values = numeric(block)
        return np.asarray(np.where(values.min(axis=0) == values.max(axis=0), values[0], values.mean(axis=0)))

    def _encode(self, block: NDArray[Any], layout: Floats) -> Floats:
        return numeric(block) - layout

    def _sums(self, encoded: Floats, weights: Floats, layout: Floats) -> MomentStatistics:
        return MomentStatistics(layout, weights.sum(axis=0), weights.T @ encoded, self._squares(encoded, weights))

    @abstractmethod
    def _squares(self, centred: Floats, weights: Floats) -> Floats:
        """The sums of squares that the family needs."""

    # ---------------------------------------------------------------- the same in columns, which are expressions

    def _products_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return [column * column for column in z]

    @abstractmethod
    def _squares_of_products(self, sums: Floats) -> Floats:
        """The squares of a record from the sums of products, (K, products)."""

    def _of_sums(self, layout: Floats, sums: Floats) -> MomentStatistics:
        d = len(layout)
        squares = sums[d + 1 :] if len(sums) > d + 1 else np.zeros((d, 1))
        return MomentStatistics(layout, sums[0], sums[1 : d + 1].T.copy(), self._squares_of_products(squares.T))

    def _with_prior(self, statistics: MomentStatistics) -> _Fitted:
        """Add `prior_strength / K` pseudo-rows per class, of pooled mean and variance."""
        total = float(statistics.counts.sum())
        pooled = kernels.pooled(total, statistics.sums.sum(axis=0), statistics.total_squares(), statistics.origin)
        share = self.prior_strength / len(statistics.counts)
        counts = statistics.counts + share
        sums = statistics.sums + share * pooled.mean
        present = counts > PROBABILITY_FLOOR * total
        means = np.where(present[:, None], sums / np.where(present, counts, 1.0)[:, None], pooled.mean)
        return _Fitted(pooled, counts, sums, means, share, present)

    def _remember(self, fitted: _Fitted, origin: Floats) -> None:
        prior = np.maximum(fitted.counts / fitted.counts.sum(), PROBABILITY_FLOOR)
        self.class_prior_ = prior
        self.means_ = fitted.means + origin
        self._log_prior = np.log(prior)
        self._centred_means = fitted.means


class GaussianNaiveBayes(_GaussianClassifier):
    """Naive Bayes with a normal distribution per feature and class.

    `p(y | x) ~ p(y) prod_j N(x_j; mu_jy, v_jy)` with weighted means and variances (divided by the weight, not by the
    weight - 1).

    Parameters
    ----------
    prior_strength : float, default=0.0
        Rows that the prior is worth, shared evenly by the classes: pseudo-rows with the pooled mean and variance of
        each feature. 0 is maximum likelihood.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels of the classes.
    class_prior_ : ndarray of shape (K,)
        `p(y)`.
    means_, variances_ : ndarray of shape (K, d)
        Of each feature in each class. A variance is at least 1e-6 of the pooled one.
    statistics_ : MomentStatistics
        The additive sums that all of this follows from.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Cost: O(n d K) time; one block of rows and O(d K) memory. Unlike scikit-learn's `GaussianNB`, whose smoothing adds
    1e-9 of the greatest variance to all, nothing depends on units. Source: statistics and closed form as in
    `QuadraticDiscriminant`, with diagonal covariances.

    Examples
    --------
    >>> from calibrant.generative import GaussianNaiveBayes
    >>> model = GaussianNaiveBayes().fit([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1])
    >>> model.means_.ravel(), model.variances_.ravel()
    (array([1., 5.]), array([1., 1.]))
    """

    variances_: Floats

    def _squares(self, centred: Floats, weights: Floats) -> Floats:
        return np.asarray(weights.T @ centred**2)

    def _variances(self, statistics: MomentStatistics, fitted: _Fitted) -> Floats:
        pooled = fitted.pooled
        squares: Floats = statistics.squares + fitted.share * (pooled.variance + pooled.mean**2)
        counts = np.where(fitted.present, fitted.counts, 1.0)[:, None]
        return np.asarray(np.where(fitted.present[:, None], squares / counts - fitted.means**2, pooled.variance))

    def _learn(self, statistics: MomentStatistics) -> None:
        fitted = self._with_prior(statistics)
        pooled = fitted.pooled
        self._remember(fitted, statistics.origin)
        self.variances_ = np.maximum(self._variances(statistics, fitted), VARIANCE_FLOOR * pooled.variance)
        relative = np.where(pooled.inverse > 0, self.variances_ * pooled.inverse**2, 1.0)
        self._offset = self._log_prior - 0.5 * np.log(relative).sum(axis=1)
        self._whitening = pooled.inverse / np.sqrt(relative)

    def statistics_are_valid(self, statistics: MomentStatistics) -> bool:
        fitted = self._with_prior(statistics)
        floor = VARIANCE_FLOOR * fitted.pooled.variance
        return bool(fitted.present.all() and np.all(self._variances(statistics, fitted) >= floor))

    def _log_joint(self, encoded: Floats) -> Floats:
        return kernels.log_densities(encoded, self._centred_means, self._whitening) + self._offset

    def _squares_of_products(self, sums: Floats) -> Floats:
        return sums.copy()

    def _joint_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return quadratic_rule(z, self._centred_means, [np.diag(scales) for scales in self._whitening], self._offset)


class QuadraticDiscriminant(_GaussianClassifier):
    """A normal distribution with its own covariance matrix per class (quadratic discriminant analysis).

    `p(y) = N_y / N, mu_y = s_y / N_y, Sigma_y = s2_y / N_y - mu_y mu_y'` from the class sums of 1, x and x x' (divided
    by the weight, not by the weight - 1). Eigenvalues of a covariance, in units of the pooled standard deviations, are
    at least 1e-6.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Rows that the prior is worth, shared evenly by the classes: pseudo-rows with the pooled mean and the diagonal of
        the pooled covariance, which is the mode under a normal-Wishart prior. 0 is maximum likelihood; use more when a
        class has few rows.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels of the classes.
    class_prior_ : ndarray of shape (K,)
        `p(y)`.
    means_ : ndarray of shape (K, d)
        Class means.
    covariances_ : ndarray of shape (K, d, d)
        Class covariances, after the floor.
    statistics_ : MomentStatistics
        The additive sums that all of this follows from.
    n_features_in_ : int
        Number of features.

    Warns
    -----
    FitWarning
        When the covariance of a class is singular, as it is when the class has fewer rows than features + 1.

    Notes
    -----
    Cost: O(n d^2 K) time; one block of rows and O(d^2 K) memory. Source: Perez, Echegoyen and Santafe (arXiv
    2409.03542), the closed form of quadratic discriminant analysis.

    Examples
    --------
    >>> from calibrant.generative import QuadraticDiscriminant
    >>> X = [[0, 0], [2, 0], [0, 2], [2, 2], [5, 5], [9, 5], [5, 9], [9, 9]]
    >>> model = QuadraticDiscriminant().fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> model.covariances_[1]
    array([[4., 0.],
           [0., 4.]])
    """

    def _squares(self, centred: Floats, weights: Floats) -> Floats:
        return kernels.full_squares(centred, weights)

    def _covariances(self, statistics: MomentStatistics, fitted: _Fitted) -> Floats:
        mean, variance = fitted.pooled.mean, np.diag(fitted.pooled.variance)
        squares = statistics.squares + fitted.share * (variance + np.multiply.outer(mean, mean))
        counts = np.where(fitted.present, fitted.counts, 1.0)[:, None, None]
        covariances = squares / counts - fitted.means[:, :, None] * fitted.means[:, None, :]
        covariances = np.where(fitted.present[:, None, None], covariances, variance)
        return np.asarray((covariances + covariances.transpose(0, 2, 1)) / 2)

    def _learn(self, statistics: MomentStatistics) -> None:
        fitted = self._with_prior(statistics)
        inverse = fitted.pooled.inverse
        self._remember(fitted, statistics.origin)
        found = kernels.directions(self._covariances(statistics, fitted), inverse)
        self._eigen = found
        self._scale = np.sqrt(fitted.pooled.variance)
        self._offset = self._log_prior - 0.5 * np.log(found.values).sum(axis=1)
        self._whitening = inverse[:, None] * (found.vectors / np.sqrt(found.values)[:, None, :])

    @property
    def covariances_(self) -> Floats:
        """Class covariances, after the floor, (K, d, d)."""
        vectors = self._scale[:, None] * self._eigen.vectors
        return np.asarray((vectors * self._eigen.values[:, None, :]) @ vectors.transpose(0, 2, 1))

    def statistics_are_valid(self, statistics: MomentStatistics) -> bool:
        fitted = self._with_prior(statistics)
        found = kernels.directions(self._covariances(statistics, fitted), fitted.pooled.inverse)
        return bool(fitted.present.all() and not found.floored.any())

    def _log_joint(self, encoded: Floats) -> Floats:
        return kernels.log_densities(encoded, self._centred_means, self._whitening) + self._offset

    def _products_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return products(z)

    def _squares_of_products(self, sums: Floats) -> Floats:
        return symmetric(sums)

    def _joint_of_columns(self, z: Sequence[Any]) -> list[Any]:
        factors = [triangle(whitening) for whitening in self._whitening]
        return quadratic_rule(z, self._centred_means, factors, self._offset)

    def _warn_after_fit(self) -> None:
        if not self._eigen.floored.any():
            return
        k = int(np.argmax(self._eigen.floored > 0))
        weight, needed = self.statistics_.counts[k], self.n_features_in_ + 1
        reason = f"it has {plural(int(weight), 'row')}, fewer than features + 1 = {needed}"
        if weight >= needed:
            reason = "some features are nearly functions of the others"
        warnings.warn(
            f"QuadraticDiscriminant: the covariance of class {self.classes_[k]!s} is singular ({reason}); "
            f"{plural(int(self._eigen.floored[k]), 'direction')} took the least variance, and its probabilities will "
            f"be extreme. Use prior_strength above 0, fewer features, or GaussianNaiveBayes.",
            FitWarning,
            stacklevel=3,
        )


class LinearDiscriminantLogistic(_GaussianClassifier):
    """Logistic regression in closed form: normal classes that share one variance per feature.

    `p(y | x) = softmax_y(theta_0y + theta_y' x)` with `theta_jy = mu_jy / v_j` and
    `theta_0y = log p(y) - sum_j mu_jy^2 / (2 v_j)`, where `v_j = s2_j / N - sum_y p(y) mu_jy^2` is the variance within
    classes and means are taken from the pooled mean (which changes no probability). It is not the maximum-likelihood
    logistic regression; `RiskBasedCalibration` moves it there.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Rows that the prior is worth, shared evenly by the classes: pseudo-rows with the pooled mean and variance of
        each feature. 0 is maximum likelihood.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels of the classes.
    class_prior_ : ndarray of shape (K,)
        `p(y)`.
    means_ : ndarray of shape (K, d)
        Class means.
    variances_ : ndarray of shape (d,)
        Variance within classes, at least 1e-6 of the pooled one.
    coef_ : ndarray of shape (K, d)
        Weights of the softmax. Only differences between classes matter.
    intercept_ : ndarray of shape (K,)
        Intercepts of the softmax.
    statistics_ : MomentStatistics
        The additive sums that all of this follows from.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Cost: O(n d K) time; one block of rows and O(d K) memory. Source: Perez, Echegoyen and Santafe (arXiv 2409.03542),
    closed-form logistic regression.

    Examples
    --------
    >>> from calibrant.generative import LinearDiscriminantLogistic
    >>> model = LinearDiscriminantLogistic().fit([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1])
    >>> float(model.coef_[1, 0] - model.coef_[0, 0])
    4.0
    """

    variances_: Floats
    coef_: Floats
    intercept_: Floats

    def _squares(self, centred: Floats, weights: Floats) -> Floats:
        return np.asarray(kernels.over_classes(np.add, weights) @ centred**2)

    def _variances(self, statistics: MomentStatistics, fitted: _Fitted) -> Floats:
        pooled, strength = fitted.pooled, self.prior_strength
        squares = statistics.squares + strength * (pooled.variance + pooled.mean**2)
        total = fitted.counts.sum()
        return np.asarray(squares / total - (fitted.counts / total) @ fitted.means**2)

    def _learn(self, statistics: MomentStatistics) -> None:
        fitted = self._with_prior(statistics)
        pooled = fitted.pooled
        self._remember(fitted, statistics.origin)
        self.variances_ = np.maximum(self._variances(statistics, fitted), VARIANCE_FLOOR * pooled.variance)
        precision = np.zeros_like(self.variances_)
        np.divide(1.0, self.variances_, out=precision, where=pooled.inverse > 0)
        means = fitted.means - pooled.mean
        self.coef_ = means * precision
        half = 0.5 * (means**2 @ precision)
        self._offset = self._log_prior - half - self.coef_ @ pooled.mean
        self.intercept_ = self._offset - self.coef_ @ statistics.origin

    def statistics_are_valid(self, statistics: MomentStatistics) -> bool:
        fitted = self._with_prior(statistics)
        floor = VARIANCE_FLOOR * fitted.pooled.variance
        return bool(fitted.present.all() and np.all(self._variances(statistics, fitted) >= floor))

    def _log_joint(self, encoded: Floats) -> Floats:
        return np.asarray((self.coef_ @ encoded.T + self._offset[:, None]).T)

    def _rate(self, block: NDArray[Any]) -> Floats:
        if np.any(np.abs(self.coef_) @ np.abs(self._layout) > FAR):
            return super()._rate(block)
        apart, shift = self.coef_ - self.coef_[0], self.intercept_ - self.intercept_[0]
        result = kernels.by_class(len(block), len(shift))
        np.matmul(numeric(block), apart[1:].T, out=result[:, 1:])
        result[:, 1:] += shift[1:]
        return result

    _squares_move: ClassVar[bool] = False

    def _squares_of_products(self, sums: Floats) -> Floats:
        return np.asarray(sums.sum(axis=0))

    def _joint_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return linear_rule(z, self.coef_, self._offset)
