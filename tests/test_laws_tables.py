"""The laws of the score table: what is counted, what adds, what stays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as ca
from catalogue import binary_rows

COLUMNS = ("scores", "positives", "negatives", "rows", "squared_weights")

some_rows = st.lists(
    st.tuples(
        st.sampled_from([-0.0, 0.0, 0.5, np.nextafter(0.5, 1), 1.0, -3.0, 1e300, -1e300, 5e-324, 1e-300]),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(w for *_, w in rows))


def made(rows, weighted=True):
    scores, y, weight = zip(*rows)
    return ca.ScoreTable.from_arrays(scores, y, weight if weighted else None)


def same(a, b):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(a.distinct, name), getattr(b.distinct, name))
    assert a.classes == b.classes


@given(some_rows, st.booleans())
def test_distinct_is_the_sum_of_the_rows_by_score(rows, weighted):
    table = made(rows, weighted)
    counted = [(score, y, w if weighted else 1) for score, y, w in rows if w or not weighted]
    expected = sorted({score + 0.0 for score, *_ in counted})
    distinct = table.distinct
    assert distinct.scores.tolist() == expected
    assert not np.signbit(distinct.scores[distinct.scores == 0]).any()
    for place, value in enumerate(expected):
        at = [(y, w) for score, y, w in counted if score == value]
        assert distinct.positives[place] == sum(w for y, w in at if y)
        assert distinct.negatives[place] == sum(w for y, w in at if not y)
        assert distinct.rows[place] == len(at)
        assert distinct.squared_weights[place] == sum(w * w for _, w in at)
    assert distinct.distinct is distinct
    assert table.n_rows == len(counted)
    assert table.total_weight == sum(w for *_, w in counted)
    assert table.prevalence == sum(w for _, y, w in counted if y) / table.total_weight


@given(some_rows, some_rows, some_rows)
def test_adding_is_having_the_rows_together(a, b, c):
    together = made(a + b + c)
    same(made(a) + made(b) + made(c), together)
    same(made(c) + (made(a).distinct + made(b)), together)
    same(sum([made(b), made(c), made(a).distinct]), together)


@given(some_rows)
def test_from_counts_is_the_same_table(rows):
    table = made(rows, weighted=False)
    counted = ca.ScoreTable.from_counts(table.distinct.scores, table.distinct.positives, table.distinct.negatives)
    assert counted.n_rows == table.n_rows
    for name in COLUMNS[:3]:
        np.testing.assert_array_equal(getattr(counted.distinct, name), getattr(table.distinct, name))


def test_every_source_gives_the_same_table(tmp_path):
    rows = binary_rows()
    table = ca.ScoreTable.from_arrays(rows.scores, rows.y, rows.weight)
    columns = {"p": rows.scores, "y": rows.y, "w": rows.weight}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)]
    for frame in frames:
        same(ca.ScoreTable.from_frame(frame, score="p", label="y", weight="w"), table)
    frames[0].to_csv(tmp_path / "rows.csv", index=False)
    frames[1].write_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        same(ca.ScoreTable.from_file(tmp_path / name, score="p", label="y", weight="w"), table)


def test_a_table_keeps_what_it_was_given():
    rows = binary_rows()
    scores, y = rows.scores.copy(), rows.y.copy()
    table = ca.ScoreTable.from_arrays(scores, y)
    expected = ca.brier_score(table)
    scores[:], y[:] = 0, 0
    assert ca.brier_score(table) == expected


def test_a_part_with_one_label_needs_its_coding():
    assert ca.ScoreTable.from_arrays([0.1, 0.2], [1, 1]).prevalence == 1
    assert ca.ScoreTable.from_arrays([0.1, 0.2], [False, False]).prevalence == 0
    for alone in ([2, 2], [-1, -1], ["a", "a"]):
        with pytest.raises(ca.errors.InputError, match="pos_label"):
            ca.ScoreTable.from_arrays([0.1, 0.2], alone)
    positive = ca.ScoreTable.from_arrays([0.8], ["yes"], pos_label="yes")
    negative = ca.ScoreTable.from_arrays([0.1], ["no"], pos_label="yes")
    both = positive + negative
    assert both.classes == ("no", "yes")
    assert both.prevalence == 0.5
    assert ca.roc_auc(both) == 1


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1], (0, 1)),
        ([False, True], (False, True)),
        ([-1, 1], (-1, 1)),
        ([1, 2], (1, 2)),
        ([0.0, 1.0], (0, 1)),
        ([0.25, 0.75], (0.25, 0.75)),
        (np.array([0, 255], np.uint8), (0, 255)),
    ],
)
def test_the_greater_of_two_numbers_is_positive(values, classes):
    table = ca.ScoreTable.from_arrays([0.1, 0.9], values)
    assert table.classes == classes
    assert table.positives.tolist() == [0, 1]
    turned = ca.ScoreTable.from_arrays([0.1, 0.9], values, pos_label=values[0])
    assert turned.positives.tolist() == [1, 0]
    assert turned.classes == classes[::-1]


def test_repr_says_what_is_in_it():
    text = repr(ca.ScoreTable.from_arrays([0.2, 0.2, 0.7], [0, 1, 1], [1, 2, 3]).distinct)
    assert "3 rows" in text
    assert "2 distinct scores" in text
    assert "total weight 6" in text
    assert len(ca.ScoreTable.from_arrays([0.2, 0.2, 0.7], [0, 1, 1])) == 3
