"""`calibrant fit`: learn a map, judge it on rows it has not seen, write it.

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

from calibrant import calibrators, metrics
from calibrant._kernels import likelihood
from calibrant.calibrators._base import BinaryCalibrator
from calibrant.calibrators._cross_fit import cross_fitted_table, most_folds
from calibrant.cli import _console, _methods
from calibrant.cli._reading import (
    Range,
    Request,
    Rows,
    as_probabilities,
    command,
    range_of,
    read_rows,
    refuse_a_few_outside,
)
from calibrant.cli._words import map_in_words, number, rows_read
from calibrant.data import ScoreTable
from calibrant.data._output import output_target
from calibrant.errors import CalibrantWarning, InputError
from calibrant.maps import Map

FOLDS = 5


@dataclass(frozen=True)
class Losses:
    """Two proper scores of one set of probabilities."""

    log_loss: float
    brier_score: float


@dataclass(frozen=True)
class Judged:
    """The map before (None for scores that are no probabilities) and after, on the same rows, none of them seen.

    `gain` and `gain_error`: how much lower the mean loss is after, and the standard error of that; in log loss, or in
    Brier score where a log loss is infinite.
    """

    folds: int
    before: Losses | None
    after: Losses
    gain_in: str
    gain: float
    gain_error: float


def run_fit(request: Request, *, method: _methods.Method | None, output: Path, as_json: bool, force: bool) -> None:
    """Fit, judge, write, tell."""
    output_target(output, force=force, inputs=[request.path])
    rows = read_rows(request)
    calibrator, why = choose(rows.table, method, request.from_logits)
    with _console.working("Fitting the map"):
        record = calibrator.fit_table(rows.table).map_
    with _console.working("Judging it on rows it has not seen"):
        judged = judge(rows.table, calibrator, record)
    why = f"{why} {calibrator.reason_}" if isinstance(calibrator, calibrators.AutoCalibrator) else why
    record.save(output, force=force)
    if as_json:
        _console.show_raw(json.dumps(_as_dict(request, rows, record, judged, output), ensure_ascii=False, indent=1))
    else:
        _tell(request, rows, why, record, judged, output)


# ---------------------------------------------------------------- choosing


def choose(table: ScoreTable, method: _methods.Method | None, from_logits: bool) -> tuple[BinaryCalibrator, str]:
    """The calibrator, and one line that says why it is that one."""
    found = range_of(table)
    if method is None:
        return _by_range(table, found, from_logits)
    calibrator = _methods.make(method, from_logits)
    if calibrator._reads == "probability" and not found.inside:
        raise InputError(
            f"--method {method.value} reads probabilities, but {found.outside:,} of {len(table):,} scores lie outside "
            f"[0, 1] (they run from {found.low:.6g} to {found.high:.6g}). If they are log-odds, add --from-logits; for "
            f"other scores use --method platt or isotonic."
        )
    return calibrator, f"Method: {method.value}, as asked for."


def _by_range(table: ScoreTable, found: Range, from_logits: bool) -> tuple[BinaryCalibrator, str]:
    if from_logits:
        return calibrators.AffineLogit(from_logits=True), "Method: affine, on the log-odds given."
    refuse_a_few_outside(table, found)
    if found.inside:
        return calibrators.AffineLogit(), "Method: affine on the log-odds, because all scores lie in [0, 1]."
    run = f"{found.low:.4g} to {found.high:.4g}"
    return calibrators.PlattScaling(), f"Method: platt, because the scores ({run}) are no probabilities."


# ---------------------------------------------------------------- judging


def judge(table: ScoreTable, calibrator: BinaryCalibrator, record: Any) -> Judged | None:
    """Before and after, each row judged by a map fitted without it; None when there are too few rows for that."""
    folds = min(FOLDS, most_folds(table))
    if folds < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)  # a fold may warn where the whole does not
        after = cross_fitted_table(calibrator, table, folds)
    start = probabilities_before(table, calibrator)
    base = table.with_scores(np.full(len(table), table.prevalence)) if start is None else start
    losses = [_losses(base), _losses(after)]
    in_log = all(math.isfinite(side.log_loss) for side in losses)
    values = [side.log_loss if in_log else side.brier_score for side in losses]
    error = _standard_error(base, record(table.scores), in_log)
    measure = "log loss" if in_log else "Brier score"
    return Judged(folds, None if start is None else losses[0], losses[1], measure, values[0] - values[1], error)


def probabilities_before(table: ScoreTable, calibrator: BinaryCalibrator) -> ScoreTable | None:
    """The scores as probabilities, where they are some."""
    if calibrator._reads == "logit":
        return table.with_scores(likelihood.expit(table.scores))
    return as_probabilities(table) if range_of(table).inside else None


def _losses(table: ScoreTable) -> Losses:
    return Losses(metrics.log_loss(table), metrics.brier_score(table))


def _standard_error(base: ScoreTable, mapped: Any, in_log: bool) -> float:
    """Standard error of the mean difference of the rows' losses, under the map of all rows."""
    p = base.scores
    with np.errstate(divide="ignore", invalid="ignore"):
        if in_log:
            positive, negative = np.log(mapped) - np.log(p), np.log1p(-mapped) - np.log1p(-p)
        else:
            positive, negative = (1 - p) ** 2 - (1 - mapped) ** 2, p**2 - mapped**2
    moments = [float(base.positives @ _finite(positive) ** k + base.negatives @ _finite(negative) ** k) for k in (1, 2)]
    mean, square = (moment / base.total_weight for moment in moments)
    return math.sqrt(max(0.0, square - mean**2) / base.total_weight)


