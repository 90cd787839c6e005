"""A map as Python text, as an expression of any dataframe and as ONNX gives what the map gives."""

from __future__ import annotations

import math
import sys

import dask.dataframe as dask
import duckdb
import narwhals as nw
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as ca
from calibrant.errors import ColumnError, InputError, InputTypeError, MissingDependencyError, OutputExistsError
from calibrant.maps import (
    AffineLogitMap,
    AverageMap,
    BetaMap,
    ClassIdentityMap,
    ClassPriorShiftMap,
    CorrectedMap,
    LineMap,
    Map,
    MixtureMap,
    OneVsRestMap,
    PlattMap,
    PriorShiftMap,
    QuadraticLogitMap,
    SplineMap,
    StepMap,
    TemperatureMap,
    TreeMap,
)
from catalogue import BINARY, MANY, binary_rows, class_rows, named
from test_maps_sql import (  # noqa: F401
    MAPS,
    PAIR,
    assert_agree,
    assert_postgres_agrees,
    assert_sqlite_agrees,
    postgres,
    scores_for,
    sqlite,
)

pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

STEPS = StepMap(PAIR, [0.2, 0.5, np.nextafter(0.5, 1), 0.7], [0.0, 0.1, 0.4, 0.6, 1.0])
TREE = TreeMap(PAIR, [0.5, 0.5, 0.75, 0.25], [1, 2, 3, 4], [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
LINE = AffineLogitMap(PAIR, 0.7, 0.2)
MORE: list[Map] = [
    TREE,
    *(TreeMap(PAIR, [1 - cut, cut], [1, 2], [[0.9, 0.1], [0.3, 0.7]]) for cut in (0.0, 1.0)),
    AverageMap(PAIR, (TREE, LINE, TREE)),
    AverageMap(PAIR, (TreeMap(PAIR, [0.0, 1.0], [1, 2], [[0.9, 0.1], [0.3, 0.7]]), TREE)),
    CorrectedMap(PAIR, 0.3, (LINE, TREE, LINE)),
    PriorShiftMap(PAIR, 0.5, 0.01, (LINE,)),
    PriorShiftMap(PAIR, 0.5, 0.9, (STEPS,)),
    PriorShiftMap(PAIR, 0.2, 0.9, (PlattMap(PAIR, 3.0, -1.0),)),
    *(
        PriorShiftMap(PAIR, 0.2, 0.9, (part,))
        for part in (
            TemperatureMap(PAIR, 0.7, 0.0, False, -1.0, 2.0),
            TemperatureMap(PAIR, 0.7, 0.1, False, -1.0, 2.0),
            AffineLogitMap(PAIR, 0.7, 0.2, False, -1.0, 2.0),
            BetaMap(PAIR, 2.0, 0.3, 0.4, -5.0, -0.1),
            SplineMap(PAIR, [-3.0, 0.5, 2.0], [-2.0, 1.0, 1.2], [0.0, 0.3, 0.0], False, -1.0, 1.5),
            QuadraticLogitMap(PAIR, 0.1, 0.9, -0.3, -2.0, 3.0, False, -1.0, 1.5),
            PriorShiftMap(PAIR, 0.5, 0.3, (TemperatureMap(PAIR, 0.7, 0.0, False, -1.0, 2.0),)),
        )
    ),
    BetaMap(PAIR, 0.0, 0.0, 0.4),
    BetaMap(PAIR, 2.0, 0.3, 0.4, -5.0, -9.0),
    QuadraticLogitMap(PAIR, 0.1, 0.9, -0.3, -2.0, 3.0, True),
    SplineMap(PAIR, [-1.0, 2.0], [0.0, 3.0], [0.0, 0.0], True),
    SplineMap(PAIR, [-1.0, 0.5, 2.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    *(SplineMap(PAIR, [-1.0, 2.0], [high, -high], [0.0, 0.0], True) for high in (3.0, 650.0, 900.0)),
    SplineMap(PAIR, [-3.0, 0.5, 36.5], [-2.0, 1.0, 1.2], [0.0, 0.3, 0.0], False, -2.0, 36.6),
    SplineMap(PAIR, [-3.0, 0.5, 2.0], [-2.0, 1.0, 1.2], [0.0, 0.3, 0.0], False, -1.0, 1.5),
    QuadraticLogitMap(PAIR, 0.1, 0.9, -0.3, -2.0, 3.0, False, -1.0, 36.4),
    QuadraticLogitMap(PAIR, -800.0, 0.9, 0.3, -2.0, 3.0, True),
    *(AffineLogitMap(PAIR, 0.1, -3.0, False, low, high) for low, high in [(-80.0, 36.5), (1.0, 36.71), (-9.0, -9.0)]),
    *(AffineLogitMap(PAIR, slope, 0.01) for slope in (20.0, -0.05, 1e-300, 1 + 5e-8, 1 - 1e-9)),
    PlattMap(PAIR, 1 + 5e-8, 0.5),
    TemperatureMap(PAIR, 1.0, 1e-8),
    BetaMap(PAIR, 1 + 4e-8, 1 - 4e-8, 0.01),
    PriorShiftMap(PAIR, 0.5, 0.5 + 1e-8, (STEPS,)),
    BetaMap(PAIR, 30.0, 30.0, 5.0),
    QuadraticLogitMap(PAIR, 2e20, 1e20, 0.0, -2.0, 3.0, True),
    *(PriorShiftMap(PAIR, 0.5, new, (PlattMap(PAIR, 1.0, 0.0),)) for new in (1e-5, 1e-10)),
    PriorShiftMap(PAIR, 0.5, 1e-5, (LINE,)),
    # Weights that add up to 1.0000000000000002 in this order.
    MixtureMap(PAIR, np.array([9, 13, 15, 21, 26, 3]) / 87, (StepMap(PAIR, [0.5], [0.0, 1.0]),) * 6),
    MixtureMap(PAIR, [0.1] * 10, (StepMap(PAIR, [0.5], [1.0, 1.0]),) * 9 + (LINE,)),
    MixtureMap(PAIR, [0.5, 0.5], (StepMap(PAIR, [-1e-7, 0.0, 0.5, 1.0, 1 + 1e-7], np.arange(6) / 6), LINE)),
    MixtureMap(PAIR, [0.5, 0.5], (LineMap(PAIR, [-1e-7, 0.5, 1 + 1e-7], [0.0, 0.4, 1.0]), LINE)),
]
EVERY = [*MAPS, *MORE]
every_map = pytest.mark.parametrize("record", EVERY, ids=lambda record: record.kind)

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda data: duckdb.connect(config={"threads": 1}).from_arrow(pa.table(data)),
    "dask": lambda data: dask_parts(pd.DataFrame(data)),
}


def dask_parts(frame):
    """A Dask frame that does not know where its parts begin, as one read from files."""
    parts = [frame.iloc[::2], frame.iloc[1::2]]
    return dask.from_map(lambda place: parts[place], [0, 1], meta=frame.iloc[:0])


def named_frames(*names):
    return {"argvalues": [FRAMES[name] for name in names], "ids": names}


def python_of(record, name="calibrate"):
    space = {}
    exec(compile(record.to_python(name), "map.py", "exec"), space)
    return space[name]


def through_frame(record, frame):
    made = nw.from_native(frame).with_columns(found=record.to_expr("the score")).select("place", "found")
    eager = made.collect() if isinstance(made, nw.LazyFrame) else made
    return eager.sort("place").get_column("found").to_list()


def through_onnx(record, scores, path):
    record.to_onnx(path)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: scores})[0]


@every_map
def test_python_agrees(record):
    scores = scores_for(record)
    assert_agree(record, scores, list(map(python_of(record), scores.tolist())))


@every_map
def test_onnx_agrees(record, tmp_path):
    scores = scores_for(record)
    assert_agree(record, scores, through_onnx(record, scores, tmp_path / "map.onnx"))


def assert_expression_agrees(record, make):
    scores = scores_for(record)
    found = through_frame(record, make({"the score": scores, "place": np.arange(len(scores))}))
    assert_agree(record, scores, found)


@pytest.mark.parametrize("make", **named_frames("pandas", "polars", "polars, lazy", "pyarrow", "duckdb"))
@every_map
def test_expressions_agree(record, make):
    assert_expression_agrees(record, make)


@pytest.mark.parametrize("record", MORE, ids=lambda record: record.kind)
def test_expressions_agree_on_dask(record):
    assert_expression_agrees(record, FRAMES["dask"])


@pytest.mark.slow  # Dask takes some seconds to plan hundreds of conditions
@pytest.mark.parametrize("record", MAPS, ids=lambda record: record.kind)
def test_more_expressions_agree_on_dask(record):
    assert_expression_agrees(record, FRAMES["dask"])


@pytest.mark.parametrize("record", MORE, ids=lambda record: record.kind)
def test_sql_agrees(record):
    scores = scores_for(record)
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.execute("CREATE TABLE t AS SELECT unnest(?::DOUBLE[]) AS s", [scores.tolist()])
        found = engine.execute(f"SELECT {record.to_sql('s')} FROM t").fetchall()
    assert_agree(record, scores, [row[0] for row in found])


@pytest.mark.parametrize("record", MORE, ids=lambda record: record.kind)
def test_sqlite_agrees(record, sqlite):  # noqa: F811
    assert_sqlite_agrees(record, sqlite)


def test_postgres_agrees(postgres):  # noqa: F811
    assert_postgres_agrees(MORE, postgres)


@pytest.mark.parametrize("case", **named(BINARY))
def test_every_calibrator_agrees_in_every_language(case, tmp_path):
    rows = binary_rows(case.reads)
    record = case.make().fit(rows.scores, rows.y).map_
    scores = np.unique(rows.scores)
    assert_agree(record, scores, list(map(python_of(record), scores.tolist())))
    assert_agree(record, scores, through_onnx(record, scores, tmp_path / "map.onnx"))
    assert_agree(
        record, scores, through_frame(record, pl.LazyFrame({"the score": scores, "place": range(len(scores))}))
    )


# ---------------------------------------------------------------- many classes in ONNX

TRIPLE = ("a", "b", "c")
SHIFTED = ClassPriorShiftMap(
    TRIPLE, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], (TemperatureMap(TRIPLE, 0.7, 0.01), )
)  # fmt: skip
CLASS_MAPS = [ClassIdentityMap(TRIPLE, 0.1), ClassIdentityMap(TRIPLE, 0.0, True), SHIFTED]
CLASS_MAPS += [TemperatureMap(TRIPLE, beta, 0.0, True) for beta in (0.0, 2.0, 1e9)]


