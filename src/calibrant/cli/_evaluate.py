"""`calibrant evaluate`: the measures of a file, as a table or as JSON.

May import `calibrant.maps`, `calibrant.data`, and the modules of this folder; not scikit-learn.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from calibrant.cli import _console, _fitted_on
from calibrant.cli._evaluation import BinnedError, Evaluation, evaluation
from calibrant.cli._evidence import Evidence, evidence, evidence_as_dict, tell_evidence
from calibrant.cli._reading import Request, Rows, range_of, read_rows
from calibrant.cli._words import for_command_line, number, percent, rows_read
from calibrant.data import ScoreTable, SharedRows
from calibrant.errors import InputError
from calibrant.maps import Map, load_map


def run_evaluate(
    request: Request,
    *,
    map_path: Path | None,
    fitted_on: Path | None,
    n_bins: int,
    margin: float | None,
    as_json: bool,
) -> None:
    """Read, map if asked, measure, tell."""
    record = None if map_path is None else load_map(map_path)
    rows = read_rows(request)
    shared = None if fitted_on is None else _shared(request, rows.table, fitted_on)
    if record is not None:
        rows = Rows(_mapped(rows, record), rows.dropped, rows.groups)
    with _console.working("Measuring"):
        found = evaluation(rows.table, n_bins)
        proof = evidence(rows.table, rows.groups, margin) if found.scores.inside else None
    if as_json:
        content = _as_dict(request, rows, map_path, found, proof)
        content["fitted_on"] = _fitted_on.as_dict(shared, fitted_on)
        _console.show_raw(json.dumps(content, ensure_ascii=False, indent=1))
        return
    _console.show(rows_read(rows.table, request.path.name, rows.dropped))
    if record is not None:
        _console.show(f"Scores are mapped by {map_path}; judge a map on rows that it was not fitted on.")
    if shared is not None and fitted_on is not None:
        _fitted_on.tell_rows_in_both(shared, fitted_on)
    _tell(found)
    if proof is not None:
        tell_evidence(proof)


def _shared(request: Request, table: ScoreTable, fitted_on: Path) -> SharedRows:
    fitted = read_rows(replace(request, path=fitted_on, group=None)).table
    if any(None not in pair and pair[0] != pair[1] for pair in zip(fitted.classes, table.classes)):
        raise InputError(
            f"--fitted-on {fitted_on} has the labels {fitted.classes[0]!r} and {fitted.classes[1]!r}, and the rows to "
            f"be judged have {table.classes[0]!r} and {table.classes[1]!r}: rows with other labels cannot be compared. "
            f"Write the labels of both files alike."
        )
    return _fitted_on.rows_in_both((fitted.scores, fitted._labels), (table.scores, table._labels), fitted_on)


def _mapped(rows: Rows, record: Map) -> Any:
    if len(record.classes) != 2:
        raise InputError(
            f"--map must be a map of two classes, but this one has {len(record.classes)}: name the columns of their "
            f"scores with --scores instead of --score."
        )
    found = range_of(rows.table)
    if record.reads == "probability" and not found.inside:
        raise InputError(
            f"The map reads probabilities, but {found.outside:,} of {len(rows.table):,} scores lie outside [0, 1] "
            f"(they run from {found.low:.6g} to {found.high:.6g}). Is it the right column?"
        )
    if str(record.classes[1]) != str(rows.table.classes[1]) and {*rows.table.classes} != {0, 1}:
        _console.note(
            f"The map was fitted for the event {record.classes[1]!r}, but here the event is {rows.table.classes[1]!r}."
        )
    return rows.table.with_scores(record(rows.table.scores))


def _as_dict(
    request: Request, rows: Rows, map_path: Path | None, found: Evaluation, proof: Evidence | None
) -> dict[str, Any]:
    binned = found.calibration_error
    return {
        "source": str(request.path),
        "map_file": None if map_path is None else str(map_path),
        "rows": found.rows,
        "total_weight": found.total_weight,
        "dropped": rows.dropped,
        "classes": list(found.classes),
        "prevalence": found.prevalence,
        "lowest_score": found.scores.low,
        "highest_score": found.scores.high,
        **found.measures,
        "brier_decomposition": found.decomposition,
        "expected_calibration_error": None if binned is None else asdict(binned),
        "reasons": found.reasons,
        "evidence": None if proof is None else evidence_as_dict(proof),
    }


# ---------------------------------------------------------------- telling


def _tell(found: Evaluation) -> None:
    if not found.scores.inside:
        _console.show(
            "",
            f"The scores run from {found.scores.low:.4g} to {found.scores.high:.4g}: {found.reasons['log_loss']}, and "
            f"only their ranking can be measured. `calibrant fit` makes probabilities of them.",
        )
    _console.show("", _measures(found))
    if found.calibration_error is not None:
        _console.show("", *_bins(found.calibration_error))
    missing = {name: reason for name, reason in found.reasons.items() if found.scores.inside or name in RANKING}
    for reason in dict.fromkeys(missing.values()):
        names = " and ".join(LABELS[name] for name, other in missing.items() if other == reason and name in LABELS)
        _console.show("", f"{names}: {for_command_line(reason)}")


FULL_WIDTH = 78
RANKING = ("roc_auc", "average_precision")
LABELS = {
    "log_loss": "Log loss",
    "brier_score": "Brier score",
    "miscalibration": "  + miscalibration",
    "discrimination": "  - discrimination",
    "uncertainty": "  + uncertainty",
    "mean_score": "Mean score",
    "calibration_slope": "Calibration slope",
    "calibration_intercept": "Calibration intercept",
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
}


def _measures(found: Evaluation) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    values = {**found.measures, **(found.decomposition or {})}
    words = _meanings(found)
    for name in LABELS:
        if name in values and (found.scores.inside or name in RANKING):
            value = values[name]
            text = "-" if value is None else number(value, 5)
            meaning = words[name] if value is not None else "see below"
            table.add_row(LABELS[name], text, *([meaning] if _console.width() >= FULL_WIDTH or value is None else []))
    return table


def _meanings(found: Evaluation) -> dict[str, str]:
    rate = percent(found.prevalence)
    return {
        "log_loss": "lower is better",
        "brier_score": "lower is better; it is the sum of:",
        "miscalibration": "what a perfect recalibration would take off",
        "discrimination": "what the ranking gains over the base rate",
        "uncertainty": "the score of the base rate alone",
        "mean_score": f"the event rate is {rate}",
        "calibration_slope": "1 is honest, below 1 over-confident",
        "calibration_intercept": "0 is honest, given the slope",
        "roc_auc": "1 ranks perfectly, 0.5 is chance",
        "average_precision": f"chance is {number(found.prevalence)}",
    }


def _bins(binned: BinnedError) -> list[Any]:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("score", "rows", "mean score", "event rate", "gap"):
        table.add_column(name, justify="left" if name == "score" else "right", no_wrap=True)
    empty = 0
    for row in binned.bins:
        mean, rate = row["mean_predicted"], row["observed_rate"]
        if mean is None or rate is None:
            empty += 1
            continue
        where = f"{row['low']:.3f} to {row['high']:.3f}"
        table.add_row(where, f"{row['rows']:,.0f}", f"{mean:.4f}", f"{rate:.4f}", f"{mean - rate:+.4f}")
    head = (
        f"Expected calibration error {number(binned.value, 5)} over these {binned.n_bins} bins of equal width; "
        f"{number(binned.equal_mass_value, 5)} over bins of equal mass. It moves with the bins, and chance alone keeps "
        f"it above 0 for the most honest scores: never choose a map by it."
    )
    tail = [f"{empty} of the {binned.n_bins} bins are empty."] if empty else []
    return [head, "", table, *tail]
