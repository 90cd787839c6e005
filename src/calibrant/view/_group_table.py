"""The segments of the report: the probabilities as given, judged in each, the worst first.

May import NumPy, the kernels, `calibrant.data`, `calibrant.metrics`, and `_proof` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._kernels import likelihood
from calibrant.data import ScoreTable
from calibrant.metrics import GroupEvidence
from calibrant.metrics._groups import grouped_evidence, split_table
from calibrant.view._proof import LEVEL, Interval, interval


@dataclass(frozen=True)
class GroupLine:
    """One segment; the intervals are None when it is too small to judge."""

    group: str
    rows: int
    mean_predicted: float
    observed_rate: float
    verdict: str
    calibration_error: Interval | None
    roc_auc: Interval | None


@dataclass(frozen=True)
class GroupTable:
    """All segments; `confidence` holds for all intervals together, `level` for each."""

    lines: tuple[GroupLine, ...]
    margin: float
    confidence: float
    level: float
    words: str


def group_table(table: ScoreTable, groups: Any, read_as: str, margin: float) -> GroupTable | None:
    """The segments of a table of rows; None when the scores are no probabilities."""
    if read_as == "score":
        return None
    p = likelihood.expit(table.scores) if read_as == "log-odds" else np.clip(table.scores, 0.0, 1.0)
    found = grouped_evidence(split_table(table.with_scores(p), np.asarray(groups)), margin, LEVEL)
    lines = tuple(_line(one) for one in found.groups)
    return GroupTable(lines, margin, found.confidence, found.level, found.words)


def _line(found: GroupEvidence) -> GroupLine:
    error, area = found.calibration_error, found.discrimination
    return GroupLine(
        str(found.group),
        found.rows,
        found.mean_predicted,
        found.observed_rate,
        found.verdict,
        None if error is None else interval(error),
        None if area is None else interval(area),
    )
