"""Planning: how many rows it takes to show that probabilities are calibrated within a margin.

May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math

from calibrant._kernels import intervals, planning
from calibrant._parameters import Number
from calibrant.errors import InputError
from calibrant.metrics._intervals import inner_share
from calibrant.metrics._parts import N_BINS

SPREADS = (0.0, 0.5, 1.0, 1.5)
"""Deviations of the log-odds that are tried when no AUC is given: AUC from one half to about .85."""

LEAST_MARGIN = 1e-9
"""Its square, and the rows that it asks for, are still numbers."""


def rows_needed(
    *,
    margin: float,
    prevalence: float,
    confidence: float = 0.95,
    power: float = 0.8,
    roc_auc: float | None = None,
) -> int:
    """How many rows `calibration_verdict` needs to call a calibrated forecast "within margin".

    Parameters
    ----------
    margin : float
        The margin of the verdict, in (0, 1).
    prevalence : float
        Share of events, in (0, 1).
    confidence : float
        Level of the interval, in (0, 1).
    power : float
        How often a perfectly calibrated forecast gets the verdict, in (0, 1).
    roc_auc : float, optional
        Expected AUC, at least 0.5. Without it the number is enough for every AUC up to about 0.85: with rare events a
        forecast that ranks well needs more rows, because its few high probabilities are hard to check.

    Returns
    -------
    int
        Rows. A forecast whose true error is not 0, but below the margin, needs more.

    Notes
    -----
    Log-odds are taken as normal; 2,000 calibrated samples are drawn bin by bin from fixed random numbers, and n is the
    least at which the share `power` of them has an interval that ends below the margin. Cost: some dozens of such
    shares, whatever n. Source: the interval of `calibration_error`.

    Examples
    --------
    >>> from calibrant import rows_needed
    >>> rows_needed(margin=0.05, prevalence=0.5, roc_auc=0.7)
    2204
    """
    given = {"margin": margin, "prevalence": prevalence, "confidence": confidence, "power": power}
    limit, rate, level, chance = (inner_share("rows_needed", name, value) for name, value in given.items())
    if limit < LEAST_MARGIN:
        raise InputError(f"rows_needed: margin must be at least {LEAST_MARGIN:g}, but it is {margin!r}.")
    if roc_auc is None:
        return max(_rows(rate, spread, limit, level, chance) for spread in SPREADS)
    if not Number(0.5, 1).accepts(roc_auc) or roc_auc == 1:
        raise InputError(f"rows_needed: roc_auc must be at least 0.5 and below 1, but it is {roc_auc!r}.")
    return _rows(rate, planning.spread_of_auc(rate, float(roc_auc), N_BINS), limit, level, chance)


def _rows(prevalence: float, spread: float, margin: float, level: float, power: float) -> int:
    samples = planning.Samples(planning.bin_means(prevalence, spread, N_BINS)[0])

    def enough(rows: float) -> bool:
        return samples.share_shown(rows, margin**2, (1 - level) / 2) >= power

    return math.ceil(intervals.smallest(enough, N_BINS / margin**2))
