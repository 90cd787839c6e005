"""The report as a record: plain numbers and texts from which the page and the JSON are written, and no markup.

Invariant: the same input gives the same record, to the byte of its JSON. "After" is always cross-fitted: every row is
judged by a map that was fitted without it.
May import NumPy, scikit-learn's clone, and every layer below; the page is made by `_html` beside this file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

import calibrant
from calibrant import _checks, metrics
from calibrant._checks import Label
from calibrant._kernels import likelihood
from calibrant.calibrators._base import BinaryCalibrator
from calibrant.calibrators._cross_fit import cross_fitted_table, most_folds
from calibrant.data import ScoreTable
from calibrant.data._arrays import aligned, n_columns
from calibrant.data._output import written_beside
from calibrant.errors import CalibrantWarning
from calibrant.metrics._inputs import binary_input
from calibrant.metrics._intervals import inner_share
from calibrant.view import _curves, _evidence, _measured, _operating
from calibrant.view._findings import Headline, headline
from calibrant.view._group_table import GroupTable, group_table
from calibrant.view._map_card import MapCard, map_card
from calibrant.view._proof import default_margin
from calibrant.view._report_input import ReadAs, binary_calibrator, check_arguments, choose, read_scores, seed_text
from calibrant.view._shape_card import ShapeCard, shape_card

if TYPE_CHECKING:
    from calibrant.view._class_report import ClassReport

FORMAT = "calibrant report"
VERSION = 1
DEFAULT_TITLE = "Calibration report"


@dataclass(frozen=True)
class Method:
    """What was done: folds (None when nothing could be cross-fitted), seed, version, and the date if one was given."""

    folds: int | None
    random_state: str
    calibrant_version: str
    date: str | None


@dataclass(frozen=True)
class Report:
    """A calibration report: what was measured, what was found, what to do.

    Attributes
    ----------
    title, source : str
        The title, and where the rows came from, as given.
    headline : Headline
        `verdict`, `title`, and the sentences `found`, `advice`, `limits`, each with a `code` and a `text`.
    data : Data
        Rows, weights, prevalence, the labels, the range of the scores and how they were read.
    method : Method
        Folds, seed, version, date.
    map : MapCard
        The map fitted on all rows, in words and numbers.
    shape : ShapeCard or None
        What kind of distortion the scores have, and what the best line on the log-odds leaves; None without a line.
    ranking : Ranking
        AUC and average precision of the scores as given.
    before, after : Side or None
        Measures of the probabilities as given (None for scores that are none) and of the cross-fitted ones (None when
        the rows are too few).
    gain : Gain or None
        What the map gains out of fold.
    roc, roc_after : Roc
        The ROC curve of the scores and of the cross-fitted probabilities, thinned.
    operating : Operating or None
        Where to act for what errors cost, what that does, and at other prevalences.
    groups : GroupTable or None
        The probabilities as given, segment by segment.
    """

    title: str
    source: str | None
    headline: Headline
    data: _evidence.Data
    method: Method
    map: MapCard
    shape: ShapeCard | None
    ranking: _evidence.Ranking
    before: _measured.Side | None
    after: _measured.Side | None
    gain: _measured.Gain | None
    roc: _curves.Roc
    roc_after: _curves.Roc | None
    operating: _operating.Operating | None
    groups: GroupTable | None

    def to_json(self) -> str:
        """The content as JSON: the same bytes for the same input, no NaN and no infinity (null, with a reason)."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def html(self) -> str:
        """The report as one self-contained HTML page that loads nothing."""
        from calibrant.view._html import page

        return page(self)

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
        from calibrant.view._html import frame

        return frame(self)


