"""Tables of K classes from frames, eager and lazy, Spark included: to the bit those of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as ca
from calibrant.data import _grouped
from calibrant.data._class_frames import read_class_frame
from calibrant.errors import ColumnError, DataWarning, InputError, InputTypeError
from test_same_answer import LAZY, SPARK, assert_same, every_frame, every_lazy

in_engine = pytest.mark.parametrize(
    "make", [*(pytest.param(make, id=name) for name, make in LAZY.items() if name != "dask"), SPARK]
)
NAMES = ["fox", "cat", "owl", "dog"]


def rows_of(k=4, n=400, seed=0, digits=2):
    """Rounded probabilities, so that scores repeat and tie, whose rows sum to nearly 1; some exact 0 and 1."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.6), n)
    p = np.round(p, digits)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    p[0], p[1], p[2] = np.eye(k)[1], np.eye(k)[0], 1 / k
    p[3] *= 1 + 5e-5
    p[4, :2] = 1 + 5e-7, -5e-7
    p[4, 2:] = 0
    y = np.array([rng.choice(k, p=row / row.sum()) for row in np.clip(p, 0, None)])
    return p, y, rng.integers(0, 4, n).astype(float)


def columns_of(p, y, w=None, names=None):
    data = {"other": ["a"] * len(p), **{f"p{k}": p[:, k] for k in range(p.shape[1])}, "y": y}
    data["y"] = [names[code] for code in y] if names else y
    return data if w is None else {**data, "w": w}


def scores_of(k):
    return [f"p{place}" for place in range(k)]


def assert_all_same(frame, p, y, w=None, labels=None, **given):
    weight = {} if w is None else {"weight": "w"}
    options = {"scores": scores_of(p.shape[1]), "label": "y", "labels": labels, **weight, **given}
    in_memory = {"sample_weight": w, "labels": labels}
    found = ca.class_tables(frame, **options)
    for table, expected in zip(found, ca.class_tables(y, p, **in_memory), strict=True):
        assert_same(table, expected)
    assert_same(ca.top_label_table(frame, **options), ca.top_label_table(y, p, **in_memory))


@every_frame
@pytest.mark.parametrize("weighted", [False, True])
def test_the_tables(make, weighted):
    p, y, w = rows_of()
    w = w if weighted else None
    assert_all_same(make(columns_of(p, y, w)), p, y, w)


@every_frame
def test_text_labels_in_the_order_of_the_columns(make):
    p, y, w = rows_of()
    words = np.array(NAMES)[y]
    assert_all_same(make(columns_of(p, y, w, NAMES)), p, words, w, NAMES)


@every_frame
@pytest.mark.parametrize("k", [3, 8, 11])
def test_sums_of_rows_of_any_length(make, k):
    p, y, _ = rows_of(k, seed=k, digits=6)
    assert_all_same(make(columns_of(p, y)), p, y)


@pytest.mark.parametrize("k", [130, pytest.param(300, marks=pytest.mark.slow)])
def test_hundreds_of_classes(k):
    p, y, _ = rows_of(k, n=60, seed=k, digits=6)
    options = {"scores": scores_of(k), "label": "y"}
    for make in LAZY.values():
        frame = make(columns_of(p, y))
        assert_same(ca.top_label_table(frame, **options), ca.top_label_table(y, p))
        assert_same(ca.class_tables(frame, **options)[k - 1], ca.class_tables(y, p)[k - 1])


