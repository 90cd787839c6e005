"""Is label shift plausible: can the new scores be the old ones of each class, in other shares?

May import NumPy, the kernels, `calibrant._checks` and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import Floats
from calibrant._kernels import lookup, tails
from calibrant._parameters import Number, check_parameters
from calibrant.errors import InputError
from calibrant.priors._target import Part, Reference, Target, read_reference, read_target

EMPTY = 1e-12
"""Share of the largest eigenvalue of the covariance below which there is no variance: shares sum to 1, so one is 0."""
EXPECTED = 5.0
"""Rows that a cell must hold for the chi-squared distribution to be a fair one."""


@dataclass(frozen=True, eq=False)
class LabelShiftTest:
    """Whether new scores are a mixture of the old ones of each class.

    Attributes
    ----------
    statistic, degrees_of_freedom, p_value : float
        A small p-value speaks against label shift.
    prior : float or ndarray of shape (K,)
        The shares that fit best; of the event where there are two classes.
    plausible : bool
        Whether the p-value is at least 0.05. With few rows nearly everything is.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float
    prior: Any
    plausible: bool


_Place = Callable[[Floats], NDArray[np.int64]]
"""From the probabilities of a block of rows, (K, m), to their cells."""


class _Cells(NamedTuple):
    """Shares of the cells in the target (B,) and in each class (B, K), and the covariances of those shares."""

    target: Floats
    by_class: Floats
    n_target: float
    n_classes: Floats


def label_shift_test(y_prob: Any, reference: Any, *, n_bins: int = 10, sample_weight: Any = None) -> LabelShiftTest:
    """Test whether new scores are what the scores of each class were, in other shares (label shift).

    Parameters
    ----------
    y_prob : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the new, unlabelled rows.
    reference : ScoreTable, or pair (y_true, y_prob)
        Labelled rows with probabilities of the same model.
    n_bins : int
        Two classes: cells of equal mass in the reference. More classes: each predicted class is cut in two at its
        median confidence instead.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    LabelShiftTest

    Raises
    ------
    InputError
        Scores with too few different values to test anything.

    Notes
    -----
    Cells b of scores have shares q_b in the new rows and a_bk in class k of the reference. The statistic is the least
    value over pi of `(q - A pi)' V(pi)^-1 (q - A pi)`, V the covariance of the difference with both samples random;
    chi-squared with (cells - classes) degrees of freedom. Cost: one sort of the reference, O(n log B). Source: minimum
    chi-squared, Neyman (1949); the idea of testing the shift from black-box predictions: Lipton, Wang, Smola (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import label_shift_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 4, 4000)
    >>> y = rng.random(4000) < p
    >>> more_events = np.concatenate([p[y], p[~y][::4]])
    >>> label_shift_test(more_events, (y, p)).plausible
    True
    >>> label_shift_test(np.sqrt(p), (y, p)).plausible
    False
    """
    check_parameters("label_shift_test", {"n_bins": n_bins}, {"n_bins": Number(3, 1000, whole=True)})
    target = read_target(y_prob, sample_weight)
    labelled = read_reference(reference, target.n_classes)
    cells = _cells(target, labelled, n_bins)
    freedom = len(cells.target) - cells.by_class.shape[1]
    if freedom < 1:
        raise InputError(
            "The scores take too few different values to test label shift: more cells than classes are needed."
        )
    prior, statistic = _closest(cells)
    p_value = tails.chi_squared_tail(statistic, freedom)
    shown = float(prior[1]) if len(prior) == 2 else prior
    return LabelShiftTest(statistic, freedom, p_value, shown, p_value >= 0.05)


def _cells(target: Target, reference: Reference, n_bins: int) -> _Cells:
    k = target.n_classes
    place, size = _by_rank(target, reference, n_bins) if k == 2 else _by_class(reference)

    def binned(parts: Iterator[Part]) -> Floats:
        found = [np.bincount(place(rows), weights, minlength=size) for rows, weights in parts]
        return np.asarray(np.sum(found, axis=0), dtype=np.float64)

    q, a = _merged(binned(target.parts()), np.column_stack([binned(reference.parts(c)) for c in range(k)]))
    return _Cells(q / q.sum(), a / a.sum(axis=0), target.effective, a.sum(axis=0))


