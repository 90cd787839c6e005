"""Compiled loops of recursive partitioning: rows to parts, regions that are met, least gaps between classes.

A split point gamma sends row p to the region of the class k with the largest `p_k - gamma_k`, the first of several. A
set of regions is a mask: bit k for class k, so K <= 62. All arrays are flat: (n, K) scores by rows, (m, K) split points
by rows, and so on.
May import `_compiled`.
"""

from __future__ import annotations

from typing import Any

from calibrant._kernels._compiled import compiled


@compiled("FIFiFIF*F*")
def part_counts(
    scores: Any,
    labels: Any,
    weights: Any,
    n_classes: int,
    points: Any,
    chosen: Any,
    counts: Any,
    gains: Any,
) -> None:
    """Class counts (m, K, K) of the parts of every chosen split point, and the objective.

    The objective is `sum over parts B and classes k of |N c_Bk - n_B c_k| / N`; N and c_k are those of all rows given.
    """
    totals = [0.0 for _ in range(n_classes)]
    whole = 0.0
    for t in range(len(labels)):
        totals[labels[t]] += weights[t]
        whole += weights[t]
    for m in range(len(chosen)):
        g, base = chosen[m] * n_classes, m * n_classes
        for t in range(len(labels)):
            best, part = scores[t * n_classes] - points[g], 0
            for k in range(1, n_classes):
                lead = scores[t * n_classes + k] - points[g + k]
                if lead > best:
                    best, part = lead, k
            counts[(base + part) * n_classes + labels[t]] += weights[t]
        gain = 0.0
        for b in range(base, base + n_classes):
            size = 0.0
            for k in range(n_classes):
                size += counts[b * n_classes + k]
            for k in range(n_classes):
                gain += abs(whole * counts[b * n_classes + k] - size * totals[k])
        gains[m] = gain / whole


@compiled("FiFIIIIiI*")
def regions_of_leaves(
    scores: Any,
    n_classes: int,
    points: Any,
    chosen: Any,
    slots: Any,
    starts: Any,
    stops: Any,
    width: int,
    meets: Any,
) -> None:
    """The regions of the chosen split points that each leaf meets, in `meets[point, slot]` where it is 0 yet."""
    for m in range(len(chosen)):
        g = chosen[m] * n_classes
        for leaf in range(len(slots)):
            place = chosen[m] * width + slots[leaf]
            if meets[place] != 0:
                continue
            found = 0
            for t in range(starts[leaf], stops[leaf]):
                best, part = scores[t * n_classes] - points[g], 0
                for k in range(1, n_classes):
                    lead = scores[t * n_classes + k] - points[g + k]
                    if lead > best:
                        best, part = lead, k
                found |= 1 << part
            meets[place] = found


@compiled("FiFIIIIiBIiI*B*")
def regions_of_parts(
    scores: Any,
    n_classes: int,
    points: Any,
    chosen: Any,
    homes: Any,
    starts: Any,
    stops: Any,
    n_rows: int,
    row_regions: Any,
    leaf_masks: Any,
    n_splits: int,
    meets: Any,
    scratch: Any,
) -> None:
    """The regions of every recorded split that each part of a chosen split point meets, (m, splits, K).

    A leaf that lies inside one region of a recorded split gives it to all its parts.
    """
    n_leaves = len(starts)
    for m in range(len(chosen)):
        g, home = chosen[m] * n_classes, homes[m]
        first, last = starts[home], stops[home]
        filled = 0
        for t in range(first, last):
            best, part = scores[t * n_classes] - points[g], 0
            for k in range(1, n_classes):
                lead = scores[t * n_classes + k] - points[g + k]
                if lead > best:
                    best, part = lead, k
            scratch[t - first] = part
            filled |= 1 << part
        for s in range(n_splits):
            base, mask = (m * n_splits + s) * n_classes, leaf_masks[s * n_leaves + home]
            if mask & (mask - 1) == 0:
                for k in range(n_classes):
                    meets[base + k] = mask if filled >> k & 1 else 0
                continue
            for t in range(first, last):
                meets[base + scratch[t - first]] |= 1 << row_regions[s * n_rows + t]


@compiled("iiiiFIIF*I*I*I*B*")
def fold_gaps(
    n_classes: int,
    n_units: int,
    sharing: int,
    stride: int,
    gaps: Any,
    masks: Any,
    names: Any,
    least: Any,
    holders: Any,
    loser: Any,
    winner: Any,
    fine: Any,
) -> None:
    """Lower `least[m, i, j]` to the gaps `r_i - r_j` of the units that meet region i; stop where two classes cross.

    Crossing: `least_ij < -least_ji`, somebody in R_i leans less to i than somebody in R_j. Then `fine[m] = 0`, and
    `loser`, `winner` name the two units. Unit u of m has its gaps at `(m // sharing) * stride + u`, its name at
    `names[(m // sharing) * (stride > 0) * units + u]`.
    """
    square = n_classes * n_classes
    for m in range(len(fine)):
        shift = (m // sharing) * stride
        for u in range(n_units):
            mask = masks[m * n_units + u]
            name = names[shift + u]
            for i in range(n_classes):
                if fine[m] == 0 or mask >> i & 1 == 0:
                    continue
                for j in range(n_classes):
                    gap, at = gaps[(shift + u) * square + i * n_classes + j], m * square + i * n_classes + j
                    if j == i or gap >= least[at]:
                        continue
                    least[at], holders[at] = gap, name
                    other = m * square + j * n_classes + i
                    if gap < -least[other]:
                        fine[m], loser[m], winner[m] = 0, name, holders[other]
                        break
