"""Where the signs of misuse are given: out-of-fold scores of common classifiers on public and simulated rows.

    python benchmarks/misuse.py

Nothing here is misuse on purpose, so every sign must be true of the scores, and useful. Signs: `decisions` (two whole
numbers), `few values` (rounded, or shares of few votes), `pile` (an end that holds many rows of both classes),
`separated` (almost perfect: not given inside `CalibratedClassifier`, whose scores are out of fold), `falls` (AUC below
one half).
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_hastie_10_2, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import calibrant
from _timing import header

SIGNS = {
    "decisions": "look like decisions",
    "few values": "different values",
    "pile": "of the rows share the",
    "separated": "separate the classes almost perfectly",
    "falls": "falls as the event gets likelier",
}


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    D, digit = load_digits(return_X_y=True)
    hastie, sign = make_hastie_10_2(4000, random_state=0)
    return {
        "breast cancer": (X, y),
        "digits: odd": (D, digit % 2),
        "digits: 0": (D, (digit == 0).astype(int)),
        "digits: 8": (D, (digit == 8).astype(int)),
        "5% events": make_classification(4000, 10, n_informative=5, weights=[0.95], random_state=0),
        "hastie": (hastie, (sign > 0).astype(int)),
        "moons": make_moons(4000, noise=0.4, random_state=0),
        "noisy": make_classification(4000, 10, n_informative=3, class_sep=0.5, flip_y=0.2, random_state=1),
    }


def models() -> dict[str, Any]:
    """Classifiers as people use them."""
    scaled = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "Bernoulli naive Bayes": BernoulliNB(),
        "5 neighbours": KNeighborsClassifier(5),
        "50 neighbours": KNeighborsClassifier(50),
        "quadratic discriminant": QuadraticDiscriminantAnalysis(reg_param=0.1),
        "support vectors (margins)": SVC(),
    }
    return {
        **{name: make_pipeline(StandardScaler(), model) for name, model in scaled.items()},
        "linear discriminant": LinearDiscriminantAnalysis(),
        "Gaussian naive Bayes": GaussianNB(),
        "tree, grown to the end": DecisionTreeClassifier(random_state=0),
        "tree of depth 3": DecisionTreeClassifier(max_depth=3, random_state=0),
        "tree, leaves of 20": DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
        "forest of 10": RandomForestClassifier(10, random_state=0),
        "forest of 100": RandomForestClassifier(100, random_state=0),
        "forest of 100, leaves of 5": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
        "extra trees, 100": ExtraTreesClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "AdaBoost": AdaBoostClassifier(random_state=0),
    }


def signs_of(model: Any, X: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """The signs in the out-of-fold scores."""
    probabilities = hasattr(model, "predict_proba")
    method = "predict_proba" if probabilities else "decision_function"
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(model, X, y, cv=folds, method=method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (calibrant.AffineLogit() if probabilities else calibrant.PlattScaling()).fit(scores, y)
    said = [str(one.message) for one in caught]
    return (name for name, words in SIGNS.items() if any(words in text for text in said))


def main() -> None:
    header("Signs of misuse in honest scores")
    sets = data_sets()
    print("| classifier | " + " | ".join(SIGNS) + " |")
    print("|---" * (len(SIGNS) + 1) + "|")
    for name, model in models().items():
        found: dict[str, list[str]] = defaultdict(list)
        for place, (X, y) in sets.items():
            for sign in signs_of(model, X, y):
                found[sign].append(place)
        cells = ["all 8" if len(found[sign]) == len(sets) else ", ".join(found[sign]) for sign in SIGNS]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
