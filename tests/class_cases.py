"""Rows of K classes for the tests of their command line and their report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cli_runs import write


def rows_of_classes(n: int = 600, k: int = 4, seed: int = 0, sharpness: float = 1.8) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident probabilities (n, k) and codes of what happened."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 1.5
    honest = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (honest.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    told = np.exp(sharpness * logits)
    return told / told.sum(axis=1, keepdims=True), labels


NAMES = ("cat", "dog", "größe", "x, y")


def write_classes(
    path: str = "in.csv", n: int = 600, names: Sequence[str] = ("cat", "dog", "fox", "owl"), prefix: str = "p_"
) -> tuple[np.ndarray, np.ndarray]:
    """A file with a column for each class, the label in words, and an identifier that must not change."""
    p, y = rows_of_classes(n, len(names))
    columns: dict[str, Sequence[object]] = {"id": [f"{row:05d}" for row in range(n)]}
    columns |= {f"{prefix}{name}": p[:, k].tolist() for k, name in enumerate(names)}
    write(path, {**columns, "label": [names[k] for k in y]})
    return p, y
