"""The reliability diagram in matplotlib: curve, band, histogram of scores, and the numbers in the legend.

What is drawn is computed first and kept in the display's records; `plot` only draws. Colours are Okabe and Ito's, for
the background at hand, and models differ by dash and mark as well, for colour-blind readers and for print.
May import NumPy, `calibrant.data`, `calibrant.metrics`, `calibrant.errors`, and matplotlib inside functions only.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np

from calibrant._checks import Floats, Label, both_classes
from calibrant.errors import InputError
from calibrant.metrics import Estimate, ReliabilityBands, calibration_error, estimate, reliability_bands, roc_auc
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._scores import _one_of
from calibrant.view._axes import axes_of, name_of
from calibrant.view._score_counts import Scale, ScoreCounts, score_counts

ON_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#A8558A", "#6B5B00")
ON_DARK = ("#56B4E9", "#E69F00", "#2FD0A2", "#E8A3CC", "#F0E442")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKS = ("o", "s", "^", "D", "v")
TINY = 1e-12
CURVE, SCORES = "calibrant reliability", "calibrant scores"


class ReliabilityDisplay:
    """Reliability diagram: how often the event happened against its probability, with a band and the scores under it.

    Make it with `from_predictions` or `from_estimator`; give `ax=display.ax_` to draw several models into one diagram.
    A curve on the diagonal is calibrated; below it the probabilities are too high. The legend gives the calibration
    error with its interval and, always, the AUC beside it: a calibrated forecast can still be useless.

    Parameters
    ----------
    bands : ReliabilityBands
        The curve and its band, as `reliability_bands` gives them.
    counts : ScoreCounts
        The histogram.
    calibration_error : Estimate
        Shown in the legend.
    discrimination : Estimate
        AUC, shown in the legend.
    name : str, optional
        Of the model.
    scale : {"probability", "log-odds"}
        The axes.
    event : label
        The positive class, named on the axes.

    Attributes
    ----------
    bands, counts, calibration_error, discrimination, name, scale, event
        As given.
    prob_pred, prob_true : ndarray of shape (m,)
        Prediction and event rate of the curve, under scikit-learn's names.
    ax_, figure_ : matplotlib axes and figure
        After `plot`.
    line_, band_ : matplotlib artists
        The curve and its band, after `plot`.
    histogram_ : matplotlib axes
        Under the diagram, after `plot`; None without.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> display = ReliabilityDisplay.from_predictions(rng.uniform(size=500) < p, p, name="honest")
    >>> display.ax_.get_ylabel()
    'Observed event rate (event: True)'
    """

    ax_: Any
    figure_: Any
    line_: Any
    band_: Any
    histogram_: Any

    def __init__(
        self,
        bands: ReliabilityBands,
        *,
        counts: ScoreCounts,
        calibration_error: Estimate,
        discrimination: Estimate,
        name: str | None = None,
        scale: Scale = "probability",
        event: Label = 1,
    ) -> None:
        self.bands, self.counts = bands, counts
        self.calibration_error = calibration_error
        self.discrimination = discrimination
        self.name = name_of(name)
        self.scale = scale
        self.event = event

    @property
    def prob_pred(self) -> Floats:
        """Mean prediction at the points of the curve."""
        return self.bands.predicted

    @property
    def prob_true(self) -> Floats:
        """Event rate at the points of the curve."""
        return self.bands.observed

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        n_bins: int = 10,
        strategy: Literal["isotonic", "uniform", "quantile"] = "isotonic",
        band: Literal["confidence", "consistency"] = "confidence",
        confidence: float = 0.95,
        scale: Scale = "probability",
        sample_weight: Any = None,
        pos_label: Label | None = None,
        n_resamples: int = 1000,
        rng: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = True,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw from labels and probabilities.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `reliability_bands`; or a `ScoreTable` alone.
        n_bins, strategy
            The isotonic curve, which needs no bins, or bins.
        band, confidence, n_resamples, rng
            Kind and level of the band, and how it is drawn; see `reliability_bands`.
        scale : {"probability", "log-odds"}
            Log-odds open up the ends, for rare events.
        name : str, optional
            Of the model, for the legend.
        ref_line : bool
            Draw the diagonal.
        histogram : bool
            Draw the scores under the diagram.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        **kwargs
            For the line of the curve, as in `matplotlib.axes.Axes.plot`.

        Returns
        -------
        ReliabilityDisplay
            Drawn.
        """
        _one_of("scale", scale, ("probability", "log-odds"))
        name_of(name)
        table = binary_input(y_true, y_prob, sample_weight, pos_label, what="ReliabilityDisplay")
        both_classes(table.total_positives, table.total_negatives, "ReliabilityDisplay")
        bands = reliability_bands(
            table,
            strategy=strategy,
            n_bins=n_bins,
            kind=band,
            confidence=confidence,
            n_resamples=n_resamples,
            rng=rng,
        )
        made = cls(
            bands,
            counts=score_counts(table, scale),
            calibration_error=calibration_error(table, confidence=confidence),
            discrimination=estimate(roc_auc, table, confidence=confidence),
            name=name,
            scale=scale,
            event=table.classes[1],
        )
        return made.plot(ax, ref_line=ref_line, histogram=histogram, **kwargs)

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
        ReliabilityDisplay
            Drawn.
        """
        if not hasattr(estimator, "predict_proba"):
            raise InputError(f"estimator must be a fitted classifier with predict_proba, but it is {estimator!r}.")
        classes = list(getattr(estimator, "classes_", [0, 1]))
        if len(classes) != 2:
            raise InputError(
                f"ReliabilityDisplay is for two classes, but the classifier has {len(classes)}. Draw one class against "
                f"the rest: from_predictions(y == k, predict_proba(X)[:, k])."
            )
        event = options.setdefault("pos_label", classes[1])
        column = np.asarray(estimator.predict_proba(X))[:, classes.index(event)]
        return cls.from_predictions(y, column, name=type(estimator).__name__ if name is None else name, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a diagram that is there already gets one curve more.
        name : str, optional
            Of the model, for the legend.
        ref_line, histogram, **kwargs
            As in `from_predictions`.

        Returns
        -------
        ReliabilityDisplay
            This display.
        """
        self.name = name_of(name) or self.name
        self.ax_ = axes_of(ax, "ReliabilityDisplay", (5.4, 6.2))
        self.figure_ = self.ax_.figure
        before = [line for line in self.ax_.get_lines() if line.get_gid() == CURVE]
        look = _look(self.ax_, len(before))
        if not before:
            _prepare(self.ax_, self.scale, self.event)
        if ref_line and not before:
            _diagonal(self.ax_, look)
        self.band_ = self._draw_band(look)
        points = (self._drawn(part) for part in (self.prob_pred, self.prob_true))
        (self.line_,) = self.ax_.plot(*points, **(self._line(look) | kwargs))
        _limits(self.ax_, self, first=not before)
        self.histogram_ = _histogram(self, look) if histogram else None
        _legend(self.ax_)
        if self.figure_.get_layout_engine() is not None:  # the first pass does not know the size of the histogram
            self.figure_.draw_without_rendering()
        return self

    @property
    def legend(self) -> str:
        """The text of the legend."""
        error, area = self.calibration_error, self.discrimination
        said = [f"{self.name}"] if self.name else []
        said.append(f"calibration error {error.value:.3f} [{error.low:.3f}, {error.high:.3f}]")
        ranks = f"AUC {area.value:.3f} [{area.low:.3f}, {area.high:.3f}]"
        said.append(ranks if area.low > 0.5 else f"{ranks}: may rank by chance")
        return "\n".join(said)

    def _line(self, look: _Look) -> dict[str, Any]:
        binned = self.bands.strategy != "isotonic"
        return {
            "color": look.color,
            "linestyle": look.dash,
            "marker": look.mark if binned else None,
            "markersize": 5,
            "linewidth": 1.2 if binned else 1.8,
            "label": self.legend,
            "gid": CURVE,
            "zorder": 3,
        }

    def _drawn(self, values: Floats) -> Floats:
        """Values as the axis can show them: log-odds have no 0 and 1."""
        return values if self.scale == "probability" else np.clip(values, TINY, 1 - TINY)

    def _draw_band(self, look: _Look) -> Any:
        shown, bands = self.ax_, self.bands
        where = tuple(self._drawn(part) for part in (bands.predicted, bands.low, bands.high))
        if bands.kind == "consistency":
            look = look._replace(color=look.ink)
        if bands.strategy == "isotonic":
            fill = {"color": look.color, "alpha": 0.22, "linewidth": 0, "zorder": 1}
            return shown.fill_between(*where, **fill)
        bars = {"colors": look.color, "linewidth": 1.6, "alpha": 0.75, "zorder": 2}
        return shown.vlines(*where, **bars)


