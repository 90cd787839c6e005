"""What `calibrant evaluate` can show beyond numbers: intervals, the verdict on a margin, and the same by group.

May import `calibrant.metrics`, `calibrant.data`, `calibrant.errors` and the modules of this folder; not scikit-learn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from calibrant import metrics
from calibrant.cli import _console
from calibrant.cli._reading import as_probabilities
from calibrant.cli._words import number
from calibrant.data import ScoreTable
from calibrant.errors import InputError
from calibrant.metrics import CalibrationVerdict, Estimate, GroupedEvidence, GroupEvidence
from calibrant.metrics._groups import grouped_evidence, split_table

MOST_MARGIN = 0.02


@dataclass(frozen=True)
class Evidence:
    """Estimates by name, the verdict, and the groups when a column of them was named."""

    estimates: dict[str, Estimate]
    verdict: CalibrationVerdict
    groups: GroupedEvidence | None


def evidence(table: ScoreTable, groups: Any, margin: float | None) -> Evidence:
    """The evidence of a table of probabilities."""
    table = as_probabilities(table)
    rarer = min(table.prevalence, 1 - table.prevalence)
    usual = float(f"{min(MOST_MARGIN, 0.2 * rarer or MOST_MARGIN):.0e}")
    limit = usual if margin is None else margin
    verdict = metrics.calibration_verdict(table, margin=limit)
    by_group = None if groups is None else grouped_evidence(split_table(table, groups), limit, 0.95)
    return Evidence({"calibration_error": verdict.estimate, **_estimates(table)}, verdict, by_group)


def _estimates(table: ScoreTable) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for name in ("log_loss", "brier_score", "roc_auc", "average_precision"):
        try:
            found[name] = metrics.estimate(getattr(metrics, name), table)
        except InputError:
            continue
    try:
        line = metrics.estimate(metrics.calibration_slope_intercept, table)
        found |= {"calibration_slope": line.slope, "calibration_intercept": line.intercept}
    except InputError:
        pass
    return found


# ---------------------------------------------------------------- for programs


def evidence_as_dict(found: Evidence) -> dict[str, Any]:
    """The content as plain numbers; None for what is infinite."""
    verdict = found.verdict
    return {
        "intervals": {name: _ends(one) for name, one in found.estimates.items()},
        "margin": verdict.margin,
        "verdict": verdict.verdict,
        "rows_needed": _finite(verdict.rows_needed),
        "near_margin": verdict.near_margin,
        "informative": verdict.informative,
        "words": verdict.words,
        "groups": None if found.groups is None else [_group(line) for line in found.groups.groups],
        "groups_level": None if found.groups is None else found.groups.level,
    }


def _ends(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {"value": _finite(found.value), "low": _finite(found.low), "high": _finite(found.high), "level": found.level}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _group(line: GroupEvidence) -> dict[str, Any]:
    return {
        "group": line.group,
        "rows": line.rows,
        "mean_score": line.mean_predicted,
        "event_rate": line.observed_rate,
        "verdict": line.verdict,
        "calibration_error": _ends(line.calibration_error),
        "roc_auc": _ends(line.discrimination),
    }


# ---------------------------------------------------------------- telling

LABELS = {
    "calibration_error": "Calibration error",
    "log_loss": "Log loss",
    "brier_score": "Brier score",
    "calibration_slope": "Calibration slope",
    "calibration_intercept": "Calibration intercept",
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
}


def tell_evidence(found: Evidence) -> None:
    """Intervals, the verdict, and a line for each group."""
    _console.show("", "What chance leaves open (95 % intervals):", "", _intervals(found), "", found.verdict.words)
    if found.groups is not None:
        _console.show("", group_table(found.groups), "", found.groups.words)


def _intervals(found: Evidence) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    for name, one in found.estimates.items():
        if math.isfinite(one.value):
            table.add_row(LABELS[name], number(one.value, 4), number(one.low, 4), f"to {number(one.high, 4)}")
    return table


def group_table(found: GroupedEvidence) -> Any:
    """The worst group first: mean score, event rate, calibration error with an interval, AUC, verdict."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("group", "rows", "mean", "events", "error", "interval", "AUC", "verdict"):
        table.add_column(name, justify="left" if name in ("group", "verdict") else "right")
    for line in found.groups:
        table.add_row(
            str(line.group) or "(none)",
            f"{line.rows:,}",
            number(line.mean_predicted, 3),
            number(line.observed_rate, 3),
            "-" if line.calibration_error is None else f"{line.calibration_error.value:.3f}",
            _ends_of(line.calibration_error),
            "-" if line.discrimination is None else f"{line.discrimination.value:.3f}",
            line.verdict,
        )
    return table


def _ends_of(found: Estimate | None) -> str:
    return "-" if found is None else f"{found.low:.3f} to {found.high:.3f}"
