"""How rows are dealt to folds: none is lost, folds are of equal size, and cells of many pieces take no list of them."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as ca
from calibrant.calibrators import _cross_fit

LISTED = {"LISTED": 10**9}
DRAWN = {"LISTED": 0, "LISTED_IN_A_CELL": 0}
CELL_BY_CELL = {**DRAWN, "MOST_DRAWN": 0}
WAYS = pytest.mark.parametrize("way", [LISTED, DRAWN, CELL_BY_CELL], ids=["listed", "drawn", "cell by cell"])


def choose(monkeypatch: pytest.MonkeyPatch, way: dict[str, int]) -> None:
    for name, value in way.items():
        monkeypatch.setattr(_cross_fit, name, value)


@WAYS
def test_every_piece_is_dealt_once_and_folds_are_alike(monkeypatch: pytest.MonkeyPatch, way: dict[str, int]) -> None:
    choose(monkeypatch, way)
    rng = np.random.default_rng(0)
    weight = rng.poisson(300.0, 2000).astype(float)
    dealt = _cross_fit.deal(weight, 5, rng)
    np.testing.assert_array_equal(sum(dealt.inside(fold) for fold in range(5)), weight)
    np.testing.assert_allclose(dealt.inside(2) + dealt.outside(2), weight)
    size = dealt.pieces.sum(axis=1)
    spread = 5 * np.sqrt(weight.sum() * 0.16) if way is CELL_BY_CELL else 1
    assert np.all(np.abs(size - weight.sum() / 5) <= spread)
    # Each cell's share of a fold varies as a draw without regard to the other cells would.
    share = dealt.pieces[0] / weight
    assert np.std((share - 0.2) / np.sqrt(0.16 / weight)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("way", [LISTED, DRAWN], ids=["listed", "drawn"])
def test_cells_are_dealt_as_without_replacement(monkeypatch: pytest.MonkeyPatch, way: dict[str, int]) -> None:
    choose(monkeypatch, way)
    rng = np.random.default_rng(0)
    weight = np.array([3.0, 10.0, 20.0, 0.0, 68.0])
    times, total = 4000, weight.sum()
    pieces = np.array([_cross_fit.deal(weight, 3, rng).pieces for _ in range(times)])
    size = np.array([34, 34, 33])
    np.testing.assert_array_equal(pieces.sum(axis=2), np.broadcast_to(size, (times, 3)))
    np.testing.assert_array_equal(pieces.sum(axis=1), np.broadcast_to(weight, (times, 5)))
    share = weight / total
    for fold in range(3):
        of_fold = pieces[:, fold]
        exact = size[fold] * (np.diag(share) - np.outer(share, share)) * (total - size[fold]) / (total - 1)
        error = np.sqrt(np.diag(exact) / times)
        assert np.all(np.abs(of_fold.mean(axis=0) - size[fold] * share) <= 4.5 * error)
        spread = np.sqrt(2 / times * np.outer(np.diag(exact), np.diag(exact)))
        assert np.all(np.abs(np.cov(of_fold.T) - exact) <= 4.5 * spread)
    # A cell's parts in two folds: covariance -size size' share (1 - share) / (total - 1).
    between = np.cov(pieces[:, 0, 2], pieces[:, 1, 2])[0, 1]
    assert between == pytest.approx(-34 * 34 * share[2] * (1 - share[2]) / (total - 1), rel=0.15)


@WAYS
def test_a_seed_gives_the_same_folds_again(monkeypatch: pytest.MonkeyPatch, way: dict[str, int]) -> None:
    choose(monkeypatch, way)
    weight = np.random.default_rng(0).poisson(30.0, 500).astype(float)
    first, again = (_cross_fit.deal(weight, 4, np.random.default_rng(7)).pieces for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("each", [1e8 - 1, 1e8, 1e12], ids=["just drawn", "more than NumPy draws", "far more"])
def test_thousands_of_millions_of_pieces_are_dealt(each: float) -> None:
    weight = np.full(10, each)
    dealt = _cross_fit.deal(weight, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(sum(dealt.inside(fold) for fold in range(5)), weight)
    np.testing.assert_allclose(dealt.pieces.sum(axis=1), 2 * each, rtol=1e-4)
    assert np.any(dealt.pieces[0] != dealt.pieces[1])


@pytest.mark.parametrize("n", [2_000, 20_000, 120_000])
def test_rows_counts_and_whole_weights_give_the_same_spline(n: int) -> None:
    rng = np.random.default_rng(n)
    score = rng.random(n)
    y = rng.random(n) < score**2
    some, times = rng.integers(0, n, n), np.zeros(n)
    np.add.at(times, some, 1)
    by_row = ca.ScoreTable.from_arrays(score[some], y[some])
    held = times > 0
    by_weight = ca.ScoreTable.from_arrays(score[held], y[held], times[held])
    by_count = ca.ScoreTable.from_counts(score, times * y, times * ~y)
    first = ca.SplineCalibration().fit_table(by_row)
    for table in (by_weight, by_count):
        other = ca.SplineCalibration().fit_table(table)
        assert other.penalty_ == first.penalty_
        np.testing.assert_allclose(other.map_(score[:100]), first.map_(score[:100]), rtol=1e-9)


@pytest.mark.parametrize("n_folds", [2, 5, 300])
def test_rows_and_counts_give_the_same_fold_tables(n_folds: int) -> None:
    rng = np.random.default_rng(n_folds)
    score = rng.random(1_000)
    y = rng.random(1_000) < score
    tables = ca.ScoreTable.from_arrays(score, y), ca.ScoreTable.from_counts(score, y * 1.0, ~y * 1.0)
    folds = [_cross_fit.fold_tables(table, n_folds, np.random.default_rng(3)) for table in tables]
    seen = 0
    for by_row, by_count in zip(*folds, strict=True):
        for one, other in zip(by_row, by_count, strict=True):
            for name in ("scores", "positives", "negatives", "rows", "squared_weights"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
            assert one.distinct is one
        held, rest = by_row
        assert held.n_rows + rest.n_rows == 1_000
        assert min(held.total_positives, held.total_negatives) >= 1
        seen += held.n_rows
    assert seen == 1_000


def test_parts_of_weighted_scores_keep_their_share_of_rows_and_squares() -> None:
    table = ca.ScoreTable.from_arrays([0.1, 0.1, 0.5, 0.7, 0.7], [0, 1, 1, 0, 1], [4.0, 2.0, 3.0, 2.0, 2.0]).distinct
    for held, rest in _cross_fit.fold_tables(table, 2, np.random.default_rng(0)):
        for name in ("rows", "squared_weights"):
            total = getattr(held, name).sum() + getattr(rest, name).sum()
            assert total == pytest.approx(getattr(table, name).sum())
