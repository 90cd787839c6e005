"""Recursive partitioning: seconds against budgets and floors, how the cost grows, and what each option buys.

    python benchmarks/partitioning.py [--covertype FOLDER] [--only speed|growth|quality|claims|pictures]

FOLDER holds Cover2Pcal.npy, Cover2Ycal.npy, ...Ptest.npy, ...Ytest.npy and the same for Cover3: probabilities of a
logistic regression and one-hot labels, 500 calibration and 1,000 test rows. Without it those lines are left out.
`--only pictures` makes those of the documentation again, in docs/.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import calibrant as ca
from _timing import header, measure, passes, print_rows, sort
from calibrant.calibrators._recursive_cells import simplex_grid

Part = tuple[np.ndarray, np.ndarray]


def synthetic(n: int, k: int, seed: int = 0) -> Part:
    """Over-confident probabilities of k classes, of unequal frequency."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    truth = np.exp(0.7 * z + 0.3 * np.arange(k))
    truth /= truth.sum(axis=1, keepdims=True)
    p = np.exp(z)
    return p / p.sum(axis=1, keepdims=True), (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)


def covertype(folder: Path, k: int) -> tuple[Part, Part]:
    parts = [(np.load(folder / f"Cover{k}P{s}.npy"), np.load(folder / f"Cover{k}Y{s}.npy")) for s in ("cal", "test")]
    return tuple((p, y.argmax(axis=1)) for p, y in parts)  # type: ignore[return-value]


