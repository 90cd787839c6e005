"""Signs that scores are not what a calibrator needs, each named with the next step.

Invariant: nothing here changes an answer. A sign is looked for in a sample of the rows where the fit has not sorted
them, and what the sample suggests is said only after all rows have been sorted: the numbers in a message are exact.
What is honest is not named: leaves of a small tree, points, tables of counts, and ends that hold one class only.
May import NumPy, the kernels, `calibrant._checks`, `calibrant.data` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant.data import ScoreTable
from calibrant.errors import DataWarning

SAMPLE = 2_000
ENOUGH_TO_JUDGE = 100
FEW_OF_A_CLASS = 20
NEARLY_PERFECT = 0.9999
SEPARATED = "The scores separate the classes almost perfectly"
NO_LOGITS = (
    "All scores lie in [0, 1], as probabilities do, but they are read as logits: leave from_logits=True out if that is "
    "what they are."
)
FEW_VALUES, MANY_VALUES = 25, 50
FINEST_STEP = 100
PILED_UP, MIXED = 0.05, 0.02
"""Share of the rows, and of either class, that one end must hold before it is named."""


def warn_of_misuse(table: ScoreTable, reads: str, method: str, rows_needed: int) -> None:
    """Give every sign that these rows show as a warning."""
    signs = list(_of_size(table, method, rows_needed))
    if min(table.total_positives, table.total_negatives) >= ENOUGH_TO_JUDGE and _deserves_a_look(table, reads):
        signs += _of_scores(table.distinct, reads, table._labels is not None)
    for sign in signs:
        warnings.warn(sign, DataWarning, stacklevel=4)


def _of_size(table: ScoreTable, method: str, rows_needed: int) -> Iterator[str]:
    if table.total_weight < rows_needed:
        yield (
            f"{method} was fitted to {table.total_weight:,.0f} rows; under about {rows_needed:,} it overfits. "
            f"AutoCalibrator, AffineLogit or smoothing=1.0 is safer."
        )


# ---------------------------------------------------------------- a sample first


def _deserves_a_look(table: ScoreTable, reads: str) -> bool:
    """Whether the table is sorted already or small, or a sample of it shows what a sign may come of.

    Limits are lower here than for all rows.
    """
    if table._is_sorted or len(table) <= SAMPLE:
        return True
    distinct = table._at(_some(table)).distinct
    if len(distinct) < MANY_VALUES or distinct.scores[0] >= 0.5 or _no_logits(distinct.scores, reads):
        return True
    positives, negatives = distinct.total_positives, distinct.total_negatives
    ends = distinct._at([0, -1])
    held = zip(ends.positives / positives, ends.negatives / negatives)
    return any(min(end) > 0 and max(end) >= 0.7 * PILED_UP for end in held) or distinct._auc >= NEARLY_PERFECT


def _some(table: ScoreTable) -> NDArray[np.intp]:
    """Places of some entries, drawn with replacement: of all, and of a class that is rare among those."""
    rng = np.random.default_rng(0)
    some = rng.integers(len(table), size=SAMPLE)
    drawn = table._at(some)
    for code, rows in ((1, drawn.total_positives), (0, drawn.total_negatives)):
        if rows < FEW_OF_A_CLASS:
            holds = table._labels == code if table._labels is not None else (table.negatives, table.positives)[code]
            of_class = np.flatnonzero(holds)
            some = np.concatenate([some, of_class[rng.integers(len(of_class), size=SAMPLE)]])
    return some


# ---------------------------------------------------------------- then all rows


def _of_scores(distinct: ScoreTable, reads: str, by_row: bool) -> Iterator[str]:
    if _no_logits(distinct.scores, reads):
        yield NO_LOGITS
    if reads == "probability" and distinct.scores[0] >= 0.5 and distinct.prevalence > 0.5:
        yield (
            "No score is below 0.5: these look like the confidence of the most likely class, not the probability of "
            "one class. Give the positive class's column of predict_proba, or calibrate all columns together."
        )
    if distinct._auc >= NEARLY_PERFECT:
        yield (
            f"{SEPARATED}: if the model was trained on these rows, the map will be over-confident on new ones. "
            f"Calibrate on rows the model has not seen (CalibratedClassifier does)."
        )
    if len(distinct) >= MANY_VALUES:
        yield from _of_piles(distinct)
    elif by_row and distinct.n_rows >= 20 * len(distinct):
        yield from _of_few_values(distinct, _step(distinct))


def _no_logits(rising: NDArray[np.float64], reads: str) -> bool:
    return reads == "logit" and bool(rising[0] >= 0 and rising[-1] <= 1) and len(rising) > 2


def are_probabilities(scores: NDArray[np.floating]) -> bool:
    """Whether no score is outside [0, 1], and each row sums to 1."""
    for rows in (scores[:ENOUGH_TO_JUDGE], scores):  # a few first: logits show it there
        if len(rows) == 0 or rows.min() < 0 or np.abs(rows.sum(axis=1) - 1).max() > _checks.ROW_SUM_TOLERANCE:
            return False
    return True


def warn_if_no_logits(scores: NDArray[np.floating]) -> None:
    """Say that rows of logits are rows of probabilities."""
    if are_probabilities(scores):
        warnings.warn(NO_LOGITS, DataWarning, stacklevel=4)


def certain_errors(scores: NDArray[np.floating], labels: NDArray[np.int64]) -> int:
    """Rows whose class had the probability 0."""
    return int(np.count_nonzero(scores[np.arange(len(labels)), labels] == 0))


def warn_of_certain_errors(count: int, rows: int) -> None:
    """Say that classes came whose probability was 0, which unpenalised fits of many classes pay for in all rows."""
    if count:
        warnings.warn(
            f"In {count:,} of {_checks.plural(rows, 'row')} the class that came has the probability 0. "
            f"Each counts 87 in the log loss, so a few bend the whole map. Shares of votes (trees, neighbours) say 0 "
            f"for none of so many: give (votes + 1) / (all votes + classes), or scores before rounding. "
            f"StructuredVectorScaling bends least.",
            DataWarning,
            stacklevel=4,
        )


def _of_few_values(distinct: ScoreTable, step: int | None) -> Iterator[str]:
    """Decisions and rounded scores; points (whole numbers) and values off every grid, as of leaves, are left alone."""
    scores = distinct.scores
    if step == 1 and len(scores) == 2:
        yield (
            f"The scores take two values only, {scores[0]:g} and {scores[1]:g}: they look like decisions, as predict "
            f"gives them. Give predict_proba or decision_function; a tree grown to the end has nothing finer, a "
            f"smaller tree or a forest has."
        )
    elif step is None or step == 1 or len(scores) <= 2:
        return
    elif len(scores) >= FEW_VALUES:
        yield from _of_piles(distinct)
    else:
        yield (
            f"The scores take only {len(scores)} different values in {distinct.n_rows:,} rows, all multiples of "
            f"1/{step}: they look rounded, or are shares of so many votes (trees, neighbours). The scores before "
            f"rounding, or more votes, would tell more rows apart."
        )


def _step(distinct: ScoreTable) -> int | None:
    """The smallest m up to 100 for which all scores are multiples of 1/m."""
    steps = np.arange(1, FINEST_STEP + 1)
    multiples = np.outer(steps, distinct.scores)
    whole = np.all(np.abs(multiples - np.round(multiples)) <= 1e-6, axis=1)  # 1e-6: float32 too
    return int(steps[np.argmax(whole)]) if whole.any() else None


def _of_piles(distinct: ScoreTable) -> Iterator[str]:
    """Ends that hold many rows, of both classes."""
    ends = distinct._at([0, -1])
    for score, hits, misses, word in zip(ends.scores, ends.positives, ends.negatives, ("lowest", "highest")):
        share = (hits + misses) / distinct.total_weight
        rarer, held = min(
            (hits / distinct.total_positives, "positives"), (misses / distinct.total_negatives, "negatives")
        )
        if share >= PILED_UP and rarer >= MIXED:
            yield (
                f"{share:.0%} of the rows share the {word} score, {score:.6g}, and {rarer:.0%} of "
                f"the {held} are among them: it was clipped or rounded, or the model saturates. No map can tell them "
                f"apart; scores before clipping, margins, log-odds or more votes (trees, neighbours) would."
            )
