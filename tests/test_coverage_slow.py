"""Simulations: do the intervals cover, are verdicts as rarely wrong as promised, do planned rows have their power?

Seeds are fixed. With R samples an observed share has a standard error of root(q (1 - q) / R): "at least 92 %" is asked
of the share itself, other bounds allow two standard errors. Every test prints what it measured (`-s` shows it, and
docs/evidence.md holds it).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as ca

pytestmark = pytest.mark.slow
GRID = 150_000
SAMPLES = 1000


# ---------------------------------------------------------------- true models


def forecasts(shape, size, rng=None):
    """Probabilities of a shape: drawn, or the quantiles of the whole population."""
    from scipy.stats import beta, norm

    u = (np.arange(size) + 0.5) / size if rng is None else rng.uniform(size=size)
    return {
        "bell": lambda: beta.ppf(u, 2, 2),
        "flat": lambda: u,
        "logit-normal": lambda: expit(1.5 * norm.ppf(u)),
        "rare": lambda: expit(-4 + norm.ppf(u)),
    }[shape]()


def drawn(shape, size, rng):
    """The same shapes, quickly."""
    if shape == "bell":
        return rng.beta(2, 2, size)
    if shape == "flat":
        return rng.uniform(size=size)
    return expit(1.5 * rng.normal(size=size)) if shape == "logit-normal" else expit(-4 + rng.normal(size=size))


def distorted(kind, amount, p):
    """The true event rate: log-odds pulled together (over-confident forecasts) or shifted."""
    z = logit(np.clip(p, 1e-15, 1 - 1e-15))
    return expit(z * (1 - amount)) if kind == "slope" else expit(z + amount)


def true_error(kind, amount, p):
    """Root mean square over 15 equal-mass bins of the population."""
    gap = (distorted(kind, amount, p) - p)[: len(p) // 15 * 15].reshape(15, -1).mean(axis=1)
    return math.sqrt((gap**2).mean())


def model(shape, kind, error):
    """A true event rate with the wanted calibration error."""
    if error == 0:
        return lambda p: p
    p, low, high = forecasts(shape, GRID), 0.0, 1.0 if kind == "slope" else 4.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if true_error(kind, middle, p) < error else (low, middle)
    return partial(distorted, kind, low)


def population(shape, rate):
    """The whole population as a table: every measure of it is the true value."""
    p = forecasts(shape, GRID)
    return ca.ScoreTable.from_counts(p, rate(p), 1 - rate(p))


def samples(shape, rate, n, count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p = drawn(shape, n, rng)
        yield (rng.uniform(size=n) < rate(p)).astype(int), p


def holds(found, truth):
    return found.low <= truth <= found.high


# ---------------------------------------------------------------- the calibration error

WIDTHS = {1000: 0.07, 10_000: 0.022}


@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("error", [0, 0.02, 0.05])
@pytest.mark.parametrize("shape", ["bell", "flat", "logit-normal", "rare"])
def test_calibration_error_covers(shape, error, n):
    for kind in ("slope",) if error == 0 else ("slope", "shift"):
        found = [
            ca.calibration_error(y, p) for y, p in samples(shape, model(shape, kind, error), n, SAMPLES, n + len(kind))
        ]
        covered = np.mean([holds(one, error) for one in found])
        width = np.median([one.width for one in found])
        print(
            f"\ncalibration_error {shape} {kind} error={error} n={n}: covered {covered:.3f}, median width {width:.4f}"
        )
        assert covered >= 0.92
        if error == 0:
            assert width <= WIDTHS[n]


# ---------------------------------------------------------------- the other estimates, at true error .02


def parts_of(measure, found):
    if measure is ca.calibration_slope_intercept:
        return {name: getattr(found, name) for name in ("slope", "intercept", "intercept_at_slope_one")}
    if measure is ca.score_decomposition:
        return {name: getattr(found, name) for name in ("score", "miscalibration", "discrimination", "uncertainty")}
    return {measure.__name__: found}


CASES = [
    (ca.brier_score, {}),
    (ca.log_loss, {}),
    (ca.roc_auc, {}),
    (ca.average_precision, {}),
    (ca.calibration_slope_intercept, {}),
    (ca.score_decomposition, {"score": "brier"}),
    (ca.score_decomposition, {"score": "log"}),
]


@pytest.mark.parametrize(("measure", "options"), CASES, ids=lambda part: getattr(part, "__name__", str(part)))
@pytest.mark.parametrize(("shape", "n"), [("bell", 1000), ("logit-normal", 10_000), ("rare", 10_000)])
def test_other_estimates_cover(measure, options, shape, n):
    rate = model(shape, "slope", 0.02)
    truth = parts_of(measure, measure(population(shape, rate), **options))
    covered = dict.fromkeys(truth, 0)
    count = SAMPLES // 2
    for y, p in samples(shape, rate, n, count, n):
        found = parts_of(measure, ca.estimate(measure, y, p, **options))
        for name, value in truth.items():
            covered[name] += holds(found[name], value)
    for name, hits in covered.items():
        print(f"\n{name} {options} {shape} n={n}: covered {hits / count:.3f}")
        assert hits / count >= 0.92, name


@pytest.mark.parametrize("measure", [ca.brier_score, ca.log_loss, ca.roc_auc, ca.average_precision])
def test_bootstrap_covers(measure):
    rate = model("bell", "slope", 0.02)
    truth = measure(population("bell", rate))
    found = [ca.estimate(measure, y, p, n_resamples=400) for y, p in samples("bell", rate, 1000, 300, 3)]
    covered = np.mean([holds(one, truth) for one in found])
    print(f"\nbootstrap of {measure.__name__}: covered {covered:.3f}")
    assert covered >= 0.92


def test_comparisons_cover():
    rate = model("logit-normal", "slope", 0.05)
    p = forecasts("logit-normal", GRID)
    table = population("logit-normal", rate)
    better = table.with_scores(rate(p))
    for measure in (ca.brier_score, ca.log_loss):
        truth = measure(table) - measure(better)
        found = [ca.compare(measure, y, p, rate(p)) for y, p in samples("logit-normal", rate, 1000, SAMPLES // 2, 5)]
        covered = np.mean([holds(one, truth) for one in found])
        print(f"\ncompare {measure.__name__}: covered {covered:.3f}")
        assert covered >= 0.92


@pytest.mark.parametrize("n_resamples", [None, 300])
def test_clusters_cover(n_resamples):
    """200 patients with 5 rows each, whose forecasts and outcomes go together."""
    rng = np.random.default_rng(9)

    def rows(patients):
        level = rng.normal(size=patients).repeat(5)
        p = expit(level + 0.3 * rng.normal(size=5 * patients))
        return (rng.uniform(size=5 * patients) < expit(1.5 * level + 0.8 * rng.normal(size=patients).repeat(5))), p

    measures = (ca.brier_score, ca.log_loss, ca.roc_auc, *((ca.calibration_error,) if n_resamples is None else ()))
    y, p = rows(300_000)
    truths = {measure: float(measure(y, p)) for measure in measures}
    covered, alone, count = dict.fromkeys(measures, 0), dict.fromkeys(measures, 0), 300
    for _ in range(count):
        y, p = rows(200)
        for measure in measures:
            given = {} if n_resamples is None else {"n_resamples": n_resamples}
            grouped = ca.estimate(measure, y, p, groups=np.arange(200).repeat(5), **given)
            covered[measure] += holds(grouped, truths[measure])
            alone[measure] += holds(ca.estimate(measure, y, p), truths[measure])
    for measure in measures:
        print(f"\nclusters {measure.__name__}: {covered[measure] / count:.3f}, as rows {alone[measure] / count:.3f}")
        assert covered[measure] / count >= 0.92


# ---------------------------------------------------------------- verdicts and planning


@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("kind", ["slope", "shift"])
@pytest.mark.parametrize("shape", ["bell", "logit-normal", "rare"])
def test_verdicts_are_rarely_wrong(shape, kind, n):
    """At a true error that is the margin itself, where both verdicts are wrong as often as they ever are."""
    rate, count = model(shape, kind, 0.03), SAMPLES
    found = [ca.calibration_error(y, p) for y, p in samples(shape, rate, n, count, 11)]
    within, beyond = np.mean([one.high <= 0.03 for one in found]), np.mean([one.low > 0.03 for one in found])
    allowed = 0.05 + 2 * math.sqrt(0.05 * 0.95 / count)
    print(f"\nverdict {shape} {kind} n={n}: false 'within' {within:.3f}, false 'beyond' {beyond:.3f}")
    assert within <= allowed
    assert beyond <= allowed


def test_calibrated_forecasts_are_not_called_miscalibrated():
    for shape in ("bell", "logit-normal", "rare"):
        found = [
            ca.calibration_verdict(y, p, margin=0.005).verdict for y, p in samples(shape, lambda p: p, 1000, 300, 2)
        ]
        print(f"\nfalse 'beyond' of calibrated rows, {shape}: {found.count('beyond margin') / 300:.3f}")
        assert found.count("beyond margin") / 300 <= 0.05


def planned(prevalence, spread, n, margin, count):
    """Share of calibrated samples of the planned size that get the verdict."""
    from calibrant._kernels.planning import bin_means

    centre, low, high = None, -40.0, 40.0
    quantiles = spread * forecasts_normal()
    while high - low > 1e-9:
        centre = (low + high) / 2
        low, high = (centre, high) if expit(quantiles + centre).mean() < prevalence else (low, centre)
    assert bin_means(prevalence, spread, 15)[0].mean() == pytest.approx(prevalence, rel=1e-3)
    rng, shown = np.random.default_rng(21), 0
    for _ in range(count):
        p = expit(centre + spread * rng.normal(size=n))
        shown += ca.calibration_error(rng.uniform(size=n) < p, p).high <= margin
    return shown / count


def forecasts_normal():
    from scipy.special import ndtri

    return ndtri((np.arange(20_000) + 0.5) / 20_000)


@pytest.mark.parametrize(("prevalence", "margin"), [(0.5, 0.05), (0.3, 0.03), (0.2, 0.05), (0.05, 0.02), (0.01, 0.01)])
def test_planned_rows_have_their_power(prevalence, margin):
    from calibrant._kernels.planning import spread_of_auc

    for auc in (0.6, 0.75, 0.85):
        n = ca.rows_needed(margin=margin, prevalence=prevalence, roc_auc=auc)
        power = planned(prevalence, spread_of_auc(prevalence, auc, 15), n, margin, SAMPLES)
        print(f"\npower at prevalence={prevalence} margin={margin} AUC={auc} n={n}: {power:.3f}")
        assert abs(power - 0.8) <= 0.03 + 2 * math.sqrt(0.16 / SAMPLES)
    n = ca.rows_needed(margin=margin, prevalence=prevalence)
    for spread in (0.05, 0.7, 1.3):
        assert planned(prevalence, spread, n, margin, SAMPLES // 2) >= 0.77 - 2 * math.sqrt(0.16 / (SAMPLES // 2))


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize("kind", ["slope", "shift"])
@pytest.mark.parametrize("n", [300, 2000])
def test_confidence_bands_cover_at_each_point(kind, n):
    rate, at, inside, count = model("flat", kind, 0.05), np.linspace(0.05, 0.95, 10), np.zeros(10), 200
    for y, p in samples("flat", rate, n, count, 4):
        bands = ca.reliability_bands(y, p, n_resamples=200)
        truth = rate(bands.predicted)
        inside += np.interp(at, bands.predicted, (bands.low <= truth) & (truth <= bands.high))
    print(f"\nbands {kind} n={n}: {np.round(inside / count, 3)}")
    assert (inside / count).mean() >= 0.92
    assert (inside / count).min() >= 0.92 - 2 * math.sqrt(0.05 * 0.95 / count)


def test_consistency_bands_and_bins_cover():
    held, binned, count = [], [], 200
    for y, p in samples("logit-normal", lambda p: p, 1000, count, 6):
        bands = ca.reliability_bands(y, p, kind="consistency", n_resamples=200)
        held.append(np.mean((bands.low <= bands.observed) & (bands.observed <= bands.high)))
        bins = ca.reliability_bands(y, p, strategy="quantile")
        binned.append(np.mean((bins.low <= bins.predicted) & (bins.predicted <= bins.high)))
    print(f"\nconsistency {np.mean(held):.3f}, bins {np.mean(binned):.3f}")
    assert np.mean(held) >= 0.92
    assert np.mean(binned) >= 0.94
