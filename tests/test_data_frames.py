"""Every dataframe library gives the same columns."""

import decimal
import sys

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from calibrant.data import ScoreTable
from calibrant.data._frames import column_array, read_frame
from calibrant.errors import ColumnError, InputError, InputTypeError

DATA = {"p": [0.25, 0.5, 0.75, 0.5], "y": [0, 1, 1, 0], "w": [1.0, 2.0, 0.5, 1.0], "other": list("abab")}
HOLES = {"p": [0.25, None, 0.75, 0.5], "y": ["no", "yes", None, "yes"], "w": [1.0, None, None, 2.0]}


def relation(data):
    return duckdb.connect().from_arrow(pa.table(data))


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas, arrow": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": relation,
    "narwhals": lambda data: nw.from_native(pl.LazyFrame(data)),
}
every_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())


def plain(column):
    return [None if value is None or value != value else value for value in column.tolist()]


@every_frame
def test_every_frame_gives_the_same_columns(make):
    columns = read_frame(make(DATA), score="p", label="y", weight="w")
    assert columns.scores.dtype == np.float64
    assert columns.labels.dtype == np.uint8
    assert columns.scores.tolist() == DATA["p"]
    assert columns.labels.tolist() == DATA["y"]
    assert columns.weights.tolist() == DATA["w"]
    assert (columns.classes, columns.dropped) == ((0, 1), 0)


@every_frame
def test_missing_values_are_counted_and_dropped_on_demand(make):
    with pytest.raises(InputError, match=r"2 rows of the frame have .*first at row 1 .*'p' 1, 'w' 2, 'y' 1"):
        read_frame(make(HOLES), score="p", label="y", weight="w", pos_label="yes")
    columns = read_frame(make(HOLES), score="p", label="y", weight="w", pos_label="yes", missing="drop")
    assert (columns.scores.tolist(), columns.labels.tolist()) == ([0.25, 0.5], [0, 1])
    assert (columns.weights.tolist(), columns.dropped) == ([1.0, 2.0], 2)


@every_frame
def test_unknown_columns_and_text(make):
    with pytest.raises(ColumnError, match=r"score='P' is not a column. The columns are: 'p', 'y'.*Did you mean 'p'"):
        read_frame(make(DATA), score="P", label="y")
    with pytest.raises(InputError, match="pos_label"):
        read_frame(make(DATA), score="p", label="other")
    with pytest.raises(InputTypeError, match="'other'"):
        read_frame(make(DATA), score="other", label="y")


@every_frame
@pytest.mark.parametrize("labels", [[False, True, True, False], [False, True, None, False], [0, 1, None, 0]])
def test_bool_and_whole_labels_with_and_without_gaps(make, labels):
    columns = read_frame(make({**DATA, "y": labels}), score="p", label="y", missing="drop")
    assert columns.labels.tolist() == [int(label) for label in labels if label is not None]
    assert columns.dropped == labels.count(None)


def test_only_the_named_columns_of_a_lazy_frame_are_computed():
    fails = pl.col("p").map_elements(lambda _: 1 / 0, return_dtype=pl.Float64).alias("never")
    frame = pl.LazyFrame(DATA).with_columns(fails)
    assert read_frame(frame, score="p", label="y").scores.tolist() == DATA["p"]


def test_repeated_and_unnamed_columns_of_pandas():
    frame = pd.DataFrame([[0.5, 1, 0.5], [0.25, 0, 0.1]], columns=["p", "y", "p"])
    with pytest.raises(ColumnError, match=r"names 2 columns \(numbers 1, 3\)"):
        read_frame(frame, score="p", label="y")
    frame.columns = [0, 1, 2]
    assert read_frame(frame, score=0, label=1).scores.tolist() == [0.5, 0.25]


def test_frames_that_cannot_be_used():
    with pytest.raises(InputError, match=r"'p' has 1 infinite value, the first at row 1"):
        read_frame(pd.DataFrame({"p": [0.5, np.inf], "y": [0, 1]}), score="p", label="y")
    with pytest.raises(InputError, match="no rows"):
        read_frame(pd.DataFrame({"p": [], "y": []}), score="p", label="y")
    with pytest.raises(InputError, match="no rows without a missing value"):
        read_frame(pd.DataFrame({"p": [None], "y": [1]}), score="p", label="y", missing="drop")
    with pytest.raises(InputTypeError, match=r"frame must be a dataframe.*it is dict.*from_arrays"):
        read_frame(DATA, score="p", label="y")


# ---------------------------------------------------------------- single columns

WHOLE, GAPS = [0, 1, 1], [0, None, 1]


