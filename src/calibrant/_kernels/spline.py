"""Natural cubic splines through values at knots: evaluation, a basis, and the roughness of a curve.

Between knots `a < b` at distance h, with t = (z - a) / h and u = 1 - t,
`s(z) = u v_a + t v_b + h^2 / 6 ((u^3 - u) m_a + (t^3 - t) m_b)`, m the second derivatives; outside the knots a line.
The m solve a tridiagonal system and are 0 at both ends. May import NumPy, `blocks` and SciPy's banded solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.blocks import slices

Floats = NDArray[np.float64]


def evaluate(z: Floats, knots: Floats, values: Floats, curvatures: Floats) -> Floats:
    """The spline at z, block by block so that the steps of the formula stay in the cache."""
    slopes = end_slopes(knots, values, curvatures)
    widths = np.diff(knots)
    result = np.empty(z.shape)
    for at in slices(len(z)):
        part = z[at]
        inside = np.clip(part, knots[0], knots[-1])
        k = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
        h = widths[k]
        t = (inside - knots[k]) / h
        u = 1 - t
        bend = (u * u * u - u) * curvatures[k] + (t * t * t - t) * curvatures[k + 1]
        line = u * values[k] + t * values[k + 1]
        outside = np.where(part < knots[0], slopes[0], slopes[1]) * (part - inside)
        result[at] = line + h * h / 6 * bend + outside
    return result


def end_slopes(knots: Floats, values: Floats, curvatures: Floats) -> tuple[float, float]:
    """First derivative at the first and at the last knot."""
    h = np.diff(knots)
    slope = np.diff(values) / h
    return (
        float(slope[0] - h[0] / 6 * (2 * curvatures[0] + curvatures[1])),
        float(slope[-1] + h[-1] / 6 * (curvatures[-2] + 2 * curvatures[-1])),
    )


def second_derivatives(knots: Floats, values: Floats) -> Floats:
    """Second derivatives at the knots of the natural spline through the values; values may be (K, d)."""
    from scipy.linalg import solve_banded

    inner = len(knots) - 2
    curvatures = np.zeros_like(values)
    if inner <= 0:
        return curvatures
    h = np.diff(knots)
    slope = np.diff(values, axis=0) / (h if values.ndim == 1 else h[:, None])
    bands = np.zeros((3, inner))
    bands[0, 1:] = bands[2, :-1] = h[1:-1]
    bands[1] = 2 * (h[:-1] + h[1:])
    curvatures[1:-1] = solve_banded((1, 1), bands, 6 * np.diff(slope, axis=0))
    return curvatures


def basis(z: Floats, knots: Floats) -> Floats:
    """The cardinal natural splines at z, (n, K): column k is the spline that is 1 at knot k and 0 at the others."""
    identity = np.eye(len(knots))
    curvatures = second_derivatives(knots, identity)
    return np.column_stack([evaluate(z, knots, identity[:, k], curvatures[:, k]) for k in range(len(knots))])


def roughness(knots: Floats) -> Floats:
    """The matrix Q with `values' Q values = integral of s''^2` of the natural spline through the values."""
    curvatures = second_derivatives(knots, np.eye(len(knots)))
    h = np.diff(knots)
    left, right = curvatures[:-1], curvatures[1:]
    total = np.einsum("k,ki,kj->ij", h / 3, left, left) + np.einsum("k,ki,kj->ij", h / 3, right, right)
    cross = np.einsum("k,ki,kj->ij", h / 6, left, right)
    result: Floats = total + cross + cross.T
    return result


def least_slope(knots: Floats, values: Floats, curvatures: Floats) -> float:
    """The least first derivative of the spline anywhere: at a knot, or where the second derivative is 0."""
    h = np.diff(knots)
    rise = np.diff(values) / h
    m0, m1 = curvatures[:-1], curvatures[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where((m0 < 0) & (m1 > 0), m0 / (m0 - m1), 0.0)
    slopes = []
    for t in (np.zeros_like(h), np.ones_like(h), crossing):
        u = 1 - t
        slopes.append(rise + h / 6 * ((1 - 3 * u**2) * m0 + (3 * t**2 - 1) * m1))
    return float(np.min(slopes))
