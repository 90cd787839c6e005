"""Numbers as a reader wants them: percentages, decimals that line up, counts with separators.

One rule for the page, the sentences and the charts, so that a number looks the same wherever it stands. A number that
cannot be told from 0 or 1 at the precision shown says so ("below 0.1 %") instead of pretending to be exact.
May import the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

NARROW_SPACE = "\u202f"
MINUS = "\u2212"
MOST_DECIMALS = 7


@dataclass(frozen=True)
class Sentence:
    """One sentence or two, and the code of what they say."""

    code: str
    text: str


def count(value: float) -> str:
    """A number of rows or a weight: `12,345`, or `12.5` when it is not whole."""
    if abs(value - round(value)) < 1e-9 * max(1.0, abs(value)):
        return f"{round(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.3g}"


def counted(value: float, noun: str) -> str:
    """`1 row`, `2 rows`, `2.5 rows`."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"


LONGEST_NAME = 60


def cut(name: str) -> str:
    """A name that cannot push a table out of the page."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def percent(share: float, decimals: int | None = None) -> str:
    """A share in percent; without `decimals`, as many as tell it from 0 and from 1."""
    if decimals is None:
        decimals = _percent_decimals(share)
    shown = f"{abs(100 * share):.{decimals}f}"
    floor = f"{10.0**-decimals:.{decimals}f}"
    if share != 0 and float(shown) == 0:
        return f"below {floor}{NARROW_SPACE}%"
    if share < 1 and float(shown) == 100:
        return f"above {100 - 10.0**-decimals:.{decimals}f}{NARROW_SPACE}%"
    return f"{MINUS if share < 0 else ''}{shown}{NARROW_SPACE}%"


def _percent_decimals(share: float) -> int:
    near_one = 0.5 < share < 1
    edge = 1 - share if near_one else abs(share)
    if edge == 0 or edge >= 0.0995:
        return 0
    return min(4, max(0, math.ceil(-math.log10(edge)) - (2 if near_one else 1)))


def percent_decimals(shares: Iterable[float]) -> int:
    """Decimals that tell each of these shares from 0 and from 1."""
    return max(_percent_decimals(share) for share in shares)


def percent_pair(a: float, b: float) -> tuple[str, str]:
    """Two shares in percent, with the same decimals, and enough of them to show the difference."""
    gap = abs(a - b)
    apart = math.ceil(-math.log10(100 * gap)) if gap > 0 else 0
    decimals = min(5, max(_percent_decimals(a), _percent_decimals(b), apart))
    return percent(a, decimals), percent(b, decimals)


def fixed_pair(a: float, b: float) -> tuple[str, str]:
    """Two scores in about four digits, and in enough of them to show the difference."""
    gap = abs(a - b)
    apart = 1 + math.ceil(-math.log10(gap)) if gap > 0 else 0
    decimals = min(MOST_DECIMALS, max(decimals_for((a, b)), apart))
    return fixed(a, decimals), fixed(b, decimals)


def points(gap: float) -> str:
    """A difference of two shares, in percentage points: `3.1 points`."""
    size = abs(100 * gap)
    decimals = 0 if size >= 9.95 else 1 if size >= 0.95 else min(4, 1 + math.ceil(-math.log10(max(size, 1e-4))))
    text = f"{size:.{decimals}f}"
    return f"{text} point" if float(text) == 1 else f"{text} points"


def signed(value: float, decimals: int) -> str:
    """A number with its sign, `+0.031` or `−0.002`; zero has none."""
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return text
    return (MINUS if value < 0 else "+") + text


def fixed(value: float, decimals: int) -> str:
    """A number with a true minus sign; large ones with separators."""
    text = f"{abs(value):,.{decimals}f}"
    return (MINUS if value < 0 and float(text.replace(",", "")) != 0 else "") + text


def general(value: float) -> str:
    """A score or a coefficient of any size, in about four digits."""
    size = abs(value)
    if size < 1e6 and value == round(value):
        return fixed(value, 0)
    if size >= 1e6 or size < 1e-4:
        return f"{value:.2e}".replace("-", MINUS)
    return fixed(value, max(0, 3 - math.floor(math.log10(size))) if size < 1000 else 0)


def decimals_for(values: Iterable[float | None], digits: int = 4) -> int:
    """Decimals that give the largest of these numbers about `digits` digits."""
    sizes = [abs(value) for value in values if value is not None and value != 0]
    if not sizes:
        return digits
    return min(MOST_DECIMALS, max(digits - 1, digits - 1 - math.floor(math.log10(max(sizes)))))


def joined(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    listed = list(parts)
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " and " + listed[-1]
