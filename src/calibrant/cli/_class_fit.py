"""`calibrant fit` for K classes: learn a map of all columns, judge it on rows it has not seen, write it.

May import every layer below, and the modules of this folder.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import metrics
from calibrant.calibrators._class_cross_fit import cross_fitted_probabilities, folds_for
from calibrant.cli import _class_methods, _console
from calibrant.cli._class_reading import (
    ClassRequest,
    ManyRows,
    as_probabilities,
    class_rows_read,
    next_command,
    options_of,
    read_class_file,
    total_of,
    two_classes_occur,
)
from calibrant.cli._fit import FOLDS, finite_only
from calibrant.cli._words import number
from calibrant.data._arrays import ClassRows
from calibrant.data._output import output_target
from calibrant.errors import CalibrantWarning
from calibrant.maps import Map

MEASURES = (
    ("log loss", "log_loss"),
    ("Brier score", "brier_score"),
    ("accuracy", "accuracy"),
    ("top-label calibration error", "top_label_calibration_error"),
)


@dataclass(frozen=True)
class ClassLosses:
    """Measures of one set of probabilities; the calibration error has chance taken off."""

    log_loss: float
    brier_score: float
    accuracy: float
    top_label_calibration_error: float


@dataclass(frozen=True)
class ClassJudged:
    """The scores before and after the map, on the same rows, none of them seen.

    `gain` is how much lower the mean loss is after, with a 95 % interval; in log loss, or in Brier score where a log
    loss is infinite.
    """

    folds: int
    before: ClassLosses
    after: ClassLosses
    gain_in: str
    gain: float
    gain_low: float
    gain_high: float


def run_class_fit(request: ClassRequest, *, method: str | None, output: Path, as_json: bool, force: bool) -> None:
    """Fit, judge, write, tell."""
    from_logits = request.file.from_logits
    calibrator = _class_methods.make_for_classes(method, from_logits)
    output_target(output, force=force, inputs=[request.file.path])
    read = read_class_file(request, "logit" if from_logits else "probability")
    rows = read.rows
    two_classes_occur(rows, "a fit")
    with _console.working("Fitting the map"):
        calibrator.set_params(classes=list(rows.classes))
        calibrator.fit(rows.scores, np.array(rows.classes)[rows.labels], rows.weights)
    with _console.working("Judging it on rows it has not seen"):
        judged = _judge(rows, calibrator, from_logits)
    calibrator.map_.save(output, force=force)
    if as_json:
        content = _as_dict(request, read, calibrator, judged, output)
        _console.show_raw(json.dumps(finite_only(content), ensure_ascii=False, indent=1))
    else:
        _tell(request, read, calibrator, method, judged, output)


# ---------------------------------------------------------------- judging


def _judge(rows: ClassRows, calibrator: Any, from_logits: bool) -> ClassJudged | None:
    """Before and after; None when there are too few rows for that."""
    folds = folds_for(rows, FOLDS)
    if folds < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)  # a fold may warn where the whole does not
        after = cross_fitted_probabilities(calibrator, rows, folds)
    before = as_probabilities(rows, from_logits).scores
    losses = _losses(rows, before), _losses(rows, after)
    in_log = all(math.isfinite(side.log_loss) for side in losses)
    measure = metrics.log_loss if in_log else metrics.brier_score
    gain = metrics.compare(measure, rows.labels, before, after, sample_weight=rows.weights)
    name = "log loss" if in_log else "Brier score"
    return ClassJudged(folds, *losses, name, gain.value, gain.low, gain.high)


def _losses(rows: ClassRows, probabilities: Any) -> ClassLosses:
    top = metrics.top_label_table(rows.labels, probabilities, sample_weight=rows.weights)
    return ClassLosses(
        metrics.log_loss(rows.labels, probabilities, sample_weight=rows.weights),
        metrics.brier_score(rows.labels, probabilities, sample_weight=rows.weights),
        top.prevalence,
        metrics.calibration_error(top).value,
    )


# ---------------------------------------------------------------- telling


def _as_dict(
    request: ClassRequest, read: ManyRows, calibrator: Any, judged: ClassJudged | None, output: Path
) -> dict[str, Any]:
    rows = read.rows
    counts = np.bincount(rows.labels, rows.weights, minlength=len(rows.classes))
    return {
        "source": str(request.file.path),
        "rows": len(rows.labels),
        "total_weight": total_of(rows),
        "dropped": read.dropped,
        "columns": list(read.columns.names),
        "classes": list(rows.classes),
        "class_weights": counts.tolist(),
        "method": type(calibrator).__name__,
        "reason": getattr(calibrator, "reason_", None),
        "map_file": str(output),
        "map": _map_of(calibrator).to_dict(),
        "cross_fitted": None if judged is None else asdict(judged),
    }


def _map_of(calibrator: Any) -> Map:
    made: Map = calibrator.map_
    return made


def _tell(
    request: ClassRequest,
    read: ManyRows,
    calibrator: Any,
    method: str | None,
    judged: ClassJudged | None,
    output: Path,
) -> None:
    _console.show(class_rows_read(read, request.file.path.name))
    _console.show(f"Method: {method or _class_methods.DEFAULT}{', as asked for' if method else ''}.", "")
    reason = getattr(calibrator, "reason_", None)
    if reason:
        _console.show(f"  {reason}", "")
    if judged is None:
        _console.show("Not judged: cross-fitting needs at least two rows of two classes.")
    else:
        _console.show(_losses_table(judged), "", verdict(judged))
    _console.show("", f"Map written to {output}. Next:", f"  {_apply_command(request, output)}")


def _losses_table(judged: ClassJudged) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0), show_header=True, header_style="bold")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for name, key in MEASURES:
        cells = [number(getattr(side, key), 5) for side in (judged.before, judged.after)]
        table.add_row(f"  {name}", *cells)
    return table


def verdict(judged: ClassJudged) -> str:
    """Whether the map helps on rows it has not seen, in a sentence or two."""
    how = f"After: each row judged by a map fitted without it ({judged.folds} folds)."
    ends = f"95 % interval {number(judged.gain_low, 5)} to {number(judged.gain_high, 5)}"
    if judged.gain_low > 0:
        return f"{how} The map lowers the {judged.gain_in} by {number(judged.gain, 5)} ({ends})."
    if judged.gain_high < 0:
        return f"{how} The map does harm: {judged.gain_in} higher by {number(-judged.gain, 5)} (gain: {ends})."
    return f"{how} No clear gain in {judged.gain_in} ({number(judged.gain, 5)}, {ends}): the scores may do as they are."


def _apply_command(request: ClassRequest, output: Path) -> str:
    path = request.file.path
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    words = ["apply", str(output), f"new{suffix}", *options_of(request), "-o", f"calibrated{suffix}"]
    return next_command(request, *words)
