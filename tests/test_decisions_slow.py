"""Simulations of guaranteed limits: they hold often enough, and cost little recall. Run with -m slow -s."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as ca

pytestmark = pytest.mark.slow
N, RUNS = 10_000, 500
PRIOR, APART = 0.1, 2.0


def rows(rng, n):
    y = rng.random(n) < PRIOR
    x = rng.normal(np.where(y, APART, 0.0), 1.0)
    return y, 1 / (1 + np.exp(-(np.log(PRIOR / (1 - PRIOR)) + APART * x - APART**2 / 2)))


@pytest.fixture(scope="module")
def population():
    y, p = rows(np.random.default_rng(99), 4_000_000)
    return ca.threshold_curve(ca.ScoreTable.from_arrays(p, y))


CASES = [
    (0.1, {"precision": 0.7}, None),
    (0.05, {"precision": 0.5}, None),
    (0.1, None, {"false_positive_rate": 0.02}),
    (0.05, None, {"alerts": 60}),
    (0.1, {"precision": 0.6}, {"false_positive_rate": 0.03}),
]


@pytest.mark.parametrize("delta, at_least, at_most", CASES)
def test_guaranteed_limits_hold(population, delta, at_least, at_most):
    options = {"objective": "recall", "at_least": at_least, "at_most": at_most, "expected_rows": 1000}
    rng = np.random.default_rng(0)
    held, lucky, kept = 0, 0, []
    for _ in range(RUNS):
        table = ca.ScoreTable.from_arrays(*rows(rng, N)[::-1])
        safe = population.at(ca.choose_threshold(table, guarantee=delta, **options).threshold)
        best = population.at(ca.choose_threshold(table, **options).threshold)
        held += keeps(population, safe, at_least, at_most)
        lucky += keeps(population, best, at_least, at_most)
        kept.append(population.recall[safe] / population.recall[best])
    share, recall = held / RUNS, float(np.mean(kept))
    print(
        f"\n{at_least} {at_most} delta {delta}: held in {100 * share:.1f} % of {RUNS} runs "
        f"({100 * lucky / RUNS:.1f} % without a guarantee), kept {100 * recall:.1f} % of the recall"
    )
    assert share >= 1 - delta - 2 * np.sqrt(delta * (1 - delta) / RUNS)
    assert recall >= 0.9


def keeps(population, at, at_least, at_most):
    values = {
        "precision": population.precision[at],
        "false_positive_rate": population.false_positive_rate[at],
        "alerts": 1000 * population.alert_rate[at],
    }
    fine = all(values[name] >= bound for name, bound in (at_least or {}).items())
    return fine and all(values[name] <= bound for name, bound in (at_most or {}).items())


def test_intervals_cover_at_the_chosen_threshold(population):
    """The threshold is chosen on the same rows; the intervals must stand that."""
    rng = np.random.default_rng(1)
    objectives = ("cost", "f1", "youden", "accuracy")
    held = dict.fromkeys(objectives, 0)
    prices = {"false_positive": 1, "false_negative": 5}
    for _ in range(200):
        table = ca.ScoreTable.from_arrays(*rows(rng, 2000)[::-1]).distinct
        for objective in objectives:
            found = ca.choose_threshold(table, objective=objective, **prices)
            at = population.at(found.threshold)
            cost = (population.fp[at] + 5 * population.fn[at]) / population.total_weight
            truth = cost if objective == "cost" else getattr(population, objective)[at]
            held[objective] += int(found.low <= truth <= found.high)
    print(f"\n95 % intervals held, of 200: {', '.join(f'{name} {count}' for name, count in held.items())}")
    assert min(held.values()) >= 0.92 * 200
