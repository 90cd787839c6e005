"""State of a growing partition, and the check of split points against it.

A candidate is a split point in one leaf. The check applies it to all rows, leaf by leaf, and then asks the recorded
splits whether they bear the new values; it stops at the first two leaves that cross, which are remembered.
May import NumPy and `partition_loops`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels import partition_loops as loops

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

NEGATIVE = -1e-12
"""A sum of gaps around a cycle counts as negative below this: gaps are rounded, and their sums may be 0."""
MOST_CELLS = 2**22


class Leaf(NamedTuple):
    """A leaf: its node, its rows start..stop-1, the split points that lie in it, its candidates first..last-1."""

    node: int
    start: int
    stop: int
    inside: Ints
    first: int
    last: int


class Candidates:
    """Candidates of all leaves, those of split leaves too: what a split point does in its leaf, and who rejected it."""

    def __init__(self, n_classes: int, room: int) -> None:
        self.size = 0
        self.points = np.zeros(room, dtype=np.int64)
        self.gains = np.zeros(room)
        self.counts = np.zeros((room, n_classes, n_classes))
        self.losers = np.full(room, -1, dtype=np.int64)
        self.winners = np.full(room, -1, dtype=np.int64)

    def add(self, points: Ints, gains: Floats, counts: Floats) -> int:
        """Append candidates; return the place of the first."""
        first, last = self.size, self.size + len(points)
        for name in ("points", "gains", "counts", "losers", "winners"):
            setattr(self, name, _with_room(getattr(self, name), last, -1 if name in ("losers", "winners") else 0))
        self.points[first:last], self.gains[first:last], self.counts[first:last] = points, gains, counts
        self.size = last
        return first


def _with_room(array: NDArray[Number], needed: int, fill: int, axis: int = 0) -> NDArray[Number]:
    """The array, or a copy twice as long along the axis."""
    if array.shape[axis] >= needed:
        return array
    shape = list(array.shape)
    shape[axis] = max(needed, 2 * shape[axis])
    longer = np.full(shape, fill, dtype=array.dtype)
    longer[tuple(slice(0, length) for length in array.shape)] = array
    return longer


class State:
    """Rows sorted by leaf, leaves in tree order, recorded splits, candidates."""

    def __init__(self, scores: Floats, labels: Ints, weights: Floats, points: Floats, cycles: bool) -> None:
        self.scores, self.labels, self.weights = scores.copy(), labels.copy(), weights.copy()
        self.points, self.flat_points = points, points.ravel()
        self.n_classes = scores.shape[1]
        self.cycles = cycles
        self.leaves: list[Leaf] = []
        self.node_counts: list[Floats] = []
        self.alive = np.zeros(64, dtype=bool)  # the last one stays dead: -1 is nobody
        self.meets = np.zeros((len(points), 64), dtype=np.int64)
        self.candidates = Candidates(self.n_classes, len(points) + 1)
        self.row_regions = np.zeros((0, len(labels)), dtype=np.uint8)
        self.n_splits = 0
        self.leaf_masks = np.zeros((0, 1), dtype=np.int64)

    # ------------------------------------------------------------ growth

    def note_regions(self, points: Ints, node: int, masks: Ints) -> None:
        """Remember which regions of its own split points a leaf meets."""
        self.meets = _with_room(self.meets, node + 1, 0, axis=1)
        self.meets[points, node] = masks
        if node + 2 > len(self.alive):
            self.alive = np.concatenate([self.alive, np.zeros(len(self.alive), dtype=bool)])
        self.alive[node] = True

    def retire(self, leaf: Leaf) -> None:
        """The leaf is no more; what it caused has to be looked at again."""
        self.alive[leaf.node] = False

    def sort_leaf(self, leaf: Leaf, point: Floats) -> Ints:
        """Sort the rows of a leaf by part; return the number of rows of each."""
        here = slice(leaf.start, leaf.stop)
        part = (self.scores[here] - point).argmax(axis=1)
        order = np.argsort(part, kind="stable")
        for array in (self.scores, self.labels, self.weights):
            array[here] = array[here][order]
        self.row_regions[: self.n_splits, here] = self.row_regions[: self.n_splits, here][:, order]
        return np.bincount(part, minlength=self.n_classes)

    def replace_leaf(self, place: int, made: list[Leaf]) -> None:
        """Put the parts where their leaf was."""
        bounds = np.array([leaf.start for leaf in made])
        lowest, highest = made[0].start, made[-1].stop
        rows = np.int64(1) << self.row_regions[: self.n_splits, lowest:highest].astype(np.int64)
        new = np.bitwise_or.reduceat(rows, bounds - lowest, axis=1)
        old = self.leaf_masks[: self.n_splits]
        self.leaf_masks = np.concatenate([old[:, :place], new, old[:, place + 1 :]], axis=1)
        self.leaves[place : place + 1] = made

    def record(self, point: Floats) -> None:
        """Remember a split, applied to all rows."""
        self.row_regions = _with_room(self.row_regions, self.n_splits + 1, 0)
        region = (self.scores - point).argmax(axis=1)
        self.row_regions[self.n_splits] = region
        starts = np.array([leaf.start for leaf in self.leaves])
        met = np.bitwise_or.reduceat(np.int64(1) << region, starts)
        self.leaf_masks = np.vstack([self.leaf_masks, met])
        self.n_splits += 1
        self.refresh()

    # ------------------------------------------------------------ the values as they are

    def refresh(self) -> None:
        """Gaps of every leaf, and for every recorded split and pair of classes its two least gaps."""
        self.starts = np.array([leaf.start for leaf in self.leaves])
        self.stops = np.array([leaf.stop for leaf in self.leaves])
        self.nodes = np.array([leaf.node for leaf in self.leaves])
        self.gaps = gaps_of(np.array(self.node_counts)[self.nodes])
        shape = (self.n_splits, self.n_classes, self.n_classes)
        self.least, self.second = np.full(shape, np.inf), np.full(shape, np.inf)
        self.holder, self.second_holder = np.full(shape, -1), np.full(shape, -1)
        bits = np.arange(self.n_classes, dtype=np.int64)
        for s in range(self.n_splits):
            member = (self.leaf_masks[s][:, None] >> bits & 1).astype(bool)
            values = np.where(member[:, :, None], self.gaps, np.inf)
            for least, holder in ((self.least, self.holder), (self.second, self.second_holder)):
                where = values.argmin(axis=0)
                least[s] = np.take_along_axis(values, where[None], axis=0)[0]
                holder[s] = where
                np.put_along_axis(values, where[None], np.inf, axis=0)

    def largest_batch(self, most: int) -> int:
        """So many candidates that their gaps stay in memory."""
        return int(max(16, min(most, MOST_CELLS // (self.n_classes**2 * max(self.n_splits, self.n_classes)))))


def gaps_of(counts: Floats) -> Floats:
    """`(c_i - c_j) / n` of rows of counts (..., K): one division each; 0 where there is no row."""
    size = counts.sum(axis=-1)
    size = np.where(size > 0, size, 1.0)
    return np.asarray((counts[..., :, None] - counts[..., None, :]) / size[..., None, None])


# ---------------------------------------------------------------- the check


class _Trial(NamedTuple):
    """Candidates under examination: place, home leaf, split point, gaps of their parts (m, K, K, K)."""

    place: Ints
    homes: Ints
    points: Ints
    gaps: Floats
    masks: Ints
    names: Ints

    def only(self, keep: Flags) -> _Trial:
        homes, points, names = self.homes[keep], self.points[keep], self.names[keep]
        return _Trial(self.place[keep], homes, points, self.gaps[keep], self.masks[keep], names)


def admissible(state: State, batch: Ints, homes: Ints) -> Flags:
    """Which candidates keep the criterion; those that do not remember the two leaves that crossed."""
    pool = state.candidates
    counts = pool.counts[batch]
    masks = np.where(counts.any(axis=2), np.int64(1) << np.arange(state.n_classes), 0)
    names = np.repeat(state.nodes[homes][:, None], state.n_classes, axis=1)
    trial = _Trial(batch, homes, pool.points[batch], gaps_of(counts), masks, names)
    left = np.arange(len(batch))
    for examine in (_own_split, _recorded_splits):
        fine = examine(state, trial)
        left, trial = left[fine], trial.only(fine)
        if not len(left):
            break
    result = np.zeros(len(batch), dtype=bool)
    result[left] = True
    return result


class _Units(NamedTuple):
    """Leaves or parts that are put to the test: gaps, masks of regions met (m, units), names, how m shares them."""

    gaps: Floats
    masks: Ints
    names: Ints
    sharing: int
    stride: int


def _fold(units: _Units, least: Floats, holders: Ints) -> tuple[Flags, Ints, Ints]:
    """`loops.fold_gaps`; `least` and `holders` (m, K, K) are written. Returns fine, loser and winner, (m,)."""
    m, k, _ = least.shape
    fine = np.ones(m, dtype=np.uint8)
    loser, winner = np.full(m, -1, dtype=np.int64), np.full(m, -1, dtype=np.int64)
    loops.fold_gaps(
        k, units.masks.shape[-1], units.sharing, units.stride, units.gaps.ravel(), units.masks.ravel(),
        units.names.ravel(), least.ravel(), holders.ravel(), loser, winner, fine,
    )  # fmt: skip
    return fine.astype(bool), loser, winner


def _own_split(state: State, trial: _Trial) -> Flags:
    """The new split over its own parts and then the other leaves, few at first."""
    k, m = state.n_classes, len(trial.place)
    least, holders = np.full((m, k, k), np.inf), np.full((m, k, k), -1, dtype=np.int64)
    fine, loser, winner = _fold(_Units(trial.gaps, trial.masks, trial.names, 1, k), least, holders)
    _remember(state, trial.place[~fine], loser[~fine], winner[~fine])
    left = np.flatnonzero(fine)
    start, size = 0, 4
    while len(left) and start < len(state.leaves):
        some = np.arange(start, min(start + size, len(state.leaves)))
        masks = _leaf_regions(state, trial.points[left], some)
        masks[trial.homes[left][:, None] == some] = 0
        low, who = least[left], holders[left]
        still, loser, winner = _fold(_Units(state.gaps[some], masks, state.nodes[some], 1, 0), low, who)
        least[left], holders[left] = low, who
        _remember(state, trial.place[left[~still]], loser[~still], winner[~still])
        left = left[still]
        start, size = start + size, 2 * size
    result = np.zeros(m, dtype=bool)
    result[left] = _no_negative_cycle(least[left]) if state.cycles else True
    return result


def _leaf_regions(state: State, points: Ints, some: Ints) -> Ints:
    loops.regions_of_leaves(
        state.scores.ravel(), state.n_classes, state.flat_points, points, state.nodes[some], state.starts[some],
        state.stops[some], state.meets.shape[1], state.meets.ravel(),
    )  # fmt: skip
    return np.asarray(state.meets[points[:, None], state.nodes[some]])


def _recorded_splits(state: State, trial: _Trial) -> Flags:
    """The recorded splits over the new values."""
    k, m, s = state.n_classes, len(trial.place), state.n_splits
    if s == 0:
        return np.ones(m, dtype=bool)
    masks = np.zeros((m, s, k), dtype=np.int64)
    longest = int((state.stops - state.starts)[trial.homes].max())
    loops.regions_of_parts(
        state.scores.ravel(), k, state.flat_points, trial.points, trial.homes, state.starts, state.stops,
        len(state.labels), state.row_regions[:s].ravel(), state.leaf_masks.ravel(), s, masks.ravel(),
        np.empty(longest, dtype=np.uint8),
    )  # fmt: skip
    home = trial.homes[:, None, None, None]
    least = np.where(state.holder == home, state.second, state.least)
    holders = state.nodes[np.where(state.holder == home, state.second_holder, state.holder)]
    least, holders = least.reshape(m * s, k, k), holders.reshape(m * s, k, k)
    units = _Units(trial.gaps, masks.reshape(m * s, k), trial.names, s, k)
    fine, loser, winner = _fold(units, least, holders)
    kept = fine.reshape(m, s).all(axis=1)
    first = np.arange(m) * s + np.argmin(fine.reshape(m, s), axis=1)
    _remember(state, trial.place[~kept], loser[first[~kept]], winner[first[~kept]])
    if state.cycles:
        kept &= _no_negative_cycle(least).reshape(m, s).all(axis=1)
    return np.asarray(kept)


def _remember(state: State, places: Ints, losers: Ints, winners: Ints) -> None:
    state.candidates.losers[places] = losers
    state.candidates.winners[places] = winners


def _no_negative_cycle(least: Floats) -> Flags:
    """Whether the gaps (m, K, K), as lengths of the edges of a graph, close no cycle of negative length."""
    way = least.copy()
    for k in range(way.shape[1]):
        np.minimum(way, way[:, :, k, None] + way[:, None, k, :], out=way)
    return np.asarray(np.einsum("mkk->mk", way).min(axis=1) >= NEGATIVE)
