"""Risk-based calibration (RC) against its start and gradient descent (GD), and its speed.

    python benchmarks/risk_based.py [--data FOLDER] [--iterations 64] [--per-set] [--spark]
                                    [--only tables|held-out|speed|frames|doubling]

Tables: training error at the closed-form start, the best of the iterates of RC and of GD, and the reach (iterations
that RC needs to the error of GD after its last iteration), by maximum likelihood and by MAP. Both methods start from
the same parameters and run as long; both are shown with rate 0.1, and with the rate that suits each set best, from one
grid.
Held-out: 5 folds, start against RC with and without early stopping. Data: csv files of the folder (label last, unless
listed below; columns of text are coded, incomplete rows dropped) and scikit-learn's own sets.
Speed, frames, doubling: see `_risk_based_speed.py`.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

from _risk_based_speed import doubling, frames, speed
from _timing import header
from calibrant import expected_calibration_error
from calibrant.generative import (
    CategoricalNaiveBayes,
    LinearDiscriminantLogistic,
    QuadraticDiscriminant,
    RiskBasedCalibration,
    reach,
)

RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
STRENGTH = 10.0
LABELS = {"horse-colic": 23}
PAPER = {
    ("NB", "ML"): "paper, 30 sets: RC better than its start on 27, than GD on those 27, average reach 5",
    ("NB", "MAP"): "paper, 30 sets: RC better than its start on 21, than GD on 18, average reach 5",
}
Set = tuple[str, np.ndarray, np.ndarray]

# ---------------------------------------------------------------- data


def sets(folder: Path | None) -> Iterator[Set]:
    """Name, features and labels 0..K-1 of every data set."""
    own = {"iris": datasets.load_iris, "wine": datasets.load_wine}
    own |= {"breast_cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
    for name, load in own.items():
        X, y = load(return_X_y=True)
        yield name, X.astype(float), y
    for path in sorted(folder.glob("*.csv")) if folder else ():
        if path.stem not in own:
            yield path.stem, *read(path)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a csv file, with or without lines of names on top."""
    with path.open(newline="", encoding="utf-8", errors="replace") as handle:
        lines = [[cell.strip() for cell in row] for row in csv.reader(handle) if any(cell.strip() for cell in row)]
    width = len(lines[-1])
    while lines[0].count("") > 1 or (any(map(_is_number, lines[-1])) and not any(map(_is_number, lines[0]))):
        lines.pop(0)
    cells = np.array([row for row in lines if len(row) == width], dtype=object)
    label = LABELS.get(path.stem, width - 1)
    columns = [_numbers(column) for place, column in enumerate(cells.T) if place != label]
    columns = [column for column in columns if np.isnan(column).mean() < 0.2]
    X, y = np.stack(columns, axis=1), cells[:, label]
    complete = ~np.isnan(X).any(axis=1) & (y != "?")
    return X[complete], np.unique(y[complete].astype(str), return_inverse=True)[1]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(column: np.ndarray) -> np.ndarray:
    missing = np.isin(column, ["?", ""])
    if all(map(_is_number, column[~missing])):
        return np.array([np.nan if gap else float(cell) for gap, cell in zip(missing, column)])
    codes = np.unique(column.astype(str), return_inverse=True)[1].astype(float)
    codes[missing] = np.nan
    return codes


def discretise(X: np.ndarray, bins: int = 5) -> np.ndarray:
    """Columns of few values as their codes, others cut at equal frequencies."""
    columns = []
    for column in X.T:
        values = np.unique(column)
        inner = np.quantile(column, np.arange(1, bins) / bins)
        cuts = (values[1:] + values[:-1]) / 2 if len(values) <= bins else np.unique(inner)
        columns.append(np.searchsorted(cuts, column, side="right"))
    return np.stack(columns, axis=1)


def standardise(X: np.ndarray) -> np.ndarray:
    X = X[:, X.std(axis=0) > 1e-12]
    return (X - X.mean(axis=0)) / X.std(axis=0)


# ---------------------------------------------------------------- gradient descent


@dataclass
class Descent:
    """Log-linear weights on psi, or logits of the tables of naive Bayes, started at a fitted model."""

    psi: np.ndarray
    weights: np.ndarray
    tables: list[slice]
    """Rows of `weights` that are the logits of one table; none for free weights."""

    def log_joint(self) -> np.ndarray:
        return self.psi @ self.normalised()

    def normalised(self) -> np.ndarray:
        if not self.tables:
            return self.weights
        theta = self.weights - np.logaddexp.reduce(self.weights[:1], axis=1)
        for rows in self.tables:
            theta[rows] = log_softmax(self.weights[rows], axis=0)
        return theta

    def descend(self, residuals: np.ndarray, rate: float) -> None:
        """One step down the mean log loss; `residuals` are h - y."""
        gradient = self.psi.T @ residuals
        total = residuals.sum(axis=0)
        theta = self.normalised() if self.tables else None
        for rows in self.tables:
            gradient[rows] -= np.exp(theta[rows]) * total
        self.weights = self.weights - rate * gradient / len(residuals)


