"""A map of K classes as Python text, as an SQL query and on any frame gives what the map gives."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as ca
from calibrant.errors import ColumnError, InputError
from calibrant.maps import (
    AffineLogitMap,
    AverageMap,
    ClassIdentityMap,
    ClassPriorShiftMap,
    CorrectedMap,
    IdentityMap,
    LineMap,
    LogMixtureMap,
    Map,
    MatrixScalingMap,
    OneVsRestMap,
    PlattMap,
    StepMap,
    TemperatureMap,
    TreeMap,
    VectorScalingMap,
)
from catalogue import MANY, class_rows, named
from test_maps_exports import FRAMES as BUT_DASK
from test_maps_exports import python_of
from test_maps_sql import Postgres, postgres, sqlite  # noqa: F401
from test_same_answer import dask_frame, spark_frame, spark_session

pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

FRAMES = {**BUT_DASK, "dask": dask_frame}

ABC = ("a", "b", "c")
PAIR = (0, 1)
COLUMNS = ["p a", 'p "b"', "p_c"]
NEW = ["calibrated_a", "calibrated_b", "calibrated_c"]
ZERO = StepMap(PAIR, [0.7], [0.0, 1.0])
WEIGHTS = [[1.2, -0.3, 0.1], [0.0, 0.9, 0.4], [-0.2, 0.1, 1.1]]


def handmade() -> list[Map]:
    logits: list[Map] = [ClassIdentityMap(ABC, 0.1, True), ClassIdentityMap(ABC, 0.0, True)]
    logits += [TemperatureMap(ABC, beta, mix, True) for beta, mix in ((0.0, 0.0), (0.7, 0.01), (1e9, 0.0))]
    logits += [VectorScalingMap(ABC, [1.5, 0.3, -0.2], [0.1, 0.0, -2.0], 0.8, mix, True) for mix in (0.0, 0.01)]
    logits += [MatrixScalingMap(ABC, WEIGHTS, [0.1, 0.0, -2.0], 1.3, mix, True) for mix in (0.0, 0.01)]
    made: list[Map] = [*logits, ClassIdentityMap(ABC), ClassIdentityMap(ABC, 0.1)]
    made += [TemperatureMap(ABC, beta, mix) for beta, mix in ((0.0, 0.0), (0.7, 0.01), (1.0, 0.5), (1e9, 0.0))]
    made += [VectorScalingMap(ABC, [1.5, 0.3, -0.2], [0.1, 0.0, -2.0], 0.8, mix) for mix in (0.0, 0.01)]
    made += [MatrixScalingMap(ABC, WEIGHTS, [0.1, 0.0, -2.0], beta, mix) for beta, mix in ((1.0, 0.0), (0.6, 0.01))]
    affine, line = AffineLogitMap(PAIR, 0.7, 0.2), LineMap(PAIR, [0.1, 0.9], [0.0, 0.8])
    made += [
        OneVsRestMap(ABC, (ZERO, ZERO, ZERO)),
        OneVsRestMap(ABC, (affine, line, IdentityMap(PAIR, 1e-3))),
        OneVsRestMap(ABC, (PlattMap(PAIR, 2.0, -1.0), PlattMap(PAIR, -1.0, 0.5), ZERO)),
        OneVsRestMap(ABC, tuple(AffineLogitMap(PAIR, slope, 0.1, True) for slope in (0.5, 1.0, 1.5))),
        ClassPriorShiftMap(ABC, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], (TemperatureMap(ABC, 0.7, 0.01),)),
    ]
    parts = (ClassIdentityMap(ABC, 0.01), made[-2 - 3], TemperatureMap(ABC, 0.8))
    made += [LogMixtureMap(ABC, [0.5, 0.2, 0.3], [0.01, 0.02, 0.01], parts, logit) for logit in (False, True)]
    return made


def trees() -> list[Map]:
    """Trees whose points lie where rows do, so that many rows have ties; with a class that has no child, and parts."""
    third = [1 / 3, 1 / 3, 1 / 3]
    leaves = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.0, 0.25, 0.75], [0.1, 0.9, 0.0], [0.3, 0.3, 0.4]]
    points = [*third, 0.5, 0.5, 0.0, 0.05, 0.84, 0.11]
    tree = TreeMap(ABC, points, [1, 2, 3, 4, -1, 5, -1, 6, 7], leaves)
    other = TreeMap(ABC, [0.05, 0.84, 0.11], [1, 2, 3], leaves[:3])
    alone = TreeMap(ABC, [], [], [[0.2, 0.3, 0.5]])
    average = AverageMap(ABC, (tree, other, TemperatureMap(ABC, 0.7, 0.01)))
    made: list[Map] = [tree, other, alone, average, AverageMap(ABC, (average, tree))]
    made += [CorrectedMap(ABC, 0.3, (TemperatureMap(ABC, 0.7), tree, other)), CorrectedMap(ABC, 0.0, (tree, average))]
    made += [ClassPriorShiftMap(ABC, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], (tree,))]
    return [*made, LogMixtureMap(ABC, [0.5, 0.5], [0.01, 0.0], (tree, TemperatureMap(ABC, 0.8)))]


def scores_for(record: Map) -> np.ndarray:
    """Rows at the corners, with ties, of sums that are only nearly 1, of tiny and of huge numbers."""
    rng = np.random.default_rng(3)
    if record.reads == "probability":
        corner = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
        corner += [[0.05, 0.84, 0.11], [0.11, 0.84, 0.05], [0.3, 0.35, 0.35], [0.35, 0.35, 0.3]]
        corner += (np.array(corner) / np.array(corner).sum(axis=1, keepdims=True)).tolist()
        tiny = [[1.0, 1e-300, 5e-324], [1 - 1e-16, 1e-16, 1e-38], [1 + 5e-7, -5e-7, 0.0], [0.5, 0.5, 1e-40]]
        p = np.concatenate([rng.dirichlet([0.3] * 3, 100), corner, tiny])
        return np.concatenate([p, p[:30] * (1 + 5e-5), p[100:105] * (1 - 5e-5)])
    far = [[800.0, 0.0, -800.0], [1e300, 0.0, -1e300], [1e10, 1e10, 0.0], [0.0, 0.0, 0.0], [-1e8, -1e8, -1e8 + 1]]
    return np.concatenate([rng.normal(0, 5, (100, 3)), rng.normal(0, 100, (20, 3)), far, 1e-300 * np.eye(3)])


MAPS = handmade()
EVERY = [*MAPS, *trees()]
every_map = pytest.mark.parametrize("record", EVERY, ids=lambda record: record.kind)


def data_of(scores: np.ndarray) -> dict[str, object]:
    return {"place": np.arange(len(scores)), **{name: scores[:, k] for k, name in enumerate(COLUMNS)}}


def assert_agree(record: Map, scores: np.ndarray, found: object) -> None:
    got = np.array(found, dtype=np.float64)
    np.testing.assert_allclose(got, record(scores), rtol=0, atol=1e-12)
    assert got.min() >= 0
    assert got.max() <= 1 + 1e-15


def through_frame(record: Map, frame: object) -> list[tuple[float, ...]]:
    made = record.apply_frame(frame, COLUMNS)
    if isinstance(made, duckdb.DuckDBPyRelation):
        rows = made.order("place").project(", ".join(NEW)).fetchall()
    elif isinstance(made, pa.Table):
        rows = list(zip(*(made[name].to_pylist() for name in NEW)))
    else:
        made = made.collect() if isinstance(made, pl.LazyFrame) else made
        made = made.compute() if hasattr(made, "compute") else made
        rows = list(zip(*(made[name].to_list() for name in NEW)))
    return rows


@every_map
def test_python_agrees(record: Map) -> None:
    scores = scores_for(record)
    assert_agree(record, scores, list(map(python_of(record), scores.tolist())))


@every_map
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_frames_agree(record: Map, make: object) -> None:
    scores = scores_for(record)
    assert_agree(record, scores, through_frame(record, make(data_of(scores))))


@every_map
def test_duckdb_agrees(record: Map) -> None:
    scores = scores_for(record)
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.register("t", pa.table(data_of(scores)))
        found = engine.execute(record.to_sql(COLUMNS, table="t", keep=["place"]) + " ORDER BY place").fetchall()
    assert_agree(record, scores, [row[1:] for row in found])


@every_map
def test_sqlite_agrees(record: Map, sqlite: sqlite3.Connection) -> None:  # noqa: F811
    scores = scores_for(record)
    sqlite.execute('CREATE TABLE many (place INTEGER, "p a" REAL, "p ""b""" REAL, p_c REAL)')
    sqlite.executemany("INSERT INTO many VALUES (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(scores.tolist())])
    sql = record.to_sql(COLUMNS, "sqlite", table="many", keep=["place"])
    found = sqlite.execute(sql + " ORDER BY place").fetchall()
    sqlite.execute("DROP TABLE many")
    assert_agree(record, scores, [row[1:] for row in found])


def test_postgres_agrees(postgres: Postgres) -> None:  # noqa: F811
    for record in EVERY:
        scores = scores_for(record)
        scores = scores[(np.abs(scores) > 1e-100).all(axis=1) | (scores == 0).any(axis=1)]
        rows = ", ".join(str((n, *row)) for n, row in enumerate(scores.tolist()))
        table = f"(SELECT place, a::float8, b::float8, c::float8 FROM (VALUES {rows}) AS v(place, a, b, c)) AS t"
        sql = record.to_sql(["a", "b", "c"], "postgres", table=table, keep=["place"])
        found = postgres.query(sql + " ORDER BY place;")
        assert_agree(record, scores, [line.split("|")[1:] for line in found])


SHIFTED = ClassPriorShiftMap(ABC, [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], (MatrixScalingMap(ABC, WEIGHTS, [0, 0, -2], 0.6),))
DEEP = LogMixtureMap(ABC, [0.5, 0.5], [0.01, 0.02], (TemperatureMap(ABC, 0.8), SHIFTED))


def test_sqlite_works_a_shared_column_out_once(sqlite: sqlite3.Connection) -> None:  # noqa: F811
    """Written out wherever it is named, what the classes share would be worked out thousands of times a row."""
    sqlite.execute("CREATE TABLE rows3 (a REAL, b REAL, c REAL)")
    sqlite.executemany(
        "INSERT INTO rows3 VALUES (?, ?, ?)", np.random.default_rng(0).dirichlet(np.ones(3), 200).tolist()
    )
    calls = []
    sqlite.create_function("ln", 1, lambda x: calls.append(x) or math.log(x), deterministic=True)
    for row in sqlite.execute(DEEP.to_sql(["a", "b", "c"], "sqlite", table="rows3")):
        assert abs(sum(row) - 1) < 1e-12
    sqlite.execute("DROP TABLE rows3")
    sqlite.create_function("ln", 1, math.log, deterministic=True)
    assert len(calls) < 100 * 200


def test_postgres_works_a_shared_column_out_once(postgres: Postgres) -> None:  # noqa: F811
    """Without a fence after each step its planner writes this query out for longer than anybody waits."""
    table = "(SELECT random() / 3 AS a, 1.0 / 3 AS b FROM generate_series(1, 2000)) AS t"
    table = f"(SELECT a, b::float8, 1 - a - b::float8 AS c FROM {table}) AS u"
    sql = DEEP.to_sql(["a", "b", "c"], "postgres", table=table)
    found = postgres.query(f'SET statement_timeout = 20000; SELECT count("calibrated_a") FROM ({sql}) AS q;')
    assert found == ["2000"]


@pytest.mark.slow
@every_map
def test_spark_agrees(record: Map) -> None:
    scores = scores_for(record)
    frame = spark_frame({"place": range(len(scores)), **{f"x{k}": scores[:, k] for k in range(3)}})
    names = ["x0", "x1", "x2"]
    frame.createOrReplaceTempView("many")
    by_sql = spark_session().sql(record.to_sql(names, "spark", table="many", keep=["place"]) + " ORDER BY place")
    for made in (by_sql, record.apply_frame(frame, names).orderBy("place")):
        assert_agree(record, scores, [[row[name] for name in NEW] for row in made.collect()])


@pytest.mark.parametrize("case", **named(MANY))
def test_every_calibrator_agrees(case: object) -> None:
    rows = class_rows(case.reads, k=5)
    record = case.make().fit(rows.scores, rows.y).map_
    names = [f"x{k}" for k in range(5)]
    new = [f"calibrated_{k}" for k in range(5)]
    frame = pl.DataFrame({name: rows.scores[:, k] for k, name in enumerate(names)})
    np.testing.assert_array_equal(record.apply_frame(frame, names).select(new).to_numpy(), record(rows.scores))
    assert_agree(record, rows.scores, record.apply_frame(frame.lazy(), names).select(new).collect().to_numpy())
    assert_agree(record, rows.scores, list(map(python_of(record), rows.scores.tolist())))
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.register("scores", frame.with_row_index("place").to_arrow())
        found = engine.execute(record.to_sql(names, keep=["place"]) + " ORDER BY place").fetchall()
    assert_agree(record, rows.scores, [row[1:] for row in found])


def test_a_matrix_of_forty_classes_is_quick_to_write() -> None:
    """The text grows with the parameters, not with their square."""
    rng = np.random.default_rng(0)
    k = 40
    record = MatrixScalingMap(tuple(range(k)), np.eye(k) + 0.1 * rng.normal(size=(k, k)), np.zeros(k), 0.9, 1e-3)
    p = rng.dirichlet(np.ones(k), 50)
    names = [f"x{j}" for j in range(k)]
    sql = record.to_sql(names)
    assert len(sql) < 60 * (k * k + 20 * k)
    frame = pl.DataFrame({name: p[:, j] for j, name in enumerate(names)})
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.register("scores", frame.to_arrow())
        assert_agree(record, p, engine.execute(sql).fetchall())
        made = record.apply_frame(engine.sql("SELECT * FROM scores"), names)
        assert_agree(record, p, made.project("* EXCLUDE (" + ", ".join(names) + ")").fetchall())
    assert_agree(record, p, list(map(python_of(record), p.tolist())))


# ---------------------------------------------------------------- what is refused

WRONG = [[0.2, 0.3, 0.6], [0.2, 0.8, math.nan], [1.2, -0.1, -0.1], [math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("record", [MAPS[9], MAPS[12], MAPS[-3]], ids=lambda record: record.kind)
def test_rows_that_the_map_refuses(record: Map) -> None:
    wrong = np.array(WRONG)
    for row in [*WRONG, [0.5, 0.5], [0.4, 0.3, 0.2, 0.1]]:
        with pytest.raises(ValueError, match="scores must be 3 probabilities"):
            python_of(record)(row)
    for make in FRAMES.values():
        found = np.array(through_frame(record, make(data_of(wrong))), dtype=np.float64)
        assert np.isnan(found).all()
    frame = pl.DataFrame({"place": [0], COLUMNS[0]: [0.5], COLUMNS[1]: [None], COLUMNS[2]: [0.5]})
    assert through_frame(record, frame.with_columns(pl.col(COLUMNS[1]).cast(pl.Float64))) == [(None, None, None)]
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.register("t", pa.table(data_of(wrong)))
        found = engine.execute(record.to_sql(COLUMNS, table="t")).fetchall()
    assert found == [(None, None, None)] * len(wrong)


def test_logits_that_are_no_numbers() -> None:
    record = TemperatureMap(ABC, 1.0, 0.0, True)
    for row in ([math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="scores must be 3 finite numbers"):
            python_of(record)(row)
    assert through_frame(record, pd.DataFrame(data_of(np.array([[0.0, math.inf, 1.0]])))) is not None


def test_names_that_cannot_be() -> None:
    record = MAPS[9]
    frame = pl.DataFrame(data_of(scores_for(record)))
    for columns in (COLUMNS[:2], [*COLUMNS[:2], COLUMNS[0]], [*COLUMNS[:2], 3], 7, [*COLUMNS[:2], ""]):
        for use in (record.to_sql, lambda columns: record.apply_frame(frame, columns)):
            with pytest.raises(InputError, match=r"'a', 'b', 'c'"):
                use(columns)
    with pytest.raises(ColumnError, match="Did you mean 'p_c'"):
        record.apply_frame(frame, [*COLUMNS[:2], "P_C"])
    with pytest.raises(ColumnError, match="'x_a' already"):
        record.apply_frame(frame.with_columns(x_a=1), COLUMNS, prefix="x")
    with pytest.raises(InputError, match="after FROM"):
        record.to_sql(COLUMNS, table=" ")
    with pytest.raises(InputError, match="keep must be a list"):
        record.to_sql(COLUMNS, keep="place")
    with pytest.raises(InputError, match="dialect must be one of"):
        record.to_sql(COLUMNS, "oracle")
    with pytest.raises(InputError, match=r"list of columns, one per class"):
        record.to_sql("p")
    with pytest.raises(InputError, match=r"apply_frame\(frame, columns\)"):
        record.to_expr("p")


def test_maps_of_one_column_say_how_they_are_called() -> None:
    """The line that the refusal gives works as it stands; two columns are taken by the maps that read two."""
    frame = pl.DataFrame({"p": [0.2, 0.7], "q": [0.8, 0.3]})
    record = ca.AffineLogit().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).map_
    for columns in (["p"], ["q", "p"], 7):
        with pytest.raises(InputError, match="reads one column") as refused:
            record.apply_frame(frame, columns)
    line = str(refused.value).split("as in ")[1].split(", not")[0]
    np.testing.assert_array_equal(eval(line, {"frame": frame, "record": record})["calibrated"], record(frame["p"]))
    two = TemperatureMap((0, 1), beta=0.5)
    assert two.apply_frame(frame, ["p", "q"]).columns == ["p", "q", "calibrated_0", "calibrated_1"]
    assert two.apply_frame(frame, "q", prefix="new").columns == ["p", "q", "new"]
    np.testing.assert_array_equal(two.apply_frame(frame, ["p", "q"])["calibrated_1"], two(frame["q"]))
    tree = TreeMap((0, 1), [0.5, 0.5], [1, 2], [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(InputError, match="reads one column"):
        tree.apply_frame(frame, ["p", "q"])


def test_trees_of_many_classes_are_no_onnx(tmp_path: Path) -> None:
    record = trees()[0]
    with pytest.raises(InputError, match=r"ONNX cannot be written for the map 'tree' of 3 classes. Apply it in"):
        record.to_onnx(tmp_path / "map.onnx")


@pytest.mark.parametrize("k", [40, 300])
def test_a_tree_of_many_classes_is_quick_to_write(k: int) -> None:
    """Its text grows with its numbers, and no condition stands deep in others; ties included."""
    rng = np.random.default_rng(k)
    points = rng.dirichlet(np.ones(k), 6)
    children = np.full((6, k), -1)
    children[range(5), rng.integers(0, k, 5)] = range(1, 6)
    children[children < 0] = 6 + np.arange((children < 0).sum())
    record = TreeMap(tuple(range(k)), points.ravel(), children.ravel(), rng.dirichlet(np.ones(k), children.max() - 5))
    p = np.concatenate([rng.dirichlet(np.ones(k), 30), points, np.full((1, k), 1 / k)])
    assert_agree(record, p, list(map(python_of(record), p.tolist())))
    names = [f"x{place}" for place in range(k)]
    assert len(record.to_sql(names)) < 60 * (record.points.size + 8 * record.leaves.size)


@pytest.mark.parametrize("make", [*FRAMES.values()], ids=[*FRAMES])
def test_a_frame_keeps_its_columns_and_their_order(make: object) -> None:
    made = MAPS[9].apply_frame(make(data_of(scores_for(MAPS[9]))), COLUMNS, prefix="calibrated")
    assert nw.from_native(made).collect_schema().names() == ["place", *COLUMNS, *NEW]
