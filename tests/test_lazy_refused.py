"""Lazy frames in the place of scores, labels or probabilities: every fit and every measure says what takes them."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as ca
from calibrant.errors import InputTypeError
from catalogue import BINARY, MANY, MEASURES
from test_same_answer import dask_frame, spark_frame

RNG = np.random.default_rng(0)
P = RNG.random(60)
ROWS = pd.DataFrame({"p": P, "y": (RNG.random(60) < P).astype(int)})
LAZY = {
    "polars": lambda data: pl.LazyFrame(data),
    "duckdb": lambda data: duckdb.connect().from_df(pd.DataFrame(data)),
}
ADVICE = (
    r"is a lazy \w+, whose rows stay in an engine.*ScoreTable\.from_frame\(frame, score=\.\.\., label=\.\.\.\), then "
    r"fit_table\(table\) or measure\(table\).*compute it first with \.(collect|df|toPandas)\(\)"
)


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("case", [*BINARY, *MANY], ids=lambda case: case.name)
def test_every_fit_names_the_table(case: Any, kind: str) -> None:
    frame = LAZY[kind]({"p": ROWS["p"]})
    with pytest.raises(InputTypeError, match=ADVICE):
        case.make().fit(frame, ROWS["y"])
    scores = ROWS["p"] if case in BINARY else np.column_stack([P, P / 2, P / 3]) / (P * 11 / 6)[:, None]
    with pytest.raises(InputTypeError, match=ADVICE):
        case.make().fit(scores, frame)


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("case", MEASURES, ids=lambda case: case.name)
def test_every_measure_names_the_table(case: Any, kind: str) -> None:
    frame = LAZY[kind]({"p": ROWS["p"]})
    with pytest.raises(InputTypeError, match=ADVICE):
        case.call(ROWS["y"], frame)


def test_the_table_that_is_named_gives_the_map() -> None:
    wanted = ca.AutoCalibrator().fit(ROWS["p"], ROWS["y"]).map_
    for make in LAZY.values():
        table = ca.ScoreTable.from_frame(make(dict(ROWS)), score="p", label="y")
        found = ca.AutoCalibrator().fit_table(table).map_
        np.testing.assert_allclose(found(ROWS["p"]), wanted(ROWS["p"]))


def test_spark_is_refused_and_dask_is_computed() -> None:
    found = ca.PlattScaling().fit(dask_frame({"p": ROWS["p"]}), ROWS["y"])
    assert found.slope_ == pytest.approx(ca.PlattScaling().fit(ROWS["p"], ROWS["y"]).slope_)
    frame = spark_frame({"p": ROWS["p"]})
    for use in (lambda: ca.AutoCalibrator().fit(frame, ROWS["y"]), lambda: ca.brier_score(ROWS["y"], frame)):
        with pytest.raises(InputTypeError, match=ADVICE):
            use()
