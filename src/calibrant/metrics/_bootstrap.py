"""Bootstrap intervals of measures that are smooth in the counts of the score table.

May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._kernels import resample
from calibrant._parameters import generator
from calibrant.data import ScoreTable
from calibrant.data._log_odds import fit_log_odds
from calibrant.errors import InputError
from calibrant.metrics._calibration import calibration_slope_intercept
from calibrant.metrics._design import Design
from calibrant.metrics._influence import of_brier, of_line, of_log_loss
from calibrant.metrics._intervals import Estimate
from calibrant.metrics._ranking import average_precision, roc_auc
from calibrant.metrics._scores import brier_score, log_loss


def bootstrapped(
    measure: Any, design: Design, size: int, level: float, rng: Any, options: dict[str, Any]
) -> dict[str, Estimate]:
    """Percentile intervals of the parts of a measure."""
    table = design.distinct
    found = resample.cells(_log_odds(measure, table), table.positives, table.negatives, table.squared_weights)
    values, measures = _measures(measure, table, found, options)
    classes = table.total_positives > 0, table.total_negatives > 0
    draws = resample.resampled(_draw(design, found), classes, measures, size, generator(0 if rng is None else rng))
    _refuse_separable(measure, draws, (1 - level) / 4)
    hits, misses = found.positives[None], found.negatives[None]
    method = f"bootstrap, {size:,} resamples of {len(found.starts):,} cells"
    tails = [(1 - level) / 2, (1 + level) / 2]
    made = {}
    of_cells = np.vstack([part(hits, misses) for part in measures])[:, 0]
    for (name, value), coarse, drawn in zip(values.items(), of_cells, draws):
        low, high = np.nanquantile(drawn, tails) + (value - coarse)
        made[name] = Estimate(value, min(float(low), value), max(float(high), value), level, method)
    return made


def _refuse_separable(measure: Any, draws: Any, allowed: float) -> None:
    """Leave out the few resamples without a finite value; too many of them leave no interval."""
    lost = ~np.isfinite(draws)
    if lost.any(axis=0).mean() > allowed:
        raise InputError(
            f"{measure.__name__} has no finite value on many resamples, because they separate the classes: there are "
            f"too few rows for a bootstrap. Leave out n_resamples."
        )
    draws[lost] = np.nan


def _log_odds(measure: Any, table: ScoreTable) -> Any:
    if measure in (roc_auc, average_precision):
        return np.arange(len(table.scores), dtype=np.float64)
    return fit_log_odds(table)


def _draw(design: Design, found: resample.Cells) -> resample.Draw:
    if design.cluster is None:
        return resample.draw_counts(found)
    rows = design.table
    place = np.searchsorted(design.distinct.scores, rows.scores)
    cell = np.searchsorted(found.starts, place, side="right") - 1
    assert rows._labels is not None
    return resample.draw_clusters(cell, len(found.starts), rows._labels, rows.weight, design.cluster)


def _measures(
    measure: Any, table: ScoreTable, found: resample.Cells, options: dict[str, Any]
) -> tuple[dict[str, float], list[resample.Measure]]:
    """Exact values by name, and the functions of many resamples."""
    if measure in (brier_score, log_loss):
        loss = of_brier(table) if measure is brier_score else of_log_loss(table, **options)
        if not np.isfinite(loss.value):
            raise InputError(f"{measure.__name__} is infinite, so it has no bootstrap; eps= would floor it.")
        means = [
            resample.cell_means(found, weight, loss.everywhere(outcome) + loss.value)
            for weight, outcome in ((table.positives, 1), (table.negatives, 0))
        ]
        return {"value": loss.value}, [resample.mean_of(*means)]
    if measure is roc_auc:
        return {"value": roc_auc(table)}, [resample.area]
    if measure is average_precision:
        return {"value": average_precision(table)}, [resample.precision]
    if measure is calibration_slope_intercept:
        return _line(table, found)
    raise InputError(
        f"{measure.__name__} has no bootstrap that covers, because chance adds to it at every resample: leave out "
        f"n_resamples, and the interval comes from its null distribution."
    )


def _line(table: ScoreTable, found: resample.Cells) -> tuple[dict[str, float], list[resample.Measure]]:
    z = resample.cell_means(found, table.weight, fit_log_odds(table))
    fit = {name: part.value for name, part in of_line(table).items()}
    a, b = fit["intercept"], fit["slope"]
    shift = fit["intercept_at_slope_one"]
    return fit, [resample.line(z, a, b), resample.shift(z, shift)]
