"""Bayes' rule for another prevalence: odds times a constant.

Invariant: scores of equal class keep their order; 0 stays 0 and 1 stays 1.
May import NumPy, `calibrant.maps`, `calibrant._checks` and `calibrant.data._arrays`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._parameters import Number, check_parameters, optional
from calibrant.data._arrays import array_of
from calibrant.errors import InputError, InputTypeError
from calibrant.maps import BinaryMap, ClassPriorShiftMap, Map, PriorShiftMap
from calibrant.maps._prior_shift import shift_odds, shift_rows

LEAST_SHARE = 1e-100
"""Of a class that has one at all: the ratio of two shares is still a number."""
SUM_TOLERANCE = 1e-6


def adjust_prior(y_prob: Any, train_prior: Any, new_prior: Any) -> Any:
    """Probabilities at another prevalence, when the scores within each class stay as they were (label shift).

    Parameters
    ----------
    y_prob : float, or array-like of shape (n,), (n, 1) or (n, 2), or (n, K)
        Calibrated probabilities for the prevalence `train_prior`.
    train_prior : float, or array-like of shape (K,)
        Prevalence of the event where the probabilities are right; a share above 0 for every class.
    new_prior : float, or array-like of shape (K,)
        Prevalence to move to; shares of 0 are possible.

    Returns
    -------
    float or ndarray
        With single numbers as priors the probability of the event, (n,); with K shares, rows of shape (n, K).

    Raises
    ------
    InputError
        A prior outside [0, 1], shares that do not sum to 1, a class that had no share before, or a row that the new
        prior says cannot happen.

    Notes
    -----
    `odds(p') = odds(p) [new / (1 - new)] / [train / (1 - train)]`; K classes: `p'_k` in proportion to
    `p_k new_k / train_k`. Cost: one pass, O(nK). Source: Elkan (2001), theorem 2; Saerens, Latinne, Decaestecker
    (2002), eq. 2.4.

    Examples
    --------
    >>> from calibrant import adjust_prior
    >>> adjust_prior([0.5, 0.9], train_prior=0.5, new_prior=0.01)
    array([0.01      , 0.08333333])
    >>> adjust_prior([[0.2, 0.3, 0.5]], [1 / 3, 1 / 3, 1 / 3], [0.6, 0.2, 0.2])
    array([[0.42857143, 0.21428571, 0.35714286]])
    """
    if np.ndim(train_prior) == 0 and np.ndim(new_prior) == 0:
        train = event_share(train_prior, "train_prior", open_ends=True)
        return _adjust_binary(y_prob, train, event_share(new_prior, "new_prior"))
    return _adjust_classes(y_prob, train_prior, new_prior)


def _adjust_binary(y_prob: Any, train: float, new: float) -> Any:
    array = array_of(y_prob, "y_prob")
    p = _checks.binary_scores(np.atleast_1d(array), "y_prob", reads="probability")
    if (new == 0 and p.max(initial=0.0) == 1) or (new == 1 and p.min(initial=1.0) == 0):
        raise InputError(
            f"new_prior is {new:g}, but a row of y_prob says with certainty that it belongs to the other class. "
            f"Use a prior strictly between 0 and 1."
        )
    moved = shift_odds(p, new / train, (1 - new) / (1 - train))
    return float(moved[0]) if array.ndim == 0 else moved


def _adjust_classes(y_prob: Any, train_prior: Any, new_prior: Any) -> Floats:
    array = array_of(y_prob, "y_prob")
    rows = _checks.class_scores(array[None, :] if array.ndim == 1 else array, "y_prob", reads="probability")
    k = rows.shape[1]
    train, new = class_shares(train_prior, "train_prior", k), class_shares(new_prior, "new_prior", k)
    if train.min() <= 0:
        raise InputError(
            f"train_prior gives class {int(np.argmin(train))} (counting from 0) the share 0: nothing is "
            f"known about a class that was never seen. Leave its column out, or give the share it had."
        )
    gone = (rows * new).sum(axis=1) == 0
    if gone.any():
        raise InputError(
            f"Row {int(np.argmax(gone))} (counting from 0) of y_prob belongs with certainty to classes whose new prior "
            f"is 0. Use shares above 0."
        )
    moved = shift_rows(rows, new / train)
    return np.asarray(moved[0]) if array.ndim == 1 else moved


def event_share(value: Any, name: str, *, open_ends: bool = False) -> float:
    value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    inside = Number(0, 1).accepts(value) and not (open_ends and float(value) in (0.0, 1.0))
    if not inside:
        where = "strictly between 0 and 1" if open_ends else "in [0, 1]"
        raise InputError(f"{name} must be a share of the event {where}, but it is {value!r}.")
    if 0 < float(value) < LEAST_SHARE:
        raise InputError(f"{name} must be 0 or at least {LEAST_SHARE:g}, but it is {value!r}.")
    return float(value)


def class_shares(values: Any, name: str, n_classes: int) -> Floats:
    """Shares of K classes that sum to 1."""
    array = _checks.finite(_checks.numbers(array_of(values, name), name), name)
    if array.shape != (n_classes,):
        raise InputError(
            f"{name} must hold one share for each of the {n_classes} columns of y_prob, but its shape is {array.shape}."
        )
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if array.min() < 0 or abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"{name} must hold shares in [0, 1] that sum to 1, but it is {_checks.shown(array, 12)}.")
    if ((array > 0) & (array < LEAST_SHARE)).any():
        raise InputError(f"{name} must hold shares of 0 or at least {LEAST_SHARE:g}: {_checks.shown(array, 12)}.")
    return np.asarray(array / total)


def undo_sampling(y_prob: Any, negative_rate: float | None = None, *, scale_pos_weight: float | None = None) -> Any:
    """Probabilities as they would be had the training rows not been thinned or weighted.

    Parameters
    ----------
    y_prob : float, or array-like of shape (n,), (n, 1) or (n, 2)
        Probabilities of a model that was trained on the changed rows.
    negative_rate : float, optional
        Share of the negative rows that was kept, in (0, 1].
    scale_pos_weight : float, optional
        Weight of a positive row in training, as boosting libraries call it; negatives have weight 1.

    Returns
    -------
    float or ndarray of shape (n,)
        Probabilities for the original rows.

    Raises
    ------
    InputError
        Neither or both of the two given, or a value out of range.

    Notes
    -----
    `p' = b p / (b p + 1 - p)` with b = `negative_rate`, or 1 / `scale_pos_weight`. Exact for a calibrated model of the
    changed rows; trees with strong weights often are not, so check on rows as they come. Cost: one pass. Source:
    Dal Pozzolo et al. (2015), eq. 4.

    Examples
    --------
    >>> from calibrant import undo_sampling
    >>> undo_sampling([0.6, 0.5], 0.2)
    array([0.23076923, 0.16666667])
    >>> undo_sampling(0.5, scale_pos_weight=9.0)
    0.1
    """
    kept, weight = negative_rate, scale_pos_weight
    if (kept is None) == (weight is None):
        raise InputError(
            "Give one of negative_rate and scale_pos_weight: how negatives were thinned, or positives weighted."
        )
    rules = {"negative_rate": optional(Number(0, 1, above=True)), "scale_pos_weight": optional(Number(0, above=True))}
    check_parameters("undo_sampling", {"negative_rate": kept, "scale_pos_weight": weight}, rules)
    array = array_of(y_prob, "y_prob")
    p = _checks.binary_scores(np.atleast_1d(array), "y_prob", reads="probability")
    moved = shift_odds(p, 1.0 if kept is None else kept, 1.0 if weight is None else weight)
    return float(moved[0]) if array.ndim == 0 else moved


def shift_map(record: Map, train_prior: Any, new_prior: Any) -> Map:
    """A map followed by a prior shift, as one map: saved, applied and written as SQL like any other.

    Parameters
    ----------
    record : Map
        A fitted map.
    train_prior : float, or array-like of shape (K,)
        Prevalence of the rows that it was fitted on.
    new_prior : float, or array-like of shape (K,)
        Prevalence of the rows that it will be applied to; strictly between 0 and 1.

    Returns
    -------
    Map
        With the classes of the given one.

    Notes
    -----
    `shift_map(m, a, b)(s) == adjust_prior(m(s), a, b)`. Cost: that of the map, and one pass.

    Examples
    --------
    >>> from calibrant import PlattScaling, shift_map
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> moved = shift_map(fitted.map_, 0.5, 0.1)
    >>> bool(moved(0.0) < fitted.map_(0.0))
    True
    """
    if not isinstance(record, Map):
        raise InputTypeError(f"record must be a map (an estimator has one as map_), but it is {record!r:.60}.")
    if isinstance(record, BinaryMap) or len(record.classes) == 2:
        train = event_share(train_prior, "train_prior", open_ends=True)
        return PriorShiftMap(record.classes, train, event_share(new_prior, "new_prior", open_ends=True), (record,))
    k = len(record.classes)
    shares = class_shares(train_prior, "train_prior", k), class_shares(new_prior, "new_prior", k)
    return ClassPriorShiftMap(record.classes, *shares, (record,))
