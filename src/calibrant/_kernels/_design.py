"""Rows of a logistic likelihood made ready for Newton steps: columns in a safe range, centred, summed once.

Columns are multiplied by a power of two where their squares would overflow or vanish, and used as u = x - centre. The
centre is the mean, or the median where a few rows lie far out and would hide the others.

May import: NumPy, `_compiled`, `_dot`, `blocks`, `logistic_sums`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels import logistic_sums
from calibrant._kernels._compiled import MANY, compiled, in_two
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant._kernels.logistic_sums import CELL

Floats = NDArray[np.float64]
SAMPLE = 2**13
"""Eight times as many rows stand for all others at the start of a fit."""
FEW = 2**11
"""Rows whose quartiles are taken for those of all."""


class Columns(NamedTuple):
    """Columns in a range where squares are safe, times 2^power, used as u_j = (x_j - centre_j)."""

    values: tuple[Floats, ...]
    powers: NDArray[np.int64]
    centres: Floats
    reach: Floats
    """Greatest |u_j|; 0 for a constant column."""
    bulk: Floats
    """Half the distance of the quartiles."""


class Rows(NamedTuple):
    """Rows, and the sums over them that do not depend on the coefficients."""

    columns: Columns
    positives: NDArray[np.uint8] | Floats
    targets: tuple[float, float]
    """What a positive of 0 and of 1 stand for."""
    totals: Floats | None
    size: int
    weight: float
    cross: Floats
    """Sums of s (1, u)."""
    moments: Floats
    """Sums of t (1, u) (1, u)'."""
    many: bool
    """Whether compiled passes are worth loading; a sample keeps what its rows have."""

    @property
    def one_column(self) -> logistic_sums.Rows:
        """The rows of a fit with one slope."""
        (x,) = self.columns.values
        reach = float(self.columns.reach[0])
        return logistic_sums.Rows(x, self.positives, self.totals, self.targets, reach, self.many)


