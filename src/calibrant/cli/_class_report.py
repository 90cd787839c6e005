"""`calibrant report` for K classes: the page, and its findings in the terminal.

May import every layer below, and the modules of this folder.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from calibrant._checks import plural
from calibrant.cli import _class_large, _class_methods, _console
from calibrant.cli._class_checks import checked_scores
from calibrant.cli._class_reading import (
    ClassRequest,
    RowCounts,
    ScoreColumns,
    class_rows_read,
    counts_of,
    next_command,
    options_of,
    read_class_file,
    score_columns,
    two_classes_occur,
)
from calibrant.cli._report import DEFAULT_PAGE, tell_notes
from calibrant.cli._words import number
from calibrant.data._output import output_target
from calibrant.view._class_blocks import report_of_staged_rows
from calibrant.view._class_report import ClassReport, build_class_report


def run_class_report(
    request: ClassRequest, *, method: str | None, output: Path | None, as_json: bool, force: bool
) -> None:
    """Read, build the report, write the page, tell what was found."""
    page = output or (None if as_json else DEFAULT_PAGE)
    calibrator = None if method is None else _class_methods.make_for_classes(method, request.file.from_logits)
    if page is not None:
        output_target(page, force=force, inputs=[request.file.path])
    columns = score_columns(request)
    size = _class_large.bytes_of(request, columns)
    by_blocks = _class_large.goes_by_blocks(size, calibrator)
    counts, report = (_by_blocks if by_blocks else _at_once)(request, columns, calibrator, size)
    name = request.file.path.name
    if page is not None:
        report.to_html(page, force=force)
    tell_notes(report.map.notes)
    if as_json:
        _console.show_raw(report.to_json().rstrip("\n"))
        return
    _console.show(class_rows_read(counts, name))
    _tell(report)
    _console.show("", f"Page written to {page}.")
    if report.headline.verdict in ("use-map", "small-gain"):
        _console.show("To fit the map and write it:", f"  {_fit_command(request, method)}")


def _at_once(request: ClassRequest, columns: ScoreColumns, calibrator: Any, size: int) -> tuple[RowCounts, ClassReport]:
    """The report of rows in memory."""
    from_logits = request.file.from_logits
    weighed = calibrator or _class_methods.make_for_classes(None, from_logits)
    _class_large.refuse_what_does_not_fit(size, weighed)
    read = read_class_file(request, columns, "logit" if from_logits else "probability")
    counts = counts_of(read)
    two_classes_occur(counts, "a report")
    with _console.working("Building the report"):
        report = build_class_report(
            [read.rows.classes[k] for k in read.rows.labels],
            read.rows.scores,
            calibrator=calibrator,
            labels=read.rows.classes,
            sample_weight=read.rows.weights,
            from_logits=from_logits,
            **_named(request),
        )
    return counts, report


def _by_blocks(
    request: ClassRequest, columns: ScoreColumns, calibrator: Any, size: int
) -> tuple[RowCounts, ClassReport]:
    """The report of rows that stay in the file."""
    from_logits = request.file.from_logits
    reads = "logit" if from_logits else "probability"
    with _class_large.staged_file(request, columns) as staged:
        counts = RowCounts(staged.size, staged.dropped, staged.classes, staged.class_weights)
        two_classes_occur(counts, "a report")
        with _console.working(f"Building the report of {plural(staged.size, 'row')}, block by block"):
            report = report_of_staged_rows(
                staged,
                calibrator,
                lambda scores: checked_scores(request, columns.names, scores, reads),
                from_logits=from_logits,
                **_named(request),
            )
    return counts, report


def _named(request: ClassRequest) -> dict[str, Any]:
    path = request.file.path
    return {"title": f"Calibration of {path.name}", "source": str(path), "date": date.today().isoformat()}


def _fit_command(request: ClassRequest, method: str | None) -> str:
    file = request.file
    words = ["fit", str(file.path), *options_of(request), "--label", file.label or ""]
    for option, value in (("--weight", file.weight), ("--method", method)):
        words += [option, value] if value else []
    words += ["--missing", "drop"] if file.missing == "drop" else []
    return next_command(request, *words, *(["--from-logits"] if file.from_logits else []))


def _tell(report: ClassReport) -> None:
    """The headline, the numbers before and after, what was found and what to do."""
    from rich.text import Text

    said = report.headline
    _console.show("", Text(said.title, style="bold"), "", _numbers(report))
    for head, sentences in (("What was found", said.found), ("What to do", said.advice)):
        _console.show("", Text(head, style="bold"))
        _console.show_list([sentence.text for sentence in sentences])


def _numbers(report: ClassReport) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0), header_style="bold")
    table.add_column("")
    for name in ("before", "after"):
        table.add_column(name, justify="right")
    sides = [{} if side is None else _values(side) for side in (report.before, report.after)]
    for name in NUMBERS:
        cells = [side.get(name) for side in sides]
        table.add_row(f"  {name}", *("-" if cell is None else number(cell, 5) for cell in cells))
    return table


NUMBERS = ("log loss", "Brier score", "accuracy", "mean confidence", "top-label error", "classwise error")


def _values(side: Any) -> dict[str, float | None]:
    values = (
        *(side.log_loss.value, side.brier.value, side.accuracy),
        *(side.mean_confidence, side.top_error.value, side.class_error),
    )
    return dict(zip(NUMBERS, values))
