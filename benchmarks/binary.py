"""Binary calibrators and measures against scikit-learn's, in one process.

    python benchmarks/binary.py [--sizes 100000 1000000 10000000] [--only TEXT]

Scores are distinct floats in [0, 1]; weighted and margin inputs are shown without a bar. A ratio is the peer's time
over ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
from sklearn.calibration import _SigmoidCalibration, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

import calibrant
from _timing import Row, header, measure, print_rows


def rows_of(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, margins, labels and weights of a simulated over-confident model."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(-0.5, 1.5, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-0.7 * margin))).astype(np.int64)
    return 1 / (1 + np.exp(-margin)), margin, y, rng.integers(1, 4, n).astype(float)


def isotonic(n: int) -> Iterator[Row]:
    p, margin, y, weight = rows_of(n)
    peer = IsotonicRegression(out_of_bounds="clip")
    ours = calibrant.IsotonicCalibration()
    bar = {10_000_000: 8.0, 100_000: 4.0}.get(n)
    yield measure("isotonic fit", n, lambda: ours.fit(p, y), lambda: peer.fit(p, y), bar=bar)
    fresh = rows_of(n, 1)[0]
    fitted = calibrant.IsotonicCalibration().fit(p, y).map_
    peer.fit(p, y)
    yield measure("isotonic apply", n, lambda: fitted(fresh), lambda: peer.predict(fresh), bar=3)
    yield measure("isotonic fit, margins", n, lambda: ours.fit(margin, y), lambda: peer.fit(margin, y))
    yield measure(
        "isotonic fit, weighted", n, lambda: ours.fit(p, y, weight), lambda: peer.fit(p, y, sample_weight=weight)
    )


def platt(n: int) -> Iterator[Row]:
    _, margin, y, weight = rows_of(n)
    ours = calibrant.PlattScaling()
    column = margin[:, None]
    yield measure("Platt fit", n, lambda: ours.fit(margin, y), lambda: _SigmoidCalibration().fit(margin, y), bar=8)
    plain = calibrant.PlattScaling(target_correction=False)
    peer = LogisticRegression(C=np.inf)
    yield measure(
        "Platt fit, plain", n, lambda: plain.fit(margin, y), lambda: peer.fit(column, y), "LogisticRegression", 8
    )
    yield measure(
        "Platt fit, weighted",
        n,
        lambda: ours.fit(margin, y, weight),
        lambda: _SigmoidCalibration().fit(margin, y, sample_weight=weight),
    )


def affine(n: int) -> Iterator[Row]:
    p, _, y, _ = rows_of(n)
    logits = np.log(p / (1 - p))
    yield measure(
        "affine log-odds fit",
        n,
        lambda: calibrant.AffineLogit().fit(p, y),
        lambda: _SigmoidCalibration().fit(logits, y),
        "sigmoid on ready logits",
    )


def measures(n: int) -> Iterator[Row]:
    p, margin, y, weight = rows_of(n)
    yield measure(
        "reliability bins, 10",
        n,
        lambda: calibrant.reliability_curve(y, p),
        lambda: calibration_curve(y, p, n_bins=10),
        "calibration_curve",
        5,
    )
    for name, ours, peer, bar in (
        ("Brier score", calibrant.brier_score, brier_score_loss, 3),
        ("log loss", calibrant.log_loss, log_loss, 3),
        ("ROC AUC", calibrant.roc_auc, roc_auc_score, 4),
        ("average precision", calibrant.average_precision, average_precision_score, 4),
    ):
        yield measure(name, n, partial(ours, y, p), partial(peer, y, p), bar=bar)
        yield measure(
            f"{name}, weighted", n, partial(ours, y, p, sample_weight=weight), partial(peer, y, p, sample_weight=weight)
        )
    yield measure("ROC AUC, margins", n, lambda: calibrant.roc_auc(y, margin), lambda: roc_auc_score(y, margin))


def more(n: int) -> Iterator[Row]:
    """The other calibrators, against packages that are installed."""
    p, _, y, _ = rows_of(n)
    columns = np.column_stack([1 - p, p])

    def venn_abers_peer() -> object:
        from venn_abers import VennAbers

        fitted = VennAbers()
        fitted.fit(columns, y)
        return fitted.predict_proba(columns[:1000])

    def betacal_peer() -> object:
        from betacal import BetaCalibration

        return BetaCalibration(parameters="abm").fit(p[:, None], y)

    small = n <= 1_000_000
    venn = venn_abers_peer if find_spec("venn_abers") and small else None
    beta = betacal_peer if find_spec("betacal") and small else None
    yield measure("Venn-Abers fit", n, lambda: calibrant.VennAbers().fit(p, y), venn, "venn-abers")
    yield measure("beta fit", n, lambda: calibrant.BetaCalibration().fit(p, y), beta, "betacal")
    yield measure("quadratic fit", n, lambda: calibrant.QuadraticLogit().fit(p, y), None, "")
    yield measure("spline fit", n, lambda: calibrant.SplineCalibration().fit(p, y), None, "")
    yield measure("automatic choice", n, lambda: calibrant.AutoCalibrator().fit(p, y), None, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--only", default="", help="run the groups whose name contains this")
    options = parser.parse_args()
    header("Binary calibrators and measures")
    for n in options.sizes:
        for group in (isotonic, platt, affine, measures, more):
            if options.only in group.__name__:
                print_rows(list(group(n)))
                print()


if __name__ == "__main__":
    main()
