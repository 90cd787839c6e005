"""The two isotonic fits of Venn-Abers at every place a new score can have, in O(n).

A new row with label 1 at place s shifts the cumulative diagram of the rows from s on by (1, 1). The fitted value at s
is the slope of the line that touches both the lower hull of the points left of s (shifted by (-1, -1)) and the lower
hull of the points from s on. Both touching points only ever move to the right as s does, so one walk finds all lines.
Label 0 is the mirror image. May import NumPy and `_compiled`.
"""

from collections.abc import MutableSequence, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled

Floats = NDArray[np.float64]


def interval_values(positives: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """p0 and p1 at the 2m + 1 places: below score 0, at score 0, between 0 and 1, at score 1, ..., above the last."""
    upper = _label_one(positives, weights)
    lower = 1 - _label_one((weights - positives)[::-1], weights[::-1])[::-1]
    lower = np.clip(lower, 0.0, 1.0)
    return np.minimum(lower, upper), upper


def _label_one(positives: Floats, weights: Floats) -> Floats:
    size = len(weights) + 1
    x, y = np.zeros(size), np.zeros(size)
    np.cumsum(weights, out=x[1:])
    np.cumsum(positives, out=y[1:])
    if size < MANY:
        points, out, following = (x.tolist(), y.tolist()), [0.0] * (2 * size - 1), [0] * size
        _followers.function(*points, following)
        _bridges.function(*points, following, [0] * size, out)
        return np.asarray(np.clip(np.array(out), 0.0, 1.0))
    values = np.empty(2 * size - 1)
    follower = np.empty(size, dtype=np.int64)
    _followers(x, y, follower)
    _bridges(x, y, follower, np.empty(size, dtype=np.int64), values)
    return np.asarray(np.clip(values, 0.0, 1.0))


@compiled("FFI*")
def _followers(x: Sequence[float], y: Sequence[float], follower: MutableSequence[int]) -> None:
    """Write the next vertex after k of the lower hull of the points from k on."""
    last = len(x) - 1
    follower[last] = last
    for k in range(last - 1, -1, -1):
        j = k + 1
        while j < last:
            n = follower[j]
            if (y[j] - y[k]) * (x[n] - x[j]) < (y[n] - y[j]) * (x[j] - x[k]):
                break
            j = n
        follower[k] = j


@compiled("FFII*F*")
def _bridges(
    x: Sequence[float],
    y: Sequence[float],
    follower: Sequence[int],
    stack: MutableSequence[int],
    out: MutableSequence[float],
) -> None:
    """Write the slope of the touching line at each place; `stack` holds the lower hull of the points so far."""
    last = len(x) - 1
    top, at, right = -1, 0, 0
    for place in range(2 * last + 1):
        s = (place + 1) // 2
        if place % 2 == 0:  # between: point s joins the left side too
            while top > 0:
                j, i = stack[top], stack[top - 1]
                if (y[j] - y[i]) * (x[s] - x[j]) < (y[s] - y[j]) * (x[j] - x[i]):
                    break
                top -= 1
            top += 1
            stack[top] = s
            at = min(at, top)
        right = max(right, s)
        while True:
            a = stack[at]
            while right < last:
                n = follower[right]
                dx, dy = x[right] - x[a] + 1, y[right] - y[a] + 1
                if dy * (x[n] - x[right]) < (y[n] - y[right]) * dx:
                    break
                right = n
            dx, dy = x[right] - x[a] + 1, y[right] - y[a] + 1
            if at == top:
                break
            n = stack[at + 1]
            if (y[n] - y[a]) * dx > dy * (x[n] - x[a]):
                break
            at += 1
        out[place] = dy / dx
