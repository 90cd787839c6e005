"""Recursive partitioning of two classes: isotonic regression, block by block.

For two classes the best split of a leaf, `max over cuts of sum above the cut of (y - mean)`, always lies between blocks
of the isotonic fit, and it is always admissible. So the blocks come first, by pooling adjacent violators, and the order
of the splits afterwards: `M(cut) = 4 |sum above (y - mean)|`, largest first.
May import NumPy, `isotonic` and `partition`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.isotonic import pool_adjacent
from calibrant._kernels.partition import Path, Split

Floats = NDArray[np.float64]


class _Blocks(NamedTuple):
    """Positives and weight before every block and in all, (B + 1,), and the threshold above each block but the last."""

    positives: Floats
    weights: Floats
    thresholds: Floats


def grow_binary(
    scores: Floats,
    positives: Floats,
    weights: Floats,
    thresholds: Floats | None = None,
    most_leaves: int | None = None,
) -> Path:
    """The splits `score > threshold` of ascending distinct scores; by default every score is a threshold.

    Cost: O(n) and O(B^2) at worst for B blocks; memory O(n).
    """
    blocks = _blocks(scores, positives, weights, thresholds)
    counts: list[Floats] = []
    splits: list[Split] = []
    queue: list[tuple[float, int, int, int, int]] = []

    def add(first: int, last: int) -> int:
        """A node of the blocks first..last-1."""
        hits = blocks.positives[last] - blocks.positives[first]
        counts.append(np.array([blocks.weights[last] - blocks.weights[first] - hits, hits]))
        if last - first > 1:
            gain, cut = _best_cut(blocks, first, last)
            heappush(queue, (-gain, first, last, cut, len(counts) - 1))
        return len(counts) - 1

    add(0, len(blocks.weights) - 1)
    while queue and (most_leaves is None or len(splits) + 2 <= most_leaves):
        gain, first, last, cut, node = heappop(queue)
        t = blocks.thresholds[cut - 1]
        children = np.array([add(first, cut), add(cut, last)])
        splits.append(Split(node, np.array([1 - t, t]), children, -gain))
    return Path(splits, np.array(counts))


def _best_cut(blocks: _Blocks, first: int, last: int) -> tuple[float, int]:
    """The objective and the place of the best cut; products of counts, so that ties are ties."""
    inside = slice(first + 1, last)
    hits, total = blocks.positives[last] - blocks.positives[first], blocks.weights[last] - blocks.weights[first]
    above = total * (blocks.positives[last] - blocks.positives[inside])
    rise = above - (blocks.weights[last] - blocks.weights[inside]) * hits
    best = int(np.argmax(rise))
    return 4 * float(rise[best]) / float(total), first + 1 + best


def _blocks(scores: Floats, positives: Floats, weights: Floats, thresholds: Floats | None) -> _Blocks:
    if thresholds is None:
        starts, above = np.arange(len(scores)), scores
    else:
        cell = np.searchsorted(np.sort(thresholds), scores, side="left")
        starts = np.flatnonzero(np.concatenate([[True], cell[1:] > cell[:-1]]))
        above = _thresholds_above(scores, starts, thresholds)
        positives, weights = np.add.reduceat(positives, starts), np.add.reduceat(weights, starts)
    pooled = pool_adjacent(positives, weights)
    sums = [np.cumsum(np.append(0.0, np.add.reduceat(v, pooled.starts))) for v in (positives, weights)]
    return _Blocks(sums[0], sums[1], above[pooled.ends])


def _thresholds_above(scores: Floats, starts: NDArray[np.int64], thresholds: Floats) -> Floats:
    """For every cell of scores, the first threshold in the order given that parts it from the next cell."""
    order = np.argsort(thresholds, kind="stable")
    ascending = thresholds[order]
    ends = np.append(starts[1:], len(scores)) - 1
    low = np.searchsorted(ascending, scores[ends], side="left")
    result = np.full(len(starts), np.inf)
    high = np.searchsorted(ascending, scores[starts[1:]], side="left")
    for place in range(len(starts) - 1):
        result[place] = thresholds[order[low[place] : high[place]].min()]
    return result
