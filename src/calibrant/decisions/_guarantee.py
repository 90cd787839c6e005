"""Thresholds that meet limits in the population with probability 1 - delta, whatever the distribution of the rows.

At a threshold fixed beforehand, hits are binomial, so `the limit is not met` has an exact p-value; several limits have
the largest of theirs. Thresholds are tested in a fixed order at level delta until one fails, and the others count as
met: the first one that truly misses a limit passes with probability at most delta.
* Limits that only get easier with a higher threshold (false positives, alerts), or only with a lower one (recall): the
  order starts at the safe end, and all rows are used. Such a rate changes in one direction, so the truth has one
  border, and thresholds may be the scores themselves.
* Others (precision, accuracy, limits from both sides): one row in ten, drawn at random, is a pilot. It supplies the
  thresholds and where to start: the threshold with the strongest evidence in the pilot. The other rows are tested.
Source: fixed-sequence testing in Angelopoulos, Bates, Candes, Jordan, Lei (2021), Learn then test, section 2.3;
monotone risks: Bates et al. (2021), Distribution-free, risk-controlling prediction sets, theorem 1.
May import NumPy, the kernels and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import tails
from calibrant._kernels.blocks import slices
from calibrant._parameters import Number, generator
from calibrant.data import ScoreTable
from calibrant.data._arrays import BinaryRows
from calibrant.decisions._curve import counts_above
from calibrant.decisions._rates import SHARES, Cells, Scale, hits_and_trials
from calibrant.errors import InputError

PILOT = 0.1
MOST_TESTS = 20_000
EASIER_ABOVE = ("false_positive_rate", "alert_rate", "alerts")


@dataclass(frozen=True)
class Limit:
    """One bound: `name` at least, or at most, `bound`."""

    name: str
    bound: float
    at_least: bool


class Certified(NamedTuple):
    """Thresholds that passed, rising, and how they were tested."""

    thresholds: Floats
    method: str


def certified_thresholds(
    table: ScoreTable,
    limits: tuple[Limit, ...],
    delta: float,
    scale: Scale,
    aim: Callable[[ScoreTable], float],
    random_state: Any,
) -> Certified:
    """The thresholds that meet every limit with probability 1 - delta, all of them at once.

    `aim` says of a table where the objective would go if there were no limits.
    """
    _refuse(table, limits)
    distinct = table.distinct
    kinds = {_easier(limit) for limit in limits}
    if len(kinds) == 1 and "neither" not in kinds:
        thresholds = distinct.scores[_spread(len(distinct))][:: 1 if kinds == {"above"} else -1]
        passed = _first_passes(_p_values(distinct, thresholds, limits, scale), delta)
        method = "exact binomial tests of all rows in a fixed sequence from the safe end"
        never = [np.inf] if kinds == {"above"} else []
        return Certified(np.sort(np.append(thresholds[:passed], never)), method)
    pilot, rest = _split(distinct, _generator(random_state, distinct))
    thresholds = pilot.scores[_spread(len(pilot))]
    start = int(_p_values(pilot, thresholds, limits, scale).argmin())
    order = thresholds[start:] if aim(pilot) <= thresholds[start] else thresholds[start::-1]
    passed = _first_passes(_p_values(rest, order, limits, scale), delta)
    method = "exact binomial tests of nine rows in ten in a fixed sequence, its start and thresholds from the tenth"
    return Certified(np.sort(order[:passed]), method)


def _refuse(table: ScoreTable, limits: tuple[Limit, ...]) -> None:
    wrong = [limit.name for limit in limits if limit.name not in SHARES]
    if wrong or not limits:
        what = f"not for {wrong[0]!r}" if wrong else "but there is no limit"
        raise InputError(f"guarantee is for limits on {', '.join(SHARES)}, {what}. Leave it out, or change the limits.")
    distinct = table.distinct
    if distinct._labels is None and any(np.any(count % 1) for count in (distinct.positives, distinct.negatives)):
        raise InputError("guarantee counts rows, so weights must be whole numbers. Leave guarantee or weights out.")


def _easier(limit: Limit) -> str:
    if limit.name in EASIER_ABOVE:
        return "neither" if limit.at_least else "above"
    return "below" if limit.name == "recall" and limit.at_least else "neither"


def _spread(size: int) -> NDArray[np.int64]:
    """Indices of thresholds from the highest down; of very many, those at ranks in steps of about 0.05 %."""
    if size <= MOST_TESTS:
        return np.arange(size)[::-1]
    ranks = np.unique(np.geomspace(1, size, MOST_TESTS).astype(np.int64))
    return size - ranks


def _generator(random_state: Any, distinct: ScoreTable) -> np.random.Generator:
    """A generator whose draws depend on the rows too.

    A bare seed would draw the same ranks of every table into the pilot, and the other ranks are no random sample: over
    many tables the limits would hold too seldom with one seed and too often with the next.
    """
    if not Number(0, whole=True).accepts(random_state):
        return generator(random_state)
    sums = [0, 0, 0]
    for at in slices(len(distinct)):
        part = distinct._at(at)
        columns = (part.scores, part.positives, part.negatives)
        sums = [crc32(np.ascontiguousarray(column).data, before) for column, before in zip(columns, sums)]
    return np.random.default_rng([int(random_state), *sums])


def _split(distinct: ScoreTable, rng: np.random.Generator) -> tuple[ScoreTable, ScoreTable]:
    """The rows in two parts at random, drawn from the counts, so that the order of the rows is nothing."""
    hits, misses = (_drawn(distinct, name, rng) for name in ("positives", "negatives"))
    if distinct._labels is not None:
        chosen = (hits + misses).astype(bool)
        pilot, rest = _part(distinct, chosen), _part(distinct, ~chosen)
    else:
        pilot = _table(distinct.scores, hits, misses)
        rest = _table(distinct.scores, distinct.positives - hits, distinct.negatives - misses)
    if len(pilot) == 0 or len(rest) == 0:
        raise InputError("There are too few rows to guarantee a limit: some are needed to choose where to test.")
    return pilot, rest


def _drawn(distinct: ScoreTable, name: str, rng: np.random.Generator) -> Any:
    """How many of the positives or negatives of each score are drawn into the pilot."""
    kind = np.float64 if distinct._labels is None else np.uint8
    parts = (np.asarray(getattr(distinct._at(at), name), dtype=np.int64) for at in slices(len(distinct)))
    return np.concatenate([rng.binomial(part, PILOT).astype(kind) for part in parts])


def _part(rows: ScoreTable, chosen: NDArray[np.bool_]) -> ScoreTable:
    assert rows._labels is not None
    part = BinaryRows(rows.scores[chosen], rows._labels[chosen], None, (0, 1))
    return ScoreTable._of_rows(part, ascending=True, in_order=False)


def _table(scores: Floats, positives: Floats, negatives: Floats) -> ScoreTable:
    kept = positives + negatives > 0
    return ScoreTable._of_counts(scores[kept], positives[kept], negatives[kept], None, None, (0, 1), ascending=True)


def _p_values(table: ScoreTable, thresholds: Floats, limits: tuple[Limit, ...], scale: Scale) -> Floats:
    """The largest p-value of `this limit is not met`, at every threshold."""
    tp, fp = counts_above(table, thresholds)
    cells = Cells(tp, fp, table.total_positives - tp, table.total_negatives - fp)
    worst = np.zeros(len(thresholds))
    for limit in limits:
        hits, trials = hits_and_trials(limit.name, cells)
        bound = limit.bound / scale.alert_rows if limit.name == "alerts" else limit.bound
        tail = tails.binomial_at_least if limit.at_least else tails.binomial_at_most
        worst = np.maximum(worst, tail(hits, trials, min(max(bound, 0.0), 1.0)))
    return worst


def _first_passes(p_values: Floats, delta: float) -> int:
    """How many pass before the first that fails."""
    failed = p_values > delta
    return int(failed.argmax()) if failed.any() else len(p_values)
