"""The same answer from every frame, eager or lazy, Spark included: every binary calibrator and measure."""

from __future__ import annotations

import warnings
from functools import cache

import dask.dataframe as dask
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as ca
from calibrant.data import _grouped
from calibrant.data._grouped import surely_more
from calibrant.errors import ColumnError, DataWarning, InputError, InputTypeError
from catalogue import BINARY, MEASURES, binary_rows, named
from cells import assert_within_bounds, wide

pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

COLUMNS = ("scores", "positives", "negatives", "rows", "squared_weights")


@cache
def spark_session():
    """A local Spark; the test is skipped where there is none."""
    sql = pytest.importorskip("pyspark.sql")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",  # else a query can wait without end
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as reason:
        pytest.skip(f"Spark does not start here: {reason}")


def spark_frame(data):
    rows = list(zip(*(np.asarray(column, dtype=object).tolist() for column in data.values())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spark_session().createDataFrame(rows, list(data))


def dask_frame(data):
    return dask.from_pandas(pd.DataFrame(data), npartitions=3)


LAZY = {
    "polars, lazy": pl.LazyFrame,
    "dask": dask_frame,
    "duckdb": lambda data: duckdb.connect(config={"threads": 1}).from_arrow(pa.table(data)),
}
SPARK = pytest.param(spark_frame, marks=pytest.mark.slow, id="spark")
every_lazy = pytest.mark.parametrize("make", [*(pytest.param(make, id=name) for name, make in LAZY.items()), SPARK])
EAGER = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_frame = pytest.mark.parametrize(
    "make", [*(pytest.param(make, id=name) for name, make in {**EAGER, **LAZY}.items()), SPARK]
)


@cache
def rows_and_table(make, reads):
    """Rows with -0.0 beside 0.0 and weights of 0, and their table from a frame."""
    rows = binary_rows(reads)
    scores = rows.scores.copy()
    scores[:4] = [0.0, -0.0, -0.0, 0.0]
    data = {"other": ["a"] * len(scores), "p": scores, "y": rows.y.astype(int), "w": rows.weight.astype(float)}
    frame = make(data)
    return ca.ScoreTable.from_arrays(scores, rows.y, rows.weight), ca.ScoreTable.from_frame(
        frame, score="p", label="y", weight="w"
    )


def assert_same(table, expected):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(table.distinct, name), getattr(expected.distinct, name))
    assert table.classes == expected.classes


@every_frame
@pytest.mark.parametrize("reads", ["probability", "score"])
def test_the_table(make, reads):
    expected, table = rows_and_table(make, reads)
    assert_same(table, expected)
    assert not np.signbit(table.distinct.scores[table.distinct.scores == 0]).any()


@every_frame
@pytest.mark.parametrize("case", **named(BINARY))
def test_every_calibrator(case, make):
    expected, table = rows_and_table(make, case.reads)
    scores = expected.distinct.scores
    a, b = (case.make().fit_table(one).map_(scores) for one in (expected, table))
    np.testing.assert_allclose(a, b, atol=case.tolerance)


@every_frame
@pytest.mark.parametrize("case", **named(MEASURES))
def test_every_measure(case, make):
    expected, table = rows_and_table(make, "probability")
    a, b = (case.values(case.call(one)) for one in (expected, table))
    np.testing.assert_allclose(a, b, atol=1e-12, rtol=1e-12)


# ---------------------------------------------------------------- what a lazy frame may hold


@every_lazy
@pytest.mark.parametrize(
    ("labels", "pos_label", "classes"),
    [
        ([0, 1, 1, 0], None, (0, 1)),
        ([False, True, True, False], None, (False, True)),
        (["no", "yes", "yes", "no"], "yes", ("no", "yes")),
        (["no", "yes", "yes", "no"], "no", ("yes", "no")),
        ([1, 1, 1, 1], None, (0, 1)),
        ([-1.0, 1.0, 1.0, -1.0], None, (-1, 1)),
    ],
)
def test_labels(make, labels, pos_label, classes):
    p = [0.25, 0.5, 0.75, 0.5]
    table = ca.ScoreTable.from_frame(make({"p": p, "y": labels}), score="p", label="y", pos_label=pos_label)
    assert_same(table, ca.ScoreTable.from_arrays(p, labels, pos_label=pos_label))
    assert table.classes == classes


@every_lazy
def test_whole_numbers_are_scores(make):
    table = ca.ScoreTable.from_frame(make({"p": [3, -1, 3], "y": [1, 0, 0]}), score="p", label="y")
    assert table.distinct.scores.tolist() == [-1, 3]


@every_lazy
def test_what_cannot_be_used(make):
    holes = make({"p": [0.25, None, 0.75, 0.5, float("nan")], "y": [0, 1, None, 1, 0]})
    with pytest.raises(InputError, match=r"3 rows of the frame have a missing value, the first at row 1"):
        ca.ScoreTable.from_frame(holes, score="p", label="y")
    dropped = ca.ScoreTable.from_frame(holes, score="p", label="y", missing="drop")
    assert_same(dropped, ca.ScoreTable.from_arrays([0.25, 0.5], [0, 1]))
    words = make(
        {"p": ["a", "b"], "y": [0, 1], "q": [0.1, float("inf")], "w": [1.0, -1.0], "z": ["a", "b"], "v": [1, 2]}
    )
    for options, kind, said in (
        ({"score": "p", "label": "y"}, InputTypeError, "must be numbers"),
        ({"score": "P", "label": "y"}, ColumnError, "Did you mean 'p'"),
        ({"score": "q", "label": "y"}, InputError, "1 infinite value, the first at row 1"),
        ({"score": "v", "label": "y", "weight": "w"}, InputError, "1 negative value"),
        ({"score": "v", "label": "z"}, InputError, "pos_label"),
    ):
        with pytest.raises(kind, match=said):
            ca.ScoreTable.from_frame(words, **options)


@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY.keys())
def test_what_cannot_be_used_in_a_large_frame(make, monkeypatch):
    monkeypatch.setattr(_grouped, "MAX_DISTINCT", 1)
    for p, said in (([0.1, None, 0.3], "1 row of the frame"), ([0.1, 0.2, float("-inf")], "1 row of the frame holds")):
        with pytest.raises(InputError, match=said):
            ca.ScoreTable.from_frame(make({"p": p, "y": [0, 1, 1]}), score="p", label="y")