def _finite(values: Any) -> Any:
    return np.where(np.isfinite(values), values, 0.0)


# ---------------------------------------------------------------- telling


def _as_dict(request: Request, rows: Rows, record: Map, judged: Judged | None, output: Path) -> dict[str, Any]:
    table = rows.table
    content: dict[str, Any] = {
        "source": str(request.path),
        "rows": table.n_rows,
        "total_weight": table.total_weight,
        "dropped": rows.dropped,
        "classes": list(table.classes),
        "prevalence": table.prevalence,
        "map_file": str(output),
        "map": record.to_dict(),
        "cross_fitted": None if judged is None else asdict(judged),
    }
    return dict(finite_only(content))


def finite_only(content: Any) -> Any:
    """The same content with null for what JSON cannot write: infinity and NaN."""
    if isinstance(content, dict):
        return {key: finite_only(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite_only(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _tell(request: Request, rows: Rows, why: str, record: Map, judged: Judged | None, output: Path) -> None:
    _console.show(rows_read(rows.table, request.path.name, rows.dropped), why, "")
    _console.show(*(f"  {line}" for line in map_in_words(record)), "")
    if judged is None:
        _console.show("Not judged: cross-fitting needs at least two rows of each class.")
    else:
        _console.show(_losses_table(judged), "", verdict(judged))
    _console.show("", f"Map written to {output}. Next:", f"  {_apply_command(request, output)}")


def _losses_table(judged: Judged) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0), show_header=True, header_style="bold")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    before = judged.before
    for name, key in (("log loss", "log_loss"), ("Brier score", "brier_score")):
        first = "-" if before is None else number(getattr(before, key), 5)
        table.add_row(f"  {name}", first, number(getattr(judged.after, key), 5))
    return table


def verdict(judged: Judged) -> str:
    """Whether the map helps on rows it has not seen, in a sentence or two."""
    over = "the scores as they are" if judged.before is not None else "the base rate alone"
    error = f"standard error {number(judged.gain_error, 5)}"
    how = f"After: each row judged by a map fitted without it ({judged.folds} folds)."
    if judged.gain > 2 * judged.gain_error:
        return f"{how} The map lowers the {judged.gain_in} by {number(judged.gain, 5)} ({error}) against {over}."
    if judged.gain < -2 * judged.gain_error:
        return f"{how} The map does harm: {judged.gain_in} higher by {number(-judged.gain, 5)} ({error}) than {over}."
    if judged.before is None:
        return f"{how} No clear gain over {over}: the scores may say nothing about these labels ({error})."
    change = f"{judged.gain_in} {'lower' if judged.gain >= 0 else 'higher'} by {number(abs(judged.gain), 5)}, {error}"
    return f"{how} No clear gain ({change}): {over} may do as well."


def _apply_command(request: Request, output: Path) -> str:
    suffix = "".join(request.path.suffixes[-2:]) if request.path.suffix == ".gz" else request.path.suffix
    words = ["apply", str(output), f"new{suffix}", "--score", request.score or "", "-o", f"calibrated{suffix}"]
    return command(request, *words)
