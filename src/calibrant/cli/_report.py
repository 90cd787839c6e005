"""`calibrant report` and `calibrant demo`: the page, and its findings in the terminal.

May import every layer below, and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from calibrant.cli import _console, _methods
from calibrant.cli._fit import choose
from calibrant.cli._reading import Request, command, range_of, read_rows, refuse_a_few_outside
from calibrant.cli._words import for_command_line, number, rows_read
from calibrant.data._output import output_target
from calibrant.view import ClassReport, Report, build_report
from calibrant.view._report import IN_A_FOLD

DEFAULT_PAGE = Path("report.html")
DEMO_TITLE = "calibrant demo: is it an 8?"


def run_report(
    request: Request,
    *,
    acting: dict[str, float | None] | None = None,
    method: _methods.Method | None,
    output: Path | None,
    margin: float | None,
    as_json: bool,
    force: bool,
) -> None:
    """Read, build the report, write the page, tell what was found."""
    page = output or (None if as_json else DEFAULT_PAGE)
    if page is not None:
        output_target(page, force=force, inputs=[request.path])
    rows = read_rows(request)
    calibrator = None
    if method is not None or request.from_logits:
        calibrator, _ = choose(rows.table, method, request.from_logits)
    else:
        refuse_a_few_outside(rows.table, range_of(rows.table))
    name = request.path.name
    with _console.working("Building the report"):
        report = build_report(
            rows.table,
            calibrator=calibrator,
            title=f"Calibration of {name}",
            source=str(request.path),
            date=date.today().isoformat(),
            **(acting or {}),  # type: ignore[arg-type]
            groups=rows.groups,
            margin=margin,
        )
        if page is not None:
            report.to_html(page, force=force)
    tell_notes(report.map.notes)
    if as_json:
        _console.show_raw(report.to_json().rstrip("\n"))
        return
    _console.show(rows_read(rows.table, name, rows.dropped))
    tell(report)
    _console.show("", f"Page written to {page}.")
    if report.headline.verdict in ("use-map", "small-gain"):
        _console.show("To fit the map and write it:", f"  {_fit_command(request, method)}")


def tell_notes(notes: Sequence[str]) -> None:
    """What the fit to all rows had to say; what those of the folds said is on the page."""
    for note in notes:
        if not note.startswith(IN_A_FOLD):
            _console.note(for_command_line(note))


def _fit_command(request: Request, method: _methods.Method | None) -> str:
    words = ["fit", str(request.path), "--score", request.score or "", "--label", request.label or ""]
    for option, value in (("--weight", request.weight), ("--pos-label", request.pos_label), ("--method", method)):
        words += [option, str(value)] if value else []
    words += ["--missing", "drop"] if request.missing == "drop" else []
    return command(request, *words, *(["--from-logits"] if request.from_logits else []))


def run_demo(output: Path, *, force: bool) -> None:
    """The same on the scores of an over-confident classifier."""
    ours = is_demo_page(output)
    output_target(output, force=force or ours)
    from calibrant.data._demo import demo_scores

    with _console.working("Training naive Bayes on digits"):
        scores = demo_scores()
    with _console.working("Building the report"):
        report = build_report(scores.labels, scores.scores, title=DEMO_TITLE, source=scores.source)
        report.to_html(output, force=force or ours)
    _console.show(scores.words)
    tell(report)
    _console.show("", f"Page written to {output}. The same on your own file:")
    _console.show("  calibrant report scores.csv --score p --label y")


def is_demo_page(path: Path) -> bool:
    """Whether a file is a page that a demo wrote: it has the title of one."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return f"<title>{DEMO_TITLE}" in file.read(100_000)
    except OSError:
        return False


def tell(report: Report | ClassReport) -> None:
    """The headline, the numbers before and after, what was found and what to do."""
    from rich.text import Text

    assert isinstance(report, Report)
    said = report.headline
    _console.show("", Text(said.title, style="bold"), "", _numbers(report))
    for head, sentences in (("What was found", said.found), ("What to do", said.advice)):
        _console.show("", Text(head, style="bold"))
        _console.show_list([sentence.text for sentence in sentences])


def _numbers(report: Report) -> Any:
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


NUMBERS = ("log loss", "Brier score", "  its miscalibration", "calibration slope", "ROC AUC")


def _values(side: Any) -> dict[str, float | None]:
    brier = side.brier
    values = (side.log_loss.score.value, brier.score.value, brier.miscalibration.value, side.slope.value, side.roc_auc)
    return dict(zip(NUMBERS, values))
