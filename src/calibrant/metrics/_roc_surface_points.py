"""Points of the ROC surface: what threshold rules of K classes reach.

A split point gamma sends row p to the class with the largest `p_k - gamma_k`. Between the planes `gamma_i - gamma_j =
p_i - p_j` of the rows nothing changes, so every cell of this arrangement gives one point: the share of each class that
is sent to itself. Differences closer than 1e-11 are equal: leaf means that are round numbers would otherwise give cells
that no gamma reaches.
May import NumPy and the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import partition_loops as loops

Ints = NDArray[np.int64]

TOLERANCE = 1e-11
MOST_CELLS = 4_000_000
MOST_VERTICES = 3_000_000
SAMPLE = 20_000
CHUNK = 100_000


class Rows(NamedTuple):
    """Distinct rows of scores (n, K) and the weight of each class there, (n, K)."""

    scores: Floats
    counts: Floats


class Points(NamedTuple):
    """Rates (m, K), split points (m, K) that reach them, and whether no point of the surface is missing."""

    rates: Floats
    gammas: Floats
    exact: bool


def distinct_rows(scores: Floats, labels: Ints, weights: Floats) -> Rows:
    """Rows with equal scores put together."""
    found, group = np.unique(scores + 0.0, axis=0, return_inverse=True)
    k = scores.shape[1]
    counts = np.bincount(group.ravel() * k + labels, weights, len(found) * k).astype(np.float64)
    return Rows(np.ascontiguousarray(found), counts.reshape(-1, k))


def surface_points(rows: Rows) -> Points:
    """All points of the surface where they can be listed, else those of a sample of split points."""
    n, k = rows.scores.shape
    if k == 2:
        return _all_cuts(rows)
    if k == 3 and 3 * n**2 < MOST_CELLS:
        return _all_cells(rows)
    if k == 4 and 384 * n**3 < MOST_VERTICES:
        return _all_vertices(rows)
    return _unique(points_at(rows, quantile_gammas(rows)), exact=False)


def points_at(rows: Rows, gammas: Floats) -> Points:
    """The points of given split points."""
    k = rows.scores.shape[1]
    cell, label = map(np.ascontiguousarray, np.nonzero(rows.counts))
    scores, weights = rows.scores[cell].ravel(), rows.counts[cell, label]
    rates = np.empty(gammas.shape)
    totals = rows.counts.sum(axis=0)
    for first in range(0, len(gammas), CHUNK):
        some = np.ascontiguousarray(gammas[first : first + CHUNK])
        counts, gains = np.zeros((len(some), k, k)), np.empty(len(some))
        loops.part_counts(scores, label, weights, k, some.ravel(), np.arange(len(some)), counts.ravel(), gains)
        rates[first : first + CHUNK] = np.einsum("mkk->mk", counts) / totals
    return Points(rates, gammas, False)


def _unique(points: Points, exact: bool) -> Points:
    first = _first_of_each(points.rates)
    return Points(points.rates[first], points.gammas[first], exact)


def _first_of_each(rates: Floats) -> Ints:
    """Where each distinct row first stands, rows ascending."""
    key = np.zeros(len(rates), dtype=np.int64)
    for column in rates.T:
        levels, place = np.unique(column, return_inverse=True)
        key = key * len(levels) + place
        if len(levels) * float(key.max(initial=0)) > 2**40:
            key = np.unique(key, return_inverse=True)[1]
    return np.asarray(np.unique(key, return_index=True)[1])


def _centred(gammas: Floats) -> Floats:
    """Split points moved so that they sum to 1; only differences count."""
    return np.asarray(gammas + ((1 - gammas.sum(axis=1)) / gammas.shape[1])[:, None])


def _levels(values: Floats) -> tuple[Floats, Ints]:
    """Ascending distinct values, and the place of each value among them."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    new = np.concatenate([[True], np.diff(ascending) > TOLERANCE])
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ascending[new], place


def _bounded(levels: Floats) -> Floats:
    """The levels with an end on either side, for cells that reach to infinity."""
    return np.concatenate([[levels[0] - 1], levels, [levels[-1] + 1]])


def _all_cuts(rows: Rows) -> Points:
    """Two classes: every threshold on `p_1 - p_0`."""
    levels, place = _levels(rows.scores[:, 1] - rows.scores[:, 0])
    sums = [np.bincount(place, rows.counts[:, k], len(levels)) for k in (0, 1)]
    below = [np.concatenate([[0.0], np.cumsum(one)]) / one.sum() for one in sums]
    ends = _bounded(levels)
    middle = (ends[1:] + ends[:-1]) / 2
    return Points(
        np.column_stack([below[0], 1 - below[1]]), np.column_stack([(1 - middle) / 2, (1 + middle) / 2]), True
    )


