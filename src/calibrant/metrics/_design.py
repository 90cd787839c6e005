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
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of
from calibrant.errors import InputError
from calibrant.metrics._influence import Influence, clustered_variance, variance
from calibrant.metrics._intervals import Gaps, Squared, gap_spreads, squared_error


class Design(NamedTuple):
    """The table as read and its distinct form, and the cluster of each row (None when rows are independent)."""

    table: ScoreTable
    distinct: ScoreTable
    cluster: NDArray[np.int64] | None

    def variance(self, found: Influence) -> float:
        """Squared standard error of a measure."""
        if self.cluster is None:
            return variance(self.distinct, found)
        rows = self.table
        return clustered_variance(rows.weight, found.of(self.distinct, rows.scores, rows._labels), self.cluster)

    @property
    def units(self) -> float:
        """Number of independent units, at most."""
        if self.cluster is not None:
            return float(self.cluster.max() + 1)
        return self.table.total_weight**2 / float(self.table.squared_weights.sum())


def design_of(table: ScoreTable, groups: Any, sample_weight: Any, what: str) -> Design:
    """The design of a table of rows with a column of groups, or without."""
    if groups is None:
        return Design(table, table.distinct, None)
    if not table._in_order:
        raise InputError(
            f"{what}: groups need rows, (y_true, y_prob): a ScoreTable no longer knows whose rows it holds."
        )
    return Design(table, table.distinct, cluster_codes(groups, sample_weight, len(table.scores)))


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
    rows, labels, n_bins = design.table, design.table._labels, len(gaps.gap)
    assert design.cluster is not None
    assert labels is not None
    reached = np.cumsum(gaps.weight) * (1 - 1e-12)
    mass = np.cumsum(design.distinct.weight)
    place = np.minimum(np.searchsorted(reached, mass - design.distinct.weight, side="right"), n_bins - 1)
    at = place[np.searchsorted(design.distinct.scores, rows.scores)]
    residual = rows.weight * (labels - rows.scores - gaps.gap[at]) / gaps.weight[at]
    n_clusters = int(design.cluster.max()) + 1
    sums = np.bincount(design.cluster * n_bins + at, residual, n_clusters * n_bins).reshape(n_clusters, n_bins)
    return np.asarray(np.einsum("gi,gj->ij", sums, sums) * n_clusters / (n_clusters - 1))