def class_scores(record):
    rng = np.random.default_rng(3)
    if record.reads == "probability":
        p = np.concatenate([rng.dirichlet([0.3] * 3, 100), np.eye(3), np.full((1, 3), 1 / 3), [[0.5, 0.5, 0.0]]])
        return np.concatenate([p, p[:20] * (1 + 5e-5)])
    return np.concatenate([rng.normal(0, 5, (100, 3)), np.eye(3) * 800, np.zeros((1, 3)), [[1e300, 0.0, -1e300]]])


@pytest.mark.parametrize("record", CLASS_MAPS, ids=lambda record: record.kind)
def test_class_maps_agree_in_onnx(record, tmp_path):
    scores = class_scores(record)
    np.testing.assert_allclose(through_onnx(record, scores, tmp_path / "m.onnx"), record(scores), atol=1e-12)


@pytest.mark.parametrize("case", **named([case for case in MANY if "partition" not in case.name]))
def test_every_calibrator_of_many_classes_agrees_in_onnx(case, tmp_path):
    rows = class_rows(case.reads)
    record = case.make().fit(rows.scores, rows.y).map_
    if isinstance(record, OneVsRestMap) and record.reads == "logit":
        with pytest.raises(InputError, match="ONNX cannot be written for the map 'one_vs_rest'"):
            record.to_onnx(tmp_path / "m.onnx")
        return
    scores = rows.scores if record.reads == "score" else class_scores(record)
    if scores.shape[1] == len(record.classes):
        np.testing.assert_allclose(through_onnx(record, scores, tmp_path / "m.onnx"), record(scores), atol=1e-12)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("record", [LINE, STEPS, PlattMap(PAIR, 1.0, 0.0), TREE])