@every_lazy
def test_the_first_of_equally_likely_classes_is_the_top_one(make):
    p = np.array([[0.25, 0.5, 0.25], [0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [0.4, 0.2, 0.4]])
    table = ca.top_label_table(make(columns_of(p, [0, 0, 2, 2])), scores=scores_of(3), label="y").distinct
    assert table.scores.tolist() == [0.4, 0.5]
    assert table.positives.tolist() == [0, 1]
    assert table.negatives.tolist() == [1, 2]


@every_frame
def test_a_class_without_rows(make):
    p, y, _ = rows_of()
    y = np.where(y == 2, 0, y)
    assert_all_same(make(columns_of(p, y)), p, y)


@every_frame
def test_missing_values_are_refused_or_left_out(make):
    p, y, w = rows_of(3, n=8)
    data = columns_of(p, y, w + 1, NAMES)
    data = {name: np.asarray(column).tolist() for name, column in data.items()}
    data["p1"][2], data["y"][5], data["w"][5], data["p0"][6] = None, None, None, float("nan")
    frame = make(data)
    options = {"scores": scores_of(3), "label": "y", "weight": "w", "labels": NAMES[:3]}
    for tables in (ca.class_tables, ca.top_label_table):
        with pytest.raises(InputError, match=r"3 rows of the frame have a missing value.*'p0' 1, 'p1' 1, .*'w' 1"):
            tables(frame, **options)
    kept = [0, 1, 3, 4, 7]
    words = np.array(NAMES)[y[kept]]
    assert_all_same(frame, p[kept], words, w[kept] + 1, NAMES[:3], missing="drop")


@in_engine
def test_what_cannot_be_used(make):
    p, y, w = rows_of(3, n=20)
    data = {**columns_of(p, y, w), "far": p[:, 0] + 2, "low": np.where(w > 1, -1.0, 1.0), "half": p[:, 0] / 2}
    frame = make(data)
    names = scores_of(3)
    for options, kind, said in (
        ({"scores": names[:2]}, InputError, "three or more"),
        ({"scores": "p0"}, InputTypeError, "list of the names"),
        ({"scores": [*names, "p0"]}, InputError, "twice"),
        ({"scores": ["p0", "p1", "y"]}, ColumnError, "same column"),
        ({"scores": ["p0", "p1", "P2"]}, ColumnError, "Did you mean 'p2'"),
        ({"scores": ["p0", "p1", "other"]}, InputTypeError, "'other' must be numbers"),
        ({"scores": ["far", "p1", "p2"]}, InputError, "20 rows of the frame have a score outside"),
        ({"scores": ["half", "p1", "p2"]}, InputError, "do not sum to 1"),
        ({"scores": names, "weight": "low"}, InputError, "below 0"),
        ({"scores": names, "labels": [0, 1]}, InputError, "each of the 3 columns"),
        ({"scores": names, "labels": [5, 6, 7]}, InputError, "not among the classes"),
        ({"scores": names, "missing": "keep"}, InputError, "missing must be"),
    ):
        with pytest.raises(kind, match=said):
            ca.class_tables(frame, **{"label": "y", **options})


@in_engine
def test_cells_beyond_max_distinct(make):
    p, y, w = rows_of(3, n=2000, digits=9)
    frame = make(columns_of(p, y, w))
    options = {"scores": scores_of(3), "label": "y", "weight": "w"}
    with pytest.warns(DataWarning, match="not exact"):
        tables = ca.class_tables(frame, **options, max_distinct=300)
    for table, exact in zip(tables, ca.class_tables(y, p, sample_weight=w)):
        assert len(table) <= 100
        assert table.total_positives == exact.total_positives
        assert abs(ca.brier_score(table) - ca.brier_score(exact)) < 0.01
    with pytest.warns(DataWarning, match="not exact"):
        top = ca.top_label_table(frame, **options, max_distinct=100)
    exact = ca.top_label_table(y, p, sample_weight=w)
    assert len(top) <= 100
    np.testing.assert_allclose(top.scores @ top.weight, exact.scores @ exact.weight, rtol=1e-12)


@in_engine
def test_the_sample_is_planned_in_time_for_many_classes(make, monkeypatch):
    """With `unique`, Spark would derive 2^24 conditions."""
    monkeypatch.setattr(_grouped, "SAMPLE", 100)
    p, y, _ = rows_of(24, n=2000, digits=9)
    with pytest.warns(DataWarning, match="more than 300 distinct scores.*not exact"):
        top = ca.top_label_table(make(columns_of(p, y)), scores=scores_of(24), label="y", max_distinct=300)
    assert (len(top) <= 300, top.n_rows) == (True, 2000)
    assert top.total_positives == ca.top_label_table(y, p).total_positives


@in_engine
def test_what_the_likeliest_class_was(make):
    p, y, w = rows_of()
    names = scores_of(4)
    read = read_class_frame(make(columns_of(p, y, w)), names, "y", "w", None, "error")
    np.testing.assert_array_equal(read.decided(), ca.confusion_matrix(y, p, sample_weight=w).weights)


def test_columns_are_named_once():
    p, y, _ = rows_of(3)
    for tables in (ca.class_tables, ca.top_label_table):
        with pytest.raises(InputError, match="either"):
            tables(y, p, scores=scores_of(3), label="y")
        with pytest.raises(InputError, match="scores="):
            tables(columns_of(p, y))
        with pytest.raises(InputError, match="weight="):
            tables(columns_of(p, y), scores=scores_of(3), label="y", sample_weight=y)
        with pytest.raises(InputError, match="label="):
            tables(columns_of(p, y), scores=scores_of(3))
