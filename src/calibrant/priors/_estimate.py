"""The prior of unlabelled rows, by maximum likelihood (EM) or from the mean prediction (BBSE).

Both assume label shift: within each class the scores are what they were. `label_shift_test` asks whether they are.
May import NumPy, the kernels, `calibrant._checks` and the modules of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels import mixing, tails
from calibrant._kernels._dot import dot
from calibrant._kernels.blocks import slices
from calibrant._kernels.roots import falling_root
from calibrant._parameters import Number
from calibrant.errors import InputError
from calibrant.priors._shift import class_shares, event_share
from calibrant.priors._target import Part, Reference, Target, read_reference, read_target

METHODS = ("em", "bbse")


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """A prior with an interval.

    Attributes
    ----------
    prior : float or ndarray of shape (K,)
        Share of the event (two classes), or of every class.
    low, high : float or ndarray of shape (K,)
        Ends of the interval; class by class where there are more than two.
    level : float
        How often such intervals hold the true share, at least about.
    method : str
        How prior and interval were found.
    """

    prior: Any
    low: Any
    high: Any
    level: float
    method: str


class _Found(NamedTuple):
    prior: Floats
    low: Floats
    high: Floats
    method: str


def estimate_prior(
    y_prob: Any,
    train_prior: Any,
    *,
    method: Literal["em", "bbse"] = "em",
    reference: Any = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> PriorEstimate:
    """Class shares of unlabelled rows, when the scores within each class stay as they were (label shift).

    Parameters
    ----------
    y_prob : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the new rows, made for the prior `train_prior`.
    train_prior : float, or array-like of shape (K,)
        Prevalence that the probabilities are made for.
    method : {"em", "bbse"}
        "em" trusts the probabilities to be calibrated and is the most precise; "bbse" trusts labelled reference rows
        instead, and needs no calibration.
    reference : ScoreTable, or pair (y_true, y_prob), optional
        Labelled rows with probabilities of the same model; for "bbse".
    confidence : float
        Level of the interval.
    sample_weight : array-like of shape (n,), optional
        Frequencies.

    Returns
    -------
    PriorEstimate
        With single numbers for two classes.

    Raises
    ------
    InputError
        "bbse" without a reference, a class that the reference lacks, scores that do not tell the classes apart.

    Notes
    -----
    EM: the maximum of `sum_i w_i log sum_k p_ik pi_k / train_k`, which the iteration of Saerens, Latinne and
    Decaestecker (2002), eq. 2.9 approaches; found here by Newton steps or Brent's search, exact on the border too.
    Interval of two classes: the priors whose log-likelihood is within half a chi-squared quantile of the maximum
    (profile likelihood); of more: normal, from the curvature. It counts the new rows as random, not the probabilities.
    BBSE: the prior for which the mean prediction is what the reference says, `mean(p) = sum_k pi_k E[p | k]` (Lipton,
    Wang, Smola 2018, section 3, with probabilities in place of decisions). Interval: two classes Fieller's, more the
    delta method; both samples count as random. With more than two classes shares below 0 are set to 0, the rest
    divided by their sum. Cost: O(n K^2) for each of a few dozen passes (EM), or one pass.

    Examples
    --------
    >>> from calibrant import estimate_prior
    >>> found = estimate_prior([0.9, 0.8, 0.2, 0.1, 0.1, 0.1], train_prior=0.5)
    >>> round(found.prior, 3), round(found.low, 3), round(found.high, 3)
    (0.252, 0.0, 0.778)
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}, but it is {method!r}.")
    if not Number(0, 1).accepts(confidence) or confidence in (0, 1):
        raise InputError(f"confidence must lie strictly between 0 and 1, but it is {confidence!r}.")
    target = read_target(y_prob, sample_weight)
    train = _train_shares(train_prior, target.n_classes)
    if method == "em":
        found = _em_two(target, train, confidence) if len(train) == 2 else _em_many(target, train, confidence)
    elif reference is None:
        raise InputError('method="bbse" needs reference: labelled rows with probabilities of the same model.')
    else:
        found = _bbse(target, read_reference(reference, len(train)), confidence)
    if len(train) > 2:
        return PriorEstimate(found.prior, found.low, found.high, confidence, found.method)
    share, low, high = (float(part[1]) for part in (found.prior, found.low, found.high))
    return PriorEstimate(share, low, high, confidence, found.method)