def build_report(
    y_true: Any,
    y_prob: Any = None,
    *,
    calibrator: Any = None,
    title: str | None = None,
    source: str | None = None,
    date: str | None = None,
    n_folds: int = 5,
    margin: float | None = None,
    groups: Any = None,
    false_positive: float | None = None,
    false_negative: float | None = None,
    new_prevalence: float | None = None,
    sample_weight: Any = None,
    pos_label: Label | None = None,
    labels: Sequence[Any] | None = None,
    from_logits: bool = False,
    random_state: Any = 0,
) -> Report | ClassReport:
    """A report on scores and labels: how honest they are, what a map would make of them, and what to do.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels of both classes; or a table alone.
    y_prob : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities of the positive class, or any real scores; with K >= 3 columns probabilities or logits.
    calibrator : calibrator, optional
        Judged out of fold and described; it is cloned, not fitted. By default `AffineLogit` for probabilities and
        `PlattScaling` for other scores, `AutoCalibrator` for K classes. One with `from_logits=True` says that the
        scores are log-odds or logits.
    title, source, date : str, optional
        Shown as given. Without a date the page has none, and the same input gives the same bytes.
    n_folds : int
        Folds of the cross-fitting; fewer when the smaller class has fewer rows.
    margin : float, optional
        The calibration error that would still be fine, in (0, 1); by default 0.02, or a fifth of the rarer class's
        share when that is less. The page says whether the rows show calibration within it.
    groups : array-like of shape (n,), optional
        The segment of each row (with weight above zero): the probabilities as given are judged in each.
    false_positive, false_negative : float, optional
        What errors cost, for the operating point; without them acting on everybody and on nobody costs the same.
    new_prevalence : float, optional
        One more prevalence to show the operating point at.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.
    labels : sequence, optional
        The classes of K >= 3 columns, in order, when they are not 0..K-1. `margin` and `groups` are for two classes.
    from_logits : bool
        Whether the scores are log-odds or logits, when no calibrator says so.
    random_state : int, generator or None
        Draws the folds.

    Returns
    -------
    Report, or ClassReport for K >= 3 columns
        Its `headline` holds the findings; `to_html(path)` writes the page and `to_json()` gives the same content.

    Raises
    ------
    InputError
        Rows of one class only, and whatever a measure refuses.

    Notes
    -----
    Cost: one fit on all rows and one per fold, a few sorts and about sixty passes, O(n log n).

    Examples
    --------
    >>> from calibrant import build_report
    >>> labels = [0] * 80 + [1] * 20 + [0] * 30 + [1] * 70
    >>> report = build_report(labels, [0.01] * 100 + [0.99] * 100)
    >>> report.headline.title
    'Over-confident and too high: use the map'
    """
    check_arguments(n_folds, from_logits, random_state, title=title, source=source, date=date)
    if n_columns(y_prob) > 2:
        from calibrant.view._class_report import build_class_report, for_two_classes

        acting = {"false_positive": false_positive, "false_negative": false_negative, "new_prevalence": new_prevalence}
        for_two_classes(margin=margin, groups=groups, pos_label=pos_label, **acting)
        own = sample_weight, labels, from_logits, random_state
        return build_class_report(y_true, y_prob, calibrator, title, source, date, n_folds, *own)
    aligned(y_true=y_true, groups=groups)
    asked = binary_calibrator(calibrator, labels, from_logits)
    given, table, read_as = _read(y_true, y_prob, sample_weight, pos_label, asked)
    costs = _operating.prices(false_positive, false_negative, table.prevalence)
    used, why = choose(asked, read_as)
    fits = _fit(used, table, n_folds, random_state)
    limit = default_margin(table) if margin is None else inner_share("build_report", "margin", margin)
    shape = shape_card(table, read_as != "probability")
    parts = _judge(table, read_as, fits, used, limit, None if shape is None else shape.verdict)
    return _record(
        table,
        fits.after,
        parts.evidence,
        title=title or DEFAULT_TITLE,
        source=source,
        method=Method(fits.folds, seed_text(random_state), calibrant.__version__, date),
        shape=shape,
        map=map_card(used, fits.map, table, read_as, parts.scale, why, fits.notes),
        operating=_operating.operating(_probabilities_before(table, read_as), fits.after, costs, new_prevalence),
        groups=None if groups is None else group_table(given, groups, read_as, limit),
    )


def _read(
    y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Label | None, calibrator: BinaryCalibrator | None
) -> tuple[ScoreTable, ScoreTable, ReadAs]:
    """The rows as given, their distinct scores, and how those were read."""
    reads = "logit" if getattr(calibrator, "_reads", None) == "logit" else "score"
    given = binary_input(y_true, y_prob, sample_weight, pos_label, reads=reads, what="build_report")
    _checks.both_classes(given.total_positives, given.total_negatives, "build_report")
    return given, *read_scores(given.distinct, reads)


