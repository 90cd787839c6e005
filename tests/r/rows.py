"""The rows that R saw: 500 labels with an over-confident and a noisier forecast, from a generator written out here.

Run as a script it prints them as csv, for `evidence.R`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

N_ROWS = 500


def uniforms(seed: int) -> Iterator[float]:
    """Numbers in (0, 1): Knuth's linear congruential generator of 64 bits, the upper 53 of them."""
    state = seed
    while True:
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        yield ((state >> 11) + 0.5) / 2**53


def rows() -> tuple[list[int], list[float], list[float]]:
    """Labels, and two forecasts without ties."""
    drawn = uniforms(20_260_101)
    y, a, b = [], [], []
    for _ in range(N_ROWS):
        z = sum(next(drawn) for _ in range(6)) * 1.6 - 5.6
        y.append(int(next(drawn) < 1 / (1 + math.exp(-z))))
        a.append(round(1 / (1 + math.exp(0.2 - 1.5 * z)), 12))
        b.append(round(1 / (1 + math.exp(-z - 2 * next(drawn) + 1)), 12))
    return y, a, b


if __name__ == "__main__":
    print("y,a,b")
    for line in zip(*rows()):
        print(",".join(repr(value) for value in line))