def in_range(columns: tuple[Floats, ...], totals: Floats | None) -> Columns:
    values, powers, centres, reach, bulk = [], [], [], [], []
    for x in columns:
        low, high = float(x.min()), float(x.max())
        largest = max(high, -low)
        power = 0
        if largest > 0.0 and not 1e-100 < largest < 1e100:
            power = min(-math.frexp(largest)[1], 1000)
            x, low, high = np.ldexp(x, power), math.ldexp(low, power), math.ldexp(high, power)
        centre = float(x.mean() if totals is None else dot(x, totals) / totals.sum())
        few = x[:: max(len(x) // FEW, 1)]
        quarters = [k * len(few) // 4 for k in (1, 2, 3)]
        lower, middle, upper = np.partition(few, quarters)[quarters].tolist()
        half = (upper - lower) / 2
        far = half > 0.0 and max(high - centre, centre - low) > 1e3 * half
        centre = middle if far else centre
        values.append(x)
        powers.append(power)
        centres.append(centre)
        reach.append(max(high - centre, centre - low) if low < high else 0.0)
        bulk.append(half)
    return Columns(tuple(values), np.array(powers, dtype=np.int64), np.array(centres), np.array(reach), np.array(bulk))


def separable(rows: Rows) -> bool:
    """Whether one column separates the classes: no score of one lies between two scores of the other."""
    if rows.targets != (0.0, 1.0):
        return False
    (x,) = rows.columns.values
    ends = [math.inf, -math.inf, math.inf, -math.inf]
    for at in (slice(0, FEW), *slices(rows.size)):  # a few rows show it mostly
        whole = 1.0 if rows.totals is None else rows.totals[at]
        for k, chosen in ((0, rows.positives[at] > 0), (2, rows.positives[at] < whole)):
            part = x[at][chosen]
            ends[k] = min(ends[k], float(part.min(initial=math.inf)))
            ends[k + 1] = max(ends[k + 1], float(part.max(initial=-math.inf)))
        if ends[0] < ends[3] and ends[2] < ends[1]:
            return False
    return True


def thin(rows: Rows) -> Rows:
    """About 8 SAMPLE rows, evenly spaced."""
    every = max(rows.size // (8 * SAMPLE), 8)
    columns = rows.columns._replace(values=tuple(np.ascontiguousarray(x[::every]) for x in rows.columns.values))
    totals = None if rows.totals is None else rows.totals[::every].copy()
    return sum_rows(columns, rows.positives[::every].copy(), totals, rows.targets)._replace(many=rows.many)


def sum_rows(
    columns: Columns, positives: NDArray[np.uint8] | Floats, totals: Floats | None, targets: tuple[float, float]
) -> Rows:
    if len(columns.values) == 1 and len(positives) >= MANY:
        return _sum_one_column(columns, positives, totals, targets)
    size, width, (low, high) = len(positives), len(columns.values) + 1, targets
    cross, moments = np.zeros(width), np.zeros((width, width))
    for at in slices(size):
        part = np.multiply(positives[at], high - low)
        part += low
        units = [x[at] - centre for x, centre in zip(columns.values, columns.centres)]
        weighted = units if totals is None else [unit * totals[at] for unit in units]
        cross[0] += part.sum()
        moments[0, 0] += at.stop - at.start if totals is None else totals[at].sum()
        for j in range(1, width):
            cross[j] += dot(part, units[j - 1])
            moments[j, 0] += weighted[j - 1].sum()
            for k in range(1, j + 1):
                moments[j, k] += dot(weighted[j - 1], units[k - 1])
    return Rows(
        columns, positives, targets, totals, size, float(moments[0, 0]), cross, symmetric(moments), size >= MANY
    )


def _sum_one_column(
    columns: Columns, positives: NDArray[np.uint8] | Floats, totals: Floats | None, targets: tuple[float, float]
) -> Rows:
    weights, (low, high) = np.empty(0) if totals is None else totals, targets
    add_up = _add_labels if positives.dtype == np.uint8 else _add_parts

    def part(first: int, last: int) -> Floats:
        at, sums = slice(first, last), np.zeros(5)
        column = columns.values[0][at]
        add_up(column, positives[at], weights[at], low, high - low, float(columns.centres[0]), sums)
        return sums

    size = len(positives)
    weight, first, second, hits, both = np.sum(in_two(part, size), axis=0).tolist()
    moments = np.array([[weight, first], [first, second]])
    return Rows(columns, positives, targets, totals, size, weight, np.array([hits, both]), moments, True)


def _add_up(
    x: Floats,
    positives: NDArray[np.uint8] | Floats,
    totals: Floats,
    low: float,
    span: float,
    centre: float,
    sums: Floats,
) -> None:  # pragma: no cover
    """Add up t, t u, t u^2, s and s u, cell by cell, so that no sum grows much beyond what is added."""
    weighted = len(totals) > 0
    for begin in range(0, len(x), CELL):
        part, hits, weights = x[begin : begin + CELL], positives[begin : begin + CELL], totals[begin : begin + CELL]
        t_sum, tu, tuu, s_sum, su = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(part)):
            u, t, soft = part[i] - centre, weights[i] if weighted else 1.0, hits[i] * span + low
            t_sum += t
            tu += t * u
            tuu += t * u * u
            s_sum += soft
            su += soft * u
        sums[0] += t_sum
        sums[1] += tu
        sums[2] += tuu
        sums[3] += s_sum
        sums[4] += su


_add_labels = compiled("FBFfffF*", regroup=True)(_add_up)
_add_parts = compiled("FFFfffF*", regroup=True)(_add_up)


def symmetric(lower: Floats) -> Floats:
    full: Floats = np.tril(lower) + np.tril(lower, -1).T
    return full


def correlations(rows: Rows, deviations: Floats) -> Floats:
    """Correlations of the columns, the intercept first; a constant column has none, not even with itself."""
    scale = np.concatenate(([1.0], np.where(rows.columns.reach > 0.0, 1.0 / deviations, 0.0)))
    correlations: Floats = rows.moments * np.outer(scale, scale) / rows.weight
    return correlations


def back_transform(columns: Columns, deviations: Floats) -> Floats:
    """Matrix from the coefficients of columns in standard units to those of the columns given."""
    back = np.eye(len(deviations) + 1)
    back[0, 1:] = -columns.centres / deviations
    with np.errstate(over="ignore"):
        np.fill_diagonal(back[1:, 1:], np.ldexp(1.0 / deviations, columns.powers))
    return back
