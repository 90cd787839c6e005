"""The axes that a display draws on.

May import `calibrant.errors` and matplotlib inside the function.
"""

from __future__ import annotations

from typing import Any

from calibrant.errors import InputTypeError, MissingDependencyError


def axes_of(ax: Any, display: str, size: tuple[float, float]) -> Any:
    """The axes that were given, or new ones of this size in inches."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise MissingDependencyError(f"{display} needs matplotlib: pip install 'calibrant[plot]'.") from error
        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "figure"):
        raise InputTypeError(f"ax must be axes of matplotlib, such as display.ax_, but it is {ax!r:.60}.")
    return ax
