"""One pass of risk-based calibration over a block: how the model does there, and where its statistics should move.

Invariant: steps add. `step(a) + step(b) = step(a and b)`, so a pass is a map over blocks and a reduce.
May import NumPy, the kernels and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._fitting import NotFitted
from calibrant._kernels import generative as kernels
from calibrant._kernels._one_thread import one_blas_thread
from calibrant.errors import InputError
from calibrant.generative._base import GenerativeClassifier
from calibrant.generative._rows import Labelled, block_rows, blocks_of, labelled
from calibrant.generative._statistics import RiskStep, merge


class ClosedForm(Protocol):
    """What risk-based calibration asks of a classifier: two functions, and probabilities.

    * `statistics(X, weights)`: sums over rows, linear in `weights` of shape (n, K), which may be negative. What it
      returns must add (`a + b`) and scale (`a * 0.1`): an array is enough.
    * `fit_statistics(statistics, classes)`: parameters from those sums, with any prior and any floor inside; returns
      the estimator, with `classes_` set.
    * `predict_proba(X)`: probabilities, (n, K).

    The estimator must be one that scikit-learn can clone. With `statistics_are_valid(statistics) -> bool` it can also
    be guarded by "halve".
    """

    def statistics(self, X: Any, weights: Floats) -> Any:
        """Sums of weighted rows."""

    def fit_statistics(self, statistics: Any, classes: Any = None) -> Any:
        """Parameters from sums, in closed form."""

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes."""


def risk_step(model: Any, X: Any, y: Any, sample_weight: Any = None) -> RiskStep:
    """The step of a block under a fitted model: the map of a distributed pass, with `merge` as its reduce.

    Parameters
    ----------
    model : fitted classifier
        Of this module, or any with the two functions.
    X : array-like of shape (n, d)
        Features of the block.
    y : array-like of shape (n,)
        Labels out of `model.classes_`.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    RiskStep
        To be merged over blocks; then `model.fit_statistics(statistics + step.correction * learning_rate)`.

    Notes
    -----
    Cost: one prediction and one sum of statistics. Source: Perez, Echegoyen and Santafe (arXiv 2409.03542), the
    algorithm of risk-based calibration.

    Examples
    --------
    >>> from calibrant.generative import GaussianNaiveBayes, merge, risk_step
    >>> model = GaussianNaiveBayes().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> step = merge([risk_step(model, [[0.0], [1.0]], [0, 1]), risk_step(model, [[2.0], [3.0]], [0, 1])])
    >>> step.error
    0.5
    >>> better = model.fit_statistics(model.statistics_ + step.correction * 0.1)
    """
    if not hasattr(model, "classes_"):
        raise NotFitted(
            f"This {type(model).__name__} is not fitted yet. Call fit_statistics(statistics, classes) first."
        )
    rows = labelled(X, y, sample_weight, model.classes_)
    return Rows(rows, block_rows(rows.features.shape[1], len(rows.classes))).step(model)


# ---------------------------------------------------------------- passes over rows