def test_what_is_no_score_is_refused_in_every_language(record, tmp_path):
    wrong = [math.nan, math.inf, -math.inf, *([1.1, -0.2] if record.reads == "probability" else [])]
    for value in wrong:
        with pytest.raises(ValueError, match="score must be"):
            python_of(record)(value)
    assert np.isnan(through_onnx(record, np.array(wrong), tmp_path / "map.onnx")).all()
    for make in FRAMES.values():
        found = through_frame(record, make({"the score": wrong, "place": range(len(wrong))}))
        assert all(value is None or math.isnan(value) for value in found)
    scores = pl.DataFrame({"the score": [0.5, None], "place": [0, 1]})
    assert through_frame(record, scores) == [pytest.approx(record(0.5)), None]


def test_rows_that_are_no_probabilities_are_nan_in_onnx(tmp_path):
    rows = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.6], [math.nan, 0.5, 0.5], [1.2, -0.1, -0.1]])
    found = through_onnx(ClassIdentityMap(TRIPLE), rows, tmp_path / "map.onnx")
    assert np.isnan(found).all(axis=1).tolist() == [False, True, True, True]


def test_whole_numbers_are_scores():
    assert through_frame(STEPS, pd.DataFrame({"the score": [0, 1], "place": [0, 1]})) == [0.0, 1.0]
    assert python_of(STEPS)(1) == 1.0


