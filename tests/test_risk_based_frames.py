"""Statistics and risk-based calibration of frames, added up in their engine: the same as in memory to 1e-9."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import CalibrantError, ColumnError, FitWarning, InputError, InputTypeError
from calibrant.generative import (
    CategoricalNaiveBayes,
    GaussianNaiveBayes,
    QuadraticDiscriminant,
    RiskBasedCalibration,
    merge,
)
from calibrant.generative import _frame_passes as passes
from generative_cases import FAMILIES, flat, rows
from test_risk_based_use import PoissonNaiveBayes
from test_same_answer import LAZY, every_frame, every_lazy

pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
numeric_family = pytest.mark.parametrize("family", FAMILIES[1:], ids=lambda family: family.name)
NAMES = ["a", "b", "c", "d"]
COLUMNS = {"features": NAMES, "label": "y"}


def sample(family, n=300, text=False, far=0.0):
    """Columns of a frame, and the same as arrays: features, labels of text, weights with zeros."""
    X, y = rows(family.categorical, n=n)
    X = X if family.categorical else X + far
    label = np.array(["no", "Maybe", "yes"])[y]
    weight = np.random.default_rng(1).integers(0, 4, n).astype(float)
    columns = dict(zip(NAMES, X.T))
    if text:
        words = np.array(["red", "Green", "blue", "élan", "zoë", "a'b"])
        columns |= {"a": words[X[:, 0]], "c": words[X[:, 2]]}
        X = np.column_stack([columns[name].astype(object) for name in NAMES])
    return {"id": np.arange(n), **columns, "y": label, "w": weight}, (X, label, weight)


def assert_same_record(found, wanted, rtol=1e-9):
    if hasattr(found, "origin"):
        found = found.about(wanted.origin)
    else:
        assert [list(one) for one in found.categories] == [list(one) for one in wanted.categories]
    scale = np.abs(flat(wanted)).max()
    np.testing.assert_allclose(flat(found), flat(wanted), rtol=rtol, atol=rtol * scale)


def assert_same_fit(found, wanted, X):
    assert found.n_iter_ == wanted.n_iter_
    assert found.classes_.tolist() == wanted.classes_.tolist()
    for name in ("error", "soft_error", "log_loss", "learning_rate"):
        np.testing.assert_allclose(getattr(found.history_, name), getattr(wanted.history_, name), rtol=1e-9, atol=1e-9)
    for mine, other in zip(found.stages_, wanted.stages_):
        assert_same_record(mine, other)
    frame = pd.DataFrame(X, columns=found.feature_names_in_)
    np.testing.assert_allclose(found.predict_proba(frame), wanted.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(found.estimator_.predict_proba(frame), found.predict_proba(frame))


both_ways = pytest.mark.parametrize("most_counted", [2**18, 0], ids=["counted", "looked up"])
every_way = pytest.mark.parametrize(
    ("family", "most_counted"),
    [*((family, 2**18) for family in FAMILIES), (FAMILIES[0], 0)],
    ids=[*(family.name for family in FAMILIES), "categorical, looked up"],
)
"""Categories of few combinations are counted once; others are looked up in every pass."""


# ---------------------------------------------------------------- the same as in memory


@every_frame
@every_way
def test_risk_based_calibration(make, family, most_counted, monkeypatch):
    monkeypatch.setattr(passes, "MOST_COUNTED", most_counted)
    data, (X, y, weight) = sample(family)
    fit = RiskBasedCalibration(family.make(prior_strength=1.0), max_iter=4)
    wanted = fit.fit(X, y, weight)
    found = RiskBasedCalibration(family.make(prior_strength=1.0), max_iter=4)
    assert found.fit_frame(make(data), **COLUMNS, weight="w") is found
    assert_same_fit(found, wanted, X)
    assert found.feature_names_in_.tolist() == found.estimator_.feature_names_in_.tolist() == NAMES


@every_frame
@every_family
def test_plain_fits_and_statistics(make, family):
    data, (X, y, weight) = sample(family)
    model = family.make(prior_strength=2.0)
    frame = make(data)
    found = model.fit_frame(frame, **COLUMNS)
    assert found is model
    wanted = family.make(prior_strength=2.0).fit(X, y)
    assert_same_record(found.statistics_, wanted.statistics_)
    np.testing.assert_allclose(found.predict_proba(pd.DataFrame(X, columns=NAMES)), wanted.predict_proba(X), atol=1e-9)
    order = ["yes", "never", "no", "Maybe"]
    sums = model.frame_statistics(frame, order, **COLUMNS, weight="w")
    assert_same_record(sums, model.block_statistics(X, y, order, weight))
    assert sums.counts[1] == 0


@every_lazy
@both_ways
def test_categories_of_text_and_of_numbers(make, most_counted, monkeypatch):
    monkeypatch.setattr(passes, "MOST_COUNTED", most_counted)
    data, (X, y, weight) = sample(FAMILIES[0], text=True)
    found = RiskBasedCalibration(CategoricalNaiveBayes(), max_iter=4).fit_frame(make(data), **COLUMNS, weight="w")
    wanted = RiskBasedCalibration(CategoricalNaiveBayes(), max_iter=4).fit(X, y, weight)
    assert_same_fit(found, wanted, X)
    assert found.estimator_.categories_[0].dtype.kind == "U"


@every_lazy
@both_ways
def test_codes_below_zero_flags_and_whole_floats(make, most_counted, monkeypatch):
    monkeypatch.setattr(passes, "MOST_COUNTED", most_counted)
    rng = np.random.default_rng(2)
    columns = [rng.integers(-3, 2, 200), rng.random(200) < 0.3, rng.integers(2, 5, 200).astype(float)]
    data = dict(zip("abc", columns)) | {"y": rng.integers(5, 7, 200)}
    found = RiskBasedCalibration(CategoricalNaiveBayes(1.0), max_iter=3)
    found.fit_frame(make(data), features=list("abc"), label="y")
    X = np.column_stack(columns)
    assert_same_fit(found, RiskBasedCalibration(CategoricalNaiveBayes(1.0), max_iter=3).fit(X, data["y"]), X)


@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY.keys())
@numeric_family
def test_digits_survive_far_from_zero(make, family):
    data, (X, y, _) = sample(family, far=1e6)
    X[:, 3] = 7.3  # and a constant feature stays one
    data["d"] = X[:, 3]
    found = RiskBasedCalibration(family.make(), max_iter=3).fit_frame(make(data), **COLUMNS)
    assert_same_fit(found, RiskBasedCalibration(family.make(), max_iter=3).fit(X, y), X)


@every_lazy
@every_way
def test_held_out_rows_of_another_frame(make, family, most_counted, monkeypatch):
    monkeypatch.setattr(passes, "MOST_COUNTED", most_counted)
    data, (X, y, weight) = sample(family)
    held_out = {name: column[200:] for name, column in data.items()}
    data = {name: column[:200] for name, column in data.items()}
    X = X.copy()
    if family.categorical:
        X[200:205, 0] = 9  # a category that only held-out rows have is no evidence
        held_out["a"] = X[200:, 0]
    fit = RiskBasedCalibration(family.make(prior_strength=1.0), learning_rate=1.0, early_stopping=True, max_iter=9)
    fit.fit_frame(make(data), **COLUMNS, weight="w", validation=make(held_out))
    wanted = RiskBasedCalibration(family.make(prior_strength=1.0), learning_rate=1.0, early_stopping=True, max_iter=9)
    wanted.fit_blocks(
        lambda: [(X[:200], y[:200], weight[:200])], np.unique(y), lambda: [(X[200:], y[200:], weight[200:])]
    )
    assert_same_fit(fit, wanted, X[:200])
    for name in ("validation_error", "validation_soft_error", "validation_log_loss"):
        np.testing.assert_allclose(getattr(fit.history_, name), getattr(wanted.history_, name), atol=1e-9)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_an_eager_frame_holds_rows_out_by_itself(frame):
    data, (X, y, weight) = sample(FAMILIES[1])
    fit = RiskBasedCalibration(GaussianNaiveBayes(), early_stopping=True, learning_rate=1.0)
    found = fit.fit_frame(frame(data), **COLUMNS, weight="w").history_.validation_log_loss
    np.testing.assert_array_equal(found, fit.fit(X, y, weight).history_.validation_log_loss)


@pytest.mark.parametrize("options", [{"step_control": True, "learning_rate": 20.0}, {"guard": "halve"}])
def test_guards_and_steps_are_those_of_memory(options):
    data, (X, y, _) = sample(FAMILIES[1])
    fit = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=8, **options)
    found = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=8, **options).fit_frame(pl.LazyFrame(data), **COLUMNS)
    assert_same_fit(found, fit.fit(X, y), X)


# ---------------------------------------------------------------- any parts, any engine


@given(
    seed=st.integers(0, 1000),
    n=st.integers(12, 60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    engine=st.sampled_from([name for name in LAZY if name != "dask"]),
    family=st.sampled_from(FAMILIES),
    shift=st.sampled_from([0.0, -5.0, 1e4]),
)
def test_any_partitioning_in_any_engine_gives_the_same_statistics(seed, n, cuts, engine, family, shift):
    X, y = rows(family.categorical, n=n, seed=seed)
    X = X if family.categorical else X * 3.0 + shift
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    model, classes = family.make(), [0, 1, 2]
    whole = model.block_statistics(X, y, classes, weight)
    parts = [part for part in np.split(np.arange(n), sorted(min(cut, n) for cut in cuts)) if len(part)]

    def in_engine(part):
        data = {name: column[part] for name, column in zip(NAMES, X.T)} | {"y": y[part], "w": weight[part]}
        return model.frame_statistics(LAZY[engine](data), classes, **COLUMNS, weight="w")

    assert_same_record(merge(map(in_engine, parts)), whole)
    mixed = [
        in_engine(p) if k % 2 else model.block_statistics(X[p], y[p], classes, weight[p]) for k, p in enumerate(parts)
    ]
    assert_same_record(merge(mixed), whole)


# ---------------------------------------------------------------- what cannot be used


BAD_ROWS = {
    "a": [1.0, None, 0.5, float("nan"), 2.0, 0.1],
    "b": [1.0, float("inf"), 0.5, 3.0, 2.0, 0.1],
    "e": [1e200, 1.0, 2.0, 3.0, 4.0, 5.0],
    "c": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "t": ["x", "y", None, "x", "y", "x"],
    "big": [0, 2**30, 1, 2, 3, 4],
    "y": ["no", "yes", "no", "yes", "no", "yes"],
    "u": ["no", "yes", None, "yes", "no", "yes"],
    "v": [0.5, 1.5, 0.5, 1.5, 0.5, 1.5],
    "one": [1, 1, 1, 1, 1, 1],
    "w": [1.0, -1.0, 1.0, 1.0, 1.0, 1.0],
    "gone": [1.0, None, None, 1.0, 1.0, 1.0],
    "none": [0.0] * 6,
}
REFUSED = [
    (GaussianNaiveBayes, ["a", "c"], "y", None, InputError, r"missing by column: 'a' 2\b"),
    (GaussianNaiveBayes, ["a", "c"], "u", "gone", InputError, r"missing by column: 'a' 2, 'u' 1, 'gone' 2"),
    (GaussianNaiveBayes, ["b", "c"], "y", None, InputError, "column 'b' holds 1 infinite value. Replace"),
    (GaussianNaiveBayes, ["e", "c"], "y", None, InputError, "column 'e' holds numbers beyond 1e100"),
    (GaussianNaiveBayes, ["t", "c"], "y", None, InputTypeError, "'t' must be numbers.*CategoricalNaiveBayes"),
    (GaussianNaiveBayes, ["C", "b"], "y", None, ColumnError, "Did you mean 'c'"),
    (GaussianNaiveBayes, ["c"], "Y", None, ColumnError, "Did you mean 'y'"),
    (GaussianNaiveBayes, ["c"], "y", "W", ColumnError, "Did you mean 'w'"),
    (GaussianNaiveBayes, ["c"], "y", "w", InputError, "column 'w' holds 1 weight below 0 or infinite"),
    (GaussianNaiveBayes, ["c"], "y", "none", InputError, "zero in every row"),
    (GaussianNaiveBayes, ["c"], "y", "t", InputTypeError, "'t' must be numbers"),
    (GaussianNaiveBayes, ["c"], "one", None, InputError, "one class only"),
    (GaussianNaiveBayes, ["c"], "v", None, InputError, "continuous"),
    (GaussianNaiveBayes, "c", "y", None, InputTypeError, "features must be a list"),
    (GaussianNaiveBayes, [], "y", None, InputError, "features is empty"),
    (GaussianNaiveBayes, ["c", "c"], "y", None, InputError, "names a column twice: 'c'"),
    (GaussianNaiveBayes, ["c", "one"], "one", None, ColumnError, "same column"),
    (GaussianNaiveBayes, ["c", "w"], "y", "w", ColumnError, "same column"),
    (CategoricalNaiveBayes, ["t", "c"], "y", None, InputError, r"missing by column: 't' 1\b"),
    (CategoricalNaiveBayes, ["v"], "y", None, InputError, "column 'v' holds 6 numbers that are not whole"),
    (CategoricalNaiveBayes, ["big"], "y", None, InputError, "column 'big' holds whole numbers from 0 to 1073741824"),
]


@every_lazy
def test_what_cannot_be_used(make):
    frame = make(BAD_ROWS)
    for family, features, label, weight, kind, said in REFUSED:
        if make is LAZY["dask"]:  # its rows are read like those of an eager frame, and refused in those words
            said, kind = None, CalibrantError
        with pytest.raises(CalibrantError, match=said) as caught:
            family().fit_frame(frame, features=features, label=label, weight=weight)
        assert isinstance(caught.value, kind)


def test_no_rows_at_all():
    frame = pl.LazyFrame({"c": [1.0], "y": ["a"]}).filter(pl.col("c") > 2)
    with pytest.raises(InputError, match="no rows"):
        GaussianNaiveBayes().fit_frame(frame, features=["c"], label="y")


def test_too_many_labels():
    frame = pl.LazyFrame({"c": np.arange(10_001.0), "y": np.arange(10_001)})
    with pytest.raises(ColumnError, match="more than 10,000 different values"):
        GaussianNaiveBayes().fit_frame(frame, features=["c"], label="y")


def test_more_sums_than_a_query_takes():
    n = 100
    wide = {f"f{j}": np.random.default_rng(j).normal(size=30) for j in range(n)} | {"y": np.arange(30) % 2}
    features = [f"f{j}" for j in range(n)]
    with pytest.raises(InputError, match=r"10,302 sums.*2 classes and 100 features.*fit_blocks"):
        QuadraticDiscriminant().fit_frame(pl.LazyFrame(wide), features=features, label="y")
    frame = pl.LazyFrame({"t": [f"word {k}" for k in range(4000)], "y": np.arange(4000) % 2})
    with pytest.raises(InputError, match=r"column 't' holds more than [0-9,]+ different texts"):
        CategoricalNaiveBayes().fit_frame(frame, features=["t"], label="y")


def test_what_fit_frame_asks():
    data, _ = sample(FAMILIES[1])
    fit = RiskBasedCalibration(GaussianNaiveBayes(), early_stopping=True)
    with pytest.raises(InputError, match=r"early_stopping on a lazy frame needs validation="):
        fit.fit_frame(pl.LazyFrame(data), **COLUMNS)
    with pytest.raises(InputTypeError, match=r"works with the classifiers of calibrant.generative.*fit_blocks"):
        RiskBasedCalibration(PoissonNaiveBayes()).fit_frame(pl.LazyFrame(data), **COLUMNS)
    for frame in (np.zeros((3, 2)), "data.csv", None, [1, 2]):
        with pytest.raises(InputTypeError, match="frame must be a dataframe"):
            GaussianNaiveBayes().fit_frame(frame, **COLUMNS)
    other = pl.LazyFrame(data | {"y": ["never"] * 300})
    with pytest.raises(InputError, match="'never', which is not among the classes"):
        fit.fit_frame(pl.LazyFrame(data), **COLUMNS, validation=other)
    words = pl.LazyFrame({"a": ["x", "y"], "y": [0, 1]})
    numbers = pl.LazyFrame({"a": [0, 1], "y": [0, 1]})
    nb = RiskBasedCalibration(CategoricalNaiveBayes(), early_stopping=True, max_iter=1)
    with pytest.raises(InputTypeError, match="Feature 0 holds numbers, but the model was fitted with text"):
        nb.fit_frame(words, features=["a"], label="y", validation=numbers)
    with pytest.raises(InputTypeError, match="Feature 0 holds text, but the model was fitted with numbers"):
        nb.fit_frame(numbers, features=["a"], label="y", validation=words)


def test_a_refit_forgets_and_warnings_are_those_of_memory():
    data, _ = sample(FAMILIES[1])
    model = GaussianNaiveBayes().fit_frame(pl.LazyFrame(data), **COLUMNS)
    model.fit([[0.0], [1.0]], [0, 1])
    assert not hasattr(model, "feature_names_in_")
    twice = data | {"d": data["a"]}
    with pytest.warns(FitWarning, match="nearly functions of the others"):
        QuadraticDiscriminant().fit_frame(pl.LazyFrame(twice), **COLUMNS)
    model.fit_frame(pl.LazyFrame(data), features=["b", "a"], label="y")
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (2, ["b", "a"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.LazyFrame, pa.table])
def test_a_column_may_be_named_as_an_internal_one(make):
    X, y = rows(False)
    data = {"x1": X[:, 0], "own": X[:, 1], "weight": X[:, 2], "top": X[:, 3], "label": y}
    features = ["x1", "own", "weight", "top"]
    found = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=2).fit_frame(
        make(data), features=features, label="label"
    )
    assert_same_fit(found, RiskBasedCalibration(GaussianNaiveBayes(), max_iter=2).fit(X, y), X)


@every_lazy
def test_an_infinite_feature_is_refused_whatever_the_weight_of_its_row(make):
    data = {"a": [0.5, 1.5, float("inf"), 2.5], "y": [0, 1, 0, 1], "w": [1.0, 1.0, 0.0, 1.0]}
    for family in (GaussianNaiveBayes, CategoricalNaiveBayes):
        with pytest.raises(InputError, match="infinite"):
            family().fit_frame(make(data), features=["a"], label="y", weight="w")
