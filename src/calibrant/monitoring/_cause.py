"""What changed, and since when: the likeliest of a few explanations of the recent rows.

An explanation says how the events depend on the probability p (as p says; another level; another slope; another shape)
and how the scores are distributed (as in the reference; as in the reference with other class shares; otherwise). It
costs its misfit and half the logarithm of the labelled rows for each free number (Schwarz 1978). Prevalence moved:
another level together with scores that follow the class shares. Without labels only the scores can speak.
The misfit of the scores is a chi-squared over ten groups of bins, with both samples random.
May import NumPy, the kernels, `_sums` and `_evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant._checks import Floats
from calibrant.monitoring._evidence import Frame
from calibrant.monitoring._sums import Reference, Sums

PREVALENCE = "prevalence moved"
SCORES = "scores moved"
MAP = "the map no longer holds"
LEVEL, SLOPE, SHAPE = (f"{MAP} ({part})" for part in ("level", "slope", "shape"))
CAUSES = (PREVALENCE, SCORES, LEVEL, SLOPE, SHAPE)
N_GROUPS = 10
RIDGE = 1e-3
EVERY = 16
"""The beginning of a change is looked for batch by batch among the last 16, and among every 16th before."""
RARE = 2.5
"""What is asked, in nats, before events are said to change at every p alike while the scores do not follow."""
LABELS = {"as given": 0, "level": 1, "slope": 2, "shape": 4}
"""Free numbers of each dependence of the events on p."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The likeliest cause, how likely each is, and the curve of the events.

    Attributes
    ----------
    cause : str or None
        None when nothing changed.
    causes : dict
        Weight of each explanation, together 1 (with that of no change).
    curve : ndarray
        What the likeliest dependence adds to the log-odds: level, slope, bend and turn, in units of the reference.
    """

    cause: str | None
    causes: dict[str, float]
    curve: Floats


class _Fit(NamedTuple):
    coefficients: Floats
    misfit: float


def basis(u: Floats, size: int) -> Floats:
    """The first columns of 1, u, u^2 - 1, u^3 - 3u."""
    return np.column_stack([np.ones_like(u), u, u**2 - 1, u**3 - 3 * u])[:, :size]


def fit_curve(frame: Frame, sums: Sums, size: int) -> _Fit:
    """Add `size` columns to the log-odds by maximum likelihood (a trace of a ridge keeps it finite)."""
    used = sums.labelled > 0
    total, hits = sums.labelled[used], sums.positives[used]
    z = frame.log_odds_of(sums.sum_p[used] / total)
    design = basis(frame.standardised(z), size)
    beta = np.zeros(size)
    loss = _loss(z, design, hits, total, beta)
    for _ in range(50 if size else 0):
        eta = z + design @ beta
        p = np.exp(-np.logaddexp(0, -eta))
        gradient = design.T @ (total * p - hits) + RIDGE * beta
        curvature = (design.T * (total * p * (1 - p))) @ design + RIDGE * np.eye(size)
        step = np.linalg.solve(curvature, gradient)
        length = 1.0
        while length > 1e-6 and _loss(z, design, hits, total, beta - length * step) > loss:
            length /= 2
        beta = beta - length * step
        loss = _loss(z, design, hits, total, beta)
        if float(np.abs(length * step).max()) < 1e-9:
            break
    return _Fit(beta, loss)


def _loss(z: Floats, design: Floats, hits: Floats, total: Floats, beta: Floats) -> float:
    eta = z + design @ beta
    return float((total * np.logaddexp(0, eta) - hits * eta).sum() + RIDGE / 2 * (beta**2).sum())


# ---------------------------------------------------------------- the scores


def _grouped(values: Floats) -> Floats:
    starts = np.unique(np.arange(N_GROUPS) * len(values) // N_GROUPS)
    return np.add.reduceat(values, starts)


class _Scores(NamedTuple):
    """Misfit (half a chi-squared) of the score distribution under each explanation, and its free numbers."""

    same: float
    shares: float
    tilted: float


TILTS = 2


def _score_misfits(reference: Reference, sums: Sums, prior: float | None) -> _Scores:
    counts = sums.scored if sums.scored.any() else sums.labelled
    n = float(counts.sum())
    q = _grouped(counts) / n
    events, others = _grouped(reference.positives), _grouped(reference.negatives)
    f1, f0 = events / events.sum(), others / others.sum()
    expected = (events + others) / (events + others).sum()
    scale = reference.rows / float(reference.weight.sum())
    n1, n0 = events.sum() * scale, others.sum() * scale
    inverse = _inverse(expected, 1 / n + 1 / reference.rows)
    gap = q - expected
    shares = prior if prior is not None else _closest_share(q, f1, f0, inverse)
    mixed = shares * f1 + (1 - shares) * f0
    spread = _covariance(mixed) / n + shares**2 * _covariance(f1) / n1 + (1 - shares) ** 2 * _covariance(f0) / n0
    return _Scores(
        _half_chi_squared(gap, inverse),
        _half_chi_squared(q - mixed, np.linalg.pinv(spread)),
        _half_chi_squared(_without_tilts(gap, expected, inverse), inverse),
    )


def _covariance(share: Floats) -> Floats:
    return np.asarray(np.diag(share) - np.outer(share, share))


def _inverse(share: Floats, scale: float) -> Floats:
    return np.asarray(np.linalg.pinv(_covariance(share) * scale))


def _half_chi_squared(gap: Floats, inverse: Floats) -> float:
    return float(gap @ inverse @ gap) / 2


def _closest_share(q: Floats, f1: Floats, f0: Floats, inverse: Floats) -> float:
    rise = f1 - f0
    steep = float(rise @ inverse @ rise)
    return float(np.clip(rise @ inverse @ (q - f0) / steep, 0.0, 1.0)) if steep > 0 else 0.5


def _without_tilts(gap: Floats, expected: Floats, inverse: Floats) -> Floats:
    """What is left of a gap after moving and spreading the scores as well as can be."""
    rank = np.cumsum(expected) - expected / 2
    columns = [expected * (h - (expected * h).sum()) for h in (rank, np.abs(2 * rank - 1))]
    design = np.column_stack(columns[:TILTS])
    solved = np.linalg.lstsq(design.T @ inverse @ design, design.T @ inverse @ gap, rcond=None)[0]
    return np.asarray(gap - design @ solved)


# ---------------------------------------------------------------- putting it together


def diagnose(frame: Frame, sums: Sums) -> Diagnosis:
    """The likeliest explanation of rows since a change."""
    return _with_labels(frame, sums) if sums.labelled.sum() > 0 else _without_labels(frame, sums)


def _with_labels(frame: Frame, sums: Sums) -> Diagnosis:
    labelled = float(sums.labelled.sum())
    price = np.log(max(labelled, 2.0)) / 2
    fits = {name: fit_curve(frame, sums, size) for name, size in LABELS.items()}
    prior = float(sums.positives.sum()) / labelled
    scores = _score_misfits(frame.reference, sums, prior)
    anyhow = min(scores.same, scores.tilted + TILTS * price)
    losses = {
        None: fits["as given"].misfit + scores.same,
        SCORES: fits["as given"].misfit + scores.tilted + TILTS * price,
        PREVALENCE: fits["level"].misfit + price + scores.shares,
        LEVEL: fits["level"].misfit + price + anyhow + RARE,
        SLOPE: fits["slope"].misfit + 2 * price + anyhow,
        SHAPE: fits["shape"].misfit + 4 * price + anyhow,
    }
    diagnosis = _weighed(losses)
    of = {PREVALENCE: "level", LEVEL: "level", SLOPE: "slope", SHAPE: "shape"}
    curve = fits[of.get(diagnosis.cause or "", "as given")].coefficients
    return Diagnosis(diagnosis.cause, diagnosis.causes, curve)


def _without_labels(frame: Frame, sums: Sums) -> Diagnosis:
    price = np.log(max(float(sums.scored.sum()), 2.0)) / 2
    scores = _score_misfits(frame.reference, sums, None)
    losses = {None: scores.same, PREVALENCE: scores.shares + price, SCORES: scores.tilted + TILTS * price}
    return _weighed(losses)


def _weighed(losses: dict[str | None, float]) -> Diagnosis:
    least = min(losses.values())
    weights = {cause: float(np.exp(least - loss)) for cause, loss in losses.items()}
    total = sum(weights.values())
    likeliest = min(losses, key=lambda cause: losses[cause])
    shares = {cause: weights[cause] / total for cause in losses if cause is not None}
    return Diagnosis(likeliest, shares, np.zeros(0))


def since_change(frame: Frame, batches: Sequence[Sums], by_labels: bool) -> int:
    """How many of the last batches are after the change: the number that speaks loudest for one."""
    best, chosen, total = -np.inf, len(batches), None
    for count, batch in enumerate(reversed(batches), start=1):
        total = batch if total is None else total + batch
        if count > EVERY and count % EVERY and count < len(batches):
            continue
        gain = _gain(frame, total, by_labels)
        if gain > best:
            best, chosen = gain, count
    return chosen


def _gain(frame: Frame, sums: Sums, by_labels: bool) -> float:
    if by_labels and sums.labelled.sum() > 0:
        return fit_curve(frame, sums, 0).misfit - fit_curve(frame, sums, 4).misfit
    scores = _score_misfits(frame.reference, sums, None)
    return scores.same - scores.tilted
