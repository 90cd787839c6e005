"""`calibrant monitor`: a state file, a reference to begin with, batches as they come; the exit code says alarm.

May import `calibrant.monitoring`, `calibrant.data`, and the modules of this folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from calibrant import _checks
from calibrant.cli import _console
from calibrant.cli._reading import Request, as_probabilities, inside_probabilities, named_column, read_rows
from calibrant.cli._threshold import for_json
from calibrant.cli._words import rows_read
from calibrant.data import ScoreTable
from calibrant.data._output import output_target
from calibrant.data._scores_file import read_scores
from calibrant.errors import InputError
from calibrant.monitoring import CalibrationMonitor, MonitorRecord
from calibrant.monitoring._words import alarm_in_words, evidence_in_words, repair_in_words

ALARM = 3


@dataclass(frozen=True)
class Watch:
    """What the command was asked to do with the state."""

    state: Path
    reference: Path | None
    batches: Sequence[Path]
    alpha: float
    labels_only: bool
    adopt: Path | None
    force: bool


def run_monitor(request: Request, watch: Watch, *, as_json: bool) -> int:
    """Begin or go on, take the batches, adopt a repair if asked; the exit code."""
    given = [*watch.batches, watch.reference]
    if watch.adopt is not None:
        output_target(watch.adopt, force=watch.force, inputs=[*given, watch.state])
    monitor, began = _monitor(request, watch)
    records = [_take(monitor, replace(request, path=path), watch) for path in watch.batches]
    adopted = None if watch.adopt is None else monitor.adopt(force=watch.force)
    if adopted is not None and watch.adopt is not None:
        adopted.save(watch.adopt, force=watch.force)
    monitor.save(watch.state)
    if as_json:
        _console.show_raw(json.dumps(_as_dict(watch, monitor, records), ensure_ascii=False, indent=1))
    else:
        _tell(watch, monitor, records, began)
    return ALARM if monitor.alarm else 0


def _monitor(request: Request, watch: Watch) -> tuple[CalibrationMonitor, str]:
    if watch.reference is None:
        if not watch.state.exists():
            raise InputError(
                f"There is no state {str(watch.state)!r} yet. Begin with labelled rows from before production: "
                f"--reference FILE."
            )
        return CalibrationMonitor.load(watch.state), ""
    output_target(watch.state, force=watch.force, inputs=[*watch.batches, watch.reference])
    rows = read_rows(replace(request, path=watch.reference))
    monitor = CalibrationMonitor(as_probabilities(rows.table), alpha=watch.alpha)
    return monitor, rows_read(rows.table, f"{watch.reference.name}, the reference", rows.dropped)


def _take(monitor: CalibrationMonitor, request: Request, watch: Watch) -> MonitorRecord:
    """One batch: with labels where a label column is named."""
    name = request.path.name
    if request.label is None:
        if watch.labels_only:
            raise InputError("--labels-only needs the labels: name their column with --label.")
        with _console.working(f"Reading {name}") as progress:
            read = read_scores(
                request.path,
                score=named_column(request, "score", request.score),
                **request.how(progress),
            )
        return monitor.update(inside_probabilities(read.scores), name=name)
    table = _coded_alike(as_probabilities(read_rows(_with_event(request, monitor)).table), monitor)
    return monitor.add_labels(table, name=name) if watch.labels_only else monitor.update(table, name=name)


def _with_event(request: Request, monitor: CalibrationMonitor) -> Request:
    """The event of the reference, so that a batch of one label only is read right."""
    event = monitor.reference.classes[1]
    if request.pos_label is not None or isinstance(event, bool) or event == 1:
        return request
    return replace(request, pos_label=str(event))


def _coded_alike(table: ScoreTable, monitor: CalibrationMonitor) -> ScoreTable:
    """The batch with the coding of the reference, where both mean the same."""
    ours, theirs = monitor.reference.classes, table.classes
    same = str(ours[1]) == str(theirs[1]) or {*map(_checks.plain_label, (ours[1], theirs[1]))} == {1}
    if same and ours != theirs:
        table.classes = ours
    return table


# ---------------------------------------------------------------- telling


def _as_dict(watch: Watch, monitor: CalibrationMonitor, records: Sequence[MonitorRecord]) -> dict[str, Any]:
    return for_json(
        {
            "state": str(watch.state),
            "alarm": monitor.alarm,
            "alpha": monitor.alpha,
            "batches_seen": monitor.n_batches,
            "since": monitor.since,
            "evidence": asdict(monitor.evidence),
            "repair": None if monitor.repair is None else monitor.repair.to_dict(),
            "adopted": None if watch.adopt is None else str(watch.adopt),
            "batches": [_of_record(record) for record in records],
        }
    )


def _of_record(record: MonitorRecord) -> dict[str, Any]:
    names = (
        "batch",
        "name",
        "rows",
        "labelled_rows",
        "alarm",
        "new",
        "cause",
        "causes",
        "since",
        "observed_prevalence",
    )
    content = {name: getattr(record, name) for name in names}
    expected = record.expected
    promised = {name: getattr(expected, name) for name in ("prevalence", "brier_score", "log_loss")}
    return {**content, "expected": promised, "evidence": asdict(record.evidence)}


def _tell(watch: Watch, monitor: CalibrationMonitor, records: Sequence[MonitorRecord], began: str) -> None:
    if began:
        _console.show(began)
    if records:
        _console.show(_batches(records), "", evidence_in_words(records[-1]))
    if watch.adopt is not None:
        _console.show(
            f"The repaired map is in {watch.adopt}: apply it to the probabilities from now on. The monitor starts "
            f"afresh."
        )
    elif monitor.alarm:
        _tell_alarm(watch, monitor, records)
    else:
        seen = monitor.n_batches
        _console.show(f"No alarm after {seen:,} batch{'' if seen == 1 else 'es'}." if seen else "Ready for batches.")
    _console.show(f"State kept in {watch.state}.")


def _tell_alarm(watch: Watch, monitor: CalibrationMonitor, records: Sequence[MonitorRecord]) -> None:
    from rich.text import Text

    said = alarm_in_words(records[-1]) if records else "ALARM, from an earlier batch."
    _console.show("", Text(said, style="bold red"))
    if monitor.repair is not None:
        _console.show(repair_in_words(monitor.repair))
        if monitor.repair.confirmed:
            _console.show("To take it into service:", f"  calibrant monitor {watch.state} --adopt repair.json")


def _batches(records: Sequence[MonitorRecord]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("batch", overflow="fold")
    for name in ("rows", "labels", "promised", "seen"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for record in records:
        seen = "-" if record.observed_prevalence is None else f"{100 * record.observed_prevalence:.2f} %"
        promised = f"{100 * record.expected.prevalence:.2f} %"
        counts = (f"{record.rows:,.0f}", f"{record.labelled_rows:,.0f}")
        table.add_row(record.name or str(record.batch), *counts, promised, seen, "ALARM" if record.alarm else "")
    return table
