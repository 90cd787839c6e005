"""Copies of rows: in a calibration and a test set, and across the folds of one set; against plain dictionaries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import calibrant as ca
from calibrant.errors import DataWarning

FRAMES: list[Callable[[dict[str, Any]], Any]] = [pd.DataFrame, pl.DataFrame, pa.table]


def mixed_columns(n: int, seed: int = 0) -> dict[str, list[Any]]:
    """A number, a text, a flag and a column with gaps, all of few values."""
    rng = np.random.default_rng(seed)
    return {
        "size": rng.integers(0, 4, n).tolist(),
        "town": rng.choice(["Bern", "Basel", "Zug"], n).tolist(),
        "new": (rng.random(n) < 0.5).tolist(),
        "note": [None if gap else float(value) for gap, value in zip(rng.random(n) < 0.3, rng.integers(0, 3, n))],
    }


def shared_by_hand(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> list[list[int]]:
    place: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(first):
        place.setdefault(row, number)
    return [[number, place[row]] for number, row in enumerate(second) if row in place]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
def test_shared_rows_of_frames_are_those_of_a_dictionary(frame: Callable[[dict[str, Any]], Any]) -> None:
    first, second = mixed_columns(40), mixed_columns(50, 1)
    found = ca.shared_rows(frame(first), frame(second))
    assert found.pairs.tolist() == shared_by_hand(list(zip(*first.values())), list(zip(*second.values())))
    assert 0 < found.shared < 50
    assert (found.test_rows, found.calibration_rows, found.telling) == (50, 40, False)
    turned = ca.shared_rows(frame(first), frame(dict(reversed(second.items()))))
    np.testing.assert_array_equal(turned.pairs, found.pairs)
    assert "not enough to call them copies" in str(found)


def test_shared_rows_of_matrices_of_any_kind() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, size=(90, 5)).astype(float)
    X[0] = 0.0
    first, second = X[:40], X[40:]
    wanted = shared_by_hand([tuple(row) for row in first], [tuple(row) for row in second])
    assert wanted
    kinds = (np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.coo_array, lambda part: part.astype(np.int8))
    kinds += (
        lambda part: part.tolist(),
        lambda part: part.astype(object),
        lambda part: 0.0 - (0.0 - part),
        pd.DataFrame,
    )
    for kind in kinds:
        assert ca.shared_rows(kind(first), second).pairs.tolist() == wanted
        assert ca.shared_rows(first, kind(second)).pairs.tolist() == wanted


def test_a_value_in_another_column_is_another_row() -> None:
    assert ca.shared_rows([[1.0, 2.0]], [[2.0, 1.0]]).shared == 0
    assert ca.shared_rows([[0.0, 2.0, 0.0]], [[0.0, 0.0, 2.0]]).shared == 0
    assert ca.shared_rows([[np.nan, 2.0]], [[np.nan, 2.0]]).shared == 1
    assert ca.shared_rows(pd.to_datetime(["2024-01-01", None]).to_series(), np.array(["NaT"], "M8[ns]")).shared == 1


def test_large_matrices_go_through_in_parts() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 70))
    found = ca.shared_rows(X[:2000], X[1995:])
    assert found.pairs.tolist() == [[k, 1995 + k] for k in range(5)]
    assert str(found) == (
        "5 of 1,005 test rows are also calibration rows (first: test row 0 = calibration row 1995, counting from 0); "
        "hardly any would be by coincidence. A map looks better than it is on rows that it was fitted on: leave them "
        "out of the test."
    )
    assert str(ca.shared_rows(X[:2000], X[2000:])) == "None of 1,000 test rows is also a calibration row."


def test_whether_equal_rows_tell_something() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(500)
    letters = [f"Dear reader, this is letter number {k}" for k in range(400)]
    telling = [p, np.column_stack([p, p > 0.5]), rng.integers(0, 17, (500, 30)), letters]
    dull = [np.round(p, 2), rng.integers(0, 2, (500, 3)), rng.choice(["yes", "no"], 500), np.round(p, 1)[:, None]]
    assert [ca.shared_rows(rows[:300], rows[200:]).telling for rows in telling] == [True] * 4
    assert [ca.shared_rows(rows[:300], rows[200:]).telling for rows in dull] == [False] * 4


def test_columns_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="calibration has 2 columns, but test has 3"):
        ca.shared_rows(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="different columns: 'b', 'a'"):
        ca.shared_rows(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}))
    with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, p\)"):
        ca.shared_rows(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)))


# ---------------------------------------------------------------- copies or coincidences


def rounded_rows(n: int, digits: int, rng: np.random.Generator, mean: float = -1.0) -> np.ndarray:
    """Probabilities of so many decimals and labels drawn from them, side by side."""
    p = 1 / (1 + np.exp(-rng.normal(mean, 1.5, n)))
    return np.column_stack([np.round(p, digits), rng.random(n) < p])


@pytest.mark.parametrize("digits", [2, 4, 5, 6])
@pytest.mark.parametrize("sizes", [(300, 150), (3000, 1000), (1000, 3000), (10_000, 3000)])
@pytest.mark.parametrize("mean", [-1.0, -3.0, 1.0])
def test_coincidences_are_not_called_copies(digits: int, sizes: tuple[int, int], mean: float) -> None:
    """Disjoint draws; the number foretold is not below what comes by more than chance."""
    rng = np.random.default_rng(digits)
    found = [
        ca.shared_rows(rounded_rows(sizes[0], digits, rng), rounded_rows(sizes[1], digits, rng, mean))
        for _ in range(10)
    ]
    assert not any(one.telling for one in found)
    assert all(one.copies == 0 for one in found)
    shared, chance = np.mean([[one.shared, one.by_chance] for one in found], axis=0)
    if digits > 2:
        assert shared <= 1.1 * chance + 3
    if mean == -1.0:
        assert chance <= 1.25 * shared + 3


@pytest.mark.parametrize(("digits", "part"), [(4, 0.5), (4, 1), (5, 0.1), (5, 0.5), (5, 1), (6, 0.1), (6, 0.5), (6, 1)])
@pytest.mark.parametrize("sizes", [(3000, 1000), (1000, 3000), (6000, 3000)])
def test_copies_among_coincidences_are_counted(digits: int, part: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    first, second = (rounded_rows(n, digits, rng) for n in sizes)
    copied = round(part * sizes[1])
    second[:copied] = first[rng.integers(sizes[0], size=copied)]
    found = ca.shared_rows(first, second)
    assert found.telling
    assert abs(found.copies - copied) <= 0.15 * copied + 10
    assert f"{found.shared:,} of {sizes[1]:,} test rows" in str(found)
    advice = "leave them out" if found.by_chance <= 0.05 * found.shared else f"so about {found.copies:,} are copies"
    assert advice in str(found)


def test_copies_within_the_calibration_set_are_taken_for_coincidences() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    twice = np.concatenate([rows, rows])
    assert ca.shared_rows(rows, rows[:100]).by_chance == 0
    assert ca.shared_rows(twice, rows[:100]).by_chance == 100
    assert not ca.shared_rows(twice, np.concatenate([rows[:50], rng.normal(size=(50, 3))])).telling


def test_rows_of_classes_are_judged_alike() -> None:
    """Scores of a confident model of three classes, of which few digits are left."""
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.normal(scale=6, size=(4000, 2)), np.zeros(4000)])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    rows = np.column_stack([np.round(p, 4), p.argmax(axis=1)])
    found = ca.shared_rows(rows[:3000], rows[3000:])
    assert found.shared > 100
    assert not found.telling
    rows[3000:3500] = rows[:500]
    found = ca.shared_rows(rows[:3000], rows[3000:])
    assert found.telling
    assert abs(found.copies - 500) < 75


# ---------------------------------------------------------------- across the folds of a classifier


def doubled(n: int = 300, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Every row twice, the copies far apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return np.concatenate([X, X]), np.concatenate([y, y])


def texts_of(X: Any, y: Any, model: Any = None, **options: Any) -> list[str]:
    groups = options.pop("groups", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ca.CalibratedClassifier(model or GaussianNB(), ca.AffineLogit(), **options).fit(X, y, groups=groups)
    return [str(one.message) for one in caught if "copies of others" in str(one.message)]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_copies_across_folds_are_named(kind: Callable[[Any], Any], width: int) -> None:
    X, y = doubled(width=width)
    found = texts_of(kind(X), y, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    assert len(found) == 1
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    copied = sum(len({*map(tuple, X[test])} & {*map(tuple, X[train])}) for train, test in splits)
    assert f"{copied / len(y):.0%} of the rows of X are copies of others in another fold" in found[0]


def test_copies_of_text_and_of_sparse_rows_are_named() -> None:
    X, y = doubled()
    texts = [f"a letter about {row[0]:.3f} and {row[1]:.3f}" for row in X]
    frame = pd.DataFrame({"text": texts, "kind": np.where(X[:, 0] > 0, "a", "b")})
    for rows in (texts, frame):
        assert texts_of(rows, y, DummyClassifier())
    from sklearn.linear_model import LogisticRegression

    assert texts_of(sparse.csr_matrix(np.where(np.abs(X) > 0.1, X, 0)), y, LogisticRegression())


def test_copies_that_do_not_leak_are_not_named() -> None:
    """Copies in one fold, in one group, or rows that may be equal by chance, and few of them."""
    X, y = doubled()
    assert texts_of(X, y, cv=GroupKFold(5), groups=np.tile(np.arange(300), 2)) == []
    assert texts_of(np.repeat(X[:300], 2, axis=0), np.repeat(y[:300], 2), cv=StratifiedKFold(5)) == []
    assert texts_of((X > 0).astype(int), y) == []
    assert texts_of(np.round(X[:, :1], 1), y) == []
    assert texts_of(X[:330], y[:330]) == []
    assert texts_of(X, y, FrozenEstimator(GaussianNB().fit(*doubled(200)))) == []


def test_the_warning_is_of_its_kind() -> None:
    with pytest.warns(DataWarning, match="StratifiedGroupKFold"):
        ca.CalibratedClassifier(GaussianNB(), ca.AffineLogit()).fit(*doubled())
