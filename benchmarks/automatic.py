"""Does the automatic choice help, and does it ever harm? Test losses on data that scikit-learn ships, and known truth.

    python benchmarks/automatic.py [--splits 3] [--jobs 2]

A pair is a data set and a model. The model's out-of-fold probabilities on 70 % of the rows (or 30 %, where few rows
are wanted) are the calibration set; the model refitted on them predicts the other rows. In the simulated pairs
E[Y | score] is known, and so is the true calibration error (root mean square).
Columns: mean change in log loss against the scores as they are (floored at 1e-15), share of the other methods beaten,
share of pairs made worse, made worse by more than 1 %, and the 95th percentile of the harm in nats.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import calibrant as ca
from _timing import header

Task = tuple[str, str, int, float]
BINARY: dict[str, Callable[[], object]] = {
    "automatic": ca.AutoCalibrator,
    "affine": ca.AffineLogit,
    "temperature": ca.TemperatureScaling,
    "quadratic": ca.QuadraticLogit,
    "beta": ca.BetaCalibration,
    "spline": ca.SplineCalibration,
    "Venn-Abers": ca.VennAbers,
    "isotonic": ca.IsotonicCalibration,
    "Platt on probabilities": ca.PlattScaling,
}
MANY: dict[str, Callable[[], object]] = {
    "automatic": ca.AutoCalibrator,
    "temperature": ca.TemperatureScaling,
    "structured vector": ca.StructuredVectorScaling,
    "structured matrix": ca.StructuredMatrixScaling,
    "one-vs-rest affine": lambda: ca.OneVsRest(ca.AffineLogit()),
    "one-vs-rest isotonic": lambda: ca.OneVsRest(ca.IsotonicCalibration()),
}
MODELS = {
    "naive Bayes": GaussianNB(var_smoothing=1e-3),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(100, random_state=0, n_jobs=1),
    "tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
}
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda z: z,
    "over-confident": lambda z: 0.5 * z,
    "shifted": lambda z: z - 1,
    "bent": lambda z: z + 0.2 * z * np.abs(z) / 2 - 0.3,
    "S-shaped": lambda z: z + np.sin(1.5 * z),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels: "digits 8" asks "is it an 8?"."""
    if name.startswith("digits "):
        X, y = load_digits(return_X_y=True)
        return X, (y == int(name.split()[1])).astype(int)
    return {"breast cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}[name](
        return_X_y=True
    )


def real_tasks(family: str, splits: int) -> list[Task]:
    names = (
        ["breast cancer", *(f"digits {k}" for k in (1, 3, 5, 8, 9))]
        if family == "binary"
        else ["digits", "iris", "wine"]
    )
    return [
        (name, model, seed, share)
        for name in names
        for model in MODELS
        for seed in range(splits)
        for share in (0.7, 0.3)
    ]


def run_real(task: Task) -> tuple[Task, dict[str, float]]:
    """Test log loss of every method on one split."""
    name, model, seed, share = task
    warnings.simplefilter("ignore")
    X, y = load(name)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, train_size=share, stratify=y, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    p = cross_val_predict(clone(MODELS[model]), X_fit, y_fit, cv=folds, method="predict_proba")
    q = clone(MODELS[model]).fit(X_fit, y_fit).predict_proba(X_test)
    methods, shaped = (BINARY, lambda a: a[:, 1]) if p.shape[1] == 2 else (MANY, lambda a: a)
    found = {"none": ca.log_loss(y_test, shaped(q), eps=1e-15)}
    for label, make in methods.items():
        fitted = make().fit(shaped(p), y_fit)
        found[label] = ca.log_loss(y_test, fitted.predict_proba(shaped(q)), eps=1e-15)
    return task, found


def run_known(task: tuple[str, int, int]) -> tuple[tuple[str, int, int], dict[str, float]]:
    """True calibration error of every binary method on one simulated set."""
    truth, n, seed = task
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, n])
    z, fresh = rng.normal(-0.5, 1.7, n), rng.normal(-0.5, 1.7, 20_000)
    chance = lambda values: 1 / (1 + np.exp(-TRUTHS[truth](values)))  # noqa: E731
    y = (rng.random(n) < chance(z)).astype(int)
    y[:2] = 0, 1
    p, q = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-fresh))
    found = {"none": float(np.sqrt(np.mean((q - chance(fresh)) ** 2)))}
    for label, make in BINARY.items():
        found[label] = float(np.sqrt(np.mean((make().fit(p, y).map_(q) - chance(fresh)) ** 2)))
    return task, found


def summary(results: list[dict[str, float]]) -> Iterator[tuple[str, list[float]]]:
    """A row per method: mean change, share of wins, worse, worse by 1 %, harm."""
    names = list(results[0])
    loss = np.array([[one[name] for name in names] for one in results])
    change = loss - loss[:, :1]
    for k, name in enumerate(names):
        others = np.delete(loss, k, axis=1)
        wins = np.mean((loss[:, k : k + 1] < others - 1e-6) + 0.5 * (np.abs(loss[:, k : k + 1] - others) <= 1e-6))
        harm = np.quantile(np.maximum(change[:, k], 0), 0.95)
        relative = change[:, k] / loss[:, 0]
        yield name, [change[:, k].mean(), wins, np.mean(change[:, k] > 1e-6), np.mean(relative > 0.01), harm]


def print_real(title: str, found: list[tuple[Task, dict[str, float]]]) -> None:
    pairs: dict[tuple[str, str, float], list[dict[str, float]]] = {}
    for (name, model, _, share), losses in found:
        pairs.setdefault((name, model, share), []).append(losses)
    means = [{label: float(np.mean([one[label] for one in many])) for label in many[0]} for many in pairs.values()]
    print(f"\n## {title}: {len(means)} pairs\n\n| method | change | wins | worse | worse by 1 % | harm, 95 % |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, cells in sorted(summary(means), key=lambda row: -row[1][1]):
        print(
            f"| {name} | {cells[0]:+.4f} | {cells[1]:.3f} | {cells[2]:.3f} | {cells[3]:.3f} | {cells[4]:.4f} |",
            flush=True,
        )


def print_known(found: list[tuple[tuple[str, int, int], dict[str, float]]]) -> None:
    sizes = sorted({task[1] for task, _ in found})
    print("\n## Known truth: true calibration error, mean over five distortions\n")
    print("| method | " + " | ".join(f"n = {n:,}" for n in sizes) + " |\n|---|" + "--:|" * len(sizes))
    for name in found[0][1]:
        cells = [np.mean([errors[name] for task, errors in found if task[1] == n]) for n in sizes]
        print(f"| {name} | " + " | ".join(f"{cell:.4f}" for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    header("The automatic choice")
    with ProcessPoolExecutor(options.jobs) as pool:
        for family in ("binary", "many classes"):
            print_real(family, list(pool.map(run_real, real_tasks(family, options.splits), chunksize=4)))
        known = [(truth, n, seed) for truth in TRUTHS for n in (100, 1000, 10_000) for seed in range(10)]
        print_known(list(pool.map(run_known, known, chunksize=4)))


if __name__ == "__main__":
    main()
