"""Three classes in pictures: a map on the simplex, and ROC surfaces.

Colours are Okabe and Ito's. May import NumPy, `calibrant.data`, `calibrant.metrics`, `calibrant.errors`, and matplotlib
inside `plot` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant.data._arrays import read_class_rows
from calibrant.errors import InputError, NotFittedError
from calibrant.metrics import RocSurface, roc_surface
from calibrant.view._axes import axes_of

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where the three classes stand: left, right, top."""
INKS = np.array([[0.0, 0.447, 0.698], [0.902, 0.624, 0.0], [0.0, 0.62, 0.451]])
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"
MARKS = ("o", "s", "^")
PIXELS = 600
MANY_POINTS, MOST_POINTS = 500, 6000


class SimplexDisplay:
    """A map of three classes as a picture: every point of the triangle is a score, its colour the answer of the map.

    The colour mixes those of the three corners in the proportion of the calibrated probabilities: flat areas are
    leaves, and dark lines are where leaves meet. Points are rows, drawn in the colour of their label.

    Parameters
    ----------
    map_ : map of three classes
        What is shown; for example `RecursivePartitioning().fit(...).map_`.
    scores : array-like of shape (n, 3), optional
        Rows to draw as points.
    y : array-like of shape (n,), optional
        Their labels.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import RecursivePartitioning, SimplexDisplay
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    >>> display = SimplexDisplay(RecursivePartitioning().fit(p, p.argmax(axis=1)).map_)
    >>> display.picture(4).shape  # then display.plot()
    (3, 4, 4)
    """

    ax_: Any
    figure_: Any

    def __init__(self, map_: Any, scores: Any = None, y: Any = None) -> None:
        if len(map_.classes) != 3:
            raise InputError(f"SimplexDisplay draws maps of three classes, but this one has {len(map_.classes)}.")
        if (scores is None) != (y is None):
            raise InputError("scores and y go together: give both to draw rows as points, or none of them.")
        self.map_ = map_
        self.scores = scores
        self.y = y

    @classmethod
    def from_estimator(cls, estimator: Any, scores: Any = None, y: Any = None, *, ax: Any = None) -> Self:
        """Draw the map of a fitted calibrator of three classes.

        Parameters
        ----------
        estimator : calibrator
            Fitted, on probabilities.
        scores, y : array-like, optional
            Rows to draw as points.
        ax : matplotlib axes, optional
            By default a new figure.

        Returns
        -------
        SimplexDisplay
            Drawn.
        """
        return cls(fitted(estimator).map_, scores, y).plot(ax=ax)

    def picture(self, pixels: int = PIXELS) -> Floats:
        """The triangle as an image (height, width, 4), the lowest row first; outside it is transparent."""
        height = round(pixels * float(CORNERS[2, 1]))
        x, y = np.meshgrid((np.arange(pixels) + 0.5) / pixels, (np.arange(height) + 0.5) / height * CORNERS[2, 1])
        top = y / CORNERS[2, 1]
        right = x - top / 2
        p = np.stack([1 - top - right, right, top], axis=-1)
        inside = p.min(axis=-1) >= 0
        answer = np.asarray(self.map_(p[inside]))
        image = np.zeros((*inside.shape, 4))
        image[inside, :3] = answer @ INKS
        image[inside, 3] = 1.0
        if hasattr(self.map_, "leaf_of"):
            leaf = np.full(inside.shape, -1)
            leaf[inside] = self.map_.leaf_of(p[inside])
            image[_edges(leaf) & inside, :3] *= 0.35
        return image

    def plot(self, ax: Any = None) -> Self:
        """Draw the triangle.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default a new figure.

        Returns
        -------
        self
            With `ax_` and `figure_`.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        self.ax_ = axes_of(ax, "SimplexDisplay", (5, 4.6))
        self.figure_ = self.ax_.figure
        self.ax_.imshow(self.picture(), origin="lower", extent=(0, 1, 0, CORNERS[2, 1]), interpolation="nearest")
        self.ax_.plot(*np.vstack([CORNERS, CORNERS[:1]]).T, color=GREY, linewidth=1)
        if self.scores is not None:
            self._draw_rows()
        for corner, label, ink, where in zip(CORNERS, self.map_.classes, INKS, ("right", "left", "center")):
            at = (0, 7) if where == "center" else (0, -13)
            style = {"ha": where, "color": ink * 0.75, "weight": "bold"}
            self.ax_.annotate(f"class {label}", corner, at, textcoords="offset points", **style)
        self.ax_.set(xlim=(-0.04, 1.04), ylim=(-0.07, CORNERS[2, 1] + 0.07), aspect="equal")
        self.ax_.set_axis_off()
        return self

    def _draw_rows(self) -> None:
        rows = read_class_rows(self.scores, self.y, classes=self.map_.classes, reads="probability")
        for k, mark in enumerate(MARKS):
            at = rows.scores[rows.labels == k] @ CORNERS
            style = {"s": 11, "color": INKS[k], "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
            self.ax_.scatter(*at.T, marker=mark, **style)


def _edges(leaf: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pixels whose right or upper neighbour is in another leaf."""
    edge = np.zeros(leaf.shape, dtype=bool)
    edge[:, :-1] |= (leaf[:, :-1] != leaf[:, 1:]) & (leaf[:, 1:] >= 0)
    edge[:-1] |= (leaf[:-1] != leaf[1:]) & (leaf[1:] >= 0)
    return edge


