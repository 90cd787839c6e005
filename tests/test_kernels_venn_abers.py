"""Venn-Abers intervals against their definition: two isotonic fits with the new row in them, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels import blocks, venn_abers
from calibrant._kernels._compiled import MANY


def isotonic_at(positives: list[Fraction], weights: list[Fraction], k: int) -> Fraction:
    """The isotonic fit at place k by the min-max formula."""
    return max(
        min(sum(positives[i : j + 1]) / sum(weights[i : j + 1]) for j in range(k, len(weights))) for i in range(k + 1)
    )


def intervals(positives: np.ndarray, weights: np.ndarray) -> venn_abers.Intervals:
    negatives = weights - positives
    return venn_abers.intervals(lambda at: (positives[at], negatives[at]), len(weights))


def at_all_places(found: venn_abers.Intervals, size: int) -> tuple[np.ndarray, np.ndarray]:
    run = np.searchsorted(found.places, np.arange(2 * size + 1), side="right") - 1
    return found.lower[run], found.upper[run]


def by_definition(positives: list[int], weights: list[int], place: int, label: int) -> Fraction:
    hits, totals = [Fraction(int(v)) for v in positives], [Fraction(int(v)) for v in weights]
    k = place // 2
    if place % 2:
        hits[k], totals[k] = hits[k] + label, totals[k] + 1
    else:
        hits.insert(k, Fraction(label))
        totals.insert(k, Fraction(1))
    return isotonic_at(hits, totals, k)


@pytest.mark.parametrize("seed", range(60))
def test_every_place_equals_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    weights = rng.integers(1, 5, size)
    positives = np.array([rng.integers(0, weight + 1) for weight in weights])
    lower, upper = at_all_places(intervals(positives.astype(float), weights.astype(float)), size)
    for place in range(2 * size + 1):
        assert upper[place] == pytest.approx(float(by_definition(positives, weights, place, 1)), abs=1e-14)
        assert lower[place] == pytest.approx(float(by_definition(positives, weights, place, 0)), abs=1e-14)


@pytest.mark.parametrize("block", [1, 2, 7, 2999, 3000, 10_000])
def test_compiled_and_plain_agree(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 3000) * rng.choice([0.1, 1.0, 7.0], 3000)
    positives = weights * rng.integers(0, 2, 3000) * rng.random(3000)
    plain = intervals(positives, weights)
    assert len(weights) < MANY
    monkeypatch.setattr(venn_abers, "MANY", 0)
    monkeypatch.setattr(blocks, "BLOCK", block)
    for one, other in zip(plain, intervals(positives, weights)):
        np.testing.assert_array_equal(other, one)


def test_a_place_is_kept_only_where_an_end_changes() -> None:
    rng = np.random.default_rng(2)
    positives = (rng.random(MANY) < np.linspace(0, 1, MANY)).astype(float)
    found = intervals(positives, np.ones(MANY))
    assert found.places[0] == 0
    assert np.all((np.diff(found.lower) != 0) | (np.diff(found.upper) != 0))
    assert np.all((np.diff(found.lower) >= 0) & (np.diff(found.upper) >= 0))


def test_neighbouring_doubles_keep_their_own_values() -> None:
    first = 0.3
    scores = np.array([first, np.nextafter(first, 1), np.nextafter(np.nextafter(first, 1), 1)])
    fitted = ca.VennAbers().fit(scores, [0, 1, 1])
    assert fitted.map_(scores)[0] < fitted.map_(scores)[1]


def test_no_step_beyond_the_greatest_double() -> None:
    most = np.finfo(float).max
    fitted = ca.VennAbers().fit([-most, 0.0, 1.0, most], [0, 1, 0, 1])
    assert np.isfinite(fitted.map_.thresholds).all()
    assert fitted.predict_interval([most])[0, 1] == 1


def test_a_map_of_many_rows_stays_small() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(50_000)
    fitted = ca.VennAbers().fit(p, rng.random(50_000) < p)
    assert len(fitted.map_.thresholds) < 5_000
    interval = fitted.predict_interval(p[:500])
    assert np.all(interval[:, 0] <= interval[:, 1])
    assert np.all((interval[:, 0] - 1e-12 <= fitted.map_(p[:500])) & (fitted.map_(p[:500]) <= interval[:, 1] + 1e-12))
