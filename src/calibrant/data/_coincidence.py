"""How many rows of a test set would equal a calibration row by coincidence, and whether more than those do.

A test row drawn from probabilities q_t of the possible rows equals one of n calibration rows drawn from q_c with a
chance of about n sum(q_t q_c). By Cauchy and Schwarz that is at most the geometric mean of n sum(q_c^2) and
n sum(q_t^2), which are the shares of the rows that have a twin within their own set, scaled to n rows (by what the
calibration rows have among few and among all of them). True copies within a set make its share greater, so the
estimate errs on the careful side: towards coincidence. The bound is that of a small chance: where it is above one
half, only a test that is shared throughout is called copies.
May import NumPy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint64]

CLEAR = 4.0
"""Standard errors by which the rows shared must be above chance before they are called copies."""
BESIDE_CHANCE = 0.2
"""The part of what chance gives that the excess must reach: the estimate of chance itself is no better."""
OF_THE_TEST = 0.002
"""The part of the test that the excess must reach."""
UNSEEN = 4.0
"""Rows with a twin that a set may hide: their number is known no better than to two pairs."""


class Chance(NamedTuple):
    """The chance that a test row equals a calibration row by coincidence, and how large it may be."""

    value: float
    at_most: float


def chance_of_a_twin(calibration: Numbers, test: Numbers) -> Chance:
    """The chance from the twins within each set."""
    n, k = len(calibration), min(len(calibration), len(test)) - 1
    if k < 1:
        return Chance(0.0, 1.0)
    own, own_of_few, test_of_few = (_with_a_twin(*one) for one in ((calibration, n - 1), (calibration, k), (test, k)))
    scaled = test_of_few * (own / own_of_few if own_of_few else n / k)
    shares = own, min(own + UNSEEN / n, 1.0)
    return Chance(*(min(math.sqrt(share * max(share, scaled)), 1.0) for share in shares))


def _with_a_twin(rows: Numbers, among: int) -> float:
    """The share of the rows that have an equal one among so many of the others, drawn at random."""
    times = np.unique(rows, return_counts=True)[1]
    left = 1 - among / (len(rows) - 1)
    return float(times @ (1 - left ** (times - 1.0))) / len(rows)


def clearly_more(shared: int, chance: Chance, test_rows: int, calibration_rows: int, unmistakable: bool) -> bool:
    """Whether more rows are shared than coincidence explains.

    `unmistakable` says that a row holds so much that two different ones are never equal; the calibration rows must
    bear that out by having no twins.
    """
    excess = shared - chance.value * test_rows
    if shared == 0 or excess < max(OF_THE_TEST, BESIDE_CHANCE * chance.value) * test_rows:
        return False
    if chance.value > 0.5:
        return shared == test_rows
    if unmistakable and chance.value == 0:
        return True
    spread = chance.at_most * (1 - chance.at_most) * (1 / test_rows + 2 / calibration_rows)
    return excess > CLEAR * test_rows * math.sqrt(spread)


def copies_among(shared: int, chance: float, test_rows: int) -> int:
    """About how many of the rows shared are copies: the others are shared as often as chance says."""
    if chance >= 1:
        return 0
    return round(min(max((shared - chance * test_rows) / (1 - chance), 0.0), float(shared)))
