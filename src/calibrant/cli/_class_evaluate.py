"""`calibrant evaluate` for K classes: the measures of a file, as tables or as JSON.

May import `calibrant.metrics`, `calibrant.maps`, `calibrant.data`, and the modules of this folder; not scikit-learn.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant import _checks, metrics
from calibrant._checks import Floats, Label
from calibrant.cli import _class_large, _console, _fitted_on
from calibrant.cli._class_apply import mapped
from calibrant.cli._class_checks import checked_scores
from calibrant.cli._class_reading import (
    ClassRequest,
    RowCounts,
    ScoreColumns,
    class_rows_read,
    counts_of,
    read_class_file,
    score_columns,
)
from calibrant.cli._evaluate import FULL_WIDTH
from calibrant.cli._evaluation import BinnedError, binned_error
from calibrant.cli._fit import finite_only
from calibrant.cli._words import number, percent
from calibrant.data import ScoreTable, SharedRows
from calibrant.data._cells import MORE
from calibrant.data._class_files import Block, StagedRows
from calibrant.errors import CalibrantWarning
from calibrant.maps import Map, load_map
from calibrant.metrics._classes import summary_of_tables

MOST_CLASSES, MOST_CONFUSIONS = 20, 10


@dataclass(frozen=True)
class ClassEvaluation:
    """Measures of rows of K classes; `reasons` says why one is None."""

    measures: dict[str, float | None]
    top_label: BinnedError
    beyond_chance: metrics.Estimate
    by_class: metrics.ClassSummary
    class_bins: tuple[BinnedError, ...]
    confusion: metrics.Confusion
    reasons: dict[str, str]


def run_class_evaluate(
    request: ClassRequest, *, map_path: Path | None, fitted_on: Path | None, n_bins: int, as_json: bool
) -> None:
    """Read, map if asked, measure, tell."""
    record = None if map_path is None else load_map(map_path)
    columns = score_columns(request)
    large = _class_large.bytes_of(request, columns) > _class_large.LARGE
    shared = None if fitted_on is None else _shared(request, columns, fitted_on)
    counts, tables = (_in_engine if large else _at_once)(request, columns, record, map_path)
    with _console.working("Measuring"):
        found = _evaluation(counts.classes, tables, n_bins)
    if as_json:
        content = finite_only(_as_dict(request, columns, counts, map_path, found))
        content["fitted_on"] = _fitted_on.as_dict(shared, fitted_on)
        _console.show_raw(json.dumps(content, ensure_ascii=False, indent=1))
        return
    _console.show(class_rows_read(counts, request.file.path.name))
    if map_path is not None:
        _console.show(f"Scores are mapped by {map_path}; judge a map on rows that it was not fitted on.")
    if shared is not None and fitted_on is not None:
        _fitted_on.tell_rows_in_both(shared, fitted_on)
    _tell(counts.classes, found, n_bins)


def _shared(request: ClassRequest, columns: ScoreColumns, fitted_on: Path) -> SharedRows:
    other = replace(request, file=replace(request.file, path=fitted_on))
    if any(_class_large.bytes_of(one, columns) > _class_large.LARGE for one in (request, other)):
        raise _fitted_on.too_large(fitted_on)
    fitted, judged = (read_class_file(one, columns, "score").rows for one in (other, request))
    return _fitted_on.rows_in_both((fitted.scores, fitted.labels), (judged.scores, judged.labels), fitted_on)


# ---------------------------------------------------------------- measuring


class ClassTables(NamedTuple):
    """The table of the top label, that of each class, and the weight by class and likeliest class."""

    top: ScoreTable
    by_class: Sequence[ScoreTable]
    decided: Floats


def _at_once(
    request: ClassRequest, columns: ScoreColumns, record: Map | None, map_path: Path | None
) -> tuple[RowCounts, ClassTables]:
    """The tables of rows in memory."""
    read = read_class_file(request, columns, "probability" if record is None else "score")
    y, p, w = read.rows.labels, read.rows.scores, read.rows.weights
    if record is not None and map_path is not None:
        p = mapped(request, record, columns, p, map_path)
    tables = metrics.class_tables(y, p, sample_weight=w)
    top = metrics.top_label_table(y, p, sample_weight=w)
    return counts_of(read), ClassTables(top, tables, metrics.confusion_matrix(y, p, sample_weight=w).weights)


def _in_engine(
    request: ClassRequest, columns: ScoreColumns, record: Map | None, map_path: Path | None
) -> tuple[RowCounts, ClassTables]:
    """The tables of rows that stay in the engine; beyond so many distinct scores they have cells, which is told."""

    def made(staged: StagedRows) -> Iterator[Block]:
        for scores, labels, weights in staged.blocks():
            if record is None or map_path is None:
                yield checked_scores(request, columns.names, scores, "probability"), labels, weights
            else:
                yield mapped(request, record, columns, scores, map_path), labels, weights

    with _class_large.staged_file(request, columns) as staged, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with _console.working(f"Adding up {_checks.plural(staged.size, 'row')}"):
            rows = staged.lazy(made(staged))
            k = len(staged.classes)
            top = ScoreTable._of_counts(*rows.top(_class_large.MOST_DISTINCT))
            each = _class_large.MOST_DISTINCT // k
            tables = [ScoreTable._of_counts(*rows.column(place, each)) for place in range(k)]
            counts = RowCounts(staged.size, staged.dropped, staged.classes, staged.class_weights)
            found = ClassTables(top, tables, rows.decided())
    if said:
        warnings.warn(str(said[0].message).removesuffix(MORE).rstrip(), CalibrantWarning, stacklevel=2)
    return counts, found


def _evaluation(classes: tuple[Label, ...], tables: ClassTables, n_bins: int) -> ClassEvaluation:
    top, by_class, decided = tables
    summary = summary_of_tables(classes, by_class, decided, n_bins, "uniform")
    log_loss, reasons = _log_loss(by_class), {}
    if not math.isfinite(log_loss):
        wrong = sum(int(table.rows[(table.scores == 0) & (table.positives > 0)].sum()) for table in by_class)
        reasons["log_loss"] = f"infinite: {_checks.plural(wrong, 'row')} had probability 0 for what happened"
    confidence = float(top.weight @ top.scores) / top.total_weight
    measures = {
        "log_loss": log_loss if math.isfinite(log_loss) else None,
        "brier_score": float(summary.brier.sum()),
        "accuracy": top.prevalence,
        "mean_confidence": confidence,
        "classwise_calibration_error": float(summary.calibration_error.mean()),
    }
    return ClassEvaluation(
        measures,
        binned_error(top, n_bins),
        metrics.calibration_error(top),
        summary,
        tuple(_bins_of(table, n_bins) for table in by_class),
        metrics.Confusion(classes, decided, 1 - top.prevalence, 1 - confidence),
        reasons,
    )


def _log_loss(tables: Sequence[ScoreTable]) -> float:
    """Minus the mean log of the probability of what happened: each class's at its own rows."""
    total = 0.0
    for table in tables:
        own = table.positives > 0
        with np.errstate(divide="ignore"):
            total -= float(table.positives[own] @ np.log(table.scores[own]))
    return total / tables[0].total_weight


