"""How the rows of an estimate hang together: independent, or in clusters that are drawn as wholes.

May import NumPy, the kernels, `calibrant.data` and the measures beside this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels import intervals
from calibrant._kernels.blocks import slices
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of
from calibrant.errors import InputError
from calibrant.metrics._influence import Influence, variance, variance_of_rows
from calibrant.metrics._intervals import Gaps, Squared, gap_spreads, squared_error, worth


class Design(NamedTuple):
    """The table as read, and the cluster of each row (None when rows are independent)."""

    table: ScoreTable
    cluster: NDArray[np.int64] | None

    @property
    def distinct(self) -> ScoreTable:
        """The table in ascending order."""
        return self.table.distinct

    @property
    def by_score(self) -> ScoreTable:
        """Where losses are summed, which need no order: rows as read, but rows with weights by their scores."""
        counts_once = self.table._labels is not None and self.table._weights is None
        return self.table if counts_once or self.cluster is not None else self.distinct

    def variance(self, found: Influence) -> float:
        """Squared standard error of a measure."""
        if self.cluster is None:
            return variance(found)
        return variance_of_rows(self.table, found.of(self.table), self.cluster)

    @property
    def units(self) -> float:
        """Number of independent units, at most."""
        if self.cluster is not None:
            return float(self.cluster.max() + 1)
        return worth(self.table)


def design_of(table: ScoreTable, groups: Any, sample_weight: Any, what: str) -> Design:
    """The design of a table of rows with a column of groups, or without."""
    if groups is None:
        return Design(table, None)
    if not table._in_order:
        raise InputError(
            f"{what}: groups need rows, (y_true, y_prob): a ScoreTable no longer knows whose rows it holds."
        )
    return Design(table, cluster_codes(groups, sample_weight, len(table.scores)))


def cluster_codes(groups: Any, sample_weight: Any, n_rows: int) -> NDArray[np.int64]:
    """Codes 0, 1, ... of the groups of the rows with weight above zero."""
    values = array_of(groups, "groups")
    if sample_weight is not None:
        kept = np.asarray(array_of(sample_weight, "sample_weight"), dtype=np.float64).reshape(-1) > 0
        _checks.same_length(groups=np.atleast_1d(values), sample_weight=kept)
        values = values[kept]
    _checks.same_length(groups=np.atleast_1d(values), y_prob=np.empty(n_rows))
    found, codes = _checks.distinct_labels(values, "groups")
    if len(found) < 2:
        raise InputError(f"groups holds one group only ({found[0]!r}): there is nothing to compare it with.")
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def clustered_square(design: Design, gaps: Gaps, level: float) -> tuple[Squared, float]:
    """The debiased squared gap when rows come in clusters, and how many times the clusters raise its chance part."""
    plain = squared_error(gaps, level)
    if design.cluster is None:
        return plain, 1.0
    covariance = _gap_covariance(design, gaps)
    chance = np.diag(covariance)
    value = float(gaps.share @ (gaps.gap**2 - chance))
    scale = np.sqrt(gaps.share)
    spread = intervals.spread_of(np.maximum(np.linalg.eigvalsh(covariance * np.outer(scale, scale)), 0.0))
    low_spread, high_spread = (_larger(spread, other) for other in gap_spreads(gaps))
    low, high = intervals.square_limits(value, low_spread, high_spread, level)
    effect = max(spread.total / max(plain.spread.total, 1e-300), 1.0)
    return Squared(value, min(low, max(value, 0.0)), max(high, value), level, low_spread), effect


def _larger(a: intervals.Spread, b: intervals.Spread) -> intervals.Spread:
    return a if a.squares >= b.squares else b


def _gap_covariance(design: Design, gaps: Gaps) -> Floats:
    """Covariance of the gaps of the bins, from the sums over each cluster."""
    n_bins, cluster = len(gaps.gap), design.cluster
    assert cluster is not None
    n_clusters = int(cluster.max()) + 1
    flat = np.zeros(n_clusters * n_bins)
    for at in slices(len(cluster)):
        rows = design.table._at(at)
        assert rows._labels is not None
        place = np.searchsorted(gaps.lowest[1:], rows.scores, side="right")
        residual = rows.weight * (rows._labels - rows.scores - gaps.gap[place]) / gaps.weight[place]
        np.add.at(flat, cluster[at] * n_bins + place, residual)
    sums = flat.reshape(n_clusters, n_bins)
    return np.asarray(np.einsum("gi,gj->ij", sums, sums) * n_clusters / (n_clusters - 1))
