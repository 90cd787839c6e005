"""Pictures of the operating point in matplotlib: cost, ROC, precision and recall, or net benefit, the point marked.

What is drawn is computed first (a thinned `ThresholdCurve` and an `OperatingPoint`); `plot` only draws.
May import NumPy, `calibrant.decisions`, `calibrant.errors`, and matplotlib inside functions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from calibrant._checks import Floats, Label
from calibrant._parameters import Choice, check_parameters
from calibrant.decisions import OperatingPoint, ThresholdCurve, choose_threshold
from calibrant.decisions._costs import read_costs
from calibrant.decisions._curve import curve_of, with_costs
from calibrant.errors import InputError
from calibrant.metrics._inputs import binary_input
from calibrant.view._axes import axes_of, name_of

Kind = Literal["cost", "roc", "precision-recall", "net-benefit"]
KINDS = ("cost", "roc", "precision-recall", "net-benefit")
MOST_POINTS = 2000
ON_LIGHT, ON_DARK = ("#0072B2", "#D55E00", "#555555"), ("#56B4E9", "#E69F00", "#B8B8B8")
"""Curve, point and ink: Okabe and Ito's blue and orange, and a grey."""


class ThresholdDisplay:
    """One picture of all thresholds, with the chosen one marked.

    "cost": the cost of a row at every threshold, beside always and never acting, and the threshold that the costs imply
    for honest probabilities. "roc" and "precision-recall": the two trade-offs, with intervals at the point.
    "net-benefit": the decision curve, in events found per row.

    Parameters
    ----------
    curve : ThresholdCurve
        All thresholds, as `threshold_curve` gives them.
    point : OperatingPoint, optional
        The chosen one, as `choose_threshold` gives it.
    kind : {"cost", "roc", "precision-recall", "net-benefit"}
        What is drawn.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    curve, point, kind, name
        As given.
    ax_, figure_ : matplotlib axes and figure
        After `plot`.
    line_ : matplotlib artist
        The curve, after `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ThresholdDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < p
    >>> display = ThresholdDisplay.from_predictions(y, p, false_positive=1, false_negative=4)
    >>> display.ax_.get_ylabel()
    'Cost of a row'
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(
        self,
        curve: ThresholdCurve,
        point: OperatingPoint | None = None,
        *,
        kind: Kind = "cost",
        name: str | None = None,
    ) -> None:
        check_parameters("ThresholdDisplay", {"kind": kind}, {"kind": Choice(KINDS)})
        if kind == "cost" and curve.cost is None:
            raise InputError('kind="cost" needs costs: give false_positive and false_negative, or draw another kind.')
        self.curve, self.point, self.kind, self.name = curve, point, kind, name_of(name)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        kind: Kind | None = None,
        objective: Any = None,
        false_positive: float | None = None,
        false_negative: float | None = None,
        true_positive: float = 0.0,
        true_negative: float = 0.0,
        at_least: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
        guarantee: float | None = None,
        sample_weight: Any = None,
        pos_label: Label | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Choose a threshold and draw it.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `choose_threshold`; or a `ScoreTable` alone.
        kind : {"cost", "roc", "precision-recall", "net-benefit"}, optional
            By default "cost" with costs, else "roc".
        objective, false_positive, false_negative, true_positive, true_negative, at_least, at_most, guarantee
            As in `choose_threshold`; without an objective "cost" with costs, "recall" with limits, else no point.
        name : str, optional
            Of the model, for the legend.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the line of the curve, as in `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ThresholdDisplay
            Drawn.
        """
        table = binary_input(y_true, y_prob, sample_weight, pos_label, reads="score", what="ThresholdDisplay")
        priced = false_positive is not None or false_negative is not None
        prices: dict[str, Any] = {
            "false_positive": false_positive,
            "false_negative": false_negative,
            "true_positive": true_positive,
            "true_negative": true_negative,
        }
        curve = with_costs(curve_of(table), read_costs(**prices)) if priced else curve_of(table)
        goal: Any = objective or ("cost" if priced else "recall" if at_least or at_most else None)
        limits: dict[str, Any] = {"at_least": at_least, "at_most": at_most, "guarantee": guarantee}
        point = None if goal is None else choose_threshold(table, objective=goal, **prices, **limits)
        return cls(curve, point, kind=kind or ("cost" if priced else "roc"), name=name).plot(ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any) -> Self:
        """Draw from a fitted classifier of two classes and the rows to judge it on.

        Parameters
        ----------
        estimator : classifier
            With `predict_proba` and `classes_`.
        X : array-like of shape (n, d)
            Rows that it was not fitted on.
        y : array-like of shape (n,)
            Labels.
        name : str, optional
            By default the name of the class.
        **options
            Of `from_predictions`.

        Returns
        -------
        ThresholdDisplay
            Drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(f"estimator must be a fitted classifier with predict_proba, but it is {estimator!r}.")
        classes = list(getattr(estimator, "classes_", [0, 1]))
        if len(classes) != 2:
            raise InputError(f"ThresholdDisplay is for two classes, but the classifier has {len(classes)}.")
        event = options.setdefault("pos_label", classes[1])
        column = np.asarray(estimator.predict_proba(X))[:, classes.index(event)]
        return cls.from_predictions(y, column, name=type(estimator).__name__ if name is None else name, **options)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Of the model, for the legend.
        **kwargs
            For the line of the curve, as in `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ThresholdDisplay
            This display.
        """
        self.name = name_of(name) or self.name
        self.ax_ = axes_of(ax, "ThresholdDisplay", (5.8, 4.8))
        self.figure_ = self.ax_.figure
        colors = _colors(self.ax_)
        drawn = {"cost": _cost, "roc": _roc, "precision-recall": _precision_recall, "net-benefit": _net_benefit}
        picture = drawn[self.kind](self.curve, self.point)
        for reference in picture.references:
            self.ax_.plot(
                *reference.at, color=colors[2], linestyle=reference.dash, linewidth=1.2, label=reference.label
            )
        look = {"color": colors[0], "linewidth": 1.8, "label": self.name or picture.name, "zorder": 3}
        (self.line_,) = self.ax_.plot(picture.x, picture.y, **(look | kwargs))
        if picture.mark is not None and self.point is not None:
            _mark(self.ax_, picture.mark, self.point, colors[1])
        self.ax_.set(xlabel=picture.x_name, ylabel=picture.y_name, **picture.limits)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(fontsize="small", framealpha=0.85, loc="best")
        return self


