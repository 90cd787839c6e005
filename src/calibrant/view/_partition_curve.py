"""Recursive partitioning by number of leaves: log loss, and the volume under the ROC surface.

May import NumPy, `calibrant.metrics`, and matplotlib inside `plot` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from calibrant._checks import Floats
from calibrant.metrics import log_loss, roc_surface
from calibrant.view._axes import row_of_axes
from calibrant.view._roc_surface_display import BLUE, GREY, MARKS, ORANGE, fitted


class LeafCurve(NamedTuple):
    """Log loss and volume under the ROC surface of some rows, by number of leaves, and without calibration."""

    log_loss: Floats
    volume: Floats | None
    log_loss_before: float
    volume_before: float | None


class PartitionCurveDisplay:
    """Log loss and volume under the ROC surface by number of leaves of a tree, on rows it was fitted on and others.

    The loss of the calibration rows only falls; where that of other rows turns, further leaves do harm. Dotted lines
    are the uncalibrated scores.

    Parameters
    ----------
    n_leaves : array-like of shape (S + 1,)
        Numbers of leaves.
    curves : mapping of str to LeafCurve
        By the name of the rows.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes
        Two panels, or one without volumes, after `plot`.
    figure_ : matplotlib figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import PartitionCurveDisplay
    >>> from calibrant.view import LeafCurve
    >>> display = PartitionCurveDisplay([1, 3], {"test rows": LeafCurve(np.array([1.1, 0.8]), None, 0.7, None)})
    >>> display.best("test rows")  # then display.plot()
    3
    """

    axes_: Any
    figure_: Any

    def __init__(self, n_leaves: Any, curves: Mapping[str, LeafCurve]) -> None:
        self.n_leaves = np.asarray(n_leaves)
        self.curves = dict(curves)

    @classmethod
    def from_estimator(
        cls, estimator: Any, rows: Mapping[str, tuple[Any, Any]], *, volume: bool = True, ax: Any = None
    ) -> Self:
        """Draw how the trees of a fitted `RecursivePartitioning` do on some rows.

        Parameters
        ----------
        estimator : RecursivePartitioning
            Fitted.
        rows : mapping of str to (scores, y)
            Rows by name, for example calibration and test rows.
        volume : bool, default=True
            Whether to compute the volumes too, for K <= 4.
        ax : matplotlib axes, or sequence of two, optional
            By default a new figure.

        Returns
        -------
        PartitionCurveDisplay
            Drawn.
        """
        stages = list(fitted(estimator).staged_maps())
        labels = list(estimator.classes_)
        curves = {name: _leaf_curve(stages, scores, y, labels, volume) for name, (scores, y) in rows.items()}
        return cls(estimator.curve_.n_leaves, curves).plot(ax=ax)

    def best(self, name: str) -> int:
        """The number of leaves of least loss on the named rows."""
        return int(self.n_leaves[int(np.argmin(self.curves[name].log_loss))])

    def plot(self, ax: Any = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib axes, or sequence of two, optional
            By default a new figure.

        Returns
        -------
        self
            With `axes_` and `figure_`.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        panels = ["Log loss"] + ["Volume under the ROC surface"] * all(
            c.volume is not None for c in self.curves.values()
        )
        self.axes_ = row_of_axes(ax, "PartitionCurveDisplay", len(panels), (4.4 * len(panels), 3.4))
        self.figure_ = self.axes_[0].figure
        for axes, title in zip(self.axes_, panels):
            for place, (name, curve) in enumerate(self.curves.items()):
                values, before = curve[:1] + curve[2:3] if title == "Log loss" else curve[1:2] + curve[3:]
                style = {"color": (BLUE, ORANGE, GREY)[place % 3], "linewidth": 1.6}
                axes.plot(self.n_leaves, values, marker=MARKS[place % 3], markersize=4, label=name, **style)
                axes.axhline(before, linestyle=(0, (1, 1.5)), label=f"{name}, uncalibrated", **style)
            axes.set_title(title, loc="left", fontsize="medium")
            axes.set_xlabel("Leaves")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.spines[["top", "right"]].set_visible(False)
        self.axes_[0].legend(frameon=False, fontsize="small")
        return self


def _leaf_curve(stages: list[Any], scores: Any, y: Any, labels: list[Any], volume: bool) -> LeafCurve:
    answers = [stage(scores) for stage in stages]
    losses = np.array([log_loss(y, p, labels=labels) for p in answers])
    before = log_loss(y, scores, labels=labels)
    if not volume or len(labels) > 4:
        return LeafCurve(losses, None, before, None)
    volumes = np.array([roc_surface(y, p, labels=labels).volume for p in answers])
    return LeafCurve(losses, volumes, before, roc_surface(y, scores, labels=labels).volume)
