"""Prediction of the classes, said once: all of it follows from one function of rows to probabilities or their logs.

May import scikit-learn's base, NumPy and `calibrant._checks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant._checks import Floats


class ClassProbabilities(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that gives probabilities of `classes_`."""

    classes_: NDArray[Any]

    @abstractmethod
    def _probabilities(self, X: Any, log: bool) -> Floats:
        """Probabilities (n, K) of checked rows, or their logarithms."""

    def predict_log_proba(self, X: Any) -> Floats:
        """Log of `predict_proba`, without underflow where the estimator has its own.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Columns in `classes_` order.
        """
        return self._probabilities(X, log=True)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Columns in `classes_` order; rows sum to 1.
        """
        return self._probabilities(X, log=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class; a tie goes to the first.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Labels out of `classes_`.
        """
        best = self._probabilities(X, log=False).argmax(axis=1)
        return np.asarray(self.classes_[best])
