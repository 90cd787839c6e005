"""How rows are dealt to folds: none is lost, folds are of equal size, and many pieces take no list of rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.calibrators import _cross_fit


@pytest.mark.parametrize("most", [10**9, 0], ids=["one by one", "cell by cell"])
def test_every_piece_is_dealt_once_and_folds_are_alike(monkeypatch, most):
    monkeypatch.setattr(_cross_fit, "MOST_PIECES", most)
    rng = np.random.default_rng(0)
    weight = rng.poisson(300.0, 2000).astype(float)
    dealt = _cross_fit.deal(weight, 5, rng)
    np.testing.assert_array_equal(sum(dealt.inside(fold) for fold in range(5)), weight)
    np.testing.assert_allclose(dealt.inside(2) + dealt.outside(2), weight)
    size = dealt.pieces.sum(axis=1)
    spread = 1 if most else 5 * np.sqrt(weight.sum() * 0.16)
    assert np.all(np.abs(size - weight.sum() / 5) <= spread)
    # Each cell's share of a fold varies as a draw without regard to the other cells would.
    share = dealt.pieces[0] / weight
    assert np.std((share - 0.2) / np.sqrt(0.16 / weight)) == pytest.approx(1, abs=0.1)
