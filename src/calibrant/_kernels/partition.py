"""Recursive partitioning of score space: greedy splits that keep the order of the classes.

Leaves are split one at a time. Of all split points (leaf, gamma) the one with the largest objective is taken among
those that are admissible: for every split recorded so far and the new one, applied to all rows, and every pair of
classes, nobody in region R_i may lean less to i against j than somebody in R_j, `min over R_i of (r_i - r_j) >= max
over R_j of (r_i - r_j)`, r the class frequencies of a row's leaf. The stricter criterion asks that no cycle of these
least gaps has a negative sum, which is to say that the split exists on the values r too. A row, or a split point, that
ties for several regions belongs to the first.

Counts are compared as they are: a gap is `(c_i - c_j) / n`, one division of exact numbers, so that equal gaps are
equal floats. A rejection holds until one of the two leaves that caused it is split, and is not computed again before.
May import NumPy, `partition_loops`, `partition_check` and `_compiled`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels import partition_loops as loops
from calibrant._kernels._compiled import side_by_side
from calibrant._kernels.partition_check import Candidates, Leaf, State, admissible

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CLASSES = 62
SHARED_WORK = 2**22
FIRST_BATCH, LARGEST_BATCH = 16, 2048


class Split(NamedTuple):
    """A leaf divided: the node it was, the split point, the nodes of its parts (-1 where there is no row)."""

    node: int
    point: Floats
    children: Ints
    gain: float


class Path(NamedTuple):
    """All splits in the order they were made, and the class counts of every node, (nodes, K); node 0 is the root."""

    splits: list[Split]
    counts: Floats


class Rows(NamedTuple):
    """Rows of scores (n, K), the index of each one's class, and its weight; weights add up exactly."""

    scores: Floats
    labels: Ints
    weights: Floats


def exact_weights(weights: Floats) -> Floats:
    """Weights whose sums are exact in any order: whole numbers as they are, others to 2^-51 of their total."""
    total = float(weights.sum())
    if total < 2.0**52 and bool(np.all(weights == np.rint(weights))):
        return weights
    unit = int(np.frexp(total)[1]) - 51
    return np.asarray(np.ldexp(np.rint(np.ldexp(weights, -unit)), unit))


def grow(rows: Rows, points: Floats, *, cycles: bool = False, most_leaves: int | None = None) -> Path:
    """Split greedily until nothing is admissible, or the next split would give more than `most_leaves` leaves.

    Cost: every split point of a leaf is applied to the rows of the leaf, O(m n K) for each level of the tree, and to
    the other rows once it is examined; memory O(m (K^2 + leaves) + n splits).
    """
    state = _planted(rows, points, cycles)
    splits: list[Split] = []
    while True:
        taken = _best_admissible(state)
        if taken < 0:
            break
        split = _divide(state, taken, most_leaves)
        if split is None:
            break
        splits.append(split)
    return Path(splits, np.array(state.node_counts))


def _planted(rows: Rows, points: Floats, cycles: bool) -> State:
    n, k = rows.scores.shape
    state = State(
        np.ascontiguousarray(rows.scores),
        np.ascontiguousarray(rows.labels),
        np.ascontiguousarray(rows.weights),
        np.ascontiguousarray(points),
        cycles,
    )
    total = np.bincount(rows.labels, rows.weights, k).astype(np.float64)
    root = Leaf(0, 0, n, np.arange(len(points)), 0, 0)
    state.node_counts.append(total)
    state.leaves.append(_examined(state, root))
    state.refresh()
    return state


def _examined(state: State, leaf: Leaf) -> Leaf:
    """The leaf with its split points that have an objective above zero."""
    inside = slice(leaf.start, leaf.stop)
    scores, labels, weights = state.scores[inside].ravel(), state.labels[inside], state.weights[inside]
    k, m = state.n_classes, len(leaf.inside)
    counts, gains = np.zeros((m, k, k)), np.zeros(m)

    def part(first: int, last: int) -> None:
        some = slice(first, last)
        here = (counts[some].ravel(), gains[some])
        loops.part_counts(scores, labels, weights, k, state.flat_points, leaf.inside[some], *here)

    if m * len(labels) < SHARED_WORK:
        part(0, m)
    else:
        side_by_side([lambda: part(0, m // 2), lambda: part(m // 2, m)])
    masks = np.where(counts.any(axis=2), np.int64(1) << np.arange(k), 0)
    state.note_regions(leaf.inside, leaf.node, np.bitwise_or.reduce(masks, axis=1))
    useful = np.flatnonzero((gains > 0) & (np.count_nonzero(masks, axis=1) > 1))
    first = state.candidates.add(leaf.inside[useful], gains[useful], counts[useful])
    return leaf._replace(first=first, last=first + len(useful))


def _best_admissible(state: State) -> int:
    """The candidate with the largest objective among the admissible ones, -1 if there is none."""
    pool: Candidates = state.candidates
    everyone = np.concatenate([np.arange(leaf.first, leaf.last) for leaf in state.leaves])
    homes = np.repeat(np.arange(len(state.leaves)), [leaf.last - leaf.first for leaf in state.leaves])
    order = np.argsort(-pool.gains[everyone], kind="stable")
    everyone, homes = everyone[order], homes[order]
    open_ = ~(state.alive[pool.losers[everyone]] & state.alive[pool.winners[everyone]])
    everyone, homes = everyone[open_], homes[open_]
    size, start = FIRST_BATCH, 0
    while start < len(everyone):
        batch = slice(start, start + size)
        fine = _checked(state, everyone[batch], homes[batch])
        if fine.any():
            return int(everyone[batch][int(np.argmax(fine))])
        start, size = start + size, min(2 * size, state.largest_batch(LARGEST_BATCH))
    return -1


def _checked(state: State, batch: Ints, homes: Ints) -> NDArray[np.bool_]:
    half = len(batch) // 2
    if half < 8 or len(batch) * len(state.labels) < SHARED_WORK:
        return admissible(state, batch, homes)
    found = side_by_side(
        [
            lambda: admissible(state, batch[:half], homes[:half]),
            lambda: admissible(state, batch[half:], homes[half:]),
        ]
    )
    return np.concatenate(found)


def _divide(state: State, taken: int, most_leaves: int | None) -> Split | None:
    """Apply a split; None when it would give too many leaves."""
    place = next(i for i, leaf in enumerate(state.leaves) if leaf.first <= taken < leaf.last)
    leaf, pool = state.leaves[place], state.candidates
    point = state.points[pool.points[taken]]
    counts = pool.counts[taken]
    parts = np.flatnonzero(counts.any(axis=1))
    if most_leaves is not None and len(state.leaves) - 1 + len(parts) > most_leaves:
        return None
    sizes = state.sort_leaf(leaf, point)
    region = (state.points[leaf.inside] - point).argmax(axis=1)
    first_node = len(state.node_counts)
    children = np.full(state.n_classes, -1, dtype=np.int64)
    children[parts] = np.arange(first_node, first_node + len(parts))
    state.node_counts.extend(counts[parts])
    state.retire(leaf)
    stops = leaf.start + np.cumsum(sizes)
    made = []
    for k in parts:
        part = Leaf(int(children[k]), int(stops[k] - sizes[k]), int(stops[k]), leaf.inside[region == k], 0, 0)
        made.append(_examined(state, part))
    state.replace_leaf(place, made)
    state.record(point)
    return Split(leaf.node, point.copy(), children, float(pool.gains[taken]))