def start_tables(model: CategoricalNaiveBayes, X: np.ndarray) -> Descent:
    sizes = [len(categories) for categories in model.categories_]
    psi = np.concatenate([np.ones((len(X), 1)), *(np.eye(size)[column] for size, column in zip(sizes, X.T))], axis=1)
    weights = np.concatenate([model.class_log_prior_[None], *(table.T for table in model.feature_log_prob_)])
    cuts = 1 + np.concatenate([[0], np.cumsum(sizes)])
    return Descent(psi, weights, [slice(first, last) for first, last in pairwise(cuts)])


def start_quadratic(model: QuadraticDiscriminant, X: np.ndarray) -> Descent:
    products = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    psi = np.concatenate([np.ones((len(X), 1)), X, products], axis=1)
    columns = []
    for prior, mean, covariance in zip(model.class_prior_, model.means_, model.covariances_):
        precision = np.linalg.inv(covariance)
        constant = np.log(prior) - 0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * mean @ precision @ mean
        columns.append(np.concatenate([[constant], precision @ mean, -0.5 * precision.ravel()]))
    return Descent(psi, np.array(columns).T, [])


def start_linear(model: LinearDiscriminantLogistic, X: np.ndarray) -> Descent:
    psi = np.concatenate([np.ones((len(X), 1)), X], axis=1)
    return Descent(psi, np.concatenate([model.intercept_[None], model.coef_.T]), [])


def gradient_descent(descent: Descent, y: np.ndarray, rate: float, iterations: int) -> np.ndarray:
    """Training error by iteration; infinite from where it breaks."""
    target = np.eye(descent.weights.shape[1])[y]
    errors = np.full(iterations + 1, np.inf)
    for t in range(iterations + 1):
        log_p = log_softmax(descent.log_joint(), axis=1)
        if not np.isfinite(log_p).any(axis=1).all():
            break
        errors[t] = np.mean(log_p.argmax(axis=1) != y)
        descent.descend(np.exp(log_p) - target, rate)
    return errors


@dataclass(frozen=True)
class Family:
    make: Callable[..., Any]
    prepare: Callable[[np.ndarray], np.ndarray]
    start: Callable[[Any, np.ndarray], Descent]


FAMILIES = {
    "NB": Family(CategoricalNaiveBayes, discretise, start_tables),
    "QDA": Family(QuadraticDiscriminant, standardise, start_quadratic),
    "LR": Family(LinearDiscriminantLogistic, standardise, start_linear),
}

# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Line:
    """One data set: training errors by iteration for each rate."""

    name: str
    rc: dict[float, np.ndarray]
    gd: dict[float, np.ndarray]

    def at(self, rate: float | None) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Rates and errors; without a rate, the one of the lowest error for each method (ties: the smaller area)."""

        def best(runs: dict[float, np.ndarray]) -> float:
            return min(runs, key=lambda r: (runs[r].min(), runs[r].sum(), r))

        mine, theirs = (rate, rate) if rate else (best(self.rc), best(self.gd))
        return mine, theirs, self.rc[mine], self.gd[theirs]


def run(name: str, family: Family, strength: float, X: np.ndarray, y: np.ndarray, iterations: int) -> Line:
    plain = family.make(prior_strength=strength)
    rc = {}
    for rate in RATES:
        fit = RiskBasedCalibration(plain, learning_rate=rate, max_iter=iterations).fit(X, y)
        rc[rate] = np.pad(fit.history_.error, (0, iterations - fit.n_iter_), mode="edge")
    model = plain.fit(X, y)
    gd = {rate: gradient_descent(family.start(model, X), y, rate, iterations) for rate in RATES}
    return Line(name, rc, gd)


def print_table(lines: list[Line], rate: float | None) -> None:
    print("| set | start | RC | GD | rate RC | rate GD | reach |\n|---|--:|--:|--:|--:|--:|--:|")
    for line in lines:
        mine, theirs, rc, gd = line.at(rate)
        reached = reach(rc, gd[-1])
        cells = [f"{rc[0]:.4f}", f"{rc.min():.4f}", f"{gd.min():.4f}", f"{mine:g}", f"{theirs:g}", f"{reached}"]
        print("| " + " | ".join([line.name, *cells]) + " |")
    print()


def summary(family: str, estimate: str, lines: list[Line], rate: float | None) -> str:
    n = len(lines)
    runs = [line.at(rate)[2:] for line in lines]
    improved = sum(rc.min() < rc[0] for rc, _ in runs)
    better = sum(rc.min() < gd.min() for rc, gd in runs)
    worse = sum(rc.min() > gd.min() for rc, gd in runs)
    moved = [reach(rc, gd[-1]) for rc, gd in runs if gd[-1] < rc[0]]
    counted = [t for t in moved if t is not None]
    average = f"{np.mean(counted):.1f}" if counted else "-"
    never = f", never on {len(moved) - len(counted)}" if len(moved) > len(counted) else ""
    start = np.mean([rc[0] for rc, _ in runs])
    lowest = [np.mean([pair[method].min() for pair in runs]) for method in (0, 1)]
    cells = [family, estimate, "tuned" if rate is None else f"{rate:g}", f"{start:.4f}"]
    cells += [f"{error:.4f}" for error in lowest]
    cells += [
        f"{improved}/{n}",
        f"{better}",
        f"{n - better - worse}",
        f"{worse}",
        f"{average} ({len(moved)} sets{never})",
    ]
    return "| " + " | ".join(cells) + " |"


def tables(folder: Path | None, iterations: int, per_set: bool) -> None:
    found = list(sets(folder))
    print(f"{len(found)} sets, {iterations} iterations, rates {', '.join(f'{rate:g}' for rate in RATES)}, ", end="")
    print(f"prior strength {STRENGTH:g}; training error, best iterate of each method.\n")
    totals = []
    for family_name, family in FAMILIES.items():
        for estimate, strength in (("ML", 0.0), ("MAP", STRENGTH)):
            lines = [run(name, family, strength, family.prepare(X), y, iterations) for name, X, y in found]
            totals += [summary(family_name, estimate, lines, rate) for rate in (0.1, None)]
            if per_set:
                print(f"### {family_name}, {estimate}: each with its best rate\n")
                print_table(lines, None)
    print("| model | fit | rate | start | RC | GD | RC < start | RC < GD | RC = GD | RC > GD | mean reach |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    print("\n".join(totals) + "\n")
    for (family_name, estimate), text in PAPER.items():
        print(f"* {family_name}, {estimate}: {text}.")
    print()


# ---------------------------------------------------------------- held-out


def held_out(folder: Path | None, iterations: int) -> None:
    """Error, log loss and calibration error on rows that were not learned from."""
    print("### 5 folds: start -> RC -> RC with early stopping; mean over sets, of the log loss the median\n")
    print("| model | fit | sets | error | log loss | calibration error | worse in log loss: RC, stopped |")
    print("|---|---|--:|---|---|---|--:|")
    found = [(name, X, y) for name, X, y in sets(folder) if np.bincount(y).min() >= 10 and name != "digits"]
    for family_name, family in FAMILIES.items():
        for estimate, strength in (("ML", 0.0), ("MAP", STRENGTH)):
            rows = [_held_out(family, strength, family.prepare(X), y, iterations) for _, X, y in found]
            middle = np.mean(rows, axis=0)
            middle[:, 1] = np.median([row[:, 1] for row in rows], axis=0)
            worse = [sum(row[k][1] > row[0][1] * 1.001 for row in rows) for k in (1, 2)]
            cells = [" -> ".join(f"{value:.3f}" for value in middle[:, measure]) for measure in range(3)]
            print(f"| {family_name} | {estimate} | {len(found)} | {' | '.join(cells)} | {worse[0]}, {worse[1]} |")
    print()


def _held_out(family: Family, strength: float, X: np.ndarray, y: np.ndarray, iterations: int) -> np.ndarray:
    plain = family.make(prior_strength=strength)
    models = [plain, RiskBasedCalibration(plain, max_iter=iterations)]
    models.append(RiskBasedCalibration(plain, max_iter=iterations, early_stopping=True))
    result = np.zeros((3, 3))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        for place, model in enumerate(models):
            log_p = model.fit(X[train], y[train]).predict_log_proba(X[test])
            p = np.exp(log_p)
            p /= p.sum(axis=1, keepdims=True)
            error = np.mean(p.argmax(axis=1) != y[test])
            loss = -np.mean(log_p[np.arange(len(test)), y[test]])
            given = p[:, 1] if p.shape[1] == 2 else p
            ece = expected_calibration_error(y[test], given, labels=list(range(p.shape[1])))
            result[place] += np.array([error, loss, ece]) / 5
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of csv files")
    parser.add_argument("--iterations", type=int, default=64)
    parser.add_argument("--only", choices=["tables", "held-out", "speed", "frames", "doubling"])
    parser.add_argument("--spark", action="store_true", help="frames of a local Spark too")
    parser.add_argument("--per-set", action="store_true", help="a line for each set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(over="ignore", invalid="ignore")
    header("Risk-based calibration")
    if options.only in (None, "tables"):
        tables(options.data, options.iterations, options.per_set)
    if options.only in (None, "held-out"):
        held_out(options.data, options.iterations)
    if options.only in (None, "speed"):
        speed()
    if options.only in (None, "frames"):
        frames(options.spark)
    if options.only in (None, "doubling"):
        doubling()


if __name__ == "__main__":
    main()