def _bins_of(table: ScoreTable, n_bins: int) -> BinnedError:
    """The bins of a class; only those that hold rows, for there may be a thousand classes."""
    found = binned_error(table, n_bins)
    kept = tuple(row for row in found.bins if row["weight"])
    return BinnedError(found.value, found.n_bins, found.strategy, kept, found.equal_mass_value)


# ---------------------------------------------------------------- as JSON


def _as_dict(
    request: ClassRequest, columns: ScoreColumns, counts: RowCounts, map_path: Path | None, found: ClassEvaluation
) -> dict[str, Any]:
    beyond = found.beyond_chance
    return {
        "source": str(request.file.path),
        "map_file": None if map_path is None else str(map_path),
        "rows": counts.rows,
        "total_weight": counts.total,
        "dropped": counts.dropped,
        "columns": list(columns.names),
        "classes": list(counts.classes),
        **found.measures,
        "top_label_calibration_error": _as_bins(found.top_label),
        "top_label_calibration_error_beyond_chance": {"value": beyond.value, "low": beyond.low, "high": beyond.high},
        "by_class": [_class_line(counts.classes, found, k) for k in found.by_class.worst_first],
        "confusion": _confusion_lines(counts.classes, found.confusion),
        "reasons": found.reasons,
    }


def _as_bins(binned: BinnedError) -> dict[str, Any]:
    return {
        "value": binned.value,
        "n_bins": binned.n_bins,
        "strategy": binned.strategy,
        "equal_mass_value": binned.equal_mass_value,
        "bins": list(binned.bins),
    }


COLUMNS = (
    *("weight", "observed_rate", "mean_predicted", "calibration_error", "brier", "roc_auc"),
    *("predicted", "recall", "precision"),
)


def _class_line(classes: tuple[Label, ...], found: ClassEvaluation, k: int) -> dict[str, Any]:
    values = {name: float(getattr(found.by_class, name)[k]) for name in COLUMNS}
    return {"class": classes[k], **values, "bins": list(found.class_bins[k].bins)}