# ---------------------------------------------------------------- what is drawn


class _Reference(NamedTuple):
    at: tuple[Any, Any]
    dash: Any
    label: str | None


class _Mark(NamedTuple):
    """The chosen point: place, and how far its interval reaches left, right, down, up."""

    x: float
    y: float
    reach_x: tuple[float, float] | None
    reach_y: tuple[float, float] | None


class _Picture(NamedTuple):
    x: Floats
    y: Floats
    name: str
    x_name: str
    y_name: str
    references: list[_Reference]
    mark: _Mark | None
    limits: dict[str, Any]


DOTTED, DASHED, DASH_DOT = (0, (1, 2)), "--", "-."


def _kept(curve: ThresholdCurve) -> Any:
    """Indices of at most 2,000 entries, spread over the alerts, the last one (never act) included."""
    size = len(curve.thresholds)
    if size <= MOST_POINTS:
        return np.arange(size)
    by_alerts = np.searchsorted(-curve.alerts, -np.linspace(0, curve.total_weight, MOST_POINTS // 2))
    by_events = np.searchsorted(-curve.tp, -np.linspace(0, curve.total_positives, MOST_POINTS // 2))
    return np.unique(np.concatenate([[0], by_alerts, by_events, [size - 1]]).clip(0, size - 1))


def _cost(curve: ThresholdCurve, point: OperatingPoint | None) -> _Picture:
    assert curve.cost is not None
    kept = _kept(curve)[:-1]
    cost = curve.cost / curve.total_weight
    x, y = _steps(curve.thresholds[kept], cost[kept], float(cost[-1]))
    ends = (float(min(curve.thresholds[0], 0)), float(max(curve.thresholds[-2], 1)))
    references = [
        _Reference((ends, (float(cost[0]),) * 2), DASHED, "Always act"),
        _Reference((ends, (float(cost[-1]),) * 2), DOTTED, "Never act"),
    ]
    mark = None
    if point is not None:
        shown = point.threshold if np.isfinite(point.threshold) else ends[1]
        at = float(cost[curve.at(point.threshold)])
        known = point.objective == "cost"
        mark = _Mark(shown, at, None, (at - point.low, point.high - at) if known else None)
        if point.cost_threshold is not None and 0 < point.cost_threshold <= 1:
            tall = (float(cost.min()), float(cost.max()))
            label = f"Implied by the costs: {point.cost_threshold:.3g}"
            references.append(_Reference(((point.cost_threshold,) * 2, tall), DASH_DOT, label))
    top = float(min(cost.max(), 1.6 * max(cost[0], cost[-1])))
    limits = {"xlim": ends, "ylim": (0 if cost.min() >= 0 else None, 1.05 * top)}
    return _Picture(
        x, y, "Act from the threshold", "Threshold: act when p is at least", "Cost of a row", references, mark, limits
    )


def _steps(thresholds: Floats, values: Floats, last: float) -> tuple[Floats, Floats]:
    """A step function that holds `values[k]` up to and including `thresholds[k]`, and `last` beyond."""
    low, high = min(float(thresholds[0]), 0.0), max(float(thresholds[-1]), 1.0)
    x = np.concatenate([[low], np.repeat(thresholds, 2), [high]])
    return x, np.concatenate([np.repeat(values, 2), [last, last]])


def _roc(curve: ThresholdCurve, point: OperatingPoint | None) -> _Picture:
    kept = _kept(curve)
    mark = None
    if point is not None:
        alarms, recall = point.rates["false_positive_rate"], point.rates["recall"]
        mark = _Mark(alarms.value, recall.value, _reach(alarms), _reach(recall))
    chance = _Reference(((0, 1), (0, 1)), DOTTED, "Chance")
    unit = {"xlim": (-0.02, 1.02), "ylim": (-0.02, 1.02), "aspect": "equal"}
    names = ("ROC curve", "False-positive rate", "Recall (true-positive rate)")
    return _Picture(curve.false_positive_rate[kept], curve.recall[kept], *names, [chance], mark, unit)


def _precision_recall(curve: ThresholdCurve, point: OperatingPoint | None) -> _Picture:
    kept = _kept(curve)[:-1]
    mark = None
    if point is not None and np.isfinite(point.threshold):
        recall, precision = point.rates["recall"], point.rates["precision"]
        mark = _Mark(recall.value, precision.value, _reach(recall), _reach(precision))
    rate = curve.total_positives / curve.total_weight
    chance = _Reference(((0, 1), (rate, rate)), DOTTED, f"Chance: prevalence {rate:.3g}")
    unit = {"xlim": (-0.02, 1.02), "ylim": (-0.02, 1.02), "aspect": "equal"}
    names = ("Precision by recall", "Recall", "Precision")
    return _Picture(curve.recall[kept], curve.precision[kept], *names, [chance], mark, unit)


def _reach(estimate: Any) -> tuple[float, float]:
    return max(estimate.value - estimate.low, 0.0), max(estimate.high - estimate.value, 0.0)


def _net_benefit(curve: ThresholdCurve, point: OperatingPoint | None) -> _Picture:
    asked = np.linspace(0, 0.99, 397)
    odds, rate = asked / (1 - asked), curve.total_positives / curve.total_weight

    def benefit(at: Any, worth: Any) -> Any:
        return (curve.tp[at] - curve.fp[at] * worth) / curve.total_weight

    y = benefit(np.searchsorted(curve.thresholds, asked), odds)
    mark = None
    if point is not None and 0 <= point.threshold < 0.99:
        height = float(benefit(curve.at(point.threshold), point.threshold / (1 - point.threshold)))
        mark = _Mark(point.threshold, height, None, None)
    references = [
        _Reference((asked, rate - (1 - rate) * odds), DASHED, "Act on everybody"),
        _Reference(((0, 1), (0, 0)), DOTTED, "Act on nobody"),
    ]
    reach = asked[y > 0.01 * rate].max(initial=0.1)
    limits = {"xlim": (0, min(1.1 * reach, 1.0)), "ylim": (-0.12 * rate, 1.08 * rate)}
    names = ("Act from the threshold", "Threshold: act when p is at least", "Net benefit (events found per row)")
    return _Picture(asked, y, *names, references, mark, limits)


# ---------------------------------------------------------------- drawing


def _mark(ax: Any, mark: _Mark, point: OperatingPoint, color: str) -> None:
    reach = {"xerr": _bar(mark.reach_x), "yerr": _bar(mark.reach_y)}
    ax.errorbar(mark.x, mark.y, **reach, fmt="none", ecolor=color, elinewidth=1.4, capsize=3, zorder=4)
    ax.plot([mark.x], [mark.y], "D", color=color, markersize=7, zorder=5, label=_words(point))


def _bar(reach: tuple[float, float] | None) -> Any:
    return None if reach is None else np.array(reach)[:, None]


def _words(point: OperatingPoint) -> str:
    if not np.isfinite(point.threshold):
        return "Chosen: never act"
    recall, precision = point.rates["recall"].value, point.rates["precision"].value
    return f"Chosen: act from {point.threshold:.3g}\nrecall {recall:.3g}, precision {precision:.3g}"


def _colors(ax: Any) -> tuple[str, str, str]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(ax.get_facecolor())
    return ON_DARK if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else ON_LIGHT