@pytest.mark.parametrize(
    "column",
    [
        WHOLE,
        tuple(WHOLE),
        range(2),
        np.array(WHOLE),
        pd.Series(WHOLE),
        pd.Series(WHOLE, index=[7, 3, 5]),
        pd.Index(WHOLE),
        pd.array(WHOLE, dtype="Int64"),
        pd.Series(WHOLE, dtype="Int8"),
        pd.Series(WHOLE, dtype="int64[pyarrow]"),
        pd.Series(WHOLE, dtype="category"),
        pd.Series(WHOLE, dtype=object),
        pl.Series(WHOLE),
        pl.Series(WHOLE, dtype=pl.Decimal(10, 2)),
        pa.array(WHOLE),
        pa.chunked_array([WHOLE[:1], WHOLE[1:]]),
        nw.from_native(pl.Series(WHOLE), series_only=True),
        [decimal.Decimal(0), decimal.Decimal(1), 1],
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_whole_numbers(column):
    array = column_array(column, "y")
    assert array.dtype.kind in "iuf"
    assert array.tolist() == WHOLE[: len(column)]


@pytest.mark.parametrize(
    "column",
    [
        GAPS,
        np.ma.masked_array([0, 5, 1], [False, True, False]),
        pd.Series(GAPS, dtype="Int64"),
        pd.Series(GAPS, dtype="Float64"),
        pd.Series(GAPS, dtype="double[pyarrow]"),
        pd.Series(GAPS, dtype="category"),
        pd.Series([0, pd.NA, 1], dtype=object),
        pl.Series(GAPS),
        pa.array(GAPS),
        pa.chunked_array([[0], [None, 1]]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_missing_numbers_are_nan(column):
    array = column_array(column, "y")
    assert array.dtype == np.float64
    assert plain(array) == GAPS


@pytest.mark.parametrize(
    "make",
    [
        list,
        pd.Series,
        lambda values: pd.Series(values, dtype="string"),
        lambda values: pd.Series(values, dtype="category"),
        lambda values: pd.Series(values, dtype=object),
        pl.Series,
        lambda values: pl.Series(values, dtype=pl.Categorical),
        pa.array,
        lambda values: pa.array(values).dictionary_encode(),
        lambda values: pa.chunked_array([values]).dictionary_encode(),
    ],
)
def test_text_with_and_without_gaps(make):
    assert column_array(make(["b", "a", "b"]), "y").tolist() == ["b", "a", "b"]
    assert column_array(make(["b", None, "a"]), "y").tolist() == ["b", None, "a"]


@pytest.mark.parametrize(
    "make", [list, pd.Series, lambda values: pd.Series(values, dtype="boolean"), pl.Series, pa.array]
)
def test_bool_with_and_without_gaps(make):
    whole = column_array(make([True, False]), "y")
    assert (whole.dtype, whole.tolist()) == (np.bool_, [True, False])
    assert column_array(make([True, None, False]), "y").tolist() == [True, None, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: rows,
        np.array,
        pd.DataFrame,
        lambda rows: pd.DataFrame(rows, columns=["a", "a"]),
        lambda rows: pl.DataFrame(rows, orient="row"),
        lambda rows: pa.table({"a": [row[0] for row in rows], "b": [row[1] for row in rows]}),
    ],
)
def test_matrices(make):
    rows = [[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]]
    assert column_array(make(rows), "p").tolist() == rows


class Tensor:
    """What torch offers: a leaf that needs a gradient refuses `numpy`, as does bfloat16."""

    def __init__(self, values, needs_gradient=True, brain=False):
        self.values, self.needs_gradient, self.brain = values, needs_gradient, brain

    def detach(self):
        return Tensor(self.values, False, self.brain)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, self.needs_gradient, False)

    def numpy(self):
        if self.needs_gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.brain:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.array(self.values, dtype=np.float32)


@pytest.mark.parametrize("brain", [False, True])
def test_tensors(brain):
    assert column_array(Tensor([0.25, 0.5], brain=brain), "p").tolist() == [0.25, 0.5]
    assert "torch" not in sys.modules


def test_columns_that_cannot_be_used():
    with pytest.raises(InputTypeError, match="y must hold one value per row, but it is str"):
        column_array("abc", "y")
    with pytest.raises(InputTypeError, match="lazy LazyFrame, whose rows stay in an engine"):
        column_array(pl.LazyFrame(DATA), "y")
    with pytest.raises(InputError, match="rows have different lengths"):
        column_array([[1, 2], [3]], "y")
    assert column_array([1, "a"], "y").tolist() == [1, "a"]
    assert column_array({0.5}, "p").tolist() == [0.5]
    assert column_array((value for value in [0.5, 0.1]), "p").tolist() == [0.5, 0.1]


def test_columns_of_one_name_are_told_apart_or_named() -> None:
    """pandas and PyArrow hold them; only those that are asked for matter in pandas."""
    p, y = np.array([0.2, 0.7, 0.4]), np.array([0, 1, 0])
    table = ScoreTable.from_frame(pd.DataFrame(np.c_[p, y, p, p], columns=["p", "y", "z", "z"]), score="p", label="y")
    assert table.prevalence == pytest.approx(1 / 3)
    twice = pd.DataFrame(np.c_[p, y, p], columns=["p", "y", "p"])
    with pytest.raises(ColumnError, match=r"'p' names 2 columns .*: rename all but one"):
        ScoreTable.from_frame(twice, score="p", label="y")
    with pytest.raises(ColumnError, match=r"The columns of the frame cannot be read: .*'p' 2 times"):
        ScoreTable.from_frame(pa.table([p, p, y], names=["p", "p", "y"]), score="p", label="y")