def _confusion_lines(classes: tuple[Label, ...], confusion: metrics.Confusion) -> list[dict[str, Any]]:
    """The cells that hold rows, the heaviest first."""
    truth, decided = np.nonzero(confusion.weights)
    weight = confusion.weights[truth, decided]
    order = np.lexsort([decided, truth, -weight])
    return [{"true": classes[truth[k]], "decided": classes[decided[k]], "weight": float(weight[k])} for k in order]


# ---------------------------------------------------------------- telling


def _tell(classes: tuple[Label, ...], found: ClassEvaluation, n_bins: int) -> None:
    _console.show("", _measures(classes, found), "")
    _console.show(*bins_table(found, n_bins), "")
    left = len(classes) - MOST_CLASSES
    more = f" The first {MOST_CLASSES}; --json has all {len(classes):,}." if left > 0 else ""
    _console.show(f"Classes, the worst calibrated first.{more}", "", _class_table(classes, found))
    mistaken = [line for line in _confusion_lines(classes, found.confusion) if line["true"] != line["decided"]]
    if mistaken:
        _console.show("", _confusion_words(found.confusion), "", _confusion_table(mistaken[:MOST_CONFUSIONS]))


def _measures(classes: tuple[Label, ...], found: ClassEvaluation) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    beyond = found.beyond_chance
    lines = (
        ("Log loss", "log_loss", f"lower is better; equal odds give {number(math.log(len(classes)))}"),
        ("Brier score", "brier_score", "lower is better; summed over classes"),
        ("Accuracy", "accuracy", "rows whose likeliest class was right"),
        ("Mean confidence", "mean_confidence", "of the likeliest class; see accuracy"),
        ("Top-label calibration error", None, f"beyond chance; {number(beyond.low)} to {number(beyond.high)}"),
        ("Classwise calibration error", "classwise_calibration_error", "mean over the classes, of their bins"),
    )
    for name, key, words in lines:
        value = beyond.value if key is None else found.measures[key]
        said = found.reasons.get(key or "", words)
        wide = _console.width() >= FULL_WIDTH or value is None
        table.add_row(name, "-" if value is None else number(value, 5), *([said] if wide else []))
    return table


def bins_table(found: ClassEvaluation, n_bins: int) -> list[Any]:
    """The binned error of the top label and its bins."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("top probability", "rows", "mean", "right", "gap"):
        table.add_column(name, justify="left" if name == "top probability" else "right", no_wrap=True)
    binned, empty = found.top_label, 0
    for row in binned.bins:
        mean, rate = row["mean_predicted"], row["observed_rate"]
        if mean is None or rate is None:
            empty += 1
            continue
        where = f"{row['low']:.3f} to {row['high']:.3f}"
        table.add_row(where, f"{row['rows']:,.0f}", f"{mean:.4f}", f"{rate:.4f}", f"{mean - rate:+.4f}")
    head = (
        f"Binned error of the top label {number(binned.value, 5)} over these {n_bins} bins of equal width, chance "
        f"included; {number(binned.equal_mass_value, 5)} over bins of equal mass. Never choose a map by it."
    )
    return [head, "", table, *([f"{empty} of the {n_bins} bins are empty."] if empty else [])]


def _class_table(classes: tuple[Label, ...], found: ClassEvaluation) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("class", "rows", "share", "predicted", "error", "AUC", "recall", "precision"):
        table.add_column(name, justify="left" if name == "class" else "right", no_wrap=True)
    summary = found.by_class
    for k in summary.worst_first[:MOST_CLASSES]:
        table.add_row(
            _plain(str(classes[k])),
            f"{summary.weight[k]:,.6g}",
            percent(float(summary.observed_rate[k])),
            percent(float(summary.mean_predicted[k])),
            number(float(summary.calibration_error[k])),
            _or_none(summary.roc_auc[k]),
            _or_none(summary.recall[k]),
            _or_none(summary.precision[k]),
        )
    return table


def _plain(text: str) -> Any:
    """Text of the user, cut to a cell and never read as markup."""
    from rich.text import Text

    return Text(text if len(text) <= 24 else text[:23] + "…")


def _or_none(value: Any) -> str:
    return "-" if math.isnan(float(value)) else f"{float(value):.3f}"


def _confusion_words(confusion: metrics.Confusion) -> str:
    return (
        f"Taking the likeliest class is wrong in {percent(confusion.cost)} of the rows; the probabilities promise "
        f"{percent(confusion.expected_cost)}. The most frequent mistakes:"
    )


def _confusion_table(mistaken: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("true", "taken for", "rows"):
        table.add_column(name, justify="right" if name == "rows" else "left", no_wrap=True)
    for line in mistaken:
        table.add_row(_plain(str(line["true"])), _plain(str(line["decided"])), f"{line['weight']:,.6g}")
    return table
