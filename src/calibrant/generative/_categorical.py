"""Naive Bayes over categories: tables of counts, by maximum likelihood or with Dirichlet pseudo-counts.

`p(y | x) ~ p(y) prod_j p(x_j | y)`. May import NumPy, the kernels and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import generative as kernels
from calibrant._kernels.generative import JointCodes
from calibrant._parameters import Choice, Number, Rule
from calibrant.errors import DataWarning, InputError
from calibrant.generative._base import GenerativeClassifier
from calibrant.generative._features import Categories, encode, find_categories, whole_or_text
from calibrant.generative._rules import linear_rule
from calibrant.generative._statistics import CategoricalStatistics


class CategoricalNaiveBayes(GenerativeClassifier):
    """Naive Bayes for features that are categories: whole numbers or text.

    With weights `N_y` of the classes, `N_jvy` of the categories, N in all, K classes, `r_j` categories of feature j and
    the prior strength m:

        p(y) = (N_y + m/K) / (N + m),    p(x_j = v | y) = (N_jvy + m/(K r_j)) / (N_y + m/K)

    m = 0 is maximum likelihood; m > 0 is the mean under a Dirichlet prior worth m rows spread evenly over all cells.
    Probabilities are floored at 1e-10. Naive Bayes tends to be too sure of itself: `RiskBasedCalibration` lowers its
    error and loss with the same tables.

    Parameters
    ----------
    prior_strength : float, default=0.0
        Rows that the prior is worth; 0 is maximum likelihood.
    unseen : {"warn", "ignore", "error"}, default="warn"
        What a category does that the fit has not seen: count as no evidence, with or without a `DataWarning`, or raise.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels of the classes.
    class_log_prior_ : ndarray of shape (K,)
        `log p(y)`.
    feature_log_prob_ : list of ndarray of shape (K, r_j)
        `log p(x_j = v | y)`.
    categories_ : list of ndarray
        Categories of each feature. Whole numbers are codes: all from 0 (or the least, if it is negative) to the
        greatest, whether they occur or not; text as it occurs.
    statistics_ : CategoricalStatistics
        The additive counts that all of this follows from.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Cost: O(n d) time; memory per block of rows, and K times the number of categories for the tables. Source: Perez,
    Echegoyen and Santafe, Risk-based Calibration for Probabilistic Classifiers (arXiv 2409.03542), the closed form of
    naive Bayes; pseudo-counts shared evenly as in Buntine (1991), Theory refinement on Bayesian networks.

    Examples
    --------
    >>> from calibrant.generative import CategoricalNaiveBayes
    >>> X = [["red", "small"], ["red", "large"], ["blue", "large"], ["blue", "large"]]
    >>> model = CategoricalNaiveBayes(prior_strength=2.0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict_proba([["red", "large"]]).round(3)
    array([[0.75, 0.25]])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "prior_strength": Number(0),
        "unseen": Choice(("warn", "ignore", "error")),
    }

    _categorical: ClassVar[bool] = True

    statistics_: CategoricalStatistics
    class_log_prior_: Floats
    feature_log_prob_: list[Floats]
    categories_: list[NDArray[Any]]

    def __init__(self, prior_strength: float = 0.0, unseen: str = "warn") -> None:
        self.prior_strength = prior_strength
        self.unseen = unseen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    @property
    def _layout(self) -> Categories:
        return self.statistics_.categories

    def _prepare(self, block: NDArray[Any]) -> Categories:
        return tuple(find_categories(whole_or_text(block, j), f"Feature {j}") for j in range(block.shape[1]))

    def _encode(self, block: NDArray[Any], layout: Categories) -> JointCodes:
        return encode(block, layout)[0]

    def _read(self, block: NDArray[Any]) -> JointCodes:
        codes, strange = encode(block, self._layout)
        if strange and self.unseen != "ignore":
            self._report(strange)
        return codes

    def _report(self, strange: dict[int, Any]) -> None:
        feature, value = next(iter(strange.items()))
        text = (
            f"CategoricalNaiveBayes: feature {feature} holds {value!r}, a category that the fit has not seen "
            f"({len(self.categories_[feature])} are known)"
        )
        if self.unseen == "error":
            raise InputError(f'{text}. Map it to a known category, or use unseen="ignore".')
        warnings.warn(f"{text}; it counts as no evidence for any class.", DataWarning, stacklevel=6)

    def _sums(self, encoded: JointCodes, weights: Floats, layout: Categories) -> CategoricalStatistics:
        cells = tuple(table[:-1] for table in kernels.add_up(encoded, weights))
        return CategoricalStatistics(weights.sum(axis=0), cells, layout)

    def _learn(self, statistics: CategoricalStatistics) -> None:
        counts, tables = self._smoothed(statistics)
        total = statistics.counts.sum() + self.prior_strength
        least = kernels.PROBABILITY_FLOOR
        with np.errstate(divide="ignore"):
            self.class_log_prior_ = np.log(np.maximum(counts / total, least))
        within = np.maximum(counts, least * total)
        self.feature_log_prob_ = [np.log(np.maximum(table / within, least)).T for table in tables]
        self.categories_ = list(statistics.categories)
        self._tables = [np.vstack([table.T, np.zeros(len(counts))]) for table in self.feature_log_prob_]

    def _smoothed(self, statistics: CategoricalStatistics) -> tuple[Floats, list[Floats]]:
        """Weights of classes and cells with those of the prior."""
        share = self.prior_strength / len(statistics.counts)
        return statistics.counts + share, [table + share / len(table) for table in statistics.cells]

    def statistics_are_valid(self, statistics: CategoricalStatistics) -> bool:
        counts, tables = self._smoothed(statistics)
        return bool(counts.min() > 0 and all(table.min() >= 0 for table in tables))

    def _log_joint(self, encoded: JointCodes) -> Floats:
        return kernels.look_up(encoded, self._tables, self.class_log_prior_)

    # ---------------------------------------------------------------- the same in columns, 1 or 0 for each category

    def _products_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return []

    def _joint_of_columns(self, z: Sequence[Any]) -> list[Any]:
        return linear_rule(z, np.hstack(self.feature_log_prob_), self.class_log_prior_)

    def _of_sums(self, layout: Categories, sums: Floats) -> CategoricalStatistics:
        ends = np.cumsum([1, *map(len, layout)])
        return CategoricalStatistics(sums[0], tuple(sums[a:b] for a, b in pairwise(ends)), layout)
