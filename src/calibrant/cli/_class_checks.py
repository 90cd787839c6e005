"""Rows of scores of K classes: what cannot be probabilities or logits is refused, with its row of the file.

May import NumPy, `calibrant.data`, `calibrant._checks`, `calibrant.maps`, `calibrant.errors` and `_reading`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from calibrant import _checks
from calibrant._checks import PROBABILITY_TOLERANCE, ROW_SUM_TOLERANCE, Floats
from calibrant.data._faults import place_of_numbers
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._class_reading import ClassRequest

ROUNDED = 0.05
"""How far rounding to one decimal moves a probability."""


def checked_scores(request: ClassRequest, names: Sequence[str], scores: Floats, reads: str) -> Floats:
    """Probabilities or logits of the columns `names`; `reads` as in `class_scores`, and any other number as it is."""
    if reads == "probability" and request.normalize:
        scores = _divided(request, names, scores)
    try:
        return _checks.class_scores(scores, "scores", reads=reads)
    except InputError:
        row = _first_refused(scores, reads)
        where = _where(request, names, scores[row])
        if reads == "probability":
            _refuse_probabilities(scores, row, where)
        raise InputError(
            f"The logits in {where} are too far apart to subtract: divide all of them by a constant first."
        ) from None


def _first_refused(scores: Floats, reads: str) -> int:
    """The first row that is refused on its own, found by halving."""
    first, last = 0, len(scores)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            _checks.class_scores(scores[first:middle], "scores", reads=reads)
            first = middle
        except InputError:
            last = middle
    return first


def _where(request: ClassRequest, names: Sequence[str], row: Floats) -> str:
    file = request.file
    return place_of_numbers(file.path, names, row.tolist(), file.separator, file.decimal, file.header)


def _refuse_probabilities(scores: Floats, row: int, where: str) -> NoReturn:
    low, high = float(scores.min()), float(scores.max())
    outside = (scores[row] < -PROBABILITY_TOLERANCE) | (scores[row] > 1 + PROBABILITY_TOLERANCE)
    if outside.any():
        raise InputError(
            f"The scores run from {low:.6g} to {high:.6g}, but probabilities lie in [0, 1]; the first that does not is "
            f"{scores[row][outside][0]:.6g} in {where}. If they are logits or log-probabilities, fit and report take "
            f"them with --from-logits; percentages must be divided by 100."
        )
    wrong = int((np.abs(scores.sum(axis=1) - 1) > ROW_SUM_TOLERANCE).sum())
    raise InputError(
        f"The probabilities of a row must sum to 1, but {_checks.plural(wrong, 'row')} "
        f"{'does' if wrong == 1 else 'do'} not: {where} sums to {scores[row].sum():.6g}. Name the columns of all "
        f"classes with --scores; if the probabilities were rounded, --normalize divides each row by its sum."
    )


def _divided(request: ClassRequest, names: Sequence[str], scores: Floats) -> Floats:
    """Rows divided by their sums, which rounding must explain."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = scores.sum(axis=1)
    far = ~(np.abs(sums - 1) <= ROUNDED * scores.shape[1])
    if not far.any():
        return np.asarray(scores / sums[:, None])
    row = int(far.argmax())
    where = _where(request, names, scores[row])
    if not (scores[row].min() >= -PROBABILITY_TOLERANCE and scores[row].max() <= 1 + PROBABILITY_TOLERANCE):
        _refuse_probabilities(scores, row, where)
    raise InputError(
        f"--normalize is for probabilities that were rounded, but {where} sums to {sums[row]:.6g}, which rounding does "
        f"not explain. Name the columns of all classes with --scores."
    )
