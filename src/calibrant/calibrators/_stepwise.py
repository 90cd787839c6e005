"""Maps without a formula: isotonic regression and its variants.

Isotonic regression is the non-decreasing function closest to the labels, found exactly by pooling adjacent violators
on the distinct scores.
May import NumPy, the kernels, `calibrant.maps`, `calibrant.data` and this folder's `_base` and `_cross_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import bins, isotonic
from calibrant._parameters import Choice, Flag, Number, Rule, Seed, generator, optional
from calibrant.calibrators._base import BinaryCalibrator, warn_if_falling
from calibrant.calibrators._cross_fit import fold_tables
from calibrant.data import ScoreTable
from calibrant.maps import BinaryMap, LineMap, MixtureMap, StepMap


class IsotonicCalibration(BinaryCalibrator):
    """Non-decreasing map of the score, by pooling adjacent violators.

    It assumes nothing but order, keeps every tie of the scores together, and needs many rows: under about 1,000 it
    overfits, and its 0 and 1 make the log loss infinite on new rows unless `smoothing` is used.

    Parameters
    ----------
    interpolation : {"step", "linear"}, default="step"
        Between two blocks: switch half-way between the neighbouring scores, or join them by a line. Outside the range
        of the scores, the end values.
    centered : bool, default=False
        One point per block at its mean score, joined by lines (centred isotonic regression).
    smoothing : float, default=0.0
        Block value `(positives + s) / (weight + 2 s)`, then pooled again with weights `weight + 2 s`.
    n_folds : int, optional
        The average of as many maps, each fitted without one fold of the rows; calmer on small sets.
    random_state : int, generator or None, default=0
        Draws the folds.

    Attributes
    ----------
    map_ : StepMap, LineMap or MixtureMap
        The frozen map.
    classes_ : ndarray of shape (2,)
        Negative and positive label.

    Notes
    -----
    Equal to the minimiser of the weighted squared error, and of the log loss, among non-decreasing functions. Cost:
    one sort of the scores, O(n log n); about 40 bytes a row at the peak. Source: Ayer, Brunk, Ewing, Reid, Silverman
    (1955); Zadrozny and Elkan (2002); centred: Oron and Flournoy (2017).

    Examples
    --------
    >>> from calibrant import IsotonicCalibration
    >>> fitted = IsotonicCalibration().fit([0, 1, 1, 2, 3], [0, 0, 1, 0, 1])
    >>> fitted.map_([0, 1, 2, 3]).round(4)
    array([0.    , 0.3333, 0.3333, 1.    ])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "interpolation": Choice(("step", "linear")),
        "centered": Flag(),
        "smoothing": Number(0, 1e12),
        "n_folds": optional(Number(2, whole=True)),
        "random_state": Seed(),
    }

    def __init__(
        self,
        interpolation: Literal["step", "linear"] = "step",
        centered: bool = False,
        smoothing: float = 0.0,
        n_folds: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.interpolation = interpolation
        self.centered = centered
        self.smoothing = smoothing
        self.n_folds = n_folds
        self.random_state = random_state

    @property
    def _rows_needed(self) -> int:
        return 0 if self.smoothing > 0 or self.n_folds else 1000

    def _learn(self, table: ScoreTable) -> BinaryMap:
        distinct = table.distinct
        warn_if_falling(distinct._auc < 0.5)
        if self.n_folds is None:
            return self._one_map(distinct)
        folds = fold_tables(distinct, self.n_folds, generator(self.random_state))
        maps = [self._one_map(rest.distinct) for _, rest in folds]
        return MixtureMap(table.classes, np.full(len(maps), 1 / len(maps)), tuple(maps))

    def _one_map(self, distinct: ScoreTable) -> BinaryMap:
        blocks = pooled(distinct, self.smoothing)
        scores = distinct.scores
        if self.centered:
            return LineMap(distinct.classes, *_block_means(distinct, blocks))
        if self.interpolation == "linear":
            return LineMap(distinct.classes, *_block_ends(scores, blocks))
        thresholds = isotonic.switch_points(scores[blocks.ends[:-1]], scores[blocks.starts[1:]])
        return StepMap(distinct.classes, thresholds, blocks.values)


def pooled(distinct: ScoreTable, smoothing: float = 0.0) -> isotonic.Blocks:
    """Blocks of the isotonic fit of a distinct table; smoothed ones are pooled a second time."""
    labels = distinct._labels
    if labels is not None:
        blocks = isotonic.pool_rows(labels)
    else:
        blocks = isotonic.pool_counts(distinct.positives, distinct.negatives)
    if smoothing == 0:
        return blocks
    hits = bins.run_sums(lambda at: distinct._at(at).positives, blocks.starts, len(distinct))
    misses = bins.run_sums(lambda at: distinct._at(at).negatives, blocks.starts, len(distinct))
    again = isotonic.pool_adjacent(hits + smoothing, hits + misses + 2 * smoothing)
    return isotonic.Blocks(blocks.starts[again.starts], blocks.ends[again.ends], again.values)


def _block_ends(scores: Floats, blocks: isotonic.Blocks) -> tuple[Floats, Floats]:
    """First and last score of each block, once where they are the same, with the block's value."""
    places = np.column_stack([blocks.starts, blocks.ends]).ravel()
    keep = np.concatenate([[True], np.diff(places) > 0])
    return scores[places[keep]], np.repeat(blocks.values, 2)[keep]


def _block_means(distinct: ScoreTable, blocks: isotonic.Blocks) -> tuple[Floats, Floats]:
    """The weighted mean score of each block (between its ends, whatever is rounded) and the block's value."""
    scale = max(-float(distinct.scores[0]), float(distinct.scores[-1])) or 1.0

    def moments(at: slice) -> Floats:
        part = distinct._at(at)
        return part.weight * (part.scores / scale)

    weight = bins.run_sums(lambda at: distinct._at(at).weight, blocks.starts, len(distinct))
    means = scale * (bins.run_sums(moments, blocks.starts, len(distinct)) / weight)
    return np.clip(means, distinct.scores[blocks.starts], distinct.scores[blocks.ends]), blocks.values
