"""Limits as they are written on the command line: `precision=0.9`.

May import `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.errors import InputError


def limits_of(option: str, given: Sequence[str]) -> dict[str, float]:
    """Names and bounds of `NAME=NUMBER` words."""
    found: dict[str, float] = {}
    for word in given:
        name, equals, bound = word.partition("=")
        name = name.strip().replace("-", "_")
        if name in found:
            raise InputError(f"{option} limits {name} twice: give one bound.")
        try:
            found[name] = float(bound)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"{option} must be written NAME=NUMBER, for example precision=0.9, but it is {word!r}.")
    return found