def _record(table: ScoreTable, after: ScoreTable | None, evidence: _evidence.Evidence, **more: Any) -> Report:
    """The report of what was measured; `more` are its other fields."""
    return Report(
        headline=headline(evidence),
        data=evidence.data,
        ranking=evidence.ranking,
        before=evidence.before,
        after=evidence.after,
        gain=evidence.gain,
        roc=_curves.roc(table),
        roc_after=None if after is None else _curves.roc(after),
        **more,
    )


# ---------------------------------------------------------------- fitting


class _Fits(NamedTuple):
    map: Any
    after: ScoreTable | None
    folds: int | None
    notes: list[str]


def _fit(calibrator: BinaryCalibrator, table: ScoreTable, n_folds: int, random_state: Any) -> _Fits:
    """The map of all rows, the cross-fitted table, its folds where there are any, and what the fits had to say."""
    folds = min(n_folds, most_folds(table))
    fitted, notes = noting(lambda: clone(calibrator).fit_table(table).map_)
    if folds < 2:
        return _Fits(fitted, None, None, notes)
    after, more = noting(lambda: cross_fitted_table(calibrator, table, folds, random_state).distinct)
    return _Fits(fitted, after, folds, notes + [IN_A_FOLD + text for text in more if text not in notes])


IN_A_FOLD = "In a fold: "


def noting(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result, and the texts of calibrant's own warnings, which the page shows; other warnings are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    for warning in caught:
        if not issubclass(warning.category, CalibrantWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    own = [str(warning.message) for warning in caught if issubclass(warning.category, CalibrantWarning)]
    return result, list(dict.fromkeys(own))


# ---------------------------------------------------------------- judging


class _Judged(NamedTuple):
    evidence: _evidence.Evidence
    scale: _curves.Scale


def _judge(
    table: ScoreTable,
    read_as: ReadAs,
    fits: _Fits,
    calibrator: BinaryCalibrator,
    margin: float,
    distortion: str | None,
) -> _Judged:
    before = _probabilities_before(table, read_as)
    scale = _curves.shared_scale([side for side in (before, fits.after) if side is not None])
    evidence = _evidence.Evidence(
        data=_data(table, read_as),
        ranking=_ranking(table),
        calibrator=type(calibrator).__name__,
        before=None if before is None else _measured.side(before, "before", scale, margin),
        after=None if fits.after is None else _measured.side(fits.after, "after", scale, margin),
        gain=_gain(table, before, fits),
        distortion=distortion,
    )
    return _Judged(evidence, scale)


def _probabilities_before(table: ScoreTable, read_as: ReadAs) -> ScoreTable | None:
    if read_as == "score":
        return None
    return table if read_as == "probability" else table.with_scores(likelihood.expit(table.scores)).distinct


def _gain(table: ScoreTable, before: ScoreTable | None, fits: _Fits) -> _measured.Gain | None:
    if fits.after is None:
        return None
    mapped = fits.map(table.scores)
    if before is None:
        base_rate = table.with_scores(np.full(len(table), table.prevalence))
        return _measured.gain(base_rate, mapped, fits.after, "the base rate")
    same_rows = before if len(before) == len(table) else table.with_scores(likelihood.expit(table.scores))
    return _measured.gain(same_rows, mapped, fits.after, "before")


def _data(table: ScoreTable, read_as: ReadAs) -> _evidence.Data:
    weight, total = table.weight, table.total_weight
    return _evidence.Data(
        rows=table.n_rows,
        weighted=table.total_weight != table.n_rows,
        total_weight=total,
        events=table.total_positives,
        prevalence=table.prevalence,
        event=str(table.classes[1]),
        other="all other" if table.classes[0] is None else str(table.classes[0]),
        distinct_scores=len(table),
        lowest_score=float(table.scores[0]),
        highest_score=float(table.scores[-1]),
        share_at_zero=float(weight[table.scores == 0].sum()) / total if read_as == "probability" else 0.0,
        share_at_one=float(weight[table.scores == 1].sum()) / total if read_as == "probability" else 0.0,
        scale=read_as,
    )


def _ranking(table: ScoreTable) -> _evidence.Ranking:
    return _evidence.Ranking(
        metrics.roc_auc(table),
        metrics.average_precision(table),
        _measured.chance_auc_error(table),
        _measured.separates(table),
    )
