"""What is kept of rows: sums over bins of the probability that the reference fixed once.

Sums add, so batches, sites and days can be put together in any order.
May import NumPy, the kernels, `calibrant._checks`, `calibrant.data` and `calibrant.metrics._intervals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Classes, Floats
from calibrant._kernels import bins, likelihood, lookup
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant.data import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics._intervals import worth

N_BINS = 50
LEAST_ROWS = 100


@dataclass(frozen=True, eq=False)
class Reference:
    """The rows that batches are compared with: equal-mass bins of the probability, and their sums.

    Attributes
    ----------
    cuts : ndarray of shape (B - 1,)
        Bin b holds `cuts[b - 1] < p <= cuts[b]`.
    positives, negatives, sum_p : ndarray of shape (B,)
        Weights of the classes, and the weighted sum of p.
    rows : float
        How many independent rows of weight 1 the reference is worth.
    classes : tuple
        The coding of the labels.
    """

    cuts: Floats
    positives: Floats
    negatives: Floats
    sum_p: Floats
    rows: float
    classes: Classes

    @property
    def weight(self) -> Floats:
        """Weight of all rows of each bin."""
        return np.asarray(self.positives + self.negatives)

    @property
    def prevalence(self) -> float:
        """Share of positive weight."""
        return float(self.positives.sum() / self.weight.sum())

    @property
    def mean_p(self) -> Floats:
        """Mean probability of each bin."""
        return np.asarray(self.sum_p / self.weight)

    @property
    def floor(self) -> float:
        """What probabilities of 0 are taken for; 1 is its mirror image."""
        return 1 / (2 * float(self.weight.sum()) + 2)

    def place(self, size: int) -> Callable[[Floats], NDArray[np.int64]]:
        """What says the bins of probabilities, of about `size` in all: how many cuts lie below each."""
        return lookup.counter(np.nextafter(self.cuts, np.inf), size)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("cuts", "positives", "negatives", "sum_p")}
        return {**arrays, "rows": self.rows, "classes": list(self.classes)}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Reference:
        """The reference that `to_dict` wrote."""
        arrays = (np.array(content[name], dtype=np.float64) for name in ("cuts", "positives", "negatives", "sum_p"))
        cuts, positives, negatives, sum_p = arrays
        return Reference(cuts, positives, negatives, sum_p, float(content["rows"]), tuple(content["classes"]))


def reference_of(table: ScoreTable) -> Reference:
    """The bins of a labelled table of probabilities."""
    _checks.both_classes(table.total_positives, table.total_negatives, "CalibrationMonitor")
    distinct = table.distinct
    p = _checks.probabilities(distinct.scores, "reference.scores")
    rows = worth(table)
    if rows < LEAST_ROWS:
        raise InputError(
            f"The reference holds {rows:.0f} rows; at least {LEAST_ROWS} are needed to say what is usual, and some "
            f"thousand to notice small changes."
        )
    if distinct._labels is not None:
        ends = bins.quantile_row_ends(len(p), N_BINS)
    else:
        ends = bins.quantile_bin_ends(distinct.weight, N_BINS)
    sums = []
    for at in (slice(first + 1, last + 1) for first, last in pairwise([-1, *ends])):
        group = distinct._at(at)
        sums.append((group.positives.sum(), group.negatives.sum(), dot(group.weight, p[at])))
    positives, negatives, sum_p = np.array(sums).T
    return Reference(p[ends[:-1]], positives, negatives, sum_p, rows, table.classes)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of one batch, or of several: scores of all rows, labels of those that have one.

    Attributes
    ----------
    scored : ndarray of shape (B,)
        Weight of the rows whose scores were seen.
    positives, negatives, sum_p : ndarray of shape (B,)
        Of the labelled rows.
    totals : ndarray of shape (3,)
        Over the scored rows: sum of p, of p (1 - p) and of the entropy of p.
    largest : float
        The largest weight of a row; evidence counts no row for more than one.
    """

    scored: Floats
    positives: Floats
    negatives: Floats
    sum_p: Floats
    totals: Floats
    largest: float

    @property
    def labelled(self) -> Floats:
        """Weight of the labelled rows of each bin."""
        return np.asarray(self.positives + self.negatives)

    def __add__(self, other: Sums) -> Sums:
        """The sums of both."""
        return Sums(
            scored=self.scored + other.scored,
            positives=self.positives + other.positives,
            negatives=self.negatives + other.negatives,
            sum_p=self.sum_p + other.sum_p,
            totals=self.totals + other.totals,
            largest=max(self.largest, other.largest),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; labels are left out where there are none."""
        names = ["scored", "totals"] + (["positives", "negatives", "sum_p"] if self.labelled.any() else [])
        return {**{name: _short(getattr(self, name)) for name in names}, "largest": self.largest}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Sums:
        """The sums that `to_dict` wrote."""
        none = [0.0] * len(content["scored"])
        scored, positives, negatives, sum_p, totals = (
            np.array(content.get(name, none), dtype=np.float64)
            for name in ("scored", "positives", "negatives", "sum_p", "totals")
        )
        return Sums(scored, positives, negatives, sum_p, totals, float(content["largest"]))


def _short(values: Floats) -> list[float]:
    """Whole numbers without a point."""
    return [int(value) if value.is_integer() else value for value in values.tolist()]


def no_sums(n_bins: int) -> Sums:
    """The sums of no rows."""
    none = np.zeros(n_bins)
    return Sums(none, none, none, none, np.zeros(3), 0.0)


def sums_of_table(reference: Reference, table: ScoreTable, *, scores_seen: bool = False) -> Sums:
    """Sums of a labelled batch; `scores_seen` when its scores were counted before, and only labels are new."""
    p = _checks.probabilities(table.scores, "batch.scores")
    table = table if p is table.scores else table.with_scores(p)
    place, n_bins = reference.place(len(p)), len(reference.positives)
    parts = (_sums_of_part(place(p[at]), table._at(at), n_bins, scores_seen) for at in slices(len(p)))
    return sum(parts, start=no_sums(n_bins))


def _sums_of_part(place: NDArray[np.int64], table: ScoreTable, n_bins: int, scores_seen: bool) -> Sums:
    p, weight = table.scores, table.weight
    positives, negatives = (_binned(place, column, n_bins) for column in (table.positives, table.negatives))
    sum_p = _binned(place, weight * p, n_bins)
    largest = float((table.squared_weights / weight).max())
    if scores_seen:
        return Sums(np.zeros(n_bins), positives, negatives, sum_p, np.zeros(3), largest)
    return Sums(positives + negatives, positives, negatives, sum_p, _totals(p, weight), largest)


def sums_of_scores(reference: Reference, p: Floats) -> Sums:
    """Sums of a batch without labels."""
    none, place = np.zeros(len(reference.positives)), reference.place(len(p))
    scored, totals = none, np.zeros(3)
    for at in slices(len(p)):
        scored = scored + _binned(place(p[at]), None, len(none))
        totals += _totals(p[at], np.ones(at.stop - at.start))
    return Sums(scored, none, none, none, totals, 1.0)


def _binned(place: Any, weights: Floats | None, n_bins: int) -> Floats:
    return np.asarray(np.bincount(place, weights, minlength=n_bins), dtype=np.float64)


def _totals(p: Floats, weight: Floats) -> Floats:
    """Sum of p, of p (1 - p), and of the entropy of p."""
    hits, misses = weight * p, weight * (1 - p)
    entropy = likelihood.neg_log_likelihood_counts(p, hits, misses)
    return np.array([hits.sum(), (hits * (1 - p)).sum(), entropy])