def _all_cells(rows: Rows) -> Points:
    """Three classes: cells of the lines of `a = gamma_1 - gamma_0`, `b = gamma_2 - gamma_0` and `a - b`.

    A cell is (i, j, c): so many values of `p_1 - p_0` lie below a, of `p_2 - p_0` below b, of `p_1 - p_2` below a - b.
    """
    p = rows.scores
    u, at_u = _levels(p[:, 1] - p[:, 0])
    v, at_v = _levels(p[:, 2] - p[:, 0])
    d, at_d = _levels(p[:, 1] - p[:, 2])
    u_ends, v_ends, d_ends = _bounded(u), _bounded(v), _bounded(d)
    infinite = np.concatenate([[-np.inf], v, [np.inf]])
    keep = []
    for i in range(len(u) + 1):
        low = (u[i - 1] if i else -np.inf) - infinite[1:]
        high = (u[i] if i < len(u) else np.inf) - infinite[:-1]
        first = np.searchsorted(d, low + TOLERANCE, side="right")
        last = np.searchsorted(d, high - TOLERANCE, side="left")
        length = np.maximum(last - first + 1, 0)
        j = np.repeat(np.arange(len(v) + 1), length)
        step = np.arange(len(j)) - np.repeat(np.cumsum(length) - length, length)
        keep.append(np.stack([np.full(len(j), i), j, first[j] + step]))
    i, j, c = np.concatenate(keep, axis=1)
    totals = rows.counts.sum(axis=0)
    rates = np.column_stack(
        [
            _below(at_u, at_v, rows.counts[:, 0], len(u), len(v))[i, j],
            _below(len(u) - 1 - at_u, len(d) - 1 - at_d, rows.counts[:, 1], len(u), len(d))[len(u) - i, len(d) - c],
            _below(len(v) - 1 - at_v, at_d, rows.counts[:, 2], len(v), len(d))[len(v) - j, c],
        ]
    )
    rates = rates / totals
    one = _first_of_each(rates)
    return Points(rates[one], _inside_cells((u_ends, v_ends, d_ends), i[one], j[one], c[one]), True)


def _below(x: Ints, y: Ints, weight: Floats, n_x: int, n_y: int) -> Floats:
    """`T[i, j]`, the weight of rows with x < i and y < j."""
    table = np.zeros((n_x + 1, n_y + 1))
    np.add.at(table, (x + 1, y + 1), weight)
    return np.asarray(table.cumsum(axis=0).cumsum(axis=1))


def _inside_cells(ends: tuple[Floats, Floats, Floats], i: Ints, j: Ints, c: Ints) -> Floats:
    """A split point inside each cell; an unbounded side is cut off far enough out."""
    u, v, d = ends
    far = 2 * max(float(np.abs(one).max()) for one in ends)
    sides = [(np.where(at == 0, -far, one[at]), np.where(at == len(one) - 2, far, one[at + 1])) for one, at in
             zip((u, v, d), (i, j, c))]  # fmt: skip
    (u0, u1), (v0, v1), (d0, d1) = sides
    gap = (np.maximum(d0, u0 - v1) + np.minimum(d1, u1 - v0)) / 2
    b = (np.maximum(v0, u0 - gap) + np.minimum(v1, u1 - gap)) / 2
    return _centred(np.column_stack([np.zeros(len(b)), b + gap, b]))


def _all_vertices(rows: Rows) -> Points:
    """Any K: all vertices of the arrangement, each moved off in K! directions, which reaches every cell."""
    parts = [_unique(points_at(rows, gammas), exact=True) for gammas in _vertices(rows.scores)]
    joint = Points(np.concatenate([one.rates for one in parts]), np.concatenate([one.gammas for one in parts]), True)
    return _unique(joint, exact=True)


def _vertices(scores: Floats) -> Iterator[Floats]:
    """Split points beside every vertex: a spanning tree of the classes, and a row for each of its edges."""
    k = scores.shape[1]
    spread = [_levels(scores[:, i] - scores[:, j])[0] for i in range(k) for j in range(k)]
    gaps = np.concatenate([np.diff(one) for one in spread] + [np.ones(1)])
    near = max(TOLERANCE, float(gaps.min()) * 1e-3)
    directions = near * np.array(list(permutations(range(k))))
    for code in product(range(k), repeat=k - 2):
        edges = _tree_edges(code, k)
        levels = [_levels(scores[:, a] - scores[:, b])[0] for a, b in edges]
        mesh = np.stack([one.ravel() for one in np.meshgrid(*levels, indexing="ij")], axis=1)
        gammas = np.zeros((len(mesh), k))
        for (a, b), step in reversed(list(zip(edges, mesh.T))):
            gammas[:, a] = gammas[:, b] + step
        for first in range(0, len(gammas), CHUNK):
            yield _centred((gammas[first : first + CHUNK, None, :] + directions).reshape(-1, k))


def _tree_edges(code: tuple[int, ...], k: int) -> list[tuple[int, int]]:
    """Edges (leaf, inner) of a tree from its Pruefer code; a leaf comes before the vertex it hangs on."""
    degree = [1 + code.count(vertex) for vertex in range(k)]
    edges = []
    for inner in code:
        leaf = degree.index(1)
        edges.append((leaf, inner))
        degree[leaf], degree[inner] = 0, degree[inner] - 1
    a, b = (vertex for vertex in range(k) if degree[vertex] == 1)
    return [*edges, (a, b)]


def quantile_gammas(rows: Rows) -> Floats:
    """Split points on a grid whose steps hold equally many rows, about 20,000 of them."""
    k = rows.scores.shape[1]
    steps = int(SAMPLE ** (1 / (k - 1)))
    levels = []
    for j in range(1, k):
        ends = _bounded(_levels(rows.scores[:, j] - rows.scores[:, 0])[0])
        middle = (ends[1:] + ends[:-1]) / 2
        levels.append(middle[np.unique(np.linspace(0, len(middle) - 1, steps).round().astype(np.int64))])
    mesh = np.stack([one.ravel() for one in np.meshgrid(*levels, indexing="ij")], axis=1)
    return _centred(np.column_stack([np.zeros(len(mesh)), mesh]))
