"""Temperature scaling: one number that sharpens or softens every probability.

`softmax(beta * L)`, beta = 1 / temperature > 0; for two classes `expit(beta * z)` of the log-odds z. Order is kept,
and the most likely class never changes.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and `calibrant.calibrators._base`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant._kernels import logistic_roots
from calibrant._kernels.class_blocks import ClassBlocks, Rows
from calibrant._kernels.temperature import NO_SIGNAL, TOO_SHARP, fit_temperature
from calibrant._parameters import Flag, Rule, Sequenced, optional
from calibrant.calibrators._base import BinaryCalibrator, forget
from calibrant.calibrators._class_stream import Blocks, open_stream
from calibrant.calibrators._misuse import certain_errors, warn_if_no_logits, warn_of_certain_errors
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of, read_class_rows
from calibrant.data._log_odds import fit_log_odds, log_odds_ends
from calibrant.errors import FitWarning, InputError
from calibrant.maps import TemperatureMap

LARGEST = float(np.finfo(np.float64).max)


class TemperatureScaling(BinaryCalibrator):
    """One temperature for all classes, `p -> softmax(L / T)`.

    A temperature above 1 softens over-confident probabilities, below 1 it sharpens them. The order of the scores, and
    so every ranking measure and the most likely class, stays.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether the scores are logits (for two classes in one column: log-odds) instead of probabilities.
    mix : bool, default=False
        Mix the answer with `1 / (N + 1)` of the uniform distribution, which bounds the log loss.
    classes : sequence, optional
        The labels of the columns, in order: (negative, positive) for two; needed for three or more that are not
        0..K-1.

    Attributes
    ----------
    temperature_ : float
        T; at a bound when no finite T is best (with a warning).
    map_ : TemperatureMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Warns
    -----
    FitWarning
        When the best temperature is 0 (the scores separate the classes) or infinite (they carry no signal).

    Notes
    -----
    The derivative of the cross-entropy in beta = 1/T rises, so its root is unique; it is bracketed on
    log(beta * range of the logits) in [-16, 16]. Cost: about ten passes over the rows, O(nK). Source: Guo, Pleiss,
    Sun, Weinberger (2017), section 4.2.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([0.01, 0.2, 0.9, 0.99, 0.95], [0, 0, 1, 1, 0])
    >>> fitted.temperature_ > 1
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "from_logits": Flag(),
        "mix": Flag(),
        "classes": optional(Sequenced("a list of the labels of the columns")),
    }

    temperature_: float

    def __init__(self, from_logits: bool = False, mix: bool = False, classes: Sequence[Any] | None = None) -> None:
        self.from_logits = from_logits
        self.mix = mix
        self.classes = classes

    @property
    def _many_classes(self) -> bool:
        return True

    @property
    def _reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the temperature.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities, or logits with `from_logits`.
        y : array-like of shape (n,)
            Labels; with K columns those of `classes`, or 0..K-1.
        sample_weight : array-like of shape (n,), optional
            Frequencies.

        Returns
        -------
        self
        """
        shape = np.shape(array_of(scores, "scores"))
        if len(shape) != 2 or shape[1] < 3:
            return super().fit(scores, y, sample_weight)
        self._check_parameters()
        rows = read_class_rows(scores, y, sample_weight, self.classes, reads=self._reads, keep_float32=True)
        if self.from_logits:
            warn_if_no_logits(rows.scores)
        else:
            warn_of_certain_errors(certain_errors(rows.scores, rows.labels), len(rows.labels))
        forget(self)
        return self._fit_rows(ClassBlocks(rows.scores, rows.labels, rows.weights, self.from_logits), rows.classes)

    def fit_blocks(self, blocks: Blocks, classes: Sequence[Any] | None = None) -> Self:
        """Learn the temperature of three or more classes from rows that come block by block.

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
        About eight passes. Memory: one block, a few megabytes for each thread, at most 64 MB for a sample. Two classes
        need no blocks: add up their score tables, and give `fit_table` the sum.
        """
        self._check_parameters()
        stream, names = open_stream(blocks, self.classes if classes is None else classes, self.from_logits)
        if len(names) < 3:
            raise InputError(
                "fit_blocks is for three or more classes. For two, add up the score tables of the blocks: "
                "fit_table(sum(ScoreTable.from_arrays(scores, y) for scores, y in blocks))."
            )
        forget(self)
        return self._fit_rows(stream, names)

    def _fit_rows(self, rows: Rows, classes: tuple[Label, ...]) -> Self:
        self.map_ = self._map(*fit_temperature(rows), classes, rows.total)
        self.classes_ = np.array(classes)
        self.n_features_in_ = rows.n_classes
        return self

    def _coding(self, labels: NDArray[Any]) -> Any:
        return super()._coding(labels) if self.classes is None else _checks.class_names(self.classes, 2)

    def _learn(self, table: ScoreTable) -> TemperatureMap:  # type: ignore[override]
        on_line = table if self.from_logits else table.with_scores(fit_log_odds(table))
        beta, outcome = on_line.reduce(
            logistic_roots.fit_temperature_binary,
            lambda z, positives, negatives: logistic_roots.fit_temperature_binary(z, positives, positives + negatives),
        )
        found = self._map(beta, outcome, table.classes, table.total_weight)
        if self.from_logits:
            return found
        lowest, highest = log_odds_ends(table)
        return replace(found, lowest=lowest, highest=highest)

    def _map(self, beta: float, outcome: int, classes: tuple[Any, ...], total_weight: float) -> TemperatureMap:
        beta = min(max(beta, 1 / LARGEST), LARGEST)
        self.temperature_ = 1 / beta
        if outcome == NO_SIGNAL:
            _warn_bound("the scores carry no signal for these labels, so the best temperature is infinite")
        elif outcome == TOO_SHARP:
            _warn_bound("the scores separate the classes, so the best temperature is zero")
        mix = 1 / (total_weight + 1) if self.mix else 0.0
        return TemperatureMap(classes, beta, mix, self.from_logits)

    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), columns in `classes_` order."""
        p = self._fitted_map()(scores)
        return p if p.ndim == 2 else np.column_stack([1 - p, p])


def _warn_bound(why: str) -> None:
    warnings.warn(
        f"TemperatureScaling: {why}. It was kept at the bound e^16 relative to the range of the logits, and the map is "
        f"finite. Check the labels and scores, or use rows the model was not trained on.",
        FitWarning,
        stacklevel=6,
    )
