"""What a display is given to draw with: axes and names.

May import NumPy, `calibrant.errors`, and matplotlib inside the functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InputError, InputTypeError, MissingDependencyError


def axes_of(ax: Any, display: str, size: tuple[float, float], *, projection: str | None = None) -> Any:
    """The axes that were given, or new ones of this size in inches."""
    if ax is None:
        figure = pyplot(display).figure(figsize=size, layout="constrained")
        return figure.add_subplot(projection=projection)
    _refuse_others(ax, "ax")
    if projection == "3d" and not hasattr(ax, "get_zlim"):
        raise InputTypeError('ax must be axes in three dimensions: figure.add_subplot(projection="3d").')
    return ax


def row_of_axes(ax: Any, display: str, panels: int, size: tuple[float, float]) -> Any:
    """One row of axes: new ones for all panels, or those that were given, one or as many as there are panels."""
    if ax is None:
        return np.atleast_1d(pyplot(display).subplots(1, panels, figsize=size, layout="constrained")[1])
    given = np.empty(1, dtype=object)
    given[0] = ax
    if isinstance(ax, list | tuple | np.ndarray):
        given = np.array(ax, dtype=object).ravel()
    for one in given:
        _refuse_others(one, "ax" if len(given) == 1 else "Each ax")
    if len(given) not in (1, panels):
        raise InputError(f"ax must be one axes{('', ', or two', ', or three')[panels - 1]}, but it holds {len(given)}.")
    return given


def _refuse_others(ax: Any, what: str) -> None:
    if not (hasattr(ax, "figure") and hasattr(ax, "get_xlim")):
        raise InputTypeError(f"{what} must be axes of matplotlib, such as display.ax_, but it is {ax!r:.60}.")


def name_of(name: Any, argument: str = "name") -> Any:
    """The name of a model for the legend: text, or None."""
    if name is None or isinstance(name, str):
        return name
    raise InputTypeError(f"{argument} must be text, the name of the model in the legend, but it is {name!r:.60}.")


def pyplot(display: str) -> Any:
    """Pyplot of matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as reason:
        raise MissingDependencyError(
            f"{display}.plot needs matplotlib: python -m pip install 'calibrant[plot]'."
        ) from reason
    return plt