def timed(make: Callable[[], Any], rows: Part) -> tuple[float, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fitted = make().fit(*rows)
        return time.perf_counter() - start, fitted


# ---------------------------------------------------------------- speed


def speed(folder: Path | None) -> None:
    """Seconds against the budgets, the first fit of the process apart."""
    first, _ = timed(ca.RecursivePartitioning, synthetic(200, 3))
    print(f"Loading compiled code (or compiling it, the first time ever): {first:.2f} s.\n")
    three = covertype(folder, 3)[0] if folder else synthetic(500, 3)
    tasks = [
        ("Cover3, grid 1/100" if folder else "500 x 3, grid 1/100", three, simplex_grid(3, 100), 1),
        ("500 x 4, grid 1/50", synthetic(500, 4), simplex_grid(4, 50), 5),
        ("10,000 x 4, auto", synthetic(10_000, 4), "auto", 30),
        ("100,000 x 3, auto", synthetic(100_000, 3), "auto", 120),
    ]
    print("| task | split points | leaves | seconds | budget | passes over the scores | peak MB of the process |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, rows, candidates, budget in tasks:
        seconds, fitted = timed(lambda c=candidates: ca.RecursivePartitioning(candidates=c), rows)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = [name, f"{fitted.n_candidates_:,}", fitted.n_leaves_, f"{seconds:.2f}"]
        cells += [f"{budget} {'ok' if seconds <= budget else 'MISSED'}"]
        cells += [f"{seconds / passes(rows[0].size, 1).seconds:,.0f}", f"{peak:.0f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print()


def growth() -> None:
    """How the cost grows with one number while the others stay."""
    print("| rows | classes | split points | leaves | seconds |\n|--:|--:|--:|--:|--:|")
    grid = simplex_grid(3, 60)
    lines = [(n, 3, grid) for n in (2_000, 8_000, 32_000)]
    lines += [(4_000, 3, simplex_grid(3, steps)) for steps in (30, 61, 123)]
    lines += [(4_000, k, synthetic(2_000, k, 1)[0]) for k in (3, 4, 6, 10)]
    for n, k, points in lines:
        seconds, fitted = timed(lambda c=points: ca.RecursivePartitioning(candidates=c), synthetic(n, k))
        print(f"| {n:,} | {k} | {len(points):,} | {fitted.n_leaves_} | {seconds:.2f} |", flush=True)
    print("\nTwo classes, every cut; the peer is scikit-learn's isotonic regression:\n")
    found = []
    for n in (100_000, 1_000_000, 2_000_000, 4_000_000):
        p, y = synthetic(n, 2)
        ours, peer = ca.RecursivePartitioning(), IsotonicRegression()
        scores = np.ascontiguousarray(p[:, 1])
        call, other = partial(ours.fit, scores, y), partial(peer.fit, scores, y)
        found.append(measure("two classes, every cut", n, call, other, floor=sort(scores)))
    print_rows(found)
    print()


# ---------------------------------------------------------------- quality

METHODS: dict[str, Callable[[int], Any]] = {
    "uncalibrated": lambda k: None,
    "temperature": lambda k: ca.TemperatureScaling(),
    "one-vs-rest isotonic": lambda k: ca.OneVsRest(ca.IsotonicCalibration()),
    "one-vs-rest isotonic, smoothing=1": lambda k: ca.OneVsRest(ca.IsotonicCalibration(smoothing=1.0)),
    "tree": lambda k: ca.RecursivePartitioning(),
    "tree, smoothing=1": lambda k: ca.RecursivePartitioning(smoothing=1.0),
    "tree, max_leaves=cv, smoothing=1": lambda k: ca.RecursivePartitioning(smoothing=1.0, max_leaves="cv"),
    "25 trees": lambda k: ca.RecursivePartitioning(n_trees=25),
    "toward identity": lambda k: ca.RecursivePartitioning(toward="identity"),
    "toward identity, cv-1se": lambda k: ca.RecursivePartitioning(toward="identity", shrinkage="cv-1se"),
    "toward temperature": lambda k: ca.RecursivePartitioning(toward="temperature"),
    "toward temperature, cv-1se": lambda k: ca.RecursivePartitioning(toward="temperature", shrinkage="cv-1se"),
    "toward temperature, max_leaves=cv": lambda k: ca.RecursivePartitioning(toward="temperature", max_leaves="cv"),
    "toward temperature, 10 trees": lambda k: ca.RecursivePartitioning(toward="temperature", n_trees=10),
}


def halves(p: np.ndarray, y: np.ndarray) -> tuple[Part, Part]:
    half = len(y) // 2
    return (p[:half], y[:half]), (p[half:], y[half:])


def bent(n: int) -> tuple[Part, Part]:
    """Scores that no temperature can repair: each class is understated in one half and overstated in the other."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(n + 4_000, 3))
    truth, p = np.exp(np.where(z > 0, 0.2 * z, 3.0 * z)), np.exp(z)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((len(z), 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    p /= p.sum(axis=1, keepdims=True)
    return (p[:n], y[:n]), (p[n:], y[n:])


def naive_bayes() -> tuple[Part, Part]:
    """Gaussian naive Bayes on correlated features, out of fold."""
    x, y = make_classification(6_000, 12, n_informative=6, n_redundant=6, n_classes=3, class_sep=0.8, random_state=0)
    return halves(cross_val_predict(GaussianNB(), x, y, method="predict_proba"), y)


def digits() -> tuple[Part, Part]:
    """Logistic regression on the four lowest digits with strong noise, out of fold."""
    x, y = load_digits(n_class=4, return_X_y=True)
    noisy = x + 12 * np.random.default_rng(0).normal(size=x.shape)
    model = LogisticRegression(C=1.0, max_iter=2000)
    order = np.random.default_rng(1).permutation(len(y))
    return halves(cross_val_predict(model, noisy[order] / 16, y[order], method="predict_proba"), y[order])


def quality(folder: Path | None) -> None:
    """Test log loss of every option; less is better."""
    sets = {f"Cover{k}": covertype(folder, k) for k in (2, 3)} if folder else {}
    sets |= {"bent, 500": bent(500), "bent, 2,000": bent(2_000), "naive Bayes": naive_bayes(), "digits": digits()}
    print("Test log loss, with the log loss floored at 1e-15; in brackets leaves of the tree and shrinkage.\n")
    print("| method | " + " | ".join(f"{n} ({len(c[1]):,} x {c[0].shape[1]})" for n, (c, _) in sets.items()) + " |")
    print("|---" + "|--:" * len(sets) + "|")
    for name, make in METHODS.items():
        cells = [_loss(make(c[0].shape[1]), c, t) for c, t in sets.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("\nVolume under the ROC surface of the calibration rows, before and after the plain tree:\n")
    print("| set | K | before | pair | cycle | chance |\n|---|--:|--:|--:|--:|--:|")
    for name, ((p, y), _) in sets.items():
        if len(y) <= 900 and p.shape[1] <= 3:
            fits = [
                ca.RecursivePartitioning(criterion, 0).fit(p, y).predict_proba(p) for criterion in ("pair", "cycle")
            ]
            volumes = [ca.volume_under_roc_surface(y, q) for q in (p, *fits)]
            chance = "1/2" if p.shape[1] == 2 else "1/6"
            print(f"| {name} | {p.shape[1]} | " + " | ".join(f"{v:.4f}" for v in volumes) + f" | {chance} |")


def _loss(method: Any, cal: Part, test: Part) -> str:
    labels = range(cal[0].shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = test[0] if method is None else method.fit(*cal).predict_proba(test[0])
    loss = ca.log_loss(test[1], p, eps=1e-15, labels=list(labels))
    if isinstance(method, ca.RecursivePartitioning):
        return f"{loss:.4f} ({method.n_leaves_}, {method.shrinkage_:.2f})"
    return f"{loss:.4f}"


# ---------------------------------------------------------------- claims of the source


def claims(sets: int = 400) -> None:
    """On small random sets of three classes: does the volume rise, does every recorded split survive calibration?"""
    print("| criterion | sets | volume rises | splits recorded | of them on the calibrated surface |")
    print("|---|--:|--:|--:|--:|")
    for criterion in ("pair", "cycle"):
        rises = recorded = kept = done = 0
        for seed in range(sets):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(8, 40))
            p = np.round(rng.dirichlet(np.ones(3), n) * 2**20) / 2**20
            p[:, 2] = 1 - p[:, 0] - p[:, 1]  # rows that sum to 1 exactly are not divided by their sum
            y = (rng.random((n, 1)) > (0.7 * p + 0.1).cumsum(axis=1)).sum(axis=1).clip(0, 2)
            if len(np.unique(y)) < 3:
                continue
            done += 1
            fitted = ca.RecursivePartitioning(criterion, 0, "points").fit(p, y)
            after = fitted.predict_proba(p)
            rises += ca.volume_under_roc_surface(y, after) > ca.volume_under_roc_surface(y, p) + 1e-9
            recorded += len(fitted.splits_)
            kept += sum(_survives(p, after, gamma) for gamma in fitted.splits_)
        print(f"| {criterion} | {done} | {rises} | {recorded} | {kept} |", flush=True)
    print()


def _survives(p: np.ndarray, after: np.ndarray, gamma: np.ndarray) -> bool:
    """Whether some split point sends the calibrated rows where gamma sent the scores: no negative cycle of gaps."""
    region = (p - gamma).argmax(axis=1)
    least = np.full((3, 3), np.inf)
    for i in np.unique(region):
        inside = after[region == i]
        least[i] = (inside[:, [i]] - inside).min(axis=0)
    pairs = [least[i, j] + least[j, i] for i, j in ((0, 1), (0, 2), (1, 2))]
    cycles = [least[0, 1] + least[1, 2] + least[2, 0], least[0, 2] + least[2, 1] + least[1, 0]]
    return min(*pairs, *cycles) >= -1e-12


# ---------------------------------------------------------------- pictures


def pictures() -> None:
    """The pictures of docs/recursive_partitioning.md."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    docs = Path(__file__).resolve().parents[1] / "docs"
    (p, y), (q, z) = naive_bayes()
    few = (p[:500], y[:500])
    shown = {
        "recursive partitioning": ca.RecursivePartitioning(),
        "one-vs-rest isotonic": ca.OneVsRest(ca.IsotonicCalibration(smoothing=1.0)),
        "toward temperature, 10 trees": ca.RecursivePartitioning(toward="temperature", n_trees=10),
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    for ax, (name, method) in zip(axes, shown.items()):
        first = ax is axes[0]
        ca.SimplexDisplay.from_estimator(method.fit(*few), *(few if first else ()), ax=ax)
        ax.set_title(name, fontsize="medium")
    figure.savefig(docs / "partition_simplex.png", dpi=90)
    tree = ca.RecursivePartitioning().fit(*few)
    both = {"before": few[0], "after": tree.predict_proba(few[0])}
    ca.RocSurfaceDisplay.from_predictions(few[1], both).figure_.savefig(docs / "partition_surface.png", dpi=90)
    rows = {"calibration rows": few, "other rows": (q[:1000], z[:1000])}
    ca.PartitionCurveDisplay.from_estimator(tree, rows).figure_.savefig(docs / "partition_leaves.png", dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--covertype", type=Path)
    parser.add_argument("--only", choices=["speed", "growth", "quality", "claims", "pictures"])
    options = parser.parse_args()
    if options.only == "pictures":
        pictures()
        return
    header("Recursive partitioning")
    if options.only in (None, "speed"):
        speed(options.covertype)
    if options.only in (None, "growth"):
        growth()
    if options.only in (None, "quality"):
        quality(options.covertype)
    if options.only in (None, "claims"):
        claims()


if __name__ == "__main__":
    main()
