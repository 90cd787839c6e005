"""Three answers to "are the probabilities calibrated?": within a margin, beyond it, or not enough rows to tell.

"Within" and "beyond" are said only when the whole interval of the calibration error lies on one side of the margin,
so each is wrong in at most half of `1 - confidence` of the samples. Discrimination stands beside every verdict.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant._checks import Label
from calibrant._kernels import intervals
from calibrant._kernels.intervals import Spread
from calibrant.data._arrays import aligned
from calibrant.metrics._design import Design, clustered_square, design_of
from calibrant.metrics._estimators import estimate_of
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import Estimate, inner_share, root
from calibrant.metrics._parts import N_BINS, default_gaps
from calibrant.metrics._ranking import roc_auc
from calibrant.metrics._scores import score_decomposition

WITHIN, BEYOND, TOO_FEW = "within margin", "beyond margin", "not enough rows"
POWER = 0.8
NEAR = 0.1
"""A value nearer to the margin than this part of it is planned for as if it were this far."""
TIMES = 10
"""Beyond so many times the rows there are, a number of rows says only that the value lies near the margin."""


@dataclass(frozen=True)
class CalibrationVerdict:
    """What the rows show about calibration, and about discrimination beside it.

    Attributes
    ----------
    verdict : str
        "within margin", "beyond margin" or "not enough rows".
    margin : float
        The margin that was asked for.
    estimate : Estimate
        The calibration error.
    rows : int
        Rows there are.
    rows_needed : float
        About how many rows a verdict needs at this calibration error (inf when it is the margin itself); not more
        than there are when there is a verdict.
    discrimination : Estimate or None
        AUC; None when there are rows of one class only.
    refinement : Estimate or None
        What the probabilities gain over the base rate in the Brier score, after recalibration (its discrimination).
    informative : bool
        Whether the scores are shown to tell events from the rest: both intervals above lie above chance.
    words : str
        All this in words.
    near_margin : bool
        Whether the error is about as large as the margin, so that more rows may not settle it: a verdict would need
        more than ten times the rows there are, at an error of half to twice the margin that these rows tell from 0.
    """

    verdict: str
    margin: float
    estimate: Estimate
    rows: int
    rows_needed: float
    discrimination: Estimate | None
    refinement: Estimate | None
    informative: bool
    words: str
    near_margin: bool

    def __str__(self) -> str:
        return self.words


def calibration_verdict(
    y_true: Any,
    y_prob: Any = None,
    *,
    margin: float,
    confidence: float = 0.95,
    groups: Any = None,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> CalibrationVerdict:
    """Say whether the calibration error is within a margin, beyond it, or whether the rows are too few to tell.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    margin : float
        The calibration error that would still be fine, in (0, 1): 0.02 allows two points for a typical row.
    confidence : float
        Level of the interval, in (0, 1).
    groups : array-like of shape (n,), optional
        The customer, patient, ... of each row, when rows repeat one.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    CalibrationVerdict
        "within margin" only when the upper end of the interval is at most the margin, "beyond margin" only when the
        lower end is above it. A calibrated forecast that tells nothing apart is named as such.

    Notes
    -----
    An equivalence test by interval inclusion. Cost: two sorts. Source: Westlake (1972); Schuirmann (1987).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import calibration_verdict
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < p
    >>> calibration_verdict(y, p, margin=0.02).verdict
    'within margin'
    >>> calibration_verdict(y[:200], p[:200], margin=0.02).verdict
    'not enough rows'
    """
    aligned(y_true=y_true, groups=groups)
    level = inner_share("calibration_verdict", "confidence", confidence)
    limit = inner_share("calibration_verdict", "margin", margin)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="calibration_verdict")
    return verdict_of(design_of(table, groups, sample_weight, "calibration_verdict"), limit, level)


def verdict_of(design: Design, margin: float, level: float) -> CalibrationVerdict:
    """The verdict on a design of rows."""
    squared = clustered_square(design, default_gaps(design.distinct), level)[0]
    found, rows = root(squared), design.table.n_rows
    verdict = WITHIN if found.high <= margin else BEYOND if found.low > margin else TOO_FEW
    truth = _planned_for(squared.spread, found.value, margin)
    needed = _more_rows(squared.spread, rows, truth, margin, level)
    near = verdict == TOO_FEW and margin / 2 <= math.sqrt(truth) <= 2 * margin and needed > TIMES * rows
    needed = max(needed, rows + 1.0) if verdict == TOO_FEW else min(needed, float(rows))
    area, refinement = _discrimination(design, level)
    informative = area is not None and refinement is not None and area.low > 0.5 and refinement.low > 0
    more = NO_NUMBER if near else f"about {needed:,.0f} rows are needed"
    words = _words(verdict, found, margin, more, area, informative)
    return CalibrationVerdict(verdict, margin, found, rows, needed, area, refinement, informative, words, near)


def _discrimination(design: Design, level: float) -> tuple[Estimate | None, Estimate | None]:
    table = design.distinct
    if not (table.total_positives > 0 and table.total_negatives > 0):
        return None, None
    area = estimate_of(roc_auc, design, level, {})
    parts: Any = estimate_of(score_decomposition, design, level, {})
    assert isinstance(area, Estimate)
    return area, parts.discrimination


def _planned_for(spread: Spread, value: float, margin: float) -> float:
    """The square of the calibration error to plan for: 0 where these rows cannot tell it from 0."""
    truth, limit = value**2, margin**2
    least = spread.total / max(N_BINS, 1)
    if truth <= least * 2:  # as good as calibrated, as far as these rows can see
        return 0.0
    near = (margin * (1 - NEAR)) ** 2, (margin * (1 + NEAR)) ** 2
    return min(truth, near[0]) if truth <= limit else max(truth, near[1])


def _more_rows(spread: Spread, rows: int, truth: float, margin: float, level: float) -> float:
    """Rows at which four samples in five of this squared calibration error would lead to a verdict."""
    limit = margin**2
    at = _scaled(spread, rows)
    tail = (1 - level) / 2

    def enough(n: float) -> bool:
        now = at(n)
        if truth <= limit:
            return intervals.share_below(intervals.value_at(POWER, truth, now), limit, now) <= tail
        return intervals.share_below(intervals.value_at(1 - POWER, truth, now), limit, now) >= 1 - tail

    return _rounded(intervals.smallest(enough, float(rows)))


def _scaled(spread: Spread, rows: float) -> Callable[[float], Spread]:
    """The part of chance at another number of rows."""

    def at(n: float) -> Spread:
        by = rows / n
        return Spread(spread.total * by, spread.squares * by**2, spread.cubes * by**3, spread.largest * by)

    return at


def _rounded(rows: float) -> float:
    """Two digits are honest for a forecast of rows."""
    if not math.isfinite(rows) or rows < 100:
        return math.ceil(rows) if math.isfinite(rows) else rows
    unit = 10 ** (math.floor(math.log10(rows)) - 1)
    return float(math.ceil(rows / unit) * unit)


NO_NUMBER = "it is about as large as the margin, so more rows may not settle it"


def _words(verdict: str, found: Estimate, margin: float, more: str, area: Estimate | None, informative: bool) -> str:
    level = f"{100 * found.level:.4g} %"
    error = f"calibration error {found.value:.3g} ({level} interval {found.low:.3g} to {found.high:.3g})"
    head = {
        WITHIN: f"Calibrated within the margin of {margin:g}: {error}.",
        BEYOND: f"Miscalibrated beyond the margin of {margin:g}: {error}.",
        TOO_FEW: f"Not enough rows to tell whether the calibration error is within the margin of {margin:g}: {error}; "
        f"{more}.",
    }[verdict]
    if area is None:
        return f"{head} There are rows of one class only, so nothing is known about how well the scores rank."
    ranks = f"AUC {area.value:.3g} ({area.low:.3g} to {area.high:.3g})"
    if informative:
        return f"{head} The scores tell events from the rest: {ranks}."
    return (
        f"{head} But nothing shows that the scores tell events from the rest ({ranks}): a forecast that gives every "
        f"row the base rate is as good, and calibrated too."
    )
