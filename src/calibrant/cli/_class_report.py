"""`calibrant report` for K classes: the page, and its findings in the terminal.

May import every layer below, and the modules of this folder.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from calibrant.cli import _class_large, _class_methods, _console
from calibrant.cli._class_reading import (
    ClassRequest,
    class_rows_read,
    counts_of,
    next_command,
    options_of,
    read_class_file,
    score_columns,
    two_classes_occur,
)
from calibrant.cli._report import DEFAULT_PAGE
from calibrant.cli._words import number
from calibrant.data._output import output_target
from calibrant.view._class_report import ClassReport, build_class_report


def run_class_report(
    request: ClassRequest, *, method: str | None, output: Path | None, as_json: bool, force: bool
) -> None:
    """Read, build the report, write the page, tell what was found."""
    page = output or (None if as_json else DEFAULT_PAGE)
    from_logits = request.file.from_logits
    calibrator = None if method is None else _class_methods.make_for_classes(method, from_logits)
    if page is not None:
        output_target(page, force=force, inputs=[request.file.path])
    columns = score_columns(request)
    _class_large.refuse_what_does_not_fit(
        _class_large.bytes_of(request, columns), "A report", "Take a sample of the rows for it, or run evaluate."
    )
    read = read_class_file(request, columns, "logit" if from_logits else "probability")
    counts = counts_of(read)
    two_classes_occur(counts, "a report")
    name = request.file.path.name
    with _console.working("Building the report"):
        report = build_class_report(
            [read.rows.classes[k] for k in read.rows.labels],
            read.rows.scores,
            calibrator=calibrator,
            labels=read.rows.classes,
            sample_weight=read.rows.weights,
            from_logits=from_logits,
            title=f"Calibration of {name}",
            source=str(request.file.path),
            date=date.today().isoformat(),
        )
        if page is not None:
            report.to_html(page, force=force)
    if as_json:
        _console.show_raw(report.to_json().rstrip("\n"))
        return
    _console.show(class_rows_read(counts, name))
    _tell(report)
    _console.show("", f"Page written to {page}.")
    if report.headline.verdict in ("use-map", "small-gain"):
        _console.show("To fit the map and write it:", f"  {_fit_command(request, method)}")


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
