"""Reliability curves with their uncertainty: bands around the isotonic curve, exact binomial intervals of bins.

A consistency band shows where the curve of calibrated probabilities would lie; a curve outside it is evidence against
calibration. A confidence band shows where the true curve may lie.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant._checks import Floats, Label
from calibrant._kernels import intervals, isotonic, isotonic_bands, resample
from calibrant._parameters import Number, Seed, check_parameters, generator
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.metrics._calibration import STRATEGIES, _curve
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import inner_share
from calibrant.metrics._scores import _one_of, bin_sums, uniform_edges

KINDS = ("confidence", "consistency")
CELLS = 2048
POINTS = 200
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ReliabilityBands:
    """A reliability curve with a band.

    Attributes
    ----------
    predicted : ndarray of shape (m,)
        Ascending: probabilities at which the isotonic curve is given, or mean prediction of each bin.
    observed : ndarray of shape (m,)
        The isotonic event rate there, or the event rate of the bin.
    low, high : ndarray of shape (m,)
        The band: pointwise, each point on its own holds at the level.
    weight : ndarray of shape (m,)
        Weight of the rows up to the point and after the one before, or of the bin.
    kind : str
        "confidence" or "consistency".
    strategy : str
        "isotonic", "uniform" or "quantile".
    level : float
        Level of the band.
    method : str
        How the band was made.
    """

    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    weight: Floats
    kind: str
    strategy: str
    level: float
    method: str


def reliability_bands(
    y_true: Any,
    y_prob: Any = None,
    *,
    strategy: Literal["isotonic", "uniform", "quantile"] = "isotonic",
    n_bins: int = 10,
    kind: Literal["confidence", "consistency"] = "confidence",
    confidence: float = 0.95,
    n_resamples: int = 1000,
    rng: Any = None,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> ReliabilityBands:
    """Event rate against prediction, with a band: the isotonic curve, which needs no bins, or bins.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    strategy : {"isotonic", "uniform", "quantile"}
        The isotonic curve (CORP), or bins of equal width or of equal mass, of which empty ones are left out.
    n_bins : int
        Number of bins.
    kind : {"confidence", "consistency"}
        Where the true curve may lie, around the curve; or where the curve of calibrated probabilities would lie,
        around the diagonal.
    confidence : float
        Level of the band, in (0, 1), at each point.
    n_resamples : int
        For the isotonic curve.
    rng : int, generator or None
        Draws the resamples; None is 0.
    sample_weight : array-like of shape (n,), optional
        Frequencies. Rows of weights that differ are worth `(sum w)^2 / sum w^2` rows.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    ReliabilityBands

    Notes
    -----
    Isotonic: outcomes are drawn from the probabilities (consistency) or from the curve, joined by lines between the
    middles of its steps (confidence), and the isotonic fit is repeated. A confidence band mirrors the quantiles of the
    deviations and holds the exact binomial limits of each step (.92 to 1.00 in simulations). Scores are put
    into at most 2,048 cells first. Bins: Clopper-Pearson limits of the event rate; around the mean prediction for
    consistency. Cost: one sort, and a fit of the cells for each resample. Source: Dimitriadis, Gneiting, Jordan (2021),
    section 3 and supplement; Clopper, Pearson (1934).

    Examples
    --------
    >>> from calibrant import reliability_bands
    >>> bands = reliability_bands([0, 1, 1] * 20, [0.2, 0.6, 0.7] * 20, strategy="uniform", n_bins=2)
    >>> bands.observed, bands.low.round(3)
    (array([0., 1.]), array([0.   , 0.912]))
    """
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("kind", kind, KINDS)
    edges = uniform_edges(n_bins)
    level = inner_share("reliability_bands", "confidence", confidence)
    rules = {"n_resamples": Number(20, whole=True), "rng": Seed()}
    check_parameters("reliability_bands", {"n_resamples": n_resamples, "rng": rng}, rules)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="reliability_bands")
    if strategy == "isotonic":
        return _isotonic_bands(table.distinct, kind, level, int(n_resamples), generator(0 if rng is None else rng))
    return _binned_bands(table, edges, strategy, kind, level)


# ---------------------------------------------------------------- bins


def _binned_bands(table: ScoreTable, edges: Floats, strategy: str, kind: str, level: float) -> ReliabilityBands:
    curve = _curve(table, len(edges) - 1, strategy)
    worth = _worth(table, curve.edges, strategy)
    kept = curve.weight > 0
    mean, rate, worth = curve.mean_predicted[kept], curve.observed_rate[kept], worth[kept]
    centre = rate if kind == "confidence" else mean
    low, high = intervals.binomial_limits(centre * worth, worth, level)
    method = "exact binomial (Clopper-Pearson) limits of each bin"
    return ReliabilityBands(mean, rate, low, high, curve.weight[kept], kind, strategy, level, method)


def _worth(table: ScoreTable, edges: Floats, strategy: str) -> Floats:
    """How many rows of equal weight the rows of each bin are worth."""
    if strategy == "uniform":
        sums = bin_sums(table, edges)
        weight, squares = sums.weight, sums.squared_weights
    else:
        distinct = table.distinct
        starts = np.searchsorted(distinct.scores, edges[:-1], side="right")
        starts[0] = 0
        weight, squares = (np.add.reduceat(part, starts) for part in (distinct.weight, distinct.squared_weights))
    return np.divide(weight**2, squares, out=np.zeros_like(weight), where=squares > 0)


# ---------------------------------------------------------------- the isotonic curve


class _Cells(NamedTuple):
    p: Floats
    hits: Floats
    weight: Floats
    worth: Floats


def _isotonic_bands(
    distinct: ScoreTable, kind: str, level: float, size: int, rng: np.random.Generator
) -> ReliabilityBands:
    cells = _cells(distinct)
    places = _places(cells)
    fit = isotonic_bands.fit_at(cells.hits, cells.weight, np.arange(len(cells.p)))
    rates = cells.p if kind == "consistency" else _joined(cells, fit)
    drawn = isotonic_bands.random_fits(rates, cells.worth, cells.weight, places, size, rng)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    curve = fit[places]
    if kind == "confidence":
        low, high = _mirrored(low, high, rates[places])
        block_low, block_high = _block_limits(cells, level)
        low, high = _rising(np.minimum(low, block_low[places]), np.maximum(high, block_high[places]), curve)
    reached = np.concatenate([[0.0], np.cumsum(cells.weight)[places]])
    method = f"{size:,} isotonic fits of drawn outcomes"
    return ReliabilityBands(cells.p[places], curve, low, high, np.diff(reached), kind, "isotonic", level, method)


def _cells(distinct: ScoreTable) -> _Cells:
    found = resample.cells(
        fit_log_odds(distinct), distinct.positives, distinct.negatives, distinct.squared_weights, CELLS
    )
    weight = found.positives + found.negatives
    p = resample.cell_means(found, distinct.weight, distinct.scores)
    return _Cells(p, found.positives, weight, weight / found.scale)


def _places(cells: _Cells) -> Any:
    """At most 200 cells at equal steps of the weight, of p and of its log-odds, both ends among them."""
    size = len(cells.p)
    if size <= POINTS:
        return np.arange(size)
    inner = np.clip(cells.p, TINY, 1 - TINY)
    scales = (np.cumsum(cells.weight), cells.p, np.log(inner) - np.log1p(-inner))
    steps = [np.searchsorted(scale, np.linspace(scale[0], scale[-1], POINTS // 3)) for scale in scales]
    return np.unique(np.minimum(np.concatenate(steps), size - 1))


def _joined(cells: _Cells, fit: Floats) -> Floats:
    """The isotonic curve with its steps joined by lines between their middles."""
    blocks = isotonic.pool_adjacent(cells.hits, cells.weight)
    total = np.add.reduceat(cells.weight, blocks.starts)
    middle = np.add.reduceat(cells.weight * cells.p, blocks.starts) / total
    return np.clip(np.interp(cells.p, middle, blocks.values), 0.0, 1.0) if len(middle) > 1 else fit


def _block_limits(cells: _Cells, level: float) -> tuple[Floats, Floats]:
    """Exact binomial limits of the step of the curve that each cell lies on: a step without events is not certain."""
    blocks = isotonic.pool_adjacent(cells.hits, cells.weight)
    worth = np.add.reduceat(cells.worth, blocks.starts)
    lengths = blocks.ends - blocks.starts + 1
    low, high = intervals.binomial_limits(blocks.values * worth, worth, level)
    return np.repeat(low, lengths), np.repeat(high, lengths)


def _mirrored(low: Floats, high: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """The band around the generating curve that the deviations of the drawn fits give."""
    return rates - np.maximum(high - rates, 0.0), rates + np.maximum(rates - low, 0.0)


def _rising(low: Floats, high: Floats, curve: Floats) -> tuple[Floats, Floats]:
    """What the limits say of a curve that rises: a limit holds for all points beyond it too."""
    down = np.maximum.accumulate(np.clip(low, 0.0, 1.0))
    up = np.minimum.accumulate(np.clip(high, 0.0, 1.0)[::-1])[::-1]
    return np.minimum(down, curve), np.maximum(up, curve)