def test_an_expression_of_two_classes_says_so():
    record = TemperatureMap(TRIPLE, 1.0)
    with pytest.raises(InputError, match="A dataframe expression is written for maps of two classes"):
        record.to_expr("p")
    with pytest.raises(InputError, match="name must be a name"):
        LINE.to_python("two words")


def test_text_of_python_reads_well():
    assert LINE.to_python("honest").splitlines()[5:] == [
        "def honest(score):",
        "    x = float(score)",
        "    if not -1e-06 <= x <= 1.000001:",
        '        raise ValueError(f"score must be a probability in [0, 1], but it is {score!r}.")',
        "    inner = min(max(x, 1.1754943508222875e-38), 0.9999999999999999)",
        "    log_odds = (math.log(inner / (1.0 - inner)) if x < 1.0 else 87.3365447505531)",
        "    return 1.0 / (1.0 + math.exp(0.0 - (0.2 + (0.7 * log_odds))))",
    ]
    assert "bisect_right" in STEPS.to_python()
    assert "import math" not in STEPS.to_python()


def test_labels_cannot_break_the_text():
    record = StepMap(('no"""\n', "yes\nimport os"), [0.5], [0.25, 0.75])
    assert python_of(record)(0.5) == 0.75


def test_an_onnx_file_that_exists_is_kept(tmp_path):
    path = tmp_path / "map.onnx"
    path.write_text("precious")
    with pytest.raises(OutputExistsError):
        LINE.to_onnx(path)
    LINE.to_onnx(path, force=True)
    first = path.read_bytes()
    LINE.to_onnx(path, force=True)
    assert path.read_bytes() == first


def test_a_missing_onnx_is_said_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'calibrant\[onnx\]'"):
        LINE.to_onnx(tmp_path / "map.onnx")


@pytest.mark.parametrize("name", ["two words", "math", "float", "min", "bisect_right", "lambda", None])
def test_names_that_would_break_the_text_are_refused(name):
    with pytest.raises(InputError, match="name must be a name"):
        STEPS.to_python(name)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_dates_are_no_scores(make):
    days = make({"day": pd.to_datetime(["1970-01-02", "1970-01-03"]).to_numpy().astype("datetime64[us]")})
    with pytest.raises(InputTypeError, match="'day' holds dates or times"):
        PlattMap(PAIR, 1.0, 0.0).apply_frame(days, "day")


