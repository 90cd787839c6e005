"""The iterations of risk-based calibration over rows, wherever they are: in memory, in blocks, in an engine.

May import NumPy and the modules of `calibrant.generative` below it.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, TypeAlias

from calibrant.errors import FitWarning
from calibrant.generative._base import GenerativeClassifier
from calibrant.generative._frame_passes import FramePasses
from calibrant.generative._history import Track
from calibrant.generative._statistics import RiskStep
from calibrant.generative._steps import Rows, Stream

HALVINGS = 20

Passes: TypeAlias = Rows | Stream | FramePasses


class _State(NamedTuple):
    """An iterate: its statistics, how it does, and the step that led to it."""

    statistics: Any
    step: RiskStep
    rate: float


def iterate(settings: Any, model: Any, rows: Passes, watched: Passes | None) -> Track:
    """All iterates of a model, as the parameters of a `RiskBasedCalibration` ask; the model keeps the last."""
    track = Track(settings.scoring)
    state = _start(model, rows, float(settings.learning_rate))
    _record(track, model, state, watched)
    for _ in range(settings.max_iter):
        moved = _move(settings, model, rows, state)
        if moved is None:
            break
        state = moved
        _record(track, model, state, watched)
        if watched is not None and track.since_best() >= settings.n_iter_no_change:
            break
    return track


def _start(model: Any, rows: Passes, rate: float) -> _State:
    statistics = rows.statistics(model)
    model.fit_statistics(statistics, rows.classes)
    if isinstance(model, GenerativeClassifier):
        model._warn_after_fit()
    return _State(statistics, rows.step(model), rate)


def _move(settings: Any, model: Any, rows: Passes, state: _State) -> _State | None:
    """The next iterate, with the step halved as the guard and the step control ask; None when there is none."""
    rate = state.rate if settings.step_control else float(settings.learning_rate)
    for _ in range(HALVINGS + 1):
        statistics = state.statistics + state.step.correction * rate
        if settings.guard == "clip" or model.statistics_are_valid(statistics):
            model.fit_statistics(statistics, rows.classes)
            step = rows.step(model)
            if not math.isfinite(step.log_loss):
                _warn("the log loss is no longer a finite number; use a smaller learning_rate")
                return None
            if not settings.step_control or step.log_loss <= state.step.log_loss:
                return _State(statistics, step, rate)
        rate /= 2
    if not settings.step_control:
        _warn('no step keeps the statistics valid, so it stopped; use guard="clip" to go on')
    return None


def _record(track: Track, model: Any, state: _State, watched: Passes | None) -> None:
    held_out = None if watched is None else watched.step(model, correct=False)
    track.add(state.statistics, state.step, held_out, state.rate if track.steps else 0.0)


def _warn(what: str) -> None:
    warnings.warn(f"RiskBasedCalibration: {what}. The best iterate so far was kept.", FitWarning, stacklevel=6)
