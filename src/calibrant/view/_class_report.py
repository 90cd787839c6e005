"""The report for K classes as a record: plain numbers and texts from which the page and the JSON are written.

Invariant: the same input gives the same record, to the byte of its JSON. "After" is always cross-fitted: every row is
judged by a map that was fitted without it.
May import NumPy and every layer below, and the files beside this one; the page is made by `_class_html`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import calibrant
from calibrant._checks import Floats
from calibrant._kernels import softmax
from calibrant.calibrators import AutoCalibrator, OneVsRest
from calibrant.calibrators._base import Calibrator
from calibrant.calibrators._class_cross_fit import cross_fitted_probabilities, folds_for, refit
from calibrant.data._arrays import ClassRows, read_class_rows
from calibrant.data._output import written_beside
from calibrant.errors import InputError, InputTypeError
from calibrant.view import _class_measured, _curves
from calibrant.view._class_findings import ClassData, ClassEvidence, ClassHeadline, class_headline
from calibrant.view._class_map_card import ClassMapCard, class_map_card
from calibrant.view._class_sums import ClassSums, sums_of_rows
from calibrant.view._report import DEFAULT_TITLE, IN_A_FOLD, Method, noting
from calibrant.view._report_input import seed_text

FORMAT = "calibrant report of classes"
VERSION = 1

Scale = Literal["probability", "logits"]


@dataclass(frozen=True)
class ClassReport:
    """A calibration report for K classes: what was measured, what was found, what to do.

    Attributes
    ----------
    title, source : str
        The title, and where the rows came from, as given.
    headline : ClassHeadline
        `verdict`, `title`, and the sentences `found`, `advice`, `limits`, each with a `code` and a `text`.
    data : ClassData
        Rows, weights, classes, and how the scores were read.
    method : Method
        Folds, seed, version, date.
    map : ClassMapCard
        The map fitted on all rows, and what it was weighed against.
    before, after : ClassSide
        Measures of the probabilities as given and of the cross-fitted ones (None when the rows are too few).
    gain : ClassGain or None
        What the map gains out of fold.
    lines : tuple of ClassLine
        The classes, the worst calibrated first.
    panels : tuple of Panel
        The diagrams of the worst classes, at most 12.
    decisions : Decisions
        What is taken for what when the likeliest class is taken; after the map where there is an after.
    """

    title: str
    source: str | None
    headline: ClassHeadline
    data: ClassData
    method: Method
    map: ClassMapCard
    before: _class_measured.ClassSide
    after: _class_measured.ClassSide | None
    gain: _class_measured.ClassGain | None
    lines: tuple[_class_measured.ClassLine, ...]
    panels: tuple[_class_measured.Panel, ...]
    decisions: _class_measured.Decisions
    labels: tuple[str, ...]

    def to_json(self) -> str:
        """The content as JSON: the same bytes for the same input, no NaN and no infinity (null, with a reason)."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def html(self) -> str:
        """The report as one self-contained HTML page that loads nothing."""
        from calibrant.view._class_html import class_page

        text: str = class_page(self)
        return text

    def to_html(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the page; a file that exists is kept unless `force` is true.

        Parameters
        ----------
        path : path
            The file to write.
        force : bool
            Whether a file that exists may be replaced.

        Raises
        ------
        OutputExistsError
            The file exists.
        """
        text = self.html()
        with written_beside(path, force=force) as beside:
            Path(beside).write_text(text, encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        from calibrant.view._class_html import class_frame

        text: str = class_frame(self)
        return text


def for_two_classes(**given: Any) -> None:
    """Refuse arguments that have a meaning for two classes only."""
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise InputError(
            f"build_report: {' and '.join(named)} {'is' if len(named) == 1 else 'are'} for two classes, but there are "
            f"more columns; name their classes with labels=. One class at a time is class_tables(y, p)[k]."
        )


def build_class_report(
    y_true: Any,
    y_prob: Any,
    calibrator: Any = None,
    title: str | None = None,
    source: str | None = None,
    date: str | None = None,
    n_folds: int = 5,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    from_logits: bool = False,
    random_state: Any = 0,
) -> ClassReport:
    """The report of scores of shape (n, K), K >= 3; `build_report` calls it and says what the arguments are."""
    used = usable_calibrator(calibrator, from_logits)
    is_logit = reads_logits(used)
    reads = "logit" if is_logit else "probability"
    given = read_class_rows(y_prob, y_true, sample_weight, labels, reads=reads, names=("y_prob", "y_true"))
    if len(np.unique(given.labels)) < 2:
        raise InputError("build_report: all rows are of one class; rows of two classes or more are needed.")
    rows = given._replace(scores=softmax.softmax(given.scores)) if is_logit else given
    fits, after = _fit(used, given, n_folds, random_state)
    chosen = ASKED if calibrator is not None else DEFAULT_REASON
    card = class_map_card(used, fits.fitted, given.classes, chosen, fits.notes)
    method = Method(fits.folds or None, seed_text(random_state), calibrant.__version__, date)
    return made_report(sums_of_rows(rows, after), card, method, "logits" if is_logit else "probability", title, source)


def made_report(
    found: ClassSums, card: ClassMapCard, method: Method, scale: Scale, title: str | None, source: str | None
) -> ClassReport:
    """The report of what was added up and fitted."""
    evidence, panels = _judge(found, card.name, scale)
    return ClassReport(
        title=title or DEFAULT_TITLE,
        source=source,
        headline=class_headline(evidence),
        data=evidence.data,
        method=method,
        map=card,
        before=evidence.before,
        after=evidence.after,
        gain=evidence.gain,
        lines=evidence.lines,
        panels=panels,
        decisions=evidence.decisions,
        labels=tuple(map(str, found.classes)),
    )


# ---------------------------------------------------------------- the calibrator

ASKED = "It was asked for."
DEFAULT_REASON = (
    "No calibrator was asked for, so several maps were weighed against leaving the scores as they are, by their log "
    "loss on rows that they were not fitted on."
)


def usable_calibrator(calibrator: Any, from_logits: bool) -> Any:
    """The calibrator that is judged, knowing what it is given."""
    if not isinstance(from_logits, bool | np.bool_):
        raise InputTypeError(f"build_report: from_logits must be True or False, but it is {from_logits!r}.")
    if calibrator is None:
        return AutoCalibrator(from_logits=bool(from_logits))
    if not isinstance(calibrator, Calibrator) or "classes" not in calibrator.get_params():
        raise InputTypeError(
            f"build_report: calibrator must be a calibrator of many classes, such as AutoCalibrator() or "
            f"OneVsRest(AffineLogit()), but it is {calibrator!r}."
        )
    if isinstance(calibrator, AutoCalibrator) and calibrator.from_logits == "auto":
        return AutoCalibrator(**{**calibrator.get_params(deep=False), "from_logits": bool(from_logits)})
    if from_logits and not reads_logits(calibrator):
        raise InputError(
            f"build_report: from_logits=True says that the scores are logits, but {calibrator!r} reads probabilities. "
            f"Give from_logits=True to it."
        )
    return calibrator


def reads_logits(calibrator: Any) -> bool:
    """Whether it is given logits."""
    inner = calibrator.calibrator if isinstance(calibrator, OneVsRest) else calibrator
    return getattr(inner, "from_logits", False) is True


class Fits(NamedTuple):
    """The fit to all rows, the folds of the cross-fitting (0 where there is none), and what the fits had to say."""

    fitted: Any
    folds: int
    notes: list[str]


def _fit(calibrator: Any, rows: ClassRows, n_folds: int, random_state: Any) -> tuple[Fits, Floats | None]:
    """The fits, and the cross-fitted probabilities."""
    fitted, notes = noting(lambda: refit(calibrator, rows))
    folds = folds_for(rows, n_folds)
    if folds < 2:
        return Fits(fitted, 0, notes), None
    after, more = noting(lambda: cross_fitted_probabilities(calibrator, rows, folds, random_state))
    return Fits(fitted, folds, all_notes(notes, more)), after


def all_notes(notes: list[str], of_folds: list[str]) -> list[str]:
    """What the fit to all rows said, and what the fits of the folds said beside it."""
    return notes + [IN_A_FOLD + text for text in of_folds if text not in notes]


# ---------------------------------------------------------------- judging


def _judge(found: ClassSums, calibrator: str, scale: Scale) -> tuple[ClassEvidence, tuple[_class_measured.Panel, ...]]:
    axis = _curves.shared_scale([side.top for side in found.sides])
    each = [_class_measured.one_class_each(side) for side in found.sides]
    measured = [
        _class_measured.class_side(side, name, axis, lines)
        for side, name, lines in zip(found.sides, ("before", "after"), each)
    ]
    lines = _class_measured.class_lines(found, each[0], each[1] if found.after else None)
    order = _class_measured.worst_first(lines)
    evidence = ClassEvidence(
        data=_data(found, scale),
        calibrator=calibrator,
        before=measured[0],
        after=measured[1] if found.after else None,
        gain=_class_measured.class_gain(found),
        decisions=_class_measured.decisions(found),
        lines=tuple(lines[k] for k in order),
        cells=found.cells,
    )
    return evidence, tuple(_class_measured.panels(found, order, lines))


def _data(found: ClassSums, scale: Scale) -> ClassData:
    weight = found.class_weights
    total, names = float(weight.sum()), list(map(str, found.classes))
    share = weight / total
    there = np.flatnonzero(weight > 0)
    largest, smallest = int(there[share[there].argmax()]), int(there[share[there].argmin()])
    return ClassData(
        rows=found.rows,
        weighted=total != found.rows,
        total_weight=total,
        classes=len(names),
        without_rows=tuple(names[k] for k in np.flatnonzero(weight == 0)),
        largest=names[largest],
        largest_share=float(share[largest]),
        smallest=names[smallest],
        smallest_share=float(share[smallest]),
        scale=scale,
        base_log_loss=-float(share[there] @ np.log(share[there])),
        base_brier=float(share @ (1 - share)),
    )
