"""What a batch told: evidence, alarm, cause, promise and repair.

May import the modules of this folder.
"""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.monitoring import _words
from calibrant.monitoring._expected import ExpectedPerformance
from calibrant.monitoring._repair import Repair


@dataclass(frozen=True)
class Evidence:
    """Two e-values and the limits at which they alarm; a value below 1 speaks for no change.

    Attributes
    ----------
    labels, scores : float
        Evidence that the events do not follow the probabilities; that the scores are not those of the reference.
    labels_limit, scores_limit : float
        Where they alarm; under no change either is ever reached with probability at most alpha, both together.
    """

    labels: float
    scores: float
    labels_limit: float
    scores_limit: float


@dataclass(frozen=True, eq=False)
class MonitorRecord:
    """What a batch told.

    Attributes
    ----------
    batch : int
        Its number, from 1.
    name : str or None
        Its name, where one was given.
    rows, labelled_rows : float
        Weight of its rows, and of those with labels.
    alarm : bool
        Whether there is an alarm, from this batch or an earlier one.
    new : bool
        Whether it began with this batch.
    cause : str or None
        The likeliest cause of an alarm: "prevalence moved", "scores moved", "the map no longer holds (level)",
        "... (slope)" or "... (shape)".
    causes : dict
        Weight of every cause, together at most 1.
    since : int or None
        Number of the batch that the change began with, as far as is known.
    evidence : Evidence
        The e-values.
    expected : ExpectedPerformance
        What the probabilities of the batch promise.
    observed_prevalence : float or None
        Share of events among its labelled rows.
    repair : Repair or None
        A repaired map, and how it does on later rows.
    """

    batch: int
    name: str | None
    rows: float
    labelled_rows: float
    alarm: bool
    new: bool
    cause: str | None
    causes: dict[str, float]
    since: int | None
    evidence: Evidence
    expected: ExpectedPerformance
    observed_prevalence: float | None
    repair: Repair | None

    def __str__(self) -> str:
        return _words.record_in_words(self)