@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY.keys())
def test_weights_that_add_up_to_too_little_are_told(make):
    frame = make({"p": [0.1, 0.2, 0.3], "y": [0, 1, 1], "w": [0.1, 0.1, 0.0], "none": [0.0] * 3})
    with pytest.warns(DataWarning, match="add up to 0.2"):
        ca.ScoreTable.from_frame(frame, score="p", label="y", weight="w")
    with pytest.raises(InputError, match="zero in every row"):
        ca.ScoreTable.from_frame(frame, score="p", label="y", weight="none")


# ---------------------------------------------------------------- too many distinct scores


@every_lazy
@pytest.mark.parametrize("kind", ["probability", "score", "tiny", "huge"])
def test_cells_keep_their_bound(make, kind):
    scores, y = wide(kind)
    frame = make({"p": scores, "y": y})
    with pytest.warns(DataWarning, match=r"more than 500 distinct scores.*not exact.*moved by more than") as caught:
        table = ca.ScoreTable.from_frame(frame, score="p", label="y", max_distinct=500)
    h = assert_within_bounds(table, scores, y, caught, kind)
    if kind == "probability":
        found, expected = (ca.AffineLogit().fit_table(one) for one in (table, ca.ScoreTable.from_arrays(scores, y)))
        assert abs(found.slope_ - expected.slope_) < h * expected.slope_


@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY.keys())
def test_a_table_that_fits_is_exact_and_says_nothing(make):
    scores, y = wide("probability")
    table = ca.ScoreTable.from_frame(make({"p": scores, "y": y}), score="p", label="y", max_distinct=4000)
    assert_same(table, ca.ScoreTable.from_arrays(scores, y))


STEPS = np.arange(40_000.0)
FEW = {
    "thousandths and finer": STEPS / 40_000,
    "binary": STEPS / 2**17,
    "whole": STEPS,
    "halves": STEPS / 2 - 10_000,
    "thousands": STEPS * 1000,
    "millions, of which fractions are lost": STEPS + 2_000_000,
    "great": STEPS * 1e300,
    "small": STEPS * 1e-300,
    "log-odds": np.round(STEPS / 5000 - 4, 6),
}


@every_lazy
def test_more_scores_than_the_limit_by_far_are_seen_in_a_sample(make, monkeypatch):
    """Never wrongly: cells in place of what would have fitted is the worse mistake."""
    monkeypatch.setattr(_grouped, "SAMPLE", 2000)

    def judged(scores):
        rows = make({"score": np.repeat(scores, 2)})
        return surely_more(nw.from_native(rows).lazy(), 40_000)

    rng = np.random.default_rng(0)
    z = rng.normal(-1, 3, 60_000)
    assert judged(1 / (1 + np.exp(-z)))
    assert judged(z)
    assert {name for name, scores in FEW.items() if judged(scores)} == set()


