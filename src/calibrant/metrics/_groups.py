"""The same evidence segment by segment, with intervals that hold for all segments together.

Whether a segment is too small is decided by its probabilities alone, never by what happened in it; the others share
the error that is allowed (Bonferroni), so that with many segments none is blamed by chance.
May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Label
from calibrant._kernels import grouping
from calibrant._kernels._dot import dot
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, array_of
from calibrant.errors import InputTypeError
from calibrant.metrics._design import Design
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import Estimate, inner_share, worth
from calibrant.metrics._verdict import BEYOND, TOO_FEW, WITHIN, CalibrationVerdict, verdict_of

LEAST = 5.0
"""Events, and other rows, that the probabilities of a segment must promise."""
TOO_SMALL = "too small to judge"


@dataclass(frozen=True)
class GroupEvidence:
    """One segment.

    Attributes
    ----------
    group : label
        Its name.
    rows : int
        Rows with weight above zero.
    observed_rate, mean_predicted : float
        Share of events, and mean probability.
    verdict : str
        "beyond margin", "within margin", "not enough rows", or "too small to judge".
    calibration_error, discrimination : Estimate or None
        Calibration error and AUC; None when the segment is too small (or holds one class only).
    evidence : CalibrationVerdict or None
        All that is known about it; None when it is too small.
    """

    group: Any
    rows: int
    observed_rate: float
    mean_predicted: float
    verdict: str
    calibration_error: Estimate | None
    discrimination: Estimate | None
    evidence: CalibrationVerdict | None


@dataclass(frozen=True)
class GroupedEvidence:
    """All segments.

    Attributes
    ----------
    groups : tuple of GroupEvidence
        The worst first: miscalibrated beyond the margin, then undecided, then calibrated within it, each by its
        calibration error; those too small to judge last.
    margin : float
        The margin of the verdicts.
    confidence : float
        Chance that all intervals hold their true values, at least about.
    level : float
        Level of each interval.
    words : str
        The finding in words.
    """

    groups: tuple[GroupEvidence, ...]
    margin: float
    confidence: float
    level: float
    words: str

    def __str__(self) -> str:
        return self.words


def calibration_by_group(
    y_true: Any,
    y_prob: Any,
    groups: Any,
    *,
    margin: float = 0.05,
    confidence: float = 0.95,
    sample_weight: Any = None,
    pos_label: Label | None = None,
) -> GroupedEvidence:
    """Calibration and discrimination of every segment, the worst first, with intervals that hold together.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    groups : array-like of shape (n,)
        The segment of each row.
    margin : float
        The calibration error that would still be fine, as in `calibration_verdict`.
    confidence : float
        Level of all intervals together, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    GroupedEvidence

    Notes
    -----
    Each of G segments that can be judged gets intervals of level `1 - (1 - confidence) / G`. A segment is too small
    when its probabilities promise fewer than 5 events or fewer than 5 other rows. Cost: a few sorts. Source: Dunn
    (1961).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import calibration_by_group
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.uniform(size=6000), np.repeat(["north", "south", "east"], [3990, 2000, 10])
    >>> y = rng.uniform(size=6000) < np.where(region == "south", p**2, p)
    >>> found = calibration_by_group(y, p, region, margin=0.05)
    >>> [(one.group, one.verdict) for one in found.groups]
    [('south', 'beyond margin'), ('north', 'within margin'), ('east', 'too small to judge')]
    """
    total = inner_share("calibration_by_group", "confidence", confidence)
    limit = inner_share("calibration_by_group", "margin", margin)
    if y_prob is None or groups is None or isinstance(y_true, ScoreTable):
        raise InputTypeError("calibration_by_group needs rows and their groups: (y_true, y_prob, groups).")
    aligned(y_true=y_true, groups=groups)
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="calibration_by_group")
    return grouped_evidence(split_table(table, _kept(groups, sample_weight)), limit, total)


def _kept(groups: Any, sample_weight: Any) -> Any:
    values = array_of(groups, "groups")
    if sample_weight is None:
        return values
    weights = np.asarray(array_of(sample_weight, "sample_weight"), dtype=np.float64).reshape(-1)
    _checks.same_length(groups=np.atleast_1d(values), sample_weight=weights)
    return values[weights > 0]


def split_table(table: ScoreTable, groups: Any) -> dict[Any, ScoreTable]:
    """The table of each segment, by name; `groups` names the segment of each entry of the table."""
    _checks.same_length(groups=np.atleast_1d(groups), y_prob=table.scores)
    names, codes = _checks.distinct_labels(groups, "groups")
    places = grouping.places_of_groups(codes, len(names))
    return {_checks.plain_label(name): table._at(at) for name, at in zip(names, places)}


def grouped_evidence(tables: dict[Any, ScoreTable], margin: float, confidence: float) -> GroupedEvidence:
    """The evidence of tables by name."""
    judged = [name for name, table in tables.items() if _promises_enough(_bare(table))]
    level = 1 - (1 - confidence) / max(len(judged), 1)
    lines = [_evidence(name, _bare(table), name in judged, margin, level) for name, table in tables.items()]
    ordered = tuple(sorted(lines, key=_badness))
    return GroupedEvidence(ordered, margin, confidence, level, _words(ordered, margin, confidence))


def _bare(table: ScoreTable) -> ScoreTable:
    """The same table without what it would keep: its order and its sums are needed once."""
    return table.with_scores(table.scores)


def _promises_enough(table: ScoreTable) -> bool:
    share = dot(table.weight, table.scores) / table.total_weight
    return worth(table) * min(share, 1 - share) >= LEAST


def _evidence(name: Any, table: ScoreTable, judged: bool, margin: float, level: float) -> GroupEvidence:
    mean = dot(table.weight, table.scores) / table.total_weight
    if not judged:
        return GroupEvidence(name, table.n_rows, table.prevalence, mean, TOO_SMALL, None, None, None)
    found = verdict_of(Design(table, None), margin, level)
    return GroupEvidence(
        name, table.n_rows, table.prevalence, mean, found.verdict, found.estimate, found.discrimination, found
    )


def _badness(line: GroupEvidence) -> tuple[int, float, float, str]:
    place = (BEYOND, TOO_FEW, WITHIN, TOO_SMALL).index(line.verdict)
    error = line.calibration_error
    low, value = (error.low, error.value) if error is not None else (0.0, 0.0)
    return (place, -low, -value, str(line.group))


def _words(lines: tuple[GroupEvidence, ...], margin: float, confidence: float) -> str:
    count = {
        verdict: sum(line.verdict == verdict for line in lines) for verdict in (BEYOND, WITHIN, TOO_FEW, TOO_SMALL)
    }
    said = [
        f"{count[verdict]} {text}"
        for verdict, text in (
            (BEYOND, f"miscalibrated beyond {margin:g}"),
            (WITHIN, f"calibrated within {margin:g}"),
            (TOO_FEW, "with too few rows to tell"),
            (TOO_SMALL, "too small to judge"),
        )
        if count[verdict]
    ]
    worst = lines[0]
    tail = ""
    if worst.verdict == BEYOND and worst.calibration_error is not None:
        tail = f" The worst is {worst.group}: calibration error {worst.calibration_error}."
    return f"Of {len(lines)} groups {', '.join(said)} (all intervals together {100 * confidence:g} %).{tail}"
