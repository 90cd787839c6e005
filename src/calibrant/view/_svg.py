"""The few SVG elements that the charts are made of: a frame with axes, lines, marks, and the picture around them.

Colours, dashes and fonts come from the classes that the page's style sheet knows; here are only shapes and places.
Invariant: every text and attribute is escaped, every number is finite and has at most two decimals.
May import the standard library and `_words` beside this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from calibrant.view._words import percent

Point = tuple[float, float]


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; `content` is markup already, attributes are escaped. `class_` is class, `_` in names is `-`."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else escape(str(value), quote=True)


def number(value: float) -> str:
    """A coordinate in as few characters as two decimals allow."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def text(x: float, y: float, words: str, class_: str = "tick", anchor: str = "middle") -> str:
    """A line of text."""
    return tag("text", escape(words, quote=False), x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def line(start: Point, end: Point, class_: str) -> str:
    """A straight line."""
    return tag("line", x1=float(start[0]), y1=float(start[1]), x2=float(end[0]), y2=float(end[1]), class_=class_)


def polyline(points: Iterable[Point], class_: str) -> str:
    """A line through points."""
    return tag("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=class_)


def polygon(points: Iterable[Point], class_: str) -> str:
    """A filled shape."""
    return tag("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, title: str = "") -> str:
    """A rectangle; `title` is shown when it is pointed at."""
    inner = tag("title", escape(title, quote=False)) if title else ""
    size = {"x": float(x), "y": float(y), "width": float(max(width, 0.0)), "height": float(max(height, 0.0))}
    return tag("rect", inner, **size, class_=class_)


def mark(at: Point, side: str, *, hollow: bool = False, title: str = "", size: float = 5.0) -> str:
    """A disc for before, a diamond for after; hollow ones stand on few rows."""
    inner = tag("title", escape(title, quote=False)) if title else ""
    class_ = f"mark {side}" + (" hollow" if hollow else "")
    x, y = at
    if side == "before":
        return tag("circle", inner, cx=float(x), cy=float(y), r=size, class_=class_)
    reach = size * 1.3
    corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
    return tag("polygon", inner, points=" ".join(f"{number(a)},{number(b)}" for a, b in corners), class_=class_)


def picture(name: str, size: Point, title: str, description: str, parts: Iterable[str]) -> str:
    """The whole SVG, with a title and a description for those who do not see it."""
    head = tag("title", escape(title, quote=False), id=f"{name}-title")
    head += tag("desc", escape(description, quote=False), id=f"{name}-desc")
    return tag(
        "svg",
        head + "".join(parts),
        viewBox=f"0 0 {number(size[0])} {number(size[1])}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="chart",
    )


@dataclass(frozen=True)
class Frame:
    """A rectangle on the picture and the ranges of numbers that its sides stand for."""

    left: float
    top: float
    width: float
    height: float
    x_range: Point = (0.0, 1.0)
    y_range: Point = (0.0, 1.0)

    def x(self, value: float) -> float:
        """Place of a number along the horizontal axis."""
        low, high = self.x_range
        return self.left + self.width * ((value - low) / (high - low))

    def y(self, value: float) -> float:
        """Place of a number along the vertical axis, which points up."""
        low, high = self.y_range
        return self.top + self.height * (1 - (value - low) / (high - low))

    def at(self, x: float, y: float) -> Point:
        """Place of a point."""
        return self.x(x), self.y(y)

    def ground(self, x_ticks: Sequence[float] = (), y_ticks: Sequence[float] = ()) -> str:
        """The area and its grid."""
        right, bottom = self.left + self.width, self.top + self.height
        lines = [line((self.x(tick), self.top), (self.x(tick), bottom), "grid") for tick in x_ticks]
        lines += [line((self.left, self.y(tick)), (right, self.y(tick)), "grid") for tick in y_ticks]
        return box(self.left, self.top, self.width, self.height, "ground") + "".join(lines)

    def x_labels(self, ticks: Sequence[float], labels: Sequence[str], offset: float = 16.0) -> str:
        """Numbers under the frame."""
        bottom = self.top + self.height + offset
        return "".join(text(self.x(tick), bottom, label) for tick, label in zip(ticks, labels))

    def y_labels(self, ticks: Sequence[float], labels: Sequence[str]) -> str:
        """Numbers left of the frame."""
        return "".join(text(self.left - 7, self.y(tick) + 4, label, anchor="end") for tick, label in zip(ticks, labels))

    def x_name(self, words: str, offset: float = 36.0) -> str:
        """The name of the horizontal axis."""
        return text(self.left + self.width / 2, self.top + self.height + offset, words, "name")

    def y_name(self, words: str) -> str:
        """The name of the vertical axis, above it at the left, so that it reads without turning the head."""
        return text(self.left, self.top - 13, words, "name", "start")


def steps(low: float, high: float, count: int = 5) -> list[float]:
    """Equal steps from end to end."""
    return [low + (high - low) * k / count for k in range(count + 1)]


def percents(values: Sequence[float]) -> list[str]:
    """Percentages with the decimals that their steps need."""
    step = abs(values[1] - values[0]) * 100
    decimals = next((digits for digits in range(4) if abs(round(step, digits) - step) < 1e-9), 4)
    return [percent(round(value, 9), decimals) for value in values]


def nice_top(value: float) -> float:
    """A round number at or above a positive one."""
    power = 10.0 ** (len(f"{value:.12f}".split(".")[0]) - 1)
    while power > value:
        power /= 10
    return next(power * factor for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if power * factor >= value * 0.9999)
