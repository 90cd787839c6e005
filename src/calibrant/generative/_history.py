"""The history of risk-based calibration, and the choice of its best iterate.

May import NumPy and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, plural
from calibrant.data._arrays import array_of, named_in_order
from calibrant.errors import InputError
from calibrant.generative._rows import Labelled, labelled
from calibrant.generative._statistics import RiskStep
from calibrant.generative._steps import judge_probabilities


def reach(errors: Any, baseline: float) -> int | None:
    """Iterations until the error is at or below a baseline's; 0 if the start already is, None if never.

    Parameters
    ----------
    errors : array-like of shape (T + 1,)
        Error by iteration, the start first.
    baseline : float
        The error to reach, for example that of gradient descent after its last iteration.

    Returns
    -------
    int or None
        The first iteration that is as good; lower is better.

    Examples
    --------
    >>> from calibrant.generative import reach
    >>> reach([0.3, 0.25, 0.2, 0.22], 0.21)
    2
    """
    reached = np.flatnonzero(np.asarray(errors, dtype=float) <= baseline)
    return int(reached[0]) if len(reached) else None


@dataclass(frozen=True, eq=False)
class RiskHistory:
    """How the model did after each iteration; index 0 is the closed-form fit. Lower is better throughout.

    Attributes
    ----------
    error : ndarray of shape (T + 1,)
        Share of wrong decisions on the rows learned from.
    soft_error : ndarray of shape (T + 1,)
        Mean probability that was not on the true class.
    log_loss : ndarray of shape (T + 1,)
        Mean log loss.
    learning_rate : ndarray of shape (T + 1,)
        The step that led to the iterate; 0 at the start.
    validation_error, validation_soft_error, validation_log_loss : ndarray of shape (T + 1,), or None
        The same on held-out rows, with `early_stopping`.
    """

    error: Floats
    soft_error: Floats
    log_loss: Floats
    learning_rate: Floats
    validation_error: Floats | None = None
    validation_soft_error: Floats | None = None
    validation_log_loss: Floats | None = None


@dataclass
class Track:
    """What has happened so far, iterate by iterate."""

    scoring: str
    steps: list[RiskStep] = field(default_factory=list)
    held_out: list[RiskStep] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    statistics: list[Any] = field(default_factory=list)

    def add(self, statistics: Any, step: RiskStep, held_out: RiskStep | None, rate: float) -> None:
        """One more iterate; the correction of the step is not kept."""
        self.statistics.append(statistics)
        self.steps.append(_without_correction(step))
        self.rates.append(rate)
        if held_out is not None:
            self.held_out.append(held_out)

    @property
    def best(self) -> int:
        """The iterate of the lowest score on the watched rows; ties by soft error, then the earliest."""
        watched = self.held_out or self.steps
        return min(range(len(watched)), key=lambda t: (getattr(watched[t], self.scoring), watched[t].soft_error, t))

    def since_best(self) -> int:
        """Iterations since the best one."""
        return len(self.steps) - 1 - self.best

    def history(self) -> RiskHistory:
        """The record of all iterates."""
        held_out = [_column(self.held_out, name) if self.held_out else None for name in NAMES]
        columns = [_column(self.steps, name) for name in NAMES]
        return RiskHistory(columns[0], columns[1], columns[2], np.array(self.rates), *held_out)


NAMES = ("error", "soft_error", "log_loss")


def _column(steps: Sequence[RiskStep], name: str) -> Floats:
    return np.array([getattr(step, name) for step in steps])


def _without_correction(step: RiskStep) -> RiskStep:
    return RiskStep(None, step.weight, step.error_sum, step.soft_error_sum, step.log_loss_sum)


def stages_history(y: Any, stages: Iterable[Any], classes: Any = None, sample_weight: Any = None) -> RiskHistory:
    """The history that probabilities of several iterates give on some rows, for example on test rows.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels.
    stages : iterable of array-like of shape (n, K)
        Probabilities after each iteration, as `staged_predict_proba` yields them.
    classes : sequence of K labels, optional
        The classes of the columns; by default the sorted labels of y.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    RiskHistory
        With a learning rate of NaN, which probabilities do not tell.
    """
    rows: Labelled | None = None
    judged = []
    for stage in stages:
        p = _checks.class_scores(array_of(stage, "stages"), "stages", reads="probability")
        if rows is None:
            first, numbered = p, np.arange(len(p))[:, None]
            rows = labelled(numbered, y, sample_weight, classes)
        if p.shape != first.shape or p.shape[1] != len(rows.classes):
            raise InputError(
                f"stages must hold arrays of one shape (rows, {plural(len(rows.classes), 'class')}), but one has shape "
                f"{p.shape}. Give classes= when a class does not occur in y."
            )
        named_in_order(stage, list(rows.classes), "stages")
        judged.append(judge_probabilities(p[rows.features[:, 0]], rows.codes, rows.weights))
    if not judged:
        raise InputError("stages is empty: it must hold the probabilities of at least one iterate.")
    columns = [_column(judged, name) for name in NAMES]
    return RiskHistory(columns[0], columns[1], columns[2], np.full(len(judged), np.nan))
