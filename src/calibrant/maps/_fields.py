"""The fields of a map: how each is declared, and the checks of its value.

A declaration says how a field is written, read back and checked. May import NumPy, `calibrant._checks` and
`calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Label
from calibrant.errors import InputError


def number(low: float = -np.inf, high: float = np.inf, default: float | None = None) -> Any:
    """A finite number between two ends."""
    return _declared("number", default, low=low, high=high)


def flag(default: bool | None = None) -> Any:
    """True or False."""
    return _declared("flag", default)


def vector(low: float = -np.inf, high: float = np.inf, *, rising: bool = False) -> Any:
    """A list of finite numbers between two ends; `rising` ones increase strictly."""
    return _declared("vector", None, low=low, high=high, rising=rising)


def matrix(low: float = -np.inf, high: float = np.inf) -> Any:
    """A rectangular table of finite numbers between two ends."""
    return _declared("matrix", None, low=low, high=high)


def parts() -> Any:
    """A list of maps."""
    return _declared("parts", None)


def _declared(form: str, default: Any, **limits: Any) -> Any:
    metadata = {"form": form, **limits}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


# ---------------------------------------------------------------- checks

LARGEST_TERM = 1e307
"""Several terms of this size add up to a number still."""


def checked_classes(classes: Any) -> tuple[Label | None, ...]:
    """Two or more different labels; the negative one of two may be unknown (None)."""
    listed = [_checks.plain_label(label) for label in classes] if isinstance(classes, list | tuple | np.ndarray) else []
    known = listed[1:] if len(listed) == 2 and listed[0] is None else listed
    fine = all(isinstance(label, bool | int | float | str) and label not in (np.inf, -np.inf) for label in known)
    if len(listed) < 2 or not fine or any(label != label for label in known) or len(set(listed)) < len(listed):
        raise InputError(f"the classes of a map must be two or more different labels, not {classes!r}.")
    return tuple(listed)


def refuse_reversed(**ends: float) -> None:
    """Refuse a lower end above the upper one; the two are given by name, the lower first."""
    (low, least), (high, most) = ends.items()
    if least > most:
        raise InputError(f"{low} must not exceed {high}, but {low} is {least:g} and {high} is {most:g}.")


def refuse_overflow(names: str, *sizes: float) -> None:
    """Refuse numbers of which some finite score would make infinity less infinity; the sizes are what they make."""
    if not all(abs(size) <= LARGEST_TERM for size in sizes):
        raise InputError(f"{names} are too large together: what the map adds up goes beyond {LARGEST_TERM:g}.")


def checked_numbers(name: str, limits: Mapping[str, Any], value: Any) -> Any:
    depth, noun = {"number": (0, "a number"), "vector": (1, "a list of numbers"), "matrix": (2, "rows of numbers")}[
        limits["form"]
    ]
    try:
        array = np.array(value)
    except ValueError:
        array = np.array(None)
    if array.ndim != depth and not (depth == 1 and array.size == 0 and isinstance(value, list)):
        raise InputError(f"{name} must be {noun}, not {value!r}.")
    if array.size and (array.dtype.kind not in "fiu" or not np.isfinite(array).all()):
        raise InputError(f"{name} must hold finite numbers only.")
    outside = (array < limits["low"]) | (array > limits["high"]) if array.size else np.zeros(0, dtype=bool)
    if outside.any():
        raise InputError(
            f"{name} must lie in [{limits['low']:g}, {limits['high']:g}], but holds {np.extract(outside, array)[0]:g}."
        )
    if limits.get("rising") and np.any(array[1:] <= array[:-1]):
        raise InputError(f"{name} must increase strictly.")
    if depth == 0:
        return float(array)
    array = array.astype(np.float64)
    array.flags.writeable = False
    return array
