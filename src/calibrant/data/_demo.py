"""The data of the demo: out-of-fold scores of a classifier that is famously over-confident.

Invariant: the same scores in every run (fixed folds, nothing random in the classifier).
May import scikit-learn, when the scores are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGIT = 8
FOLDS = 5
SMOOTHING = 0.01
"""Variance lent to every pixel; many are constant, and with less the scores are nothing but 0 and 1."""


@dataclass(frozen=True)
class DemoScores:
    """Scores of rows the classifier was not trained on, what happened, and where they come from."""

    scores: NDArray[np.float64]
    labels: NDArray[Any]
    source: str
    words: str


def demo_scores() -> DemoScores:
    """Naive Bayes on handwritten digits, asked "is it an 8?"."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    pixels, digits = load_digits(return_X_y=True)
    labels = (digits == DIGIT).astype(np.int64)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    p = cross_val_predict(GaussianNB(var_smoothing=SMOOTHING), pixels, labels, cv=folds, method="predict_proba")
    return DemoScores(
        scores=np.ascontiguousarray(p[:, 1], dtype=np.float64),
        labels=labels,
        source=f"scikit-learn's digits, GaussianNB(var_smoothing={SMOOTHING}), {FOLDS} folds",
        words=(
            f"Naive Bayes on {len(labels):,} handwritten digits: is it an {DIGIT}? {int(labels.sum())} are. "
            f"Every score comes from a model that was not trained on that image."
        ),
    )
