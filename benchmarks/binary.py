"""Binary calibrators and measures against their peers and against a floor, in one process.

    python benchmarks/binary.py [--sizes 100000 1000000 10000000] [--only TEXT]

Scores are distinct floats, labels int64; whole public calls with all their checks. Peers are scikit-learn, and betacal
and venn-abers where they can be imported. A floor is one pass over memory at 2 ns a row, six of them for an iterative
fit, or one `numpy.sort` of the same scores, timed in turn with the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant
from _timing import Floor, Row, header, measure, passes, print_rows, sort

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def rows_of(n: int, seed: int = 0) -> Rows:
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
    yield measure("isotonic fit", n, lambda: ours.fit(p, y), lambda: peer.fit(p, y), bar=bar, floor=sort(p, 2.5))
    fresh = rows_of(n, 1)[0]
    fitted = calibrant.IsotonicCalibration().fit(p, y).map_
    peer.fit(p, y)
    yield measure("isotonic apply", n, lambda: fitted(fresh), lambda: peer.predict(fresh), bar=3, floor=passes(n, 1))
    yield measure(
        "isotonic fit, margins", n, lambda: ours.fit(margin, y), lambda: peer.fit(margin, y), floor=sort(margin, 2.5)
    )
    weighted = partial(ours.fit, p, y, weight), partial(peer.fit, p, y, sample_weight=weight)
    yield measure("isotonic fit, weighted", n, *weighted, floor=sort(p))


def sigmoid(n: int) -> Iterator[Row]:
    """Fits of one slope: Platt, temperature, the line on the log-odds."""
    p, margin, y, weight = rows_of(n)
    six = passes(n, 6, 3)
    ours, plain = calibrant.PlattScaling(), calibrant.PlattScaling(target_correction=False)
    column, logits, logistic = margin[:, None], np.log(p / (1 - p)), LogisticRegression(C=np.inf)
    sigmoid, temperature = _SigmoidCalibration(), _TemperatureScaling()
    yield measure("Platt fit", n, lambda: ours.fit(margin, y), lambda: sigmoid.fit(margin, y), bar=8, floor=six)
    peer = partial(logistic.fit, column, y), "LogisticRegression", 8
    yield measure("Platt fit, plain", n, lambda: plain.fit(margin, y), *peer, floor=six)
    weighted = partial(sigmoid.fit, margin, y, sample_weight=weight)
    yield measure("Platt fit, weighted", n, lambda: ours.fit(margin, y, weight), weighted, floor=passes(n, 6))
    ready = partial(temperature.fit, margin, y), "scikit-learn, ready logits"
    yield measure("temperature fit", n, lambda: calibrant.TemperatureScaling().fit(p, y), *ready, floor=six)
    logit = calibrant.TemperatureScaling(from_logits=True)
    yield measure("temperature fit, logits", n, lambda: logit.fit(margin, y), *ready, floor=six)
    ready = partial(sigmoid.fit, logits, y), "sigmoid, ready logits"
    yield measure("affine log-odds fit", n, lambda: calibrant.AffineLogit().fit(p, y), *ready, floor=six)


def measures(n: int) -> Iterator[Row]:
    """Measures that need no order."""
    p, margin, y, weight = rows_of(n)
    one = passes(n, 1, 3)
    curve = partial(calibration_curve, y, p, n_bins=15), "calibration_curve"
    yield measure(
        "calibration error, 15 bins", n, partial(calibrant.expected_calibration_error, y, p), *curve, floor=one
    )
    curve = partial(calibration_curve, y, p, n_bins=10), "calibration_curve"
    yield measure("reliability bins, 10", n, partial(calibrant.reliability_curve, y, p), *curve, 5, one)
    for name, ours, peer in (
        ("Brier score", calibrant.brier_score, metrics.brier_score_loss),
        ("log loss", calibrant.log_loss, metrics.log_loss),
    ):
        yield measure(name, n, partial(ours, y, p), partial(peer, y, p), bar=3, floor=one)
        weighted = partial(ours, y, p, sample_weight=weight), partial(peer, y, p, sample_weight=weight)
        yield measure(f"{name}, weighted", n, *weighted, floor=passes(n, 1))
    logistic = LogisticRegression(C=np.inf)
    ready = partial(logistic.fit, margin[:, None], y), "LogisticRegression, ready logits"
    line = partial(calibrant.calibration_slope_intercept, y, p)
    yield measure("slope and intercept", n, line, *ready, floor=passes(n, 6, 3))
    decomposition = partial(calibrant.score_decomposition, y, p, method="bins")
    yield measure("decomposition, bins", n, decomposition, None, floor=passes(n, 1))


def ranking(n: int) -> Iterator[Row]:
    """Measures that need the order."""
    p, margin, y, weight = rows_of(n)
    floor = sort(p, 2.5)
    for name, ours, peer in (
        ("ROC AUC", calibrant.roc_auc, metrics.roc_auc_score),
        ("average precision", calibrant.average_precision, metrics.average_precision_score),
    ):
        yield measure(name, n, partial(ours, y, p), partial(peer, y, p), bar=4, floor=floor)
        weighted = partial(ours, y, p, sample_weight=weight), partial(peer, y, p, sample_weight=weight)
        yield measure(f"{name}, weighted", n, *weighted, floor=sort(p))
    both = partial(calibrant.roc_auc, y, margin), partial(metrics.roc_auc_score, y, margin)
    yield measure("ROC AUC, margins", n, *both, floor=sort(margin, 2.5))
    both = partial(calibrant.roc_curve, y, p), partial(metrics.roc_curve, y, p)
    yield measure("ROC curve", n, *both, floor=sort(p))
    decomposition = partial(calibrant.score_decomposition, y, p)
    yield measure("decomposition, isotonic", n, decomposition, None, floor=sort(p))


def more(n: int) -> Iterator[Row]:
    """The other calibrators, against packages that are installed."""
    p, _, y, _ = rows_of(n)
    six, order = passes(n, 6), sort(p)
    peers = packages(n, p, y)
    tasks: list[tuple[str, Any, Floor]] = [
        ("Venn-Abers", calibrant.VennAbers(), order),
        ("beta", calibrant.BetaCalibration(), six),
        ("quadratic", calibrant.QuadraticLogit(), six),
        ("histogram", calibrant.HistogramBinning(), order),
        ("histogram, equal width", calibrant.HistogramBinning(strategy="uniform"), passes(n, 1)),
        ("spline", calibrant.SplineCalibration(), order),
        ("automatic choice", calibrant.AutoCalibrator(), order),
    ]
    for name, ours, floor in tasks:
        if name == "automatic choice" and n > 1_000_000:
            continue  # by doubling.py
        peer, peer_name = peers.get(name, (None, ""))
        yield measure(f"{name} fit", n, partial(ours.fit, p, y), peer, peer_name, floor=floor)


def packages(n: int, p: np.ndarray, y: np.ndarray) -> dict[str, tuple[Callable[[], Any], str]]:
    """Peers other than scikit-learn; venn-abers takes minutes from ten million rows on."""
    columns = np.column_stack([1 - p, p])

    def venn_abers() -> object:
        from venn_abers import VennAbers

        fitted = VennAbers()
        fitted.fit(columns, y)
        return fitted.predict_proba(columns[:1000])

    def betacal() -> object:
        from betacal import BetaCalibration

        return BetaCalibration(parameters="abm").fit(p[:, None], y)

    found: dict[str, tuple[Callable[[], Any], str]] = {}
    if find_spec("betacal"):
        found["beta"] = betacal, "betacal"
    if find_spec("venn_abers") and n <= 1_000_000:
        found["Venn-Abers"] = venn_abers, "venn-abers"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--only", default="", help="run the groups whose name contains this")
    options = parser.parse_args()
    header("Binary calibrators and measures")
    for n in options.sizes:
        for group in (isotonic, sigmoid, measures, ranking, more):
            if options.only in group.__name__:
                print_rows(list(group(n)))
                print()


if __name__ == "__main__":
    main()
