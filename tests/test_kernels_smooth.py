"""Gathering ascending rows into cells: the compiled way and NumPy's agree, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._kernels import smooth
from calibrant._kernels._compiled import MANY
from calibrant._kernels.blocks import BLOCK


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    positives = rng.integers(0, 3, n).astype(float)
    return np.sort(rng.standard_t(2, n)), positives, positives % 2 + rng.integers(1, 4, n)


def gathered(z: np.ndarray, positives: np.ndarray, negatives: np.ndarray, most: int) -> smooth.Gathered:
    total = float((positives + negatives).sum())
    return smooth.gather(z, lambda at: (positives[at], negatives[at]), total, 2.0, most)


@pytest.mark.parametrize("n", [301, BLOCK, BLOCK + 1, 3 * BLOCK - 7])
def test_compiled_and_plain_agree(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    rows = sample(n, seed=n)
    monkeypatch.setattr(smooth, "MANY", 10**9)
    plain = gathered(*rows, 300)
    monkeypatch.setattr(smooth, "MANY", 0)
    compiled = gathered(*rows, 300)
    for name, one, other in zip(plain._fields, plain, compiled):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-10, err_msg=name)
    np.testing.assert_array_equal(compiled.starts, plain.starts)


@pytest.mark.parametrize("n", [1, 50, 4_000, 2 * MANY])
def test_cells_are_few_and_hold_every_row(n: int) -> None:
    z, positives, negatives = sample(n, seed=1)
    cells = gathered(z, positives, negatives, 100)
    assert 1 <= len(cells.starts) <= 100
    assert cells.positives.sum() == positives.sum()
    assert cells.negatives.sum() == negatives.sum()
    weight = cells.positives + cells.negatives
    assert 2.0 * cells.moment.sum() == pytest.approx(float((positives + negatives) @ z), rel=1e-9, abs=1e-9)
    assert np.all(cells.least[1:] > cells.greatest[:-1])
    assert np.all(weight <= weight.sum() / 50 + 6)  # an equal share of the weight, and the row that crosses its end


def test_one_value_many_times_is_one_or_few_cells() -> None:
    n = 2 * MANY
    cells = gathered(np.zeros(n), np.ones(n), np.ones(n), 100)
    assert len(cells.starts) <= 50
    np.testing.assert_array_equal(cells.moment, 0)