# ---------------------------------------------------------------- drawing


class _Look(NamedTuple):
    color: str
    dash: Any
    mark: str
    ink: str


def _look(ax: Any, place: int) -> _Look:
    """Colour, dash and mark of the next curve on this background; ink is grey."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(ax.get_facecolor())
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
    colors = ON_DARK if dark else ON_LIGHT
    k = place % len(colors)
    return _Look(colors[k], DASHES[k], MARKS[k], "#B8B8B8" if dark else "#555555")


def _prepare(ax: Any, scale: Scale, event: Label) -> None:
    from matplotlib.ticker import FuncFormatter

    if scale == "log-odds":
        ax.set_xscale("logit", nonpositive="clip")
        ax.set_yscale("logit", nonpositive="clip")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(_plain))
            axis.set_minor_formatter(FuncFormatter(lambda value, place: ""))
    ax.set_xlabel(f"Predicted probability (event: {event})")
    ax.set_ylabel(f"Observed event rate (event: {event})")


def _plain(value: float, place: int) -> str:
    """A tick in plain digits, 0.001, 0.5, 0.999; beyond four of them in powers, 1e-6 and 1-1e-6."""
    edge = min(value, 1 - value)
    if edge >= 0.99e-4:
        return str(np.format_float_positional(value, precision=4, trim="-"))
    return ("" if value < 0.5 else "1-") + f"{edge:.0e}".replace("e-0", "e-")


def _diagonal(ax: Any, look: _Look) -> None:
    fine = np.concatenate([np.geomspace(TINY, 0.01, 40), np.linspace(0.02, 0.98, 97), 1 - np.geomspace(0.01, TINY, 40)])
    ax.plot(fine, fine, color=look.ink, linestyle=(0, (1, 2)), linewidth=1.2, zorder=2, label="Calibrated")


def _limits(ax: Any, shown: ReliabilityDisplay, *, first: bool) -> None:
    """All of [0, 1], or on log-odds the range of all but a few scores, the same on both axes."""
    if shown.scale == "probability":
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        return
    low, high = shown.counts.edges[0], shown.counts.edges[-1]
    if not first:
        low, high = min(low, ax.get_xlim()[0]), max(high, ax.get_xlim()[1])
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)


def _histogram(shown: ReliabilityDisplay, look: _Look) -> Any:
    ax, counts = shown.ax_, shown.counts
    under = next((one for one in ax.child_axes if one.get_label() == SCORES), None)
    under = _under(ax) if under is None else under
    top = max(under.get_ylim()[1] if under.patches else 0.0, 1.08 * float(counts.weights.max()))
    under.stairs(counts.weights, counts.edges, color=look.color, fill=True, alpha=0.22)
    under.stairs(counts.weights, counts.edges, color=look.color, linestyle=look.dash, linewidth=1.2)
    under.set_xlim(ax.get_xlim())
    under.set_ylim(0, top)
    return under


def _under(ax: Any) -> Any:
    """A flat axes under the diagram, which takes over its name and its ticks."""
    under = ax.inset_axes((0.0, -0.24, 1.0, 0.2), label=SCORES)
    under.set_xscale(ax.get_xscale())
    under.set_facecolor(ax.get_facecolor())
    under.set_xlabel(ax.get_xlabel())
    under.set_ylabel("Rows")
    under.locator_params(axis="y", nbins=3)
    under.xaxis.set_major_formatter(ax.xaxis.get_major_formatter())
    under.xaxis.set_minor_formatter(ax.xaxis.get_minor_formatter())
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False, which="both")
    under.spines[["top", "right"]].set_visible(False)
    return under


def _legend(ax: Any) -> None:
    """In the corner that curves leave free; above when long."""
    many = sum(line.get_gid() == CURVE for line in ax.get_lines()) > 2
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)} if many else {"loc": "upper left"}
    ax.legend(fontsize="small", frameon=not many, framealpha=0.75, labelspacing=0.7, **place)
