"""What one more row does to a measure: its influence, by score and outcome, which gives standard errors of any design.

A measure of N rows is its true value plus the mean of the influences of the rows, to first order. Their variance gives
its standard error; sums of them over clusters, and differences between two forecasts, give those of other designs.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import isotonic, likelihood, lookup
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.metrics._calibration import calibration_slope_intercept
from calibrant.metrics._ranking import average_precision, roc_auc
from calibrant.metrics._scores import brier_score, log_loss


@dataclass(frozen=True)
class Influence:
    """A measure of a distinct table, and the influence of a positive and of a negative row at each score.

    `scale` says on which scale it is taken as normal: "plain", "positive" (its logarithm), "unit" (plain, cut to
    [0, 1]) or "logit". `most` is the largest loss a row can have.
    """

    value: float
    positive: Floats
    negative: Floats
    scale: str
    method: str
    most: float = math.inf

    def of(self, table: ScoreTable, scores: Floats, labels: Any) -> Floats:
        """The influence of each row."""
        place = lookup.places(scores, table.scores[1:])
        return np.where(labels == 1, self.positive[place], self.negative[place])


def variance(table: ScoreTable, found: Influence) -> float:
    """Squared standard error when rows are independent; a row of weight 2 counts as one that weighs twice."""
    mean_weight = table.squared_weights / table.weight
    squares = table.positives * found.positive**2 + table.negatives * found.negative**2
    return float((mean_weight * squares).sum()) / table.total_weight**2


def clustered_variance(weights: Floats, influence: Floats, cluster: Any) -> float:
    """Squared standard error when rows come in clusters."""
    sums = np.bincount(cluster, weights * influence)
    return float((sums**2).sum()) / float(weights.sum()) ** 2 * len(sums) / max(len(sums) - 1, 1)


# ---------------------------------------------------------------- means of losses


def of_brier(table: ScoreTable) -> Influence:
    """Mean squared error."""
    value, p = brier_score(table), table.scores
    return Influence(value, (1 - p) ** 2 - value, p**2 - value, "positive", "mean of independent losses", 1.0)


def of_log_loss(table: ScoreTable, eps: float | None = None) -> Influence:
    """Mean negative log-likelihood."""
    value, floor = log_loss(table, eps=eps), eps or 0.0
    with np.errstate(divide="ignore"):
        happened = -np.log(np.maximum(table.scores, floor))
        did_not = -np.log(np.maximum(1 - table.scores, floor))
    if np.isfinite(value):  # what did not occur needs no number
        happened, did_not = (np.where(np.isfinite(loss), loss, 0.0) - value for loss in (happened, did_not))
    else:
        happened = did_not = np.zeros_like(table.scores)
    most = -math.log(eps) if eps else math.inf
    return Influence(value, happened, did_not, "positive", "mean of independent losses", most)


# ---------------------------------------------------------------- the line on the log-odds


def of_line(table: ScoreTable) -> dict[str, Influence]:
    """Slope, intercept, and intercept at slope one."""
    found = calibration_slope_intercept(table)
    z, weight, total = fit_log_odds(table), table.weight, table.total_weight
    p = likelihood.expit(found.intercept + found.slope * z)
    bend = weight * p * (1 - p)
    moments = np.array([[bend.sum(), (bend * z).sum()], [(bend * z).sum(), (bend * z * z).sum()]])
    back = np.linalg.inv(moments) * total
    shifted = likelihood.expit(z + found.intercept_at_slope_one)
    level = total / float((weight * shifted * (1 - shifted)).sum())
    made = {}
    for name, row in (("slope", back[1]), ("intercept", back[0])):
        pull = row[0] + row[1] * z
        made[name] = Influence(getattr(found, name), pull * (1 - p), -pull * p, "plain", "sandwich variance")
    made["intercept_at_slope_one"] = Influence(
        found.intercept_at_slope_one, level * (1 - shifted), -level * shifted, "plain", "sandwich variance"
    )
    return made


# ---------------------------------------------------------------- ranking


def of_auc(table: ScoreTable) -> Influence:
    """DeLong, DeLong, Clarke-Pearson (1988): its variance is that of these influences."""
    value, hits, misses = min(roc_auc(table), 1.0), table.positives, table.negatives
    n_hits, n_misses = table.total_positives, table.total_negatives
    below = (np.cumsum(misses) - misses / 2) / n_misses
    above = (np.cumsum(hits[::-1])[::-1] - hits / 2) / n_hits
    total = table.total_weight
    # The usual n - 1 in the place of n, for each class.
    small = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in (n_hits, n_misses)]
    return Influence(
        value,
        (below - value) * total / n_hits * small[0],
        (above - value) * total / n_misses * small[1],
        "unit",
        "DeLong",
    )


def of_average_precision(table: ScoreTable) -> Influence:
    """A row moves the precision at every threshold below its score, and a positive adds its own."""
    value, total = min(average_precision(table), 1.0), table.total_weight
    hits, misses = table.positives, table.negatives
    found = np.cumsum(hits[::-1])[::-1] / total
    wrong = np.cumsum(misses[::-1])[::-1] / total
    taken = (found + wrong) ** 2
    up = np.cumsum(hits / total * wrong / taken)
    down = np.cumsum(hits / total * found / taken)
    rate = table.prevalence
    own = found / (found + wrong) - value
    return Influence(value, (own + up) / rate, -down / rate, "logit", "influence of each row, on the logit scale")


# ---------------------------------------------------------------- decomposition


def of_discrimination(table: ScoreTable, score: str) -> tuple[Influence, Influence]:
    """Influence of the discrimination, and of the score less what recalibration leaves (the miscalibration)."""
    hits, weight, p, rate = table.positives, table.weight, table.scores, table.prevalence
    blocks = isotonic.pool_adjacent(hits, weight)
    fitted = np.repeat(blocks.values, blocks.ends - blocks.starts + 1)
    base = [_losses(np.full(1, rate), score, side)[0] for side in (1, 0)]
    best = [_losses(fitted, score, side) for side in (1, 0)]
    own = [_losses(p, score, side) for side in (1, 0)]
    gained = [base[k] - best[k] for k in (0, 1)]
    lost = [own[k] - best[k] for k in (0, 1)]
    return _centred(table, gained, "discrimination"), _centred(table, lost, "miscalibration")


def _losses(p: Floats, score: str, outcome: int) -> Floats:
    if score == "brier":
        return np.asarray((p - outcome) ** 2)
    with np.errstate(divide="ignore"):
        loss = -np.log(p if outcome else 1 - p)
    return np.where(np.isfinite(loss), loss, 0.0)


def _centred(table: ScoreTable, parts: list[Floats], name: str) -> Influence:
    mean = float((table.positives * parts[0] + table.negatives * parts[1]).sum()) / table.total_weight
    return Influence(mean, parts[0] - mean, parts[1] - mean, "plain", name)
