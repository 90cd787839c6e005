"""Rows sorted and summed by distinct score.

A distinct table has strictly ascending scores (-0.0 is 0.0) and, for each, the weight of its positive and of its
negative rows, the number of rows, and the sum of the squared weights. Rows of weight 0 are absent. Where no row has a
weight, the last two are positives + negatives and are left out: what is not written costs no memory.

Unweighted rows are sorted as keys, which is much faster than sorting an index: the bits of a float64 whose magnitude,
shifted down by `base`, needs 62 of them, leave the last one for the label. Keys are sorted as the float64 numbers that
they are the bits of, for which sorts are fastest.

May import: NumPy, `_compiled`, `lookup`.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, SPREAD, compiled, in_two, side_by_side
from calibrant._kernels.lookup import count_below, grid

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

ONE = np.uint64(1)
ZERO = np.uint64(0)
SIGN = np.uint64(1 << 63)
MAGNITUDE = np.uint64((1 << 63) - 1)
ROOM = (1 << 62) - (1 << 51)
"""Magnitudes below it, with a label behind, are finite numbers."""
NORMAL = 1 << 51
"""Magnitudes from it on, with a label behind, are numbers that no processor takes for zero."""
SAMPLE = 1021
BUCKET = 2**13


class Distinct(NamedTuple):
    """One entry for each distinct score, ascending; all columns are float64 of one length."""

    scores: Floats
    positives: Floats
    negatives: Floats
    rows: Floats | None = None
    squared_weights: Floats | None = None


class Ordered(NamedTuple):
    """Rows with strictly ascending scores, each counting once."""

    scores: Floats
    labels: Bytes


def distinct_rows(scores: Floats, labels: Bytes, weights: Floats | None) -> Distinct | Ordered:
    """Sum rows by distinct score."""
    if weights is None and len(scores):
        base = _base(scores)
        if base is not None:
            return (_distinct_many if len(scores) >= MANY else _distinct_few)(scores, labels, base)
    return distinct_weighted(scores, labels, np.ones(len(scores)) if weights is None else weights)


def distinct_weighted(scores: Floats, labels: Bytes, weights: Floats) -> Distinct:
    """Sum rows with weights by distinct score."""
    if len(scores) >= MANY:
        return _deal_and_sum(np.ascontiguousarray(scores), labels, weights)
    positives = weights * labels
    return _sum_by_score(scores, positives, weights - positives, np.ones(len(scores)), weights * weights)


def distinct_counts(
    scores: Floats,
    positives: Floats,
    negatives: Floats,
    rows: Floats | None = None,
    squared_weights: Floats | None = None,
) -> Distinct:
    """Sum counted scores by distinct score."""
    if rows is None or squared_weights is None:
        return _sum_by_score(scores, positives, negatives)
    return _sum_by_score(scores, positives, negatives, rows, squared_weights)


def _sum_by_score(scores: Floats, *columns: Floats) -> Distinct:
    keep = np.flatnonzero(columns[0] + columns[1] > 0)
    order = keep[np.argsort(scores[keep], kind="stable")]
    ordered = scores[order] + 0.0
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)])
    if len(starts) == 0:
        return Distinct(ordered, *(np.zeros(0) for _ in columns))
    return Distinct(ordered[starts], *(np.add.reduceat(column[order], starts) for column in columns))


def _base(scores: Floats) -> np.uint64 | None:
    """What to take off the bits of a magnitude, modulo 2^64; None where the magnitudes are too far apart."""
    largest = max(float(scores.max()), -float(scores.min()))
    if largest <= 1.0:
        return ZERO
    magnitudes = np.abs(scores)
    smallest = float(magnitudes.min())
    if smallest == 0.0:
        smallest = float(np.min(magnitudes, where=magnitudes > 0, initial=largest))
    low, high = np.array([smallest, largest]).view(np.uint64).tolist()
    return np.uint64((low - NORMAL) % 2**64) if high - low + NORMAL < ROOM else None


def _encode(scores: Floats, labels: Bytes, base: np.uint64) -> Keys:
    bits = scores.view(np.uint64)
    size = bits & MAGNITUDE
    return np.where(size != ZERO, (bits & SIGN) | ((size - base) << ONE), ZERO) | labels


def _decode(keys: Keys, base: np.uint64) -> Floats:
    size = (keys & MAGNITUDE) >> ONE
    return np.where(size != ZERO, (keys & SIGN) | (size + base), ZERO).view(np.float64)


def _distinct_few(scores: Floats, labels: Bytes, base: np.uint64) -> Distinct | Ordered:
    keys = _encode(scores, labels, base)
    keys.view(np.float64).sort()
    place = keys >> ONE
    last = np.flatnonzero(np.concatenate((place[1:] != place[:-1], [True])))
    if len(last) == len(keys):
        return Ordered(_decode(keys, base), (keys & ONE).astype(np.uint8))
    rows = np.diff(last, prepend=-1).astype(np.float64)
    hits = np.diff(np.cumsum(keys & ONE)[last].astype(np.int64), prepend=0).astype(np.float64)
    return Distinct(_decode(keys[last], base), hits, rows - hits)


def _distinct_many(scores: Floats, labels: Bytes, base: np.uint64) -> Distinct | Ordered:
    """Split the rows about their median, then sort and sum each part on its own core; scores take the keys' room."""
    size, flat = len(scores), np.ascontiguousarray(scores)
    keys = np.empty(size, dtype=np.uint64)
    pivot = float(np.median(scores[:: size // SAMPLE])) if size >= SPREAD else -np.inf
    cut = int(_encode_split(flat, flat.view(np.uint64), np.ascontiguousarray(labels), base, pivot, keys))
    parts = [part for part in (keys[:cut], keys[cut:]) if len(part)]
    ends = np.cumsum([0, *side_by_side([partial(_sort_and_count, part) for part in parts])])
    places = [slice(first, last) for first, last in pairwise(ends)]
    if ends[-1] == size:
        ordered = np.empty(size, dtype=np.uint8)
        side_by_side([partial(_decode_rows, part, base, ordered[at]) for part, at in zip(parts, places)])
        return Ordered(keys.view(np.float64), ordered)
    hits, misses = np.empty(ends[-1]), np.empty(ends[-1])
    side_by_side([partial(_emit, part, base, hits[at], misses[at]) for part, at in zip(parts, places)])
    keys = np.concatenate([part[: at.stop - at.start] for part, at in zip(parts, places)])
    return Distinct(keys.view(np.float64), hits, misses)


def _sort_and_count(keys: Keys) -> int:
    keys.view(np.float64).sort()
    return int(_count_places(keys))


@compiled("FUBufU*")
def _encode_split(
    scores: Floats, bits: Keys, labels: Bytes, base: np.uint64, pivot: float, keys: Keys
) -> int:  # pragma: no cover
    """Write the keys of scores below the pivot from the left, the others from the right; in order if it is -inf."""
    if pivot == -np.inf:
        for i in range(len(bits)):
            size = bits[i] & MAGNITUDE
            key = (bits[i] & SIGN) | ((size - base) << ONE) if size != ZERO else ZERO
            keys[i] = key | np.uint64(labels[i])
        return 0
    left, right = 0, len(keys) - 1
    for i in range(len(bits)):
        size = bits[i] & MAGNITUDE
        key = (bits[i] & SIGN) | ((size - base) << ONE) if size != ZERO else ZERO
        key |= np.uint64(labels[i])
        keys[left] = key
        keys[right] = key
        below = 1 if scores[i] < pivot else 0
        left += below
        right -= 1 - below
    return left


@compiled("U")
def _count_places(keys: Keys) -> int:  # pragma: no cover
    count = 1 if len(keys) else 0
    for i in range(1, len(keys)):
        count += 1 if (keys[i] ^ keys[i - 1]) > ONE else 0
    return count


@compiled("U*uB*")
def _decode_rows(keys: Keys, base: np.uint64, labels: Bytes) -> None:  # pragma: no cover
    """Write the label of each key, and the bits of its score over the key."""
    for i in range(len(keys)):
        labels[i] = keys[i] & ONE
        size = (keys[i] & MAGNITUDE) >> ONE
        keys[i] = (keys[i] & SIGN) | (size + base) if size != ZERO else ZERO


@compiled("U*uF*F*")
def _emit(keys: Keys, base: np.uint64, positives: Floats, negatives: Floats) -> None:  # pragma: no cover
    """Sum sorted keys into one entry for each distinct score, whose bits are written over the keys."""
    at, hits = -1, np.int64(0)
    before = ~ZERO
    for i in range(len(keys)):
        place = keys[i] >> ONE
        at += 1 if place != before else 0
        before = place
        hits += np.int64(keys[i] & ONE)
        negatives[at] = i + 1 - hits
        positives[at] = hits
        size = (keys[i] & MAGNITUDE) >> ONE
        keys[at] = (keys[i] & SIGN) | (size + base) if size != ZERO else ZERO
    for at in range(len(positives) - 1, 0, -1):
        positives[at] -= positives[at - 1]
        negatives[at] -= negatives[at - 1]


def _deal_and_sum(scores: Floats, labels: Bytes, weights: Floats) -> Distinct:
    ordered, signed = _order_signed(scores, labels, weights)
    size = _count_distinct(ordered)
    negatives, rows, squared_weights = np.empty((3, size))
    _sum_signed(ordered, signed, negatives, rows, squared_weights)
    if size < len(ordered):
        ordered, signed = ordered[:size].copy(), signed[:size].copy()
    return Distinct(ordered, signed, negatives, rows, squared_weights)


def _order_signed(scores: Floats, labels: Bytes, weights: Floats) -> tuple[Floats, Floats]:
    """Deal the rows into buckets of ascending scores that fit the cache, and sort an index in each.

    A weight goes with the sign of its label. Sorting one index of all rows would wait for memory at every step.
    """
    size = len(scores)
    sample = np.sort(scores[:: max(size // (16 * (size // BUCKET)), 1)])
    splitters = np.unique(sample[16::16]) + 0.0
    bucket, counts = _choose_buckets(scores, weights, splitters)
    starts = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    dealt, signed = np.empty(starts[-1]), np.empty(starts[-1])
    heads = starts[:-1] + np.cumsum(counts, axis=0) - counts

    def deal(first: int, last: int) -> None:
        at = slice(first, last)
        _deal(scores[at], labels[at], weights[at], bucket[at], heads[0 if first == 0 else 1], dealt, signed)

    def sort(first: int, last: int) -> None:
        for begin, end in pairwise(starts[first : last + 1]):
            order = np.argsort(dealt[begin:end])
            dealt[begin:end] = dealt[begin:end].take(order)
            signed[begin:end] = signed[begin:end].take(order)

    in_two(deal, size)
    half = int(np.searchsorted(starts, len(dealt) // 2))
    side_by_side([partial(sort, 0, half), partial(sort, half, len(starts) - 1)])
    return dealt, signed


def _choose_buckets(scores: Floats, weights: Floats, splitters: Floats) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Bucket of each row, -1 for weight 0, and the number of rows in each, for each half of the rows."""
    size = len(scores)
    bucket = np.empty(size, dtype=np.int32)
    table = grid(splitters, size) if len(splitters) else None

    def choose(first: int, last: int) -> NDArray[np.int64]:
        counts = np.zeros(len(splitters) + 2, dtype=np.int64)
        room = np.zeros(BUCKET, dtype=np.int64)
        for begin in range(first, last, BUCKET):
            at = slice(begin, min(begin + BUCKET, last))
            place = room[: at.stop - begin]
            if table is not None:
                count_below(scores[at], *table, place)
            bucket[at] = np.where(weights[at] > 0, place, -1)
            counts += np.bincount(bucket[at] + 1, minlength=len(counts))
        return counts[1:]

    return bucket, np.stack(in_two(choose, size))


@compiled("FBFJI*F*F*")
def _deal(
    scores: Floats,
    labels: Bytes,
    weights: Floats,
    bucket: NDArray[np.int32],
    heads: NDArray[np.int64],
    dealt: Floats,
    signed: Floats,
) -> None:
    for i in range(len(scores)):
        k = bucket[i]
        if k >= 0:
            at = heads[k]
            heads[k] = at + 1
            dealt[at] = scores[i] + 0.0
            signed[at] = weights[i] if labels[i] else -weights[i]


@compiled("F")
def _count_distinct(ordered: Floats) -> int:
    count = 1 if len(ordered) else 0
    for i in range(1, len(ordered)):
        count += 1 if ordered[i] != ordered[i - 1] else 0
    return count


@compiled("F*F*F*F*F*")
def _sum_signed(ordered: Floats, signed: Floats, negatives: Floats, rows: Floats, squared_weights: Floats) -> None:
    """Sum rows in order into one entry for each distinct score; scores and positives are written over the rows."""
    at, before = -1, np.nan
    hits, misses, count, squares = 0.0, 0.0, 0.0, 0.0
    for i in range(len(ordered)):
        score, weight = ordered[i], signed[i]
        kept = 1.0 if score == before else 0.0
        at += 0 if score == before else 1
        before = score
        hits = hits * kept + max(weight, 0.0)
        misses = misses * kept + max(-weight, 0.0)
        count = count * kept + 1.0
        squares = squares * kept + weight * weight
        ordered[at] = score
        signed[at] = hits
        negatives[at] = misses
        rows[at] = count
        squared_weights[at] = squares
