"""Streams of scored rows for the simulations: calibrated, at another prevalence, with another slope, shape or scores.

Two normal classes; the probabilities are exact for a prevalence of `TRAIN`.
"""

from __future__ import annotations

import numpy as np

import calibrant as ca

TRAIN, APART = 0.1, 1.7
KINDS = {
    "prevalence 10 % to 15 %": "prevalence moved",
    "slope 0.8": "the map no longer holds (slope)",
    "bent": "the map no longer holds (shape)",
    "waves": "the map no longer holds (shape)",
    "scores": "scores moved",
}


def expit(z):
    return 1 / (1 + np.exp(-z))


def rows(rng, n, prior=TRAIN):
    """Labels and log-odds that are right at the prevalence TRAIN."""
    y = rng.random(n) < prior
    x = rng.normal(np.where(y, APART, 0.0), 1.0)
    return y, np.log(TRAIN / (1 - TRAIN)) + APART * x - APART**2 / 2


def batch(rng, n, kind=None):
    """A table of one batch."""
    if kind in (None, "prevalence 10 % to 15 %"):
        y, z = rows(rng, n, TRAIN if kind is None else 0.15)
        return ca.ScoreTable.from_arrays(expit(z), y)
    z = rows(rng, n)[1] + (0.3 if kind == "scores" else 0.0)
    u = np.clip((z + 2.5) / APART, -2.0, 2.0)
    true = {"slope 0.8": 0.8 * z, "bent": z + 0.35 * (u**2 - 1), "waves": z - 0.8 * np.sin(1.2 * z), "scores": z}[kind]
    return ca.ScoreTable.from_arrays(expit(z), rng.random(n) < expit(true))