@every_lazy
def test_cells_that_a_sample_asked_for_keep_every_row(make):
    rng = np.random.default_rng(0)
    p = np.round(rng.random(60_000), 12)
    y = (rng.random(60_000) < p).astype(int)
    with pytest.warns(DataWarning, match=r"more than 40,000 distinct scores.*not exact"):
        table = ca.ScoreTable.from_frame(make({"p": p, "y": y}), score="p", label="y", max_distinct=40_000)
    assert (len(table) <= 40_000, table.n_rows, table.total_positives) == (True, 60_000, y.sum())
    assert abs(ca.log_loss(table) - ca.log_loss(y, p)) < 1e-3


# ---------------------------------------------------------------- maps in frames


def sorted_column(made, name):
    """A column of a frame of any library as doubles, NaN where it is null, in the order of `place`."""
    wrapped = nw.from_native(made)
    eager = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
    return np.array(eager.sort("place").get_column(name).to_list(), dtype=float)


@every_frame
@pytest.mark.parametrize("case", **named(BINARY))
def test_every_map(case, make):
    """At every score, where the map changes too; null where the map would refuse the score."""
    rows = binary_rows(case.reads)
    record = case.make().fit(rows.scores, rows.y).map_
    scores = np.concatenate([np.unique(rows.scores), [0.0, 1.0, -0.0]])
    refused = [None, float("nan"), *([1.1, -0.1] if record.reads == "probability" else [float("inf")])]
    frame = make({"place": list(range(len(scores) + len(refused))), "the score": [*scores.tolist(), *refused]})
    found = sorted_column(record.apply_frame(frame, "the score", prefix="q"), "q")
    np.testing.assert_allclose(found[: len(scores)], record(scores), rtol=0, atol=1e-12)
    assert np.isnan(found[len(scores) :]).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", **named(BINARY))
def test_spark_applies_every_map(case):
    rows = binary_rows(case.reads)
    record = case.make().fit(rows.scores, rows.y).map_
    scores = np.unique(rows.scores)
    frame = spark_frame({"place": range(len(scores)), "p": scores})
    by_sql = frame.selectExpr("place", f"{record.to_sql('p', 'spark')} AS q")
    for made in (by_sql, nw.from_native(frame).with_columns(q=record.to_expr("p"))):
        np.testing.assert_allclose(sorted_column(made, "q"), record(scores), atol=1e-12)


EAGER_MORE = {
    "pandas, another index": lambda data: pd.DataFrame(data, index=range(len(data["p"]), 0, -1)),
    "pandas, one index for all": lambda data: pd.DataFrame(data, index=[7] * len(data["p"])),
    "pandas, nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas, Arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "narwhals": lambda data: nw.from_native(pl.DataFrame(data)),
}


@pytest.mark.parametrize("make", [*EAGER.values(), *EAGER_MORE.values()], ids=[*EAGER, *EAGER_MORE])
@pytest.mark.parametrize("scores", [[0.5, None, 0.25, 2.0], [0.5, 0.25], [1, 0], [None, float("nan")]])
def test_an_eager_frame_goes_through_the_map_itself(make, scores):
    record = ca.AffineLogit().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).map_
    made = record.apply_frame(make({"p": scores}), "p")
    found = nw.from_native(made).get_column("calibrated")
    usable = [x is not None and 0 <= x <= 1 for x in scores]
    assert (~found.is_null()).to_list() == usable
    expected = record([x for x, fine in zip(scores, usable) if fine]) if any(usable) else []
    np.testing.assert_array_equal(found.drop_nulls().to_list(), expected)


def test_an_empty_frame_gets_an_empty_column():
    record = ca.AffineLogit().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).map_
    for make in EAGER.values():
        made = nw.from_native(record.apply_frame(make({"p": np.zeros(0)}), "p"))
        assert (made.columns, len(made)) == (["p", "calibrated"], 0)


def test_dask_is_applied_in_its_parts_and_later():
    """Nothing is computed until it is asked for, whatever the index; a wrong name is told at once."""
    record = ca.AffineLogit().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).map_
    parts = [pd.DataFrame({"p": [0.1, 0.5]}), pd.DataFrame({"p": [0.5, np.nan]})]
    read = []

    def part(place):
        read.append(place)
        return parts[place]

    frame = dask.from_map(part, [0, 1], meta=parts[0].iloc[:0])
    made = record.apply_frame(frame, "p")
    assert (read, made.known_divisions, list(made.columns)) == ([], False, ["p", "calibrated"])
    np.testing.assert_array_equal(made.compute()["calibrated"], [*record([0.1, 0.5, 0.5]), np.nan])
    with pytest.raises(ColumnError, match="Did you mean 'p'"):
        record.apply_frame(frame, "P")
    with pytest.raises(ColumnError, match="'p' already"):
        record.apply_frame(frame, "p", prefix="p")
