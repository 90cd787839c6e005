"""What one more row does to a measure: its influence, by score and outcome, which gives standard errors of any design.

A measure of N rows is its true value plus the mean of the influences of the rows, to first order. Their variance gives
its standard error; sums of them over clusters, and differences between two forecasts, give those of other designs.
Influences are computed block by block where they are summed, and never held for all rows at once.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import likelihood, lookup
from calibrant._kernels._compiled import in_two
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import BLOCK, slices
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.metrics._calibration import calibration_slope_intercept
from calibrant.metrics._ranking import average_precision, roc_auc
from calibrant.metrics._scores import brier_score, log_loss, pooled

Own = Callable[[slice, Any], Floats]
"""Of a block of a table (one of its `slices`) and the outcome of each entry, or of all: a value for each entry."""


@dataclass(frozen=True)
class Influence:
    """A measure of a table, and the influence of a row at each score of a block of that table, by its outcome.

    `scale` says on which scale it is taken as normal: "plain", "positive" (its logarithm), "unit" (plain, cut to
    [0, 1]) or "logit". `most` is the largest loss a row can have.
    """

    table: ScoreTable
    value: float
    own: Own
    scale: str
    method: str
    most: float = math.inf

    def everywhere(self, outcome: Any) -> Floats:
        """The influence at each score, for the outcome of each, or one outcome for all."""
        given, column = np.asarray(outcome), np.empty(len(self.table.scores))
        for at in slices(len(column)):
            column[at] = self.own(at, given[at] if given.ndim else given)
        return column

    def of(self, rows: ScoreTable) -> Callable[[slice], Floats]:
        """The influence of each row of a block of rows whose scores the table holds."""
        labels = rows._labels
        assert labels is not None
        if self.table is rows:
            return lambda at: self.own(at, labels[at])
        place = lookup.counter(self.table.scores[1:], len(labels))
        if self.table._labels is not None:
            column = self.everywhere(self.table._labels)
            return lambda at: column.take(place(rows.scores[at]))
        both = np.stack([self.everywhere(0), self.everywhere(1)])
        return lambda at: both[labels[at], place(rows.scores[at])]


def variance(found: Influence) -> float:
    """Squared standard error when rows are independent; a row of weight 2 counts as one that weighs twice."""
    table = found.table

    def squares(at: slice) -> float:
        part = table._at(at)
        if part._labels is not None and part._weights is None:
            own = found.own(at, part._labels)
            return dot(own, own)
        mean_weight = part.squared_weights / part.weight
        return sum(dot(mean_weight * weight, own**2) for weight, own in _occurred(part, at, found.own))

    return math.fsum(map(squares, slices(len(table.scores)))) / table.total_weight**2


def _occurred(part: ScoreTable, at: slice, own: Own) -> list[tuple[Floats, Floats]]:
    """Weight and value of what occurred in a block: its rows, or its positives and its negatives."""
    if part._labels is not None:
        return [(part.weight, own(at, part._labels))]
    return [(part.positives, own(at, 1)), (part.negatives, own(at, 0))]


def variance_of_rows(
    rows: ScoreTable, influence: Callable[[slice], Floats], cluster: NDArray[np.int64] | None
) -> float:
    """Squared standard error of a mean over rows that are independent, or come in clusters."""
    weights, size = rows._weights, len(rows.scores)

    def weighed(at: slice) -> Floats:
        return influence(at) if weights is None else weights[at] * influence(at)

    def squares(first: int, last: int) -> float:
        return math.fsum(dot(own, own) for own in map(weighed, slices(last, first)))

    if cluster is None:
        return sum(in_two(squares, size)) / rows.total_weight**2
    sums: Floats = np.zeros(int(cluster.max()) + 1)
    for at in slices(size):
        np.add.at(sums, cluster[at], weighed(at))
    return _between(sums, rows.total_weight)


def clustered_variance(weights: Floats, influence: Floats, cluster: NDArray[np.int64]) -> float:
    """The same, given the influence of every row."""
    sums: Any = np.bincount(cluster, weights * influence)
    return _between(sums, float(weights.sum()))


def _between(sums: Floats, total: float) -> float:
    return float((sums**2).sum()) / total**2 * len(sums) / max(len(sums) - 1, 1)


# ---------------------------------------------------------------- means of losses


def of_brier(table: ScoreTable) -> Influence:
    """Mean squared error."""
    value, p = brier_score(table), table.scores
    return Influence(table, value, lambda at, y: (p[at] - y) ** 2 - value, "positive", LOSSES, 1.0)


def of_log_loss(table: ScoreTable, eps: float | None = None) -> Influence:
    """Mean negative log-likelihood."""
    value = log_loss(table, eps=eps)

    def own(at: slice, outcome: Any) -> Floats:
        if not math.isfinite(value):
            return np.zeros(len(table.scores[at]))
        return _log_losses(table.scores[at], outcome, eps or 0.0) - value

    most = -math.log(eps) if eps else math.inf
    return Influence(table, value, own, "positive", LOSSES, most)


LOSSES = "mean of independent losses"


def _log_losses(p: Floats, outcome: Any, floor: float = 0.0) -> Floats:
    """The log loss of each p, or 0 where it is infinite: what did not occur needs no number."""
    given = np.abs(p - (1.0 - outcome))
    with np.errstate(divide="ignore"):
        loss = -np.log(np.maximum(given, floor))
    return np.where(np.isfinite(loss), loss, 0.0)


# ---------------------------------------------------------------- the line on the log-odds


def of_line(table: ScoreTable) -> dict[str, Influence]:
    """Slope, intercept, and intercept at slope one."""
    found = calibration_slope_intercept(table)
    z, total = fit_log_odds(table), table.total_weight
    lines = {"line": (found.intercept, found.slope), "shift": (found.intercept_at_slope_one, 1.0)}
    moments = {name: _moments(table, z, line) for name, line in lines.items()}
    back = np.linalg.inv(moments["line"]) * total
    pulls = {
        "slope": (back[1], "line"),
        "intercept": (back[0], "line"),
        "intercept_at_slope_one": (np.array([total / moments["shift"][0, 0], 0.0]), "shift"),
    }
    return {
        name: Influence(table, getattr(found, name), _residuals(z, pull, *lines[line]), "plain", "sandwich variance")
        for name, (pull, line) in pulls.items()
    }


def _moments(table: ScoreTable, z: Floats, line: tuple[float, float]) -> Floats:
    """Information of the intercept and the slope."""
    sums = np.zeros(3)
    for at in slices(len(z)):
        p = likelihood.expit(line[0] + line[1] * z[at])
        bend = table._at(at).weight * p * (1 - p)
        sums += bend.sum(), dot(bend, z[at]), dot(bend * z[at], z[at])
    return np.array([[sums[0], sums[1]], [sums[1], sums[2]]])


def _residuals(z: Floats, pull: Floats, intercept: float, slope: float) -> Own:
    """The residual of each row, pulled at by the line."""
    return lambda at, y: (pull[0] + pull[1] * z[at]) * (y - likelihood.expit(intercept + slope * z[at]))


# ---------------------------------------------------------------- ranking


def of_auc(table: ScoreTable) -> Influence:
    """DeLong, DeLong, Clarke-Pearson (1988): its variance is that of these influences."""
    table = table.distinct
    value, n_hits, n_misses = min(roc_auc(table), 1.0), table.total_positives, table.total_negatives
    sums = _by_block(table)
    hits_after, misses_before = _after(sums)[0], _before(sums)[1]
    # The usual n - 1 in the place of n, for each class.
    small = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in (n_hits, n_misses)]
    scales = [table.total_weight / n * root for n, root in zip((n_hits, n_misses), small)]

    def own(at: slice, outcome: Any) -> Floats:
        part, k = table._at(at), at.start // BLOCK
        below = (misses_before[k] + np.cumsum(part.negatives) - part.negatives / 2) / n_misses
        above = (hits_after[k] + _from_the_end(part.positives) - part.positives / 2) / n_hits
        return np.asarray(np.where(outcome, (below - value) * scales[0], (above - value) * scales[1]))

    return Influence(table, value, own, "unit", "DeLong")


def of_average_precision(table: ScoreTable) -> Influence:
    """A row moves the precision at every threshold below its score, and a positive adds its own."""
    table = table.distinct
    value, rate = min(average_precision(table), 1.0), table.prevalence
    hits_after, misses_after = _after(_by_block(table))

    def steps(at: slice) -> tuple[Floats, Floats, Floats]:
        """Precision at each score, its part of the weight above, and how much that part weighs in the precision."""
        part, k = table._at(at), at.start // BLOCK
        found = hits_after[k] + _from_the_end(part.positives)
        taken = hits_after[k] + misses_after[k] + _from_the_end(part.weight)
        precision, share = found / taken, part.positives / taken
        return precision, share, share * precision

    sums = [[share.sum(), down.sum()] for _, share, down in map(steps, slices(len(table.scores)))]
    shares, downs = _before(np.array(sums).T)

    def own(at: slice, outcome: Any) -> Floats:
        (precision, share, down), k = steps(at), at.start // BLOCK
        falls = downs[k] + np.cumsum(down)
        rises = precision - value + shares[k] + np.cumsum(share)
        return np.asarray((np.where(outcome, rises, 0.0) - falls) / rate)

    return Influence(table, value, own, "logit", "influence of each row, on the logit scale")


def _by_block(table: ScoreTable) -> Floats:
    """Weight of the positives and of the negatives in each block."""
    parts = [table._at(at) for at in slices(len(table.scores))]
    return np.array([[part.total_positives, part.total_negatives] for part in parts]).T


def _before(sums: Floats) -> Floats:
    return np.pad(np.cumsum(sums, axis=1)[:, :-1], ((0, 0), (1, 0)))


def _after(sums: Floats) -> Floats:
    return _before(sums[:, ::-1])[:, ::-1]


def _from_the_end(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1]


# ---------------------------------------------------------------- decomposition


def of_discrimination(table: ScoreTable, score: str) -> tuple[Influence, Influence]:
    """Influence of the discrimination, and of the score less what recalibration leaves (the miscalibration)."""
    fit, _ = pooled(table.distinct)
    rate, block_of = table.prevalence, lookup.counter(table.distinct.scores[fit.starts[1:]], len(table.scores))
    losses: Callable[[Floats, Any], Floats] = _log_losses if score == "log" else lambda p, y: (p - y) ** 2
    base = [losses(np.full(1, rate), outcome)[0] for outcome in (0, 1)]

    def best(at: slice, outcome: Any) -> Floats:
        return losses(fit.values[block_of(table.scores[at])], outcome)

    def gained(at: slice, outcome: Any) -> Floats:
        return np.asarray(np.where(outcome, base[1], base[0]) - best(at, outcome))

    def lost(at: slice, outcome: Any) -> Floats:
        return losses(table.scores[at], outcome) - best(at, outcome)

    return _centred(table, gained, "discrimination"), _centred(table, lost, "miscalibration")


def _centred(table: ScoreTable, own: Own, name: str) -> Influence:
    blocks = slices(len(table.scores))
    sums = (dot(weight, part) for at in blocks for weight, part in _occurred(table._at(at), at, own))
    mean = math.fsum(sums) / table.total_weight
    return Influence(table, mean, lambda at, y: own(at, y) - mean, "plain", name)
