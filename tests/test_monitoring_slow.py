"""Simulations of the monitor: false alarms over a thousand batches, detection, the right cause. Run with -m slow -s."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import calibrant as ca
from streams import KINDS, batch

pytestmark = pytest.mark.slow
ALPHA = 0.05


@pytest.mark.parametrize("labels", [True, False])
def test_false_alarms_over_a_thousand_batches(labels):
    runs, false = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        monitor = ca.CalibrationMonitor(batch(rng, 5000), alpha=ALPHA)
        for _ in range(1000):
            table = batch(rng, 200)
            if monitor.update(table if labels else table.scores).alarm:
                false += 1
                break
    print(f"\nfalse alarms within 1,000 batches ({'with' if labels else 'without'} labels): {false} of {runs} runs")
    assert false <= ALPHA * runs


def watch(seed, kind, n, reference):
    """Batches from the change to the alarm, and the cause named there; None for a false alarm."""
    rng = np.random.default_rng(seed)
    monitor = ca.CalibrationMonitor(batch(rng, reference), alpha=ALPHA)
    for _ in range(20):
        if monitor.update(batch(rng, n)).alarm:
            return None
    for count in range(1, 101):
        record = monitor.update(batch(rng, n, kind))
        if record.alarm:
            return count, record.cause
    return 101, "not noticed"


@pytest.mark.parametrize("n, reference", [(1000, 5000), (2000, 20000)])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_noticed_and_named(kind, n, reference):
    runs = 50
    found = [watch(seed, kind, n, reference) for seed in range(runs)]
    noticed = [result for result in found if result is not None]
    counts, causes = zip(*noticed)
    right = Counter(causes)[KINDS[kind]]
    print(
        f"\n{kind}: batches of {n:,}, reference {reference:,}: median {np.median(counts):g} batches to the alarm, "
        f"right cause in {right} of {runs} ({dict(Counter(causes))})"
    )
    assert "not noticed" not in causes
    assert right >= 0.8 * runs