def test_text_on_dask_is_read_as_on_pandas():
    frame = pd.DataFrame({"p": [".5", ".75"]}, dtype=object)
    made = STEPS.apply_frame(dask.from_pandas(frame, npartitions=1), "p").compute()
    assert made["calibrated"].tolist() == STEPS.apply_frame(frame, "p")["calibrated"].tolist() == [0.4, 1.0]


def test_capitals_do_not_tell_names_apart_in_sql():
    """DuckDB took the raw score for the column that was asked for."""
    many = TemperatureMap(("cat", "Cat", "dog"), 2.0)
    rows = {"a": [0.5], "b": [0.3], "c": [0.2]}
    for refused in (
        lambda: LINE.apply_frame(FRAMES["duckdb"]({"p": [0.5]}), "p", prefix="P"),
        lambda: LINE.apply_frame(FRAMES["duckdb"]({"p": [0.5], "Calibrated": [9]}), "p"),
        lambda: many.apply_frame(FRAMES["duckdb"](rows), ["a", "b", "c"]),
        lambda: many.to_sql(["a", "b", "c"]),
        lambda: TemperatureMap(TRIPLE, 2.0).to_sql(["a", "b", "c"], keep=["calibrated_b"]),
        lambda: TemperatureMap((1, "1", "x"), 2.0).apply_frame(pl.LazyFrame(rows), ["a", "b", "c"]),
    ):
        with pytest.raises(ColumnError, match=r"another prefix|would have one name"):
            refused()
    assert '"calibrated_Cat"' in many.to_sql(["a", "b", "c"], "postgres")
    assert LINE.apply_frame(pl.DataFrame({"p": [0.5]}), "p", prefix="P").columns == ["p", "P"]
    with pytest.raises(InputError, match="prefix must be text"):
        LINE.apply_frame(pl.DataFrame({"p": [0.5]}), "p", prefix=5)


def test_a_map_of_thousands_of_steps():
    rng = np.random.default_rng(0)
    record = StepMap(PAIR, np.sort(rng.random(2_999)), np.sort(rng.random(3_000)))
    scores = rng.random(500)
    frame = FRAMES["duckdb"]({"the score": scores, "place": np.arange(500)})
    assert_agree(record, scores, through_frame(record, frame))
    assert_agree(record, scores, list(map(python_of(record), scores.tolist())))


def test_an_expression_of_a_lazy_frame_runs_nothing():
    fails = pl.LazyFrame({"p": [0.5]}).with_columns(pl.col("p").map_elements(lambda _: 1 / 0, pl.Float64))
    nw.from_native(fails).with_columns(q=ca.PlattScaling().fit([-1.0, 1.0, 2.0], [0, 1, 0]).map_.to_expr("p"))


@pytest.mark.parametrize("shape", ["spline", "quadratic_logit", "corrected"])
def test_an_expression_stays_short_in_sql(shape):
    """Copies of copies of a clipped value made a spline of 10 knots 100,000 characters, which took DuckDB seconds."""
    knots = np.linspace(-3.0, 3.0, 10)
    record = {
        "spline": SplineMap(PAIR, knots, np.sin(knots), np.append(0.0, np.append(np.cos(knots[1:-1]), 0.0))),
        "quadratic_logit": QuadraticLogitMap(PAIR, 0.1, 0.9, -0.3, -2.0, 3.0),
        "corrected": CorrectedMap(PAIR, 0.3, (TREE, TREE, TREE)),
    }[shape]
    frame = nw.from_native(FRAMES["duckdb"]({"p": [0.5]})).with_columns(q=record.to_expr("p")).to_native()
    assert len(frame.sql_query()) <= {"spline": 20_000, "quadratic_logit": 6_000, "corrected": 3_000}[shape]
