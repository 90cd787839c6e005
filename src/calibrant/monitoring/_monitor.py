"""The monitor: batches in, evidence, cause and repair out; everything it knows is a small dictionary.

May import NumPy, `calibrant.data`, `calibrant.metrics` and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._parameters import Number, check_parameters, optional
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of
from calibrant.errors import InputError, InputTypeError
from calibrant.maps import Map
from calibrant.metrics import ReliabilityCurve
from calibrant.monitoring import _state
from calibrant.monitoring._cause import Diagnosis, diagnose, since_change
from calibrant.monitoring._evidence import SHARES, Capital, Frame, label_ratios, score_ratios
from calibrant.monitoring._expected import ExpectedPerformance
from calibrant.monitoring._record import Evidence, MonitorRecord
from calibrant.monitoring._repair import Repair, proposed, tested
from calibrant.monitoring._sums import (
    Reference,
    Sums,
    no_sums,
    reference_of,
    sums_of_scores,
    sums_of_table,
)

WINDOW = 64
"""Batches whose sums are kept, to find out when a change began."""
GROUPS = 10


class CalibrationMonitor:
    """Watches calibrated probabilities in production: alarms, the cause, and a tested repair.

    Parameters
    ----------
    reference : ScoreTable
        Labelled rows with calibrated probabilities from before production: what is usual. Rows that the map was not
        fitted on; a few thousand notice small changes.
    alpha : float
        Probability of ever raising a false alarm, however many batches come and however often one looks.

    Attributes
    ----------
    alarm : bool
        Whether there is an alarm.
    n_batches : int
        Batches seen.
    history : list of dict
        One entry for each batch (the last 500): numbers for a log.
    repair : Repair or None
        The proposed map, and how it does.

    Notes
    -----
    Batches may come with labels, without, or get them later (`add_labels`). Labels are tested against the probabilities
    themselves; scores against the reference, whose own chance is part of alpha (60 % labels, 20 % scores, 20 % the
    reference). The tests are e-processes, see `calibrant.monitoring._evidence`. Rows are taken as independent; a weight
    above 1 counts as one row of evidence at most. Cost: O(n log B) time for a batch, B = 50 bins; the state is some
    hundred kilobytes, whatever the number of rows. Source: Ville (1939); Shin, Ramdas and Rinaldo (2023), E-detectors.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import CalibrationMonitor, ScoreTable
    >>> rng = np.random.default_rng(0)
    >>> def batch(n, wrong=0.0):
    ...     p = rng.beta(1, 4, n)
    ...     return ScoreTable.from_arrays(p, rng.random(n) < p + wrong * p * (1 - p))
    >>> monitor = CalibrationMonitor(batch(5000))
    >>> monitor.update(batch(1000)).alarm
    False
    >>> [monitor.update(batch(1000, wrong=0.6)).alarm for _ in range(4)][-1]
    True
    """

    def __init__(self, reference: ScoreTable, *, alpha: float = 0.05) -> None:
        if not isinstance(reference, ScoreTable):
            raise InputTypeError(
                f"reference must be a ScoreTable of labelled rows (ScoreTable.from_arrays(p, y)), not a "
                f"{type(reference).__name__}."
            )
        check_parameters("CalibrationMonitor", {"alpha": alpha}, {"alpha": Number(1e-12, 0.5)})
        self._start(reference_of(reference), float(alpha))

    def _start(self, reference: Reference, alpha: float) -> None:
        """Begin with a reference; nothing seen yet."""
        self.reference, self.alpha = reference, alpha
        self.alarm, self.n_batches, self.since = False, 0, None
        self.history: list[dict[str, Any]] = []
        self.repair: Repair | None = None
        self._batches: list[tuple[int, str | None, Sums]] = []
        self._set_up()
        n_curves = len(self._frame.curves(self._frame.log_odds))
        self._labels, self._scores = Capital.start(n_curves), Capital.start(len(self._bets))

    alarm: bool
    n_batches: int
    since: int | None

    def _set_up(self) -> None:
        """What follows from the reference."""
        self._frame = Frame(self.reference)
        self._bets = self._frame.bets(self.alpha)

    # ------------------------------------------------------------ batches

    def update(self, batch: Any, *, name: str | None = None) -> MonitorRecord:
        """Take a batch: a ScoreTable where there are labels, else an array of probabilities.

        Parameters
        ----------
        batch : ScoreTable, or array-like of shape (n,), (n, 1) or (n, 2)
            Calibrated probabilities of the rows, and what happened where it is known already.
        name : str, optional
            To find the batch again in the history and when labels come later.

        Returns
        -------
        MonitorRecord
        """
        return self._take(self._sums(batch, scores_seen=False), name)

    def add_labels(self, batch: ScoreTable, *, name: str | None = None) -> MonitorRecord:
        """Take the labels of rows whose scores came before; the scores are not counted again.

        Parameters
        ----------
        batch : ScoreTable
            Probabilities and labels of the rows.
        name : str, optional
            Name of the batch that had the scores, for the history.
        """
        if not isinstance(batch, ScoreTable):
            raise InputTypeError("add_labels needs a ScoreTable: the probabilities of the rows, and their labels.")
        return self._take(self._sums(batch, scores_seen=True), name)

    def _sums(self, batch: Any, *, scores_seen: bool) -> Sums:
        if isinstance(batch, ScoreTable):
            theirs, ours = batch.classes, self.reference.classes
            if theirs[1] != ours[1] or (theirs[0] != ours[0] and None not in (theirs[0], ours[0])):
                raise InputError(f"The labels of the batch are {theirs}, but those of the reference are {ours}.")
            return sums_of_table(self.reference, batch, scores_seen=scores_seen)
        p = _checks.binary_scores(np.atleast_1d(array_of(batch, "batch")), "batch", reads="probability")
        if len(p) == 0:
            raise InputError("The batch is empty: at least one row is needed.")
        return sums_of_scores(self.reference, p)

    def _take(self, batch: Sums, name: str | None) -> MonitorRecord:
        self.n_batches += 1
        self._batches = [*self._batches, (self.n_batches, name, batch)][-WINDOW:]
        if batch.labelled.any():
            self._labels = self._labels.after(label_ratios(self._frame, batch))
        if batch.scored.any():
            self._scores = self._scores.after(score_ratios(self._bets, batch))
        if self.repair is not None:
            self.repair = tested(self.repair, self._frame, batch, self.alpha)
        record = self._judged(batch, name)
        self.history = [*self.history, _state.entry(record)][-_state.MOST_ENTRIES :]
        return record

    def _judged(self, batch: Sums, name: str | None) -> MonitorRecord:
        evidence = self.evidence
        by_labels = evidence.labels >= evidence.labels_limit
        new = not self.alarm and (by_labels or evidence.scores >= evidence.scores_limit)
        self.alarm = self.alarm or new
        found = self._diagnosis(by_labels) if self.alarm else Diagnosis(None, {}, np.zeros(0))
        rows, labelled = float(batch.scored.sum()), float(batch.labelled.sum())
        return MonitorRecord(
            batch=self.n_batches,
            name=name,
            rows=rows,
            labelled_rows=labelled,
            alarm=self.alarm,
            new=new,
            cause=found.cause,
            causes=found.causes,
            since=self.since,
            evidence=evidence,
            expected=_promised(batch),
            observed_prevalence=float(batch.positives.sum()) / labelled if labelled else None,
            repair=self.repair,
        )

    def _diagnosis(self, by_labels: bool) -> Diagnosis:
        """The cause from the rows since the change; a repair is proposed, or renewed when it does not stand."""
        sums = [batch for _, _, batch in self._batches]
        count = since_change(self._frame, sums, by_labels)
        recent = sum(sums[len(sums) - count + 1 :], start=sums[len(sums) - count])
        self.since = self._batches[-count][0]
        found = diagnose(self._frame, recent)
        if found.cause is None:
            likeliest = max(found.causes, key=lambda cause: found.causes[cause])
            found = Diagnosis(likeliest, found.causes, found.curve)
        if self._repair_is_due(found, float(recent.labelled.sum())):
            self.repair = proposed(self._frame, recent, found)
        return found

    def _repair_is_due(self, found: Diagnosis, labelled: float) -> bool:
        repair = self.repair
        if repair is None:
            return True
        if repair.confirmed:
            return False
        return repair.cause != found.cause or labelled >= 3 * repair.fitted_rows

    # ------------------------------------------------------------ looking

    @property
    def evidence(self) -> Evidence:
        """The e-values now, and where they alarm."""
        values = (float(np.exp(min(part.log_value, 700.0))) for part in (self._labels, self._scores))
        return Evidence(*values, *(1 / (self.alpha * SHARES[name]) for name in ("labels", "scores")))

    def reliability(self, last: int | None = None) -> ReliabilityCurve:
        """Reliability curve of the labelled rows of the last batches, in ten groups of the reference's bins.

        Parameters
        ----------
        last : int, optional
            Number of batches; by default all that are kept (64).
        """
        check_parameters("reliability", {"last": last}, {"last": optional(Number(1, whole=True))})
        batches = [batch for _, _, batch in (self._batches if last is None else self._batches[-last:])]
        total = sum(batches, start=no_sums(len(self.reference.positives)))
        n_bins = len(total.scored)
        starts = np.unique(np.arange(GROUPS) * n_bins // GROUPS)
        sums = [np.add.reduceat(values, starts) for values in (total.labelled, total.positives, total.sum_p)]
        weight = np.where(sums[0] > 0, sums[0], np.nan)
        edges = np.concatenate([[0.0], self.reference.cuts[starts[1:] - 1], [1.0]])
        return ReliabilityCurve(edges, sums[2] / weight, sums[1] / weight, sums[0], sums[0])

    # ------------------------------------------------------------ acting

    def adopt(self, *, force: bool = False) -> Map:
        """Take the repaired map into service: the monitor starts afresh with the repaired rows as its reference.

        From now on batches must hold the repaired probabilities. Alpha holds anew for the repaired map.

        Parameters
        ----------
        force : bool
            Adopt a repair that later rows have not confirmed yet.

        Returns
        -------
        Map
            From the probabilities given so far to repaired ones.
        """
        if self.repair is None:
            raise InputError("There is no repair to adopt: one is proposed after an alarm, from labelled rows.")
        if not (self.repair.confirmed or force):
            raise InputError(
                f"The repair has not been confirmed on later rows yet ({self.repair.tested_rows:,.0f} seen). Wait for "
                f"more labelled batches, or use force=True (--force)."
            )
        adopted = self.repair.map
        since = self.since or 1
        sums = [batch for number, _, batch in self._batches if number >= since]
        reference = _state.repaired_reference(self.reference, sum(sums[1:], start=sums[0]), adopted)
        history, n_batches = self.history, self.n_batches
        self._start(reference, self.alpha)
        self.n_batches = n_batches
        self.history = [*history, {"batch": n_batches, "adopted": adopted.kind}][-_state.MOST_ENTRIES :]
        return adopted

    def merge(self, other: CalibrationMonitor) -> CalibrationMonitor:
        """A monitor that has seen the batches of both (two sites, independent rows, one reference).

        Evidence multiplies; batches stand in the order of their numbers.
        """
        if not isinstance(other, CalibrationMonitor):
            raise InputTypeError(f"A monitor merges with a monitor, not with a {type(other).__name__}.")
        if self.alpha != other.alpha or self.reference.to_dict() != other.reference.to_dict():
            raise InputError("Monitors merge when they have the same reference and alpha: start both from one file.")
        merged = CalibrationMonitor.from_dict(self.to_dict())
        merged._labels, merged._scores = self._labels.times(other._labels), self._scores.times(other._scores)
        merged._batches = sorted([*self._batches, *other._batches], key=lambda item: item[0])[-WINDOW:]
        merged.history = sorted([*self.history, *other.history], key=lambda item: item["batch"])[-_state.MOST_ENTRIES :]
        merged.n_batches = max(self.n_batches, other.n_batches)
        merged.repair = self.repair or other.repair
        evidence = merged.evidence
        merged.alarm = (
            self.alarm
            or other.alarm
            or evidence.labels >= evidence.labels_limit
            or evidence.scores >= evidence.scores_limit
        )
        merged.since = min((since for since in (self.since, other.since) if since is not None), default=None)
        return merged

    # ------------------------------------------------------------ keeping

    def to_dict(self) -> dict[str, Any]:
        """Everything the monitor knows, as plain values."""
        return {
            **_state.HEAD,
            "alpha": self.alpha,
            "reference": self.reference.to_dict(),
            "alarm": self.alarm,
            "since": self.since,
            "n_batches": self.n_batches,
            "labels": self._labels.to_dict(),
            "scores": self._scores.to_dict(),
            "batches": [{"number": k, "name": name, "sums": sums.to_dict()} for k, name, sums in self._batches],
            "repair": None if self.repair is None else self.repair.to_dict(),
            "history": self.history,
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> CalibrationMonitor:
        """The monitor that `to_dict` wrote."""
        _state.check_head(content)
        monitor = CalibrationMonitor.__new__(CalibrationMonitor)
        try:
            monitor._read(content)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"The monitor's state is damaged ({type(error).__name__}: {error}).") from None
        return monitor

    def _read(self, content: Mapping[str, Any]) -> None:
        self._start(Reference.from_dict(content["reference"]), float(content["alpha"]))
        self.alarm, self.since, self.n_batches = content["alarm"], content["since"], content["n_batches"]
        self._labels, self._scores = Capital.from_dict(content["labels"]), Capital.from_dict(content["scores"])
        self._batches = [(b["number"], b["name"], Sums.from_dict(b["sums"])) for b in content["batches"]]
        self.repair = None if content["repair"] is None else Repair.from_dict(content["repair"])
        self.history = list(content["history"])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state as JSON, beside the old one first, then in its place."""
        _state.save(self.to_dict(), path)

    @staticmethod
    def load(path: str | PathLike[str]) -> CalibrationMonitor:
        """Read a state that `save` wrote."""
        return CalibrationMonitor.from_dict(_state.load(path))


def _promised(batch: Sums) -> ExpectedPerformance:
    """What the probabilities of a batch promise; of its labelled rows when its scores came before."""
    rows = float(batch.scored.sum())
    if rows == 0:
        labelled = max(float(batch.labelled.sum()), 1e-300)
        return ExpectedPerformance(float(batch.sum_p.sum()) / labelled, float("nan"), float("nan"))
    return ExpectedPerformance(*(float(total) / rows for total in batch.totals))