class Rows:
    """Labelled rows in memory (or mapped from a file), read block by block.

    Category codes are kept from the first pass on, 2 bytes for each group of features; nothing else is.
    """

    def __init__(self, rows: Labelled, size: int) -> None:
        self.rows, self.size = rows, size
        self._kept: dict[int, Any] = {}

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of the rows."""
        return self.rows.classes

    def statistics(self, model: Any) -> Any:
        """Statistics of all rows under their labels."""
        parts = blocks_of(len(self.rows), self.size)
        with one_blas_thread():
            return merge(_statistics(model, self.rows.features[part], self.rows.weights_of(part)) for part in parts)

    def step(self, model: Any, correct: bool = True) -> RiskStep:
        """The step of all rows."""
        with one_blas_thread():
            return merge(self._block_step(model, part, correct) for part in blocks_of(len(self.rows), self.size))

    def _block_step(self, model: Any, part: slice, correct: bool) -> RiskStep:
        weights = None if self.rows.weights is None else self.rows.weights[part]
        codes, features = self.rows.codes[part], self.rows.features[part]
        if not isinstance(model, GenerativeClassifier):
            return _foreign_step(model, features, codes, weights, correct)
        return _own_step(model, self._encoded(model, part), codes, weights, correct)

    def _encoded(self, model: GenerativeClassifier, part: slice) -> Any:
        if part.start in self._kept:
            return self._kept[part.start]
        if self.rows.features.shape[1] != model.n_features_in_:
            raise InputError(
                f"X has {self.rows.features.shape[1]} features, but the model was fitted with {model.n_features_in_}: "
                f"every block needs the same columns."
            )
        encoded = model._encode(self.rows.features[part], model._layout)
        if isinstance(encoded, kernels.JointCodes):
            self._kept[part.start] = encoded
        return encoded


Source = Callable[[], Iterable[tuple[Any, ...]]]


class Stream:
    """Rows that come anew in every pass from a function that yields blocks; none is kept."""

    def __init__(self, source: Source, classes: NDArray[Any]) -> None:
        self.source, self.classes = source, classes

    def statistics(self, model: Any) -> Any:
        """Statistics of all rows under their labels."""
        return merge(block.statistics(model) for block in self._blocks())

    def step(self, model: Any, correct: bool = True) -> RiskStep:
        """The step of all rows."""
        return merge(block.step(model, correct) for block in self._blocks())

    def _blocks(self) -> Iterator[Rows]:
        any_block = False
        for block in self.source():
            if not isinstance(block, tuple | list) or len(block) not in (2, 3):
                raise InputError("Every block must be a tuple (X, y) or (X, y, sample_weight).")
            X, y, weight = block if len(block) == 3 else (*block, None)
            if len(y) == 0:  # parts of a cluster are often empty
                continue
            rows = labelled(X, y, weight, self.classes)
            any_block = True
            yield Rows(rows, block_rows(rows.features.shape[1], len(self.classes)))
        if not any_block:
            raise InputError(
                "blocks() gave no block. It must give an iterator over all blocks each time it is called: pass the "
                "function, not one iterator that is used up after a pass."
            )


def _statistics(model: Any, features: NDArray[Any], weights: Floats) -> Any:
    return getattr(model, "_statistics", model.statistics)(features, weights)


def _own_step(
    model: GenerativeClassifier, encoded: Any, codes: NDArray[np.intp], weights: Floats | None, correct: bool
) -> RiskStep:
    judged = kernels.judge(model._log_joint(encoded), codes, weights)
    correction = model._sums(encoded, judged.residuals, model._layout) if correct else None
    return _record(judged, correction, codes, weights)


def judge_probabilities(p: Floats, codes: NDArray[np.intp], weights: Floats | None) -> RiskStep:
    """How probabilities do on rows, without a correction."""
    return _record(_judged(p, codes, weights), None, codes, weights)


def _judged(p: Floats, codes: NDArray[np.intp], weights: Floats | None) -> kernels.Judged:
    return kernels.judge(np.log(np.maximum(p, np.finfo(np.float64).tiny)), codes, weights)


def _foreign_step(
    model: ClosedForm, features: NDArray[Any], codes: NDArray[np.intp], weights: Floats | None, correct: bool
) -> RiskStep:
    judged = _judged(np.asarray(model.predict_proba(features), dtype=np.float64), codes, weights)
    correction = model.statistics(features, judged.residuals) if correct else None
    return _record(judged, correction, codes, weights)


def _record(judged: kernels.Judged, correction: Any, codes: NDArray[np.intp], weights: Floats | None) -> RiskStep:
    weight = float(len(codes) if weights is None else weights.sum())
    return RiskStep(correction, weight, judged.error, judged.soft_error, judged.log_loss)


def hold_out(rows: Labelled, fraction: float, random: np.random.Generator) -> tuple[Labelled, Labelled]:
    """Rows to learn from and rows to watch: about `fraction` of each class, never all of it."""
    watched = np.zeros(len(rows), dtype=bool)
    for k in range(len(rows.classes)):
        members = random.permutation(np.flatnonzero(rows.codes == k))
        watched[members[: min(round(fraction * len(members)), len(members) - 1)]] = True
    if not watched.any():
        raise InputError(
            f"early_stopping found no row to hold out: {len(rows)} rows with validation_fraction={fraction}. Use more "
            f"rows, a larger validation_fraction, or early_stopping=False."
        )
    return rows.take(~watched), rows.take(watched)
