"""Risk-based calibration by iteration: error, soft error and log loss, a baseline, and the reach.

May import NumPy, `calibrant.errors`, `calibrant.generative` and this folder's `_axes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.errors import InputError, NotFittedError
from calibrant.view._axes import name_of, row_of_axes

if TYPE_CHECKING:
    from calibrant.generative import RiskHistory

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"
"""Okabe and Ito's colours: told apart by colour-blind people, and on paper by their dashes."""
PANELS = {"error": "Error", "soft_error": "Soft error", "log_loss": "Log loss"}


class RiskBasedDisplay:
    """Error, soft error and log loss by iteration, beside a baseline; lower is better in every panel.

    The error is the share of wrong decisions, the soft error the mean probability off the true class, the log loss what
    risk-based calibration descends on. Where a baseline is given, a line marks the reach: the first iteration whose
    error is as low as the baseline's last.

    Parameters
    ----------
    history : RiskHistory
        Of `RiskBasedCalibration`, or of `calibrant.generative.stages_history`.
    baseline : RiskHistory, array-like of shape (T + 1,), or float, optional
        Another method: its history, its error by iteration, or its error at the end.
    best_iter : int, optional
        The restored iterate, marked by a ring.
    name : str, default="Risk-based calibration"
        What the curves are called.
    baseline_name : str, default="Gradient descent"
        What the baseline is called.

    Attributes
    ----------
    reach : int or None
        Iterations to the error of the baseline; None without a baseline, or where it is never reached.
    figure_ : matplotlib figure
        After `plot`.
    axes_ : ndarray of matplotlib axes
        The three panels, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from calibrant import RiskBasedDisplay
    >>> from calibrant.generative import LinearDiscriminantLogistic, RiskBasedCalibration
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RiskBasedCalibration(LinearDiscriminantLogistic(), max_iter=16).fit(X[:, :4], y)
    >>> display = RiskBasedDisplay(model.history_, baseline=0.145, best_iter=model.best_iter_)
    >>> display.reach  # then display.plot()
    9
    """

    figure_: Any
    axes_: Any

    def __init__(
        self,
        history: RiskHistory,
        *,
        baseline: Any = None,
        best_iter: int | None = None,
        name: str = "Risk-based calibration",
        baseline_name: str = "Gradient descent",
    ) -> None:
        self.history = history
        self.baseline = baseline
        self.best_iter = best_iter
        self.name = name_of(name)
        self.baseline_name = name_of(baseline_name, "baseline_name")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        baseline: Any = None,
        ax: Any = None,
        name: str = "Risk-based calibration",
        baseline_name: str = "Gradient descent",
    ) -> Self:
        """Draw the history of a fitted `RiskBasedCalibration`, or how its iterates do on other rows.

        Parameters
        ----------
        estimator : RiskBasedCalibration
            Fitted.
        X, y : array-like, optional
            Rows to judge every iterate on, for example test rows; by default the history of the fit is shown.
        sample_weight : array-like of shape (n,), optional
            Frequencies.
        baseline : optional
            As in the class.
        ax : matplotlib axes, or sequence of three, optional
            Where to draw; by default a new figure.
        name, baseline_name : str
            As in the class.

        Returns
        -------
        RiskBasedDisplay
            Drawn.
        """
        if not hasattr(estimator, "history_"):
            raise NotFittedError("estimator has no history_: give a fitted RiskBasedCalibration.")
        if (X is None) != (y is None):
            raise InputError("X and y go together: give both to judge the iterates on those rows, or none of them.")
        if X is None:
            history = estimator.history_
        else:
            from calibrant.generative import stages_history

            history = stages_history(y, estimator.staged_predict_proba(X), estimator.classes_, sample_weight)
        best = estimator.best_iter_
        return cls(history, baseline=baseline, best_iter=best, name=name, baseline_name=baseline_name).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        stages: Iterable[Any],
        *,
        classes: Any = None,
        sample_weight: Any = None,
        baseline: Any = None,
        ax: Any = None,
        name: str = "Risk-based calibration",
        baseline_name: str = "Gradient descent",
    ) -> Self:
        """Draw from labels and the probabilities after each iteration.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        stages : iterable of array-like of shape (n, K)
            Probabilities by iteration, the start first.
        classes : sequence of K labels, optional
            The classes of the columns; by default the sorted labels.
        sample_weight : array-like of shape (n,), optional
            Frequencies.
        baseline, ax, name, baseline_name
            As in `from_estimator`.

        Returns
        -------
        RiskBasedDisplay
            Drawn.
        """
        from calibrant.generative import stages_history

        history = stages_history(y_true, stages, classes, sample_weight)
        return cls(history, baseline=baseline, name=name, baseline_name=baseline_name).plot(ax=ax)

    @property
    def reach(self) -> int | None:
        """Iterations to the last error of the baseline."""
        from calibrant.generative import reach

        errors = self._baseline("error")
        return None if errors is None else reach(self.history.error, float(errors[-1]))

    def _baseline(self, panel: str) -> Any:
        """The baseline of a panel by iteration; one number is an error held throughout."""
        if hasattr(self.baseline, panel):
            return np.asarray(getattr(self.baseline, panel))
        if self.baseline is None or panel != "error":
            return None
        return np.atleast_1d(np.asarray(self.baseline, dtype=float))

    # ---------------------------------------------------------------- drawing

    def plot(self, ax: Any = None) -> Self:
        """Draw the three panels.

        Parameters
        ----------
        ax : matplotlib axes, or sequence of three, optional
            One is divided into three; by default a new figure.

        Returns
        -------
        self
            With `figure_` and `axes_`.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        self.axes_ = _panels(ax)
        self.figure_ = self.axes_[0].figure
        for axes, (panel, title) in zip(self.axes_, PANELS.items()):
            self._draw(axes, panel, title)
        self._mark_reach(self.axes_[0])
        handles, labels = self.axes_[0].get_legend_handles_labels()
        if len(labels) > 1:
            self.axes_[0].legend(handles, labels, edgecolor="none", framealpha=0.9, fontsize="small", loc="best")
        return self

    def _draw(self, axes: Any, panel: str, title: str) -> None:
        values = getattr(self.history, panel)
        iterations = np.arange(len(values))
        held_out = getattr(self.history, f"validation_{panel}")
        label = self.name if held_out is None else f"{self.name}, learned rows"
        axes.plot(iterations, values, color=BLUE, linewidth=1.8, label=label)
        if held_out is not None:
            axes.plot(iterations, held_out, color=ORANGE, linewidth=1.8, dashes=(5, 2), label="Held-out rows")
        if self.best_iter is not None and self.best_iter < len(values):
            best = (values if held_out is None else held_out)[self.best_iter]
            ring = {"marker": "o", "markersize": 7, "markerfacecolor": "white", "linestyle": "none"}
            axes.plot(
                self.best_iter, best, color=BLUE if held_out is None else ORANGE, label="Restored iterate", **ring
            )
        self._draw_baseline(axes, panel, len(values))
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlabel("Iteration")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)

    def _draw_baseline(self, axes: Any, panel: str, length: int) -> None:
        values = self._baseline(panel)
        if values is None:
            return
        style = {"color": GREY, "linewidth": 1.4, "linestyle": (0, (1, 1.4)), "label": self.baseline_name}
        if len(values) == 1:
            axes.axhline(values[0], **style)
        else:
            axes.plot(np.arange(len(values))[:length], values[:length], **style)

    def _mark_reach(self, axes: Any) -> None:
        if self._baseline("error") is None:
            return
        reached = self.reach
        if reached is None:
            text = f"reach: never in {len(self.history.error) - 1}"
        else:
            axes.axvline(reached, color=GREY, linewidth=0.8)
            text = f"reach: {reached} iteration{'' if reached == 1 else 's'}" if reached else "reach: the start does"
        axes.set_title(text, loc="right", fontsize="small", color=GREY)


def _panels(ax: Any) -> Any:
    """Three axes: new ones, the given ones, or a given one divided."""
    given = row_of_axes(ax, "RiskBasedDisplay", 3, (10.5, 3.3))
    if len(given) == 3:
        return given
    place = given[0].get_subplotspec()
    if place is None:
        raise InputError("ax has no place in a grid, so it cannot be divided into three: give three axes.")
    grid = place.subgridspec(1, 3, wspace=0.35)
    given[0].set_axis_off()
    return np.array([given[0].figure.add_subplot(grid[0, place]) for place in range(3)], dtype=object)
