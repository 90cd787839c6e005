"""`calibrant fit` for K classes: learn a map of all columns, judge it on rows it has not seen, write it.

May import every layer below, and the modules of this folder.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant import metrics
from calibrant.calibrators._class_cross_fit import cross_fitted_probabilities, folds_for
from calibrant.cli import _class_large, _class_methods, _console
from calibrant.cli._class_reading import (
    ClassRequest,
    RowCounts,
    ScoreColumns,
    as_probabilities,
    class_rows_read,
    counts_of,
    next_command,
    options_of,
    read_class_file,
    score_columns,
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


class _Fitted(NamedTuple):
    """The map, what it was fitted to, why it is that map, and how it does on rows it has not seen."""

    record: Map
    counts: RowCounts
    columns: ScoreColumns
    reason: str | None
    judged: ClassJudged | None


def run_class_fit(request: ClassRequest, *, method: str | None, output: Path, as_json: bool, force: bool) -> None:
    """Fit, judge, write, tell."""
    calibrator = _class_methods.make_for_classes(method, request.file.from_logits)
    output_target(output, force=force, inputs=[request.file.path])
    columns = score_columns(request)
    size = _class_large.bytes_of(request, columns)
    by_blocks = _class_large.goes_by_blocks(size, calibrator)
    fitted = (_by_blocks if by_blocks else _at_once)(request, columns, calibrator, size)
    fitted.record.save(output, force=force)
    if as_json:
        content = _as_dict(request, fitted, type(calibrator).__name__, output)
        _console.show_raw(json.dumps(finite_only(content), ensure_ascii=False, indent=1))
    else:
        _tell(request, fitted, method, output, by_blocks)


def _at_once(request: ClassRequest, columns: ScoreColumns, calibrator: Any, size: int) -> _Fitted:
    """The fit to rows in memory, judged by cross-fitting."""
    _class_large.refuse_what_does_not_fit(size, calibrator)
    from_logits = request.file.from_logits
    read = read_class_file(request, columns, "logit" if from_logits else "probability")
    rows, counts = read.rows, counts_of(read)
    two_classes_occur(counts, "a fit")
    with _console.working("Fitting the map"):
        calibrator.set_params(classes=list(rows.classes))
        calibrator.fit(rows.scores, np.array(rows.classes)[rows.labels], rows.weights)
    with _console.working("Judging it on rows it has not seen"):
        judged = _judge(rows, calibrator, from_logits)
    return _Fitted(calibrator.map_, counts, columns, getattr(calibrator, "reason_", None), judged)


def _by_blocks(request: ClassRequest, columns: ScoreColumns, calibrator: Any, size: int) -> _Fitted:
    """The fit to rows that stay in the file; not judged, for that would be a fit for each fold."""
    with _class_large.staged_file(request, columns) as staged:
        counts = RowCounts(staged.size, staged.dropped, staged.classes, staged.class_weights)
        two_classes_occur(counts, "a fit")
        record = _class_large.fit_by_blocks(request, columns, staged, calibrator)
    return _Fitted(record, counts, columns, None, None)


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


def _as_dict(request: ClassRequest, fitted: _Fitted, method: str, output: Path) -> dict[str, Any]:
    counts = fitted.counts
    return {
        "source": str(request.file.path),
        "rows": counts.rows,
        "total_weight": counts.total,
        "dropped": counts.dropped,
        "columns": list(fitted.columns.names),
        "classes": list(counts.classes),
        "class_weights": counts.weights.tolist(),
        "method": method,
        "reason": fitted.reason,
        "map_file": str(output),
        "map": fitted.record.to_dict(),
        "cross_fitted": None if fitted.judged is None else asdict(fitted.judged),
    }


def _tell(request: ClassRequest, fitted: _Fitted, method: str | None, output: Path, by_blocks: bool) -> None:
    _console.show(class_rows_read(fitted.counts, request.file.path.name))
    _console.show(f"Method: {method or _class_methods.DEFAULT}{', as asked for' if method else ''}.", "")
    if fitted.reason:
        _console.show(f"  {fitted.reason}", "")
    if fitted.judged is not None:
        _console.show(_losses_table(fitted.judged), "", verdict(fitted.judged))
    elif by_blocks:
        _console.show(
            "Fitted block by block, for the scores take more than a gigabyte. Not judged: run evaluate, with --map, on "
            "rows that the map was not fitted on."
        )
    else:
        _console.show("Not judged: cross-fitting needs at least two rows of two classes.")
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