class RocSurfaceDisplay:
    """ROC surfaces of three classes: the farther from the origin, the better; the legend gives the volume of the hull.

    An axis is the share of one class that is sent to itself. A surface of many points is drawn as a cloud, one of few
    with the faces of its hull. The plane through the three unit vectors is chance, volume 1/6.

    Parameters
    ----------
    surfaces : mapping of str to RocSurface
        By name; two at most are easy to tell apart.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import RocSurfaceDisplay, roc_surface
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    >>> display = RocSurfaceDisplay({"scores": roc_surface(p.argmax(axis=1), p)})
    >>> list(display.surfaces)  # then display.plot()
    ['scores']
    """

    ax_: Any
    figure_: Any

    def __init__(self, surfaces: Mapping[str, RocSurface]) -> None:
        for name, surface in surfaces.items():
            if surface.rates.shape[1] != 3:
                raise InputError(
                    f"RocSurfaceDisplay draws surfaces of three classes, but {name!r} has {surface.rates.shape[1]}."
                )
        self.surfaces = dict(surfaces)

    @classmethod
    def from_predictions(
        cls, y_true: Any, named: Mapping[str, Any], *, labels: Sequence[Any] | None = None, ax: Any = None
    ) -> Self:
        """Draw the surfaces of several sets of probabilities for the same rows.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        named : mapping of str to array-like of shape (n, 3)
            Probabilities by name, for example before and after calibration.
        labels : sequence, optional
            The classes of the columns.
        ax : matplotlib axes with projection "3d", optional
            By default a new figure.

        Returns
        -------
        RocSurfaceDisplay
            Drawn.
        """
        return cls({name: roc_surface(y_true, p, labels=labels) for name, p in named.items()}).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the surfaces.

        Parameters
        ----------
        ax : matplotlib axes with projection "3d", optional
            By default a new figure.

        Returns
        -------
        self
            With `ax_` and `figure_`.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        self.ax_ = ax = axes_of(ax, "RocSurfaceDisplay", (5.6, 5), projection="3d")
        self.figure_ = ax.figure
        from matplotlib.lines import Line2D

        handles = []
        for place, (name, surface) in enumerate(self.surfaces.items()):
            colour = (BLUE, ORANGE, GREY)[place % 3]
            _draw_surface(ax, surface, colour)
            label = f"{name}: volume {surface.volume:.3f}"
            handles.append(Line2D([], [], color=colour, marker="o", linestyle="none", markersize=6, label=label))
        classes = next(iter(self.surfaces.values())).classes
        ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
        for axis, label in zip((ax.set_xlabel, ax.set_ylabel, ax.set_zlabel), classes):
            axis(f"share of class {label} kept", fontsize="small")
        ax.tick_params(labelsize="small")
        ax.view_init(elev=28, azim=45)
        ax.set_box_aspect((1, 1, 1), zoom=0.82)
        ax.legend(handles=handles, loc="upper left", frameon=False, fontsize="small")
        return self


def _draw_surface(ax: Any, surface: RocSurface, colour: str) -> None:
    """Many points as a cloud; few with the faces of their hull that look outwards."""
    if len(surface.rates) > MANY_POINTS:
        every = -(-len(surface.rates) // MOST_POINTS)
        ax.scatter(*surface.rates[::every].T, s=2.5, color=colour, alpha=0.45, linewidths=0, depthshade=False)
        return
    corners = surface.upper_facets().reshape(-1, 3)
    triangles = np.arange(len(corners)).reshape(-1, 3)
    faces = ax.plot_trisurf(*corners.T, triangles=triangles, color=colour, alpha=0.2)
    faces.set(edgecolor=colour, linewidth=0.6)
    ax.scatter(*surface.rates.T, s=9, color=colour, depthshade=False)


def fitted(estimator: Any) -> Any:
    if not hasattr(estimator, "map_"):
        raise NotFittedError("estimator has no map_: call fit first.")
    return estimator
