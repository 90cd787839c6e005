"""Signs that scores are not what a calibrator needs, each named with the next step.

Nothing here changes an answer. Signs that need the sorted table are looked for only where a fit has sorted it anyway.
May import NumPy, the kernels, `calibrant.data` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from calibrant._kernels import ranking
from calibrant.data import ScoreTable
from calibrant.errors import DataWarning

ENOUGH_TO_JUDGE = 100
NEARLY_PERFECT = 0.9999
FEW_VALUES = 50
PILED_UP = 0.05


def warn_of_misuse(table: ScoreTable, reads: str, method: str, rows_needed: int) -> None:
    """Give every sign that these rows show as a warning."""
    signs = list(_of_size(table, method, rows_needed))
    if min(table.total_positives, table.total_negatives) >= ENOUGH_TO_JUDGE:
        signs += _of_range(table, reads)
        signs += _of_order(table.distinct) if "distinct" in vars(table) else []
    for sign in signs:
        warnings.warn(sign, DataWarning, stacklevel=4)


def _of_size(table: ScoreTable, method: str, rows_needed: int) -> Iterator[str]:
    if table.total_weight < rows_needed:
        yield (
            f"{method} was fitted to {table.total_weight:,.0f} rows; under about {rows_needed:,} it overfits. "
            f"AutoCalibrator, AffineLogit or smoothing=1.0 is safer."
        )


def _of_range(table: ScoreTable, reads: str) -> Iterator[str]:
    if reads == "probability" and table.scores.min() >= 0.5 and table.prevalence > 0.5:
        yield (
            "No score is below 0.5: these look like the confidence of the most likely class, not the probability of "
            "one class. Give the positive class's column of predict_proba, or calibrate all columns together."
        )


def _of_order(distinct: ScoreTable) -> Iterator[str]:
    if ranking.auc(distinct.positives, distinct.negatives) >= NEARLY_PERFECT:
        yield (
            "The scores separate the classes almost perfectly: if the model was trained on these rows, the map will be "
            "over-confident on new ones. Calibrate on rows the model has not seen (CalibratedClassifier does)."
        )
    if len(distinct) < FEW_VALUES and distinct.n_rows >= 20 * len(distinct) and len(distinct) > 2:
        yield (
            f"The scores take only {len(distinct)} different values in {distinct.n_rows:,} rows: they look rounded, or "
            f"come from few trees. Use the unrounded scores if there are any."
        )
    elif len(distinct) >= FEW_VALUES:
        yield from _of_piles(distinct)


def _of_piles(distinct: ScoreTable) -> Iterator[str]:
    share = distinct.weight / distinct.total_weight
    for end, word in ((0, "lowest"), (-1, "highest")):
        if share[end] >= PILED_UP:
            yield (
                f"{share[end]:.0%} of the rows share the {word} score, {distinct.scores[end]:.6g}: it was clipped, or "
                f"the model saturates. What was lost there cannot be calibrated; margins or log-odds would keep it."
            )
