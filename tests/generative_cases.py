"""The generative classifiers on trial, rows for them, and a second way of computing everything with dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import log_softmax

from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    LinearDiscriminantLogistic,
    QuadraticDiscriminant,
)


@dataclass(frozen=True)
class Family:
    name: str
    make: Callable[..., Any]
    categorical: bool
    dense: Callable[..., tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]
    """Rows of psi, and the log joint that statistics of shape (m, K) give."""


def rows(categorical, n=240, d=4, k=3, seed=0):
    """Features that tell the classes apart a little, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    if categorical:
        X = np.stack([(rng.integers(0, 3 + j, n) + y * (rng.random(n) < 0.4)) % (3 + j) for j in range(d)], axis=1)
    else:
        X = rng.normal(size=(n, d)) * (1 + y[:, None] / 2) + 0.6 * y[:, None]
        X[:, 1:] += 0.5 * X[:, :-1]
    return X, y


# ---------------------------------------------------------------- dense


def dense_naive_bayes(X, k, m0):
    sizes = X.max(axis=0) + 1
    psi = np.concatenate([np.ones((len(X), 1)), *(np.eye(size)[column] for size, column in zip(sizes, X.T))], axis=1)
    cuts = 1 + np.concatenate([[0], np.cumsum(sizes)])

    def log_joint(s):
        theta = [np.maximum((s[0] + m0 / k) / (s[0].sum() + m0), 1e-10)[None]]
        for first, last in pairwise(cuts):
            theta.append(np.maximum((s[first:last] + m0 / k / (last - first)) / (s[first:last].sum(0) + m0 / k), 1e-10))
        return psi @ np.log(np.concatenate(theta))

    return psi, log_joint


def _pseudo(X, k, m0):
    return m0 / k, X.mean(axis=0), X.var(axis=0)


def dense_quadratic(X, k, m0, naive=False):
    n, d = X.shape
    share, mean, variance = _pseudo(X, k, m0)
    psi = np.concatenate([np.ones((n, 1)), X, (X[:, :, None] * X[:, None, :]).reshape(n, -1)], axis=1)

    def log_joint(s):
        result = np.empty((n, k))
        for y in range(k):
            count = s[0, y] + share
            mu = (s[1 : d + 1, y] + share * mean) / count
            second = s[d + 1 :, y].reshape(d, d) + share * (np.diag(variance) + np.outer(mean, mean))
            sigma = second / count - np.outer(mu, mu)
            sigma = np.diag(np.diag(sigma)) if naive else sigma
            off = X - mu
            distance = np.einsum("ij,jk,ik->i", off, np.linalg.inv(sigma), off)
            result[:, y] = np.log(count) - 0.5 * np.linalg.slogdet(sigma)[1] - 0.5 * distance
        return result

    return psi, log_joint


def dense_logistic(X, k, m0):
    share, mean, variance = _pseudo(X, k, m0)
    psi = np.concatenate([np.ones((len(X), 1)), X], axis=1)

    def log_joint(s):
        count = s[0] + share
        mu = (s[1:] + share * mean[:, None]) / count
        p = count / count.sum()
        within = ((X**2).sum(0) + m0 * (variance + mean**2)) / (len(X) + m0) - mu**2 @ p
        theta = mu / within[:, None]
        return X @ theta + np.log(p) - 0.5 * (mu * theta).sum(axis=0)

    return psi, log_joint


FAMILIES = [
    Family("categorical", CategoricalNaiveBayes, True, dense_naive_bayes),
    Family("gaussian", GaussianNaiveBayes, False, lambda X, k, m0: dense_quadratic(X, k, m0, naive=True)),
    Family("quadratic", QuadraticDiscriminant, False, dense_quadratic),
    Family("logistic", LinearDiscriminantLogistic, False, dense_logistic),
]


def dense_calibration(family, X, y, k, m0, rate, steps):
    """Probabilities and mean log loss after each of the steps, from psi and one-hot labels alone."""
    psi, log_joint = family.dense(X, k, m0)
    target = np.eye(k)[y]
    s = psi.T @ target
    stages = []
    for _ in range(steps + 1):
        log_p = log_softmax(log_joint(s), axis=1)
        stages.append((np.exp(log_p), -log_p[np.arange(len(y)), y].mean()))
        s = s + rate * psi.T @ (target - np.exp(log_p))
    return stages


def flat(record):
    """All numbers of a statistics record."""
    parts = (record.counts, *(record.cells if hasattr(record, "cells") else (record.sums, record.squares)))
    return np.concatenate([np.ravel(part) for part in parts])