def _train_shares(train_prior: Any, n_classes: int) -> Floats:
    if n_classes == 2 and np.ndim(train_prior) == 0:
        share = event_share(train_prior, "train_prior", open_ends=True)
        return np.array([1 - share, share])
    shares = class_shares(train_prior, "train_prior", n_classes)
    if shares.min() <= 0:
        raise InputError(f"train_prior must give every class a share above 0, but it is {_checks.shown(shares, 12)}.")
    return shares


# ---------------------------------------------------------------- maximum likelihood


class _Likelihood:
    """The log-likelihood of a share of the event: concave, known by its ratios `r = p1 / train1 - p0 / train0`."""

    def __init__(self, target: Target, train: Floats) -> None:
        self.base = (1 - target.scores) / train[0]
        self.rise = target.scores / train[1]
        self.rise -= self.base
        self.weights = target.weights

    def value(self, share: float) -> float:
        with np.errstate(divide="ignore"):
            return self._sum(lambda ratio, rise: np.log(ratio, out=ratio), share)

    def slope(self, share: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._sum(lambda ratio, rise: np.divide(rise, ratio, out=ratio), share)

    def bend(self, share: float) -> float:
        """Minus the second derivative."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._sum(lambda ratio, rise: np.square(np.divide(rise, ratio, out=ratio), out=ratio), share)

    def _sum(self, term: Callable[[Floats, Floats], Floats], share: float) -> float:
        """Weighted sum of a term of `base + share rise` and `rise`."""
        total = 0.0
        for at in slices(len(self.base)):
            ratio = share * self.rise[at]
            ratio += self.base[at]
            found = term(ratio, self.rise[at])
            total += float(found.sum()) if self.weights is None else dot(self.weights[at], found)
        return total


def _around(near: float, low: float, high: float, root_above: Callable[[float], bool]) -> tuple[float, float]:
    """The part of a range that holds the root: an interval is mostly found within twice its normal width."""
    if not low < near < high:
        return low, high
    return (near, high) if root_above(near) else (low, near)


def _em_two(target: Target, train: Floats, confidence: float) -> _Found:
    likelihood = _Likelihood(target, train)
    share = falling_root(lambda x: likelihood.slope(x), 0.0, 1.0)
    quantile = tails.chi_squared_quantile(confidence, 1)
    allowed = likelihood.value(share) - quantile / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = 2 * float(np.sqrt(quantile / likelihood.bend(share)))
    low, high = 0.0, 1.0
    if likelihood.value(0.0) < allowed:
        ends = _around(share - reach, 0.0, share, lambda x: likelihood.value(x) < allowed)
        low = falling_root(lambda x: allowed - likelihood.value(x), *ends)
    if likelihood.value(1.0) < allowed:
        ends = _around(share + reach, share, 1.0, lambda x: likelihood.value(x) >= allowed)
        high = falling_root(lambda x: likelihood.value(x) - allowed, *ends)
    return _two_shares(share, low, high, "maximum likelihood (EM), profile-likelihood interval")


def _two_shares(share: float, low: float, high: float, method: str) -> _Found:
    prior, least, most = (np.array([1 - x, x]) for x in (share, low, high))
    return _Found(prior, least, most, method)


def _em_many(target: Target, train: Floats, confidence: float) -> _Found:
    ratios = target.scores / train
    weights = np.ones(len(ratios)) if target.weights is None else target.weights
    scale = 1e-9 * float(weights.sum()) / len(train)
    prior = mixing.mixture_weights(ratios, weights, np.full(len(train), scale))
    prior = np.where(prior < 1e-8, 0.0, prior)
    prior /= prior.sum()
    scores = ratios / np.einsum("ik,k->i", ratios, prior)[:, None]
    curvature = np.einsum("ik,i,il->kl", scores, weights, scores)
    error = np.sqrt(np.diag(_along_simplex(curvature)))
    return _Found(prior, *_normal_ends(prior, error, confidence), "maximum likelihood (EM), normal interval")


def _along_simplex(curvature: Floats) -> Floats:
    """The inverse of a curvature for steps that keep the sum."""
    k = len(curvature)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = curvature
    system[:k, k] = system[k, :k] = 1.0
    return np.asarray(np.linalg.pinv(system)[:k, :k])


def _normal_ends(prior: Floats, error: Floats, confidence: float) -> tuple[Floats, Floats]:
    z = np.sqrt(tails.chi_squared_quantile(confidence, 1))
    return np.clip(prior - z * error, 0.0, 1.0), np.clip(prior + z * error, 0.0, 1.0)


# ---------------------------------------------------------------- from the mean prediction


class _Means(NamedTuple):
    """Mean prediction of the target (K,) and of each class of the reference (K, K), with their covariances."""

    target: Floats
    target_covariance: Floats
    by_class: Floats
    class_covariances: Floats


def _bbse(target: Target, reference: Reference, confidence: float) -> _Found:
    means = _means(target, reference)
    if np.linalg.cond(means.by_class) > 1e8:
        raise InputError(
            "The mean prediction is the same in two classes of the reference, so these scores cannot tell their shares."
        )
    if len(means.target) == 2:
        return _fieller(means, confidence)
    prior = np.linalg.solve(means.by_class, means.target)
    spread = means.target_covariance + np.einsum("k,kij->ij", prior**2, means.class_covariances)
    inverse = np.linalg.inv(means.by_class)
    error = np.sqrt(np.diag(inverse @ spread @ inverse.T))
    prior = np.maximum(prior, 0.0)
    prior /= prior.sum()
    return _Found(prior, *_normal_ends(prior, error, confidence), "BBSE with probabilities, delta-method interval")


def _means(target: Target, reference: Reference) -> _Means:
    mean, covariance = _mean_and_covariance(target.parts)
    parts = [_mean_and_covariance(partial(reference.parts, c)) for c in range(target.n_classes)]
    by_class = np.column_stack([part[0] for part in parts])
    return _Means(mean, covariance, by_class, np.stack([part[1] for part in parts]))


def _mean_and_covariance(parts: Callable[[], Iterator[Part]]) -> tuple[Floats, Floats]:
    """The mean of rows, and the covariance of that mean."""
    sums = [np.array([dot(weights, column) for column in (np.ones_like(weights), *rows)]) for rows, weights in parts()]
    total, *whole = np.sum(sums, axis=0)
    mean = np.array(whole) / total
    covariance = np.zeros((len(mean), len(mean)))
    for rows, weights in parts():
        gaps = rows - mean[:, None]
        for j, gap in enumerate(gaps):
            weighted = gap * weights
            covariance[j, : j + 1] += [dot(weighted, other) for other in gaps[: j + 1]]
    covariance += np.tril(covariance, -1).T
    return mean, covariance / total / max(total - 1, 1.0)


def _fieller(means: _Means, confidence: float) -> _Found:
    """Two classes: the shares that the three means do not reject; a quadratic in the share."""
    (low_mean, high_mean), (v0, v1) = means.by_class[1], means.class_covariances[:, 1, 1]
    rise, gap = high_mean - low_mean, means.target[1] - low_mean
    share = float(np.clip(gap / rise, 0.0, 1.0))
    z2 = tails.chi_squared_quantile(confidence, 1)
    square = rise**2 - z2 * (v0 + v1)
    linear = gap * rise - z2 * v0
    vt = means.target_covariance[1, 1]
    # linear^2 - square * (gap^2 - z2 (vt + v0)) without what cancels in it
    root = z2 * (rise**2 * vt + (rise - gap) ** 2 * v0 + gap**2 * v1) - z2**2 * (v0 * v1 + v0 * vt + v1 * vt)
    if square <= 0 or root < 0:
        ends = (0.0, 1.0)
    else:
        ends = ((linear - np.sqrt(root)) / square, (linear + np.sqrt(root)) / square)
    low, high = min(float(np.clip(ends[0], 0, 1)), share), max(float(np.clip(ends[1], 0, 1)), share)
    return _two_shares(share, low, high, "BBSE with probabilities, Fieller interval")
