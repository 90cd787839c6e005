"""Measures with intervals: `estimate` for one forecast, `compare` for two on the same rows.

Standard errors come from the influence of each row (DeLong for the AUC), summed over clusters where rows come in
groups; with `n_resamples` from resampled counts of the table. A measure without an interval that covers is refused.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibrant import _checks
from calibrant._parameters import Number, Seed, check_parameters, optional
from calibrant.data import ScoreTable
from calibrant.data._arrays import ClassRows, aligned
from calibrant.errors import InputError, InputTypeError
from calibrant.metrics import _calibration, _ranking, _scores
from calibrant.metrics._bootstrap import bootstrapped
from calibrant.metrics._class_losses import class_estimate
from calibrant.metrics._design import design_of
from calibrant.metrics._estimators import ONE_NUMBER, READS_SCORES, as_record, difference_of, estimate_of
from calibrant.metrics._inputs import read_input
from calibrant.metrics._intervals import calibration_error, inner_share

BOTH_CLASSES = (_ranking.roc_auc, _ranking.average_precision, _calibration.calibration_slope_intercept)
OPTIONS: dict[Callable[..., Any], tuple[str, ...]] = {
    _scores.log_loss: ("eps",),
    _scores.score_decomposition: ("score",),
    calibration_error: ("n_bins", "strategy"),
}
KNOWN = (*ONE_NUMBER, _calibration.calibration_slope_intercept, _scores.score_decomposition, calibration_error)


def estimate(
    measure: Callable[..., Any],
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    n_resamples: int | None = None,
    rng: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    **options: Any,
) -> Any:
    """A measure with an interval that covers.

    Parameters
    ----------
    measure : function
        `brier_score`, `log_loss`, `roc_auc`, `average_precision`, `calibration_slope_intercept`,
        `score_decomposition` or `calibration_error`.
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities (any scores for ranking measures); K >= 3 columns for `brier_score` and `log_loss`.
    confidence : float
        Level of the interval, in (0, 1).
    groups : array-like of shape (n,), optional
        The customer, patient, ... of each row: rows of one group are not independent, groups are.
    n_resamples : int, optional
        Bootstrap with this many resamples of the table (of whole groups, with `groups`); by default the interval comes
        from the influence of each row, which needs no chance.
    rng : int, generator or None
        Draws the resamples; None is 0.
    sample_weight, pos_label, labels
        As in the measure. Rows of weights that differ are worth `(sum w)^2 / sum w^2` rows.
    **options
        Of the measure: `eps`, `score`, `n_bins`, `strategy`.

    Returns
    -------
    Estimate, CalibrationLineEstimates or DecompositionEstimates
        A measure that returns a record gives a record of estimates. The terms of `score_decomposition` have the part
        of chance taken off, so they are smaller than the plain ones.

    Raises
    ------
    InputError
        A measure without an interval that covers: `expected_calibration_error` (use `calibration_error`),
        `smooth_calibration_error`, the curves.

    Notes
    -----
    Normal with the variance of the influences, on the log scale for losses and the logit scale for average precision;
    a bootstrap takes percentiles, on at most 4,096 cells of the score, and moves them to the exact value. Cost: a few
    passes for losses and the line of rows without weights, else one sort; with `n_resamples` one sort, and a few passes
    over the cells for each resample. Source: DeLong et al. (1988), eqs. 3 to 5, for the AUC; Obuchowski (1997) for
    groups.

    Examples
    --------
    >>> from calibrant import brier_score, estimate
    >>> found = estimate(brier_score, [0, 0, 1, 1] * 25, [0.2, 0.4, 0.3, 0.9] * 25)
    >>> print(found)
    0.175 (95 % interval 0.1414 to 0.2166)
    """
    aligned(y_true=y_true, groups=groups)
    level = inner_share("estimate", "confidence", confidence)
    _check_measure("estimate", measure, options, n_resamples, rng)
    reads = "score" if measure in READS_SCORES else "probability"
    read = read_input(y_true, y_prob, sample_weight, pos_label, labels, reads=reads)
    if isinstance(read, ClassRows):
        return class_estimate(measure, [read], level, groups, sample_weight, options)
    if measure in BOTH_CLASSES:
        _checks.both_classes(read.total_positives, read.total_negatives, measure.__name__)
    design = design_of(read, groups, sample_weight, "estimate")
    if n_resamples is None:
        return estimate_of(measure, design, level, options)
    return as_record(measure, bootstrapped(measure, design, int(n_resamples), level, rng, options))


def compare(
    measure: Callable[..., Any],
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    rng: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    **options: Any,
) -> Any:
    """The difference a - b of a measure between two forecasts of the same rows, with an interval.

    Both are judged on the same rows, so that what is hard for both cancels: the interval is narrower than that of two
    estimates apart.

    Parameters
    ----------
    measure : function
        As in `estimate`, but not `calibration_error`: compare `score_decomposition`, whose miscalibration is its
        square.
    y_true : array-like of shape (n,)
        Labels.
    y_prob_a, y_prob_b : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities of the two forecasts.
    confidence, groups, sample_weight, pos_label, labels, **options
        As in `estimate`.
    rng : int, generator or None
        Not used: the interval needs no chance.

    Returns
    -------
    Estimate, CalibrationLineEstimates or DecompositionEstimates
        For losses a value below 0 says that a is better; for the AUC above 0.

    Notes
    -----
    Normal with the variance of the differences of the influences. Cost: a few passes for losses and the line, else two
    sorts. Source: DeLong et al. (1988), eq. 6, for the AUC.

    Examples
    --------
    >>> from calibrant import brier_score, compare
    >>> y, a, b = [0, 0, 1, 1] * 25, [0.2, 0.4, 0.3, 0.9] * 25, [0.5] * 100
    >>> compare(brier_score, y, a, b).high < 0
    True
    """
    aligned(y_true=y_true, groups=groups)
    level = inner_share("compare", "confidence", confidence)
    _check_measure("compare", measure, options, None, rng)
    if measure is calibration_error:
        raise InputError(
            "compare: a difference of two calibration errors has no interval that covers near zero. Compare "
            "brier_score or log_loss, or score_decomposition, whose miscalibration is the squared calibration error."
        )
    if y_prob_a is None or y_prob_b is None:
        raise InputTypeError(
            "compare needs rows: (y_true, y_prob_a, y_prob_b); two tables do not say which rows match."
        )
    reads = "score" if measure in READS_SCORES else "probability"
    pair = [read_input(y_true, p, sample_weight, pos_label, labels, reads=reads) for p in (y_prob_a, y_prob_b)]
    tables = [read for read in pair if isinstance(read, ScoreTable)]
    if len(tables) < 2:
        return class_estimate(measure, pair, level, groups, sample_weight, options)
    if measure in BOTH_CLASSES:
        _checks.both_classes(tables[0].total_positives, tables[0].total_negatives, measure.__name__)
    a, b = (design_of(table, groups, sample_weight, "compare") for table in tables)
    return difference_of(measure, a, b, level, options)


def _check_measure(what: str, measure: Any, options: dict[str, Any], n_resamples: Any, rng: Any) -> None:
    rules = {"n_resamples": optional(Number(20, whole=True)), "rng": Seed()}
    check_parameters(what, {"n_resamples": n_resamples, "rng": rng}, rules)
    if measure is _calibration.expected_calibration_error:
        raise InputError(
            f"{what}: expected_calibration_error has no interval that covers (its bootstrap misses the true value "
            f"nearly always where calibration is good). Use calibration_error, which is debiased and has one."
        )
    if not callable(measure) or measure not in KNOWN:
        names = ", ".join(known.__name__ for known in KNOWN)
        name = getattr(measure, "__name__", repr(measure))
        raise InputError(f"{what}: {name} has no interval that is known to cover. Measures that have one: {names}.")
    strange = sorted(set(options) - set(OPTIONS.get(measure, ())))
    if strange:
        raise InputError(
            f"{what}: {strange[0]} is not an option of {measure.__name__} here{_allowed(OPTIONS.get(measure, ()))}."
        )


def _allowed(names: tuple[str, ...]) -> str:
    return f"; these are: {', '.join(names)}" if names else ", which has none"