def _by_rank(target: Target, reference: Reference, n_bins: int) -> tuple[_Place, int]:
    assert reference.distinct is not None
    scores, distinct = reference.scores, reference.distinct
    if distinct._labels is not None:
        ends = np.ceil(np.arange(1, n_bins) * (len(scores) / n_bins)).astype(np.int64) - 1
    else:
        reached = np.cumsum(distinct.weight)
        ends = np.searchsorted(reached, np.arange(1, n_bins) * (reached[-1] / n_bins), side="left")
    cuts = np.unique(scores[ends])
    count = lookup.counter(np.nextafter(cuts, np.inf), len(target.scores) + len(scores))
    return lambda rows: count(rows[1]), len(cuts) + 1


def _by_class(reference: Reference) -> tuple[_Place, int]:
    k = reference.n_classes
    top, confidence = reference.scores.argmax(axis=1), reference.scores.max(axis=1)
    medians = np.array([np.median(confidence[top == c]) if np.any(top == c) else 0.0 for c in range(k)])

    def place(rows: Floats) -> NDArray[np.int64]:
        predicted = rows.argmax(axis=0)
        return np.asarray(2 * predicted + (rows.max(axis=0) > medians[predicted]))

    return place, 2 * k


def _merged(q: Floats, a: Floats) -> tuple[Floats, Floats]:
    """Neighbouring cells put together until each holds enough rows in either sample."""
    starts, held = [0], 0.0
    expected = np.minimum(a.sum(axis=1), q + a.sum(axis=1) * q.sum() / a.sum())
    for cell, mass in enumerate(expected):
        if held >= EXPECTED:
            starts.append(cell)
            held = 0.0
        held += mass
    if held < EXPECTED and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(q, starts), np.add.reduceat(a, starts, axis=0)


def _closest(cells: _Cells) -> tuple[Floats, float]:
    """The shares with the least chi-squared, and its value; the weights follow the shares for a few rounds."""
    prior = np.full(cells.by_class.shape[1], 1 / cells.by_class.shape[1])
    statistic = 0.0
    for _ in range(20):
        inverse = np.asarray(np.linalg.pinv(_covariance(cells, prior), EMPTY, hermitian=True), dtype=np.float64)
        prior = _nearest_shares(cells, inverse)
        gap = cells.target - cells.by_class @ prior
        statistic = float(gap @ inverse @ gap)
    return prior, statistic


def _covariance(cells: _Cells, prior: Floats) -> Floats:
    """Covariance of `q - A pi`, the cells of the target taken at their expectation."""
    expected = cells.by_class @ prior
    total = (np.diag(expected) - np.outer(expected, expected)) / cells.n_target
    for k, share in enumerate(prior):
        a = cells.by_class[:, k]
        total += share**2 * (np.diag(a) - np.outer(a, a)) / cells.n_classes[k]
    return np.asarray(total)


def _nearest_shares(cells: _Cells, inverse: Floats) -> Floats:
    """Generalised least squares with shares of at least 0 that sum to 1; a class below 0 is left out."""
    k = cells.by_class.shape[1]
    kept = np.arange(k)
    prior = np.zeros(k)
    while True:
        part = cells.by_class[:, kept]
        system = np.zeros((len(kept) + 1, len(kept) + 1))
        system[:-1, :-1] = part.T @ inverse @ part
        system[:-1, -1] = system[-1, :-1] = 1.0
        solved = np.linalg.lstsq(system, np.append(part.T @ inverse @ cells.target, 1.0), rcond=None)[0][:-1]
        if solved.min() >= 0 or len(kept) == 1:
            prior[kept] = np.maximum(solved, 0.0) / np.maximum(solved, 0.0).sum()
            return prior
        kept = np.delete(kept, int(solved.argmin()))
