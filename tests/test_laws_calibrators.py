"""The laws of DESIGN, asked of every calibrator in the catalogue."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import calibrant as ca
from calibrant.errors import CalibrantWarning, FitWarning
from calibrant.maps import Map
from catalogue import BINARY, CALIBRATOR_CLASSES, MANY, Binary, as_read, binary_rows, class_rows, mirrored, named

every_binary = pytest.mark.parametrize("case", **named(BINARY))
every_many = pytest.mark.parametrize("case", **named(MANY))


def fitted(case, rows, weight=None):
    return case.make().fit(rows.scores, rows.y, weight)


def places(case, rows, n=400):
    """Where two maps of a calibrator are compared: its own scores, and where it does not jump also between them."""
    low, high = rows.scores.min(), rows.scores.max()
    margin = 0.0 if case.reads == "probability" else 0.3 * (high - low)
    between = np.array([]) if case.steps or case.folds else np.linspace(low - margin, high + margin, n)
    return np.unique(np.concatenate([rows.scores, between]))


def quiet(call):
    """The answer of a call whose warnings are not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def test_every_class_is_in_the_catalogue():
    tried = {type(case.make()) for case in BINARY} | {type(quiet(case.make)) for case in MANY}
    assert set(CALIBRATOR_CLASSES) - tried == set()


# ---------------------------------------------------------------- two classes


@every_binary
def test_probabilities(case):
    rows = binary_rows(case.reads)
    est = fitted(case, rows, rows.weight)
    p = est.predict_proba(places(case, rows))
    assert p.shape[1] == 2
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert p.max() <= 1
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
    assert set(est.predict(rows.scores)) <= {0, 1}
    np.testing.assert_array_equal(est.predict(rows.scores), (est.map_(rows.scores) >= 0.5).astype(int))


@every_binary
@pytest.mark.parametrize("seed", range(4))
def test_monotone(case, seed):
    if not case.monotone:
        pytest.skip("order is not promised")
    rows = binary_rows(case.reads, n=60 + 80 * seed, seed=seed)
    x = np.unique(
        np.concatenate([rows.scores, places(case, rows), np.linspace(rows.scores.min(), rows.scores.max(), 999)])
    )
    p = fitted(case, rows).map_(x)
    assert np.all(np.diff(p) >= -1e-15)


@every_binary
def test_weight_two_is_the_row_twice_and_weight_zero_is_absent(case):
    rows = binary_rows(case.reads)
    repeated = rows.at(np.repeat(np.arange(len(rows.y)), rows.weight.astype(int)))
    x = places(case, repeated)
    weighted, repeats = fitted(case, rows, rows.weight).map_(x), fitted(case, repeated).map_(x)
    if case.folds:
        assert np.abs(weighted - repeats).mean() < 0.05
    else:
        np.testing.assert_allclose(weighted, repeats, atol=case.tolerance)


@every_binary
def test_absent_rows_may_hold_anything_that_can_be_read(case):
    rows = binary_rows(case.reads)
    extreme = np.array([0.0, 1.0]) if case.reads == "probability" else np.array([-40.0, 40.0])
    scores = np.concatenate([rows.scores, extreme])
    y = np.concatenate([rows.y, [1, 0]])
    weight = np.concatenate([np.ones(len(rows.y)), [0, 0]])
    with_absent, without = case.make().fit(scores, y, weight), fitted(case, rows)
    np.testing.assert_allclose(with_absent.map_(rows.scores), without.map_(rows.scores), atol=case.tolerance)


@every_binary
def test_row_order_is_nothing(case):
    rows = binary_rows(case.reads, ties=False)
    shuffled = rows.at(np.random.default_rng(1).permutation(len(rows.y)))
    x = places(case, rows)
    a, b = fitted(case, rows).map_(x), fitted(case, shuffled).map_(x)
    if case.steps:  # sums of whole numbers are exact in any order
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, b, atol=case.tolerance)


@every_binary
def test_fit_is_fit_table_and_tables_of_the_parts_add(case):
    rows = binary_rows(case.reads)
    x = places(case, rows)
    by_row = fitted(case, rows, rows.weight)
    table = ca.ScoreTable.from_arrays(rows.scores, rows.y, rows.weight)
    np.testing.assert_allclose(case.make().fit_table(table).map_(x), by_row.map_(x), atol=case.tolerance)
    first, second = rows.at(slice(0, 50)), rows.at(slice(50, None))
    parts = ca.ScoreTable.from_arrays(first.scores, first.y, first.weight) + ca.ScoreTable.from_arrays(
        second.scores, second.y, second.weight
    )
    for joined in (parts, table.distinct, parts.distinct):
        np.testing.assert_allclose(case.make().fit_table(joined).map_(x), by_row.map_(x), atol=case.tolerance)


@every_binary
def test_swapped_labels_and_mirrored_scores_give_the_mirrored_map(case):
    if not case.mirrors:
        pytest.skip("the bins are not mirrored")
    rows = binary_rows(case.reads)
    x = places(case, rows)
    straight = fitted(case, rows).map_(x)
    other = case.make().fit(mirrored(rows.scores, case.reads), 1 - rows.y).map_(mirrored(x, case.reads))
    if case.folds:
        assert np.abs(straight - (1 - other)).mean() < 0.05
    else:
        np.testing.assert_allclose(straight, 1 - other, atol=case.tolerance)


@every_binary
def test_map_goes_through_a_dict_and_a_file(case, tmp_path):
    rows = binary_rows(case.reads)
    made = fitted(case, rows).map_
    content = made.to_dict()
    again = Map.from_dict(json.loads(json.dumps(content)))
    assert again == made
    assert hash(again) == hash(made)
    assert json.dumps(again.to_dict()) == json.dumps(content)
    made.save(tmp_path / "a.json")
    ca.load_map(tmp_path / "a.json").save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    x = places(case, rows)
    np.testing.assert_array_equal(again(x), made(x))


@every_binary
def test_refit_forgets(case):
    first, second = binary_rows(case.reads), binary_rows(case.reads, n=90, seed=5)
    est = fitted(case, first)
    est.leftover_ = 1
    est.fit(second.scores, second.y)
    assert est.map_ == fitted(case, second).map_
    assert not hasattr(est, "leftover_")


@every_binary
@pytest.mark.parametrize("where", [0.0, 0.25, 0.9, 1.0])
def test_constant_score_gives_the_base_rate(case, where):
    y = np.array([0, 1, 0, 0, 1, 0, 0, 0, 1, 0] * 2)
    score = where if case.reads == "probability" else 4 * where - 2
    p = quiet(lambda: case.make().fit(np.full(20, score), y)).map_(score)
    assert 0 <= p <= 1
    if case.constant == "other":
        return
    rate, smoothed = 0.3, (6 + 1) / (20 + 2)
    targets = (6 * 7 / 8 + 14 / 16) / 20
    allowed = {"rate": [rate], "smoothed": [smoothed, targets], "near": [rate, smoothed, targets]}[case.constant]
    near = min(abs(p - value) for value in allowed)
    assert near < 1e-9 or (case.constant == "near" and 0.28 < p < 0.34)


@every_binary
def test_shapes_and_kinds_of_input(case):
    rows = binary_rows(case.reads)
    s, y = rows.scores, rows.y
    est = fitted(case, rows)
    expected = est.map_(s)
    assert isinstance(est.map_(float(s[0])), float)
    assert est.map_(float(s[0])) == expected[0]
    two = np.column_stack([mirrored(s, case.reads), s])
    if case.reads == "logit":
        two = np.column_stack([np.zeros_like(s), s])
    as_given = [
        s[:, None],
        two,
        s.tolist(),
        pd.Series(s),
        pl.Series(s),
        pa.array(s),
        pd.DataFrame({"s": s}),
        s[::-1][::-1],
    ]
    for given in as_given:
        np.testing.assert_array_equal(est.map_(given), expected)
        np.testing.assert_array_equal(case.make().fit(given, y).map_(s), expected)
    for labels in (y.tolist(), pd.Series(y), pl.Series(y), pa.array(y), y.astype(bool), y.astype(float), y[:, None]):
        np.testing.assert_array_equal(case.make().fit(s, labels).map_(s), expected)
    text = case.make().fit(s, np.where(y == 1, "yes", "no"))
    np.testing.assert_array_equal(text.map_(s), expected)
    assert list(text.classes_) == ["no", "yes"]
    assert set(text.predict(s)) <= {"no", "yes"}
    assert est.map_([]).shape == (0,)
    assert est.predict_proba(np.empty(0)).shape == (0, 2)


@every_binary
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8])
def test_other_number_types_are_read_as_their_values(case, kind):
    rows = binary_rows(case.reads)
    scores = (
        rows.scores.astype(kind) if np.dtype(kind).kind == "f" else (rows.scores > np.median(rows.scores)).astype(kind)
    )
    a = quiet(lambda: case.make().fit(scores, rows.y)).map_
    b = quiet(lambda: case.make().fit(scores.astype(float), rows.y)).map_
    assert a == b
    np.testing.assert_array_equal(a(scores), b(scores.astype(float)))


@every_binary
def test_estimator_protocol(case):
    rows = binary_rows(case.reads)
    est = fitted(case, rows)
    fresh = clone(est)
    assert fresh.get_params() == est.get_params()
    assert not hasattr(fresh, "map_")
    with pytest.raises(ca.errors.NotFittedError, match="Call fit"):
        fresh.predict_proba(rows.scores)
    assert fresh.fit(rows.scores, rows.y) is fresh
    assert fresh.map_ == est.map_
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(again.predict_proba(rows.scores), est.predict_proba(rows.scores))
    params = est.get_params()
    assert type(est)(**params).get_params() == params
    assert est.set_params(**params) is est


@every_binary
@pytest.mark.parametrize("power", [-1, -0.5, -0.03, 0.03, 0.5, 1])
def test_any_scale_of_scores(case, power):
    if case.reads == "probability":
        pytest.skip("reads probabilities")
    scale = case.reach**power
    rows = binary_rows("score")
    plain = fitted(case, rows).map_(rows.scores)
    scaled = case.make().fit(rows.scores * scale, rows.y).map_(rows.scores * scale)
    assert np.isfinite(scaled).all()
    if not case.pulled:
        np.testing.assert_allclose(scaled, plain, atol=1e-6)


@every_binary
def test_zero_and_one_are_scores_like_any_other(case):
    p = np.array([0, 0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1, 1])
    y = np.array([0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0])
    scores = p if case.reads == "probability" else 10 * p - 5
    fine = case.make().fit(scores, y).map_
    assert np.isfinite(fine(scores)).all()
    assert np.isfinite(fine([scores.min(), scores.max()])).all()


@every_binary
def test_separable_rows_give_a_finite_rising_map(case):
    p = np.linspace(0.05, 0.95, 20)
    scores = as_read(p, case.reads)
    y = (p > 0.5).astype(int)
    made = quiet(lambda: case.make().fit(scores, y)).map_
    answer = made(np.unique(np.concatenate([scores, np.linspace(scores[0], scores[-1], 99)])))
    assert np.isfinite(answer).all()
    if case.monotone:
        assert np.all(np.diff(answer) >= -1e-15)
    assert answer[0] < answer[-1]
    json.dumps(made.to_dict(), allow_nan=False)


@pytest.mark.parametrize("make", [ca.AffineLogit, ca.QuadraticLogit, ca.BetaCalibration, ca.TemperatureScaling])
def test_separable_rows_warn(make):
    with pytest.warns(FitWarning):
        make().fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])


@pytest.mark.parametrize("make", [ca.PlattScaling, ca.AffineLogit, ca.IsotonicCalibration])
def test_a_falling_score_warns(make):
    with pytest.warns(ca.errors.DataWarning, match="falls"):
        make().fit([0.1, 0.2, 0.8, 0.9, 0.7, 0.3], [1, 1, 0, 0, 1, 0])


@every_binary
def test_labels_keep_their_coding(case):
    rows = binary_rows(case.reads)
    expected = fitted(case, rows).map_(rows.scores)
    for low, high in ((-1, 1), (1, 2), (0.5, 7.5), (False, True), ("a", "b")):
        est = case.make().fit(rows.scores, np.where(rows.y == 1, high, low))
        np.testing.assert_array_equal(est.map_(rows.scores), expected)
        assert est.classes_.tolist() == [low, high]
        assert list(est.map_.classes) == [low, high]


@every_binary
def test_input_is_left_alone(case):
    rows = binary_rows(case.reads)
    before = [array.copy() for array in (rows.scores, rows.y, rows.weight)]
    est = fitted(case, rows, rows.weight)
    est.predict_proba(rows.scores)
    for array, kept in zip((rows.scores, rows.y, rows.weight), before):
        np.testing.assert_array_equal(array, kept)
    answer = est.map_(rows.scores)
    answer[:] = 0
    np.testing.assert_array_equal(rows.scores, before[0])
    assert est.map_(rows.scores).max() > 0


# ---------------------------------------------------------------- K classes


@every_many
def test_many_probabilities(case):
    rows = class_rows(case.reads)
    p = fitted(case, rows, rows.weight).predict_proba(rows.scores)
    assert p.shape == rows.scores.shape
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@every_many
def test_many_weights_are_repeats(case):
    rows = class_rows(case.reads)
    repeated = rows.at(np.repeat(np.arange(len(rows.y)), rows.weight.astype(int)))
    a, b = fitted(case, rows, rows.weight), fitted(case, repeated)
    if case.folds:
        assert np.abs(a.map_(repeated.scores) - b.map_(repeated.scores)).mean() < 0.05
    else:
        np.testing.assert_allclose(a.map_(repeated.scores), b.map_(repeated.scores), atol=case.tolerance)


@every_many
def test_many_row_order_is_nothing(case):
    rows = class_rows(case.reads)
    shuffled = rows.at(np.random.default_rng(2).permutation(len(rows.y)))
    a, b = fitted(case, rows), fitted(case, shuffled)
    np.testing.assert_allclose(a.map_(rows.scores), b.map_(rows.scores), atol=case.tolerance)


@every_many
def test_many_permuted_classes_permute_the_answer(case):
    if not case.permutes:
        pytest.skip("ties go to the first class")
    rows = class_rows(case.reads)
    order = np.array([2, 0, 1])
    back = np.argsort(order)
    plain = fitted(case, rows).map_(rows.scores)
    moved = case.make().fit(rows.scores[:, order], back[rows.y]).map_(rows.scores[:, order])
    np.testing.assert_allclose(moved, plain[:, order], atol=case.tolerance)


@every_many
def test_many_a_constant_in_a_row_of_logits_changes_nothing(case):
    if not case.shifts:
        pytest.skip("does not read logits")
    rows = class_rows(case.reads)
    shift = np.random.default_rng(3).normal(scale=50, size=(len(rows.y), 1))
    plain = fitted(case, rows).map_(rows.scores)
    moved = case.make().fit(rows.scores + shift, rows.y)
    np.testing.assert_allclose(moved.map_(rows.scores), plain, atol=1e-9)
    np.testing.assert_allclose(moved.map_(rows.scores - shift), plain, atol=1e-9)


def test_many_logits_are_the_probabilities_of_their_softmax():
    logits, given = class_rows("logit"), class_rows("probability")
    for make in (ca.AffineLogit, ca.TemperatureScaling):
        a = ca.OneVsRest(make(from_logits=True)).fit(logits.scores, logits.y).map_(logits.scores)
        b = ca.OneVsRest(make()).fit(given.scores, given.y).map_(given.scores)
        np.testing.assert_allclose(a, b, atol=1e-9)


@every_many
def test_many_an_absent_class_keeps_its_column(case):
    rows = class_rows(case.reads, k=4)
    present = rows.at(rows.y != 2)
    est = quiet(lambda: fitted(case, present))
    assert est.classes_.tolist() == [0, 1, 2, 3]
    p = est.predict_proba(present.scores)
    assert p.shape == (len(present.y), 4)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    weightless = quiet(lambda: case.make().fit(rows.scores, rows.y, (rows.y != 2).astype(float)))
    np.testing.assert_allclose(weightless.map_(present.scores), p, atol=case.tolerance)


@every_many
def test_many_labels_of_the_columns(case):
    rows = class_rows(case.reads)
    names = np.array(["cat", "ant", "bee"])
    plain = fitted(case, rows)
    est = case.make(classes=names.tolist()).fit(rows.scores, names[rows.y])
    assert est.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(est.predict_proba(rows.scores), plain.predict_proba(rows.scores))
    np.testing.assert_array_equal(est.predict(rows.scores), names[plain.predict(rows.scores)])
    ascending = case.make().fit(rows.scores, np.array(["a", "b", "c"])[rows.y])
    assert ascending.classes_.tolist() == ["a", "b", "c"]
    some = rows.at(rows.y != 0)
    with pytest.raises(ca.errors.InputError, match="classes="):
        case.make().fit(some.scores, names[some.y])


@every_many
def test_many_maps_files_and_protocol(case, tmp_path):
    rows = class_rows(case.reads)
    est = fitted(case, rows)
    est.map_.save(tmp_path / "map.json")
    again = ca.load_map(tmp_path / "map.json")
    assert again == est.map_
    np.testing.assert_array_equal(again(rows.scores), est.predict_proba(rows.scores))
    np.testing.assert_allclose(again(rows.scores[0]), est.map_(rows.scores)[0], rtol=1e-13)
    other = class_rows(case.reads, seed=9)
    assert clone(est).fit(other.scores, other.y).map_ == est.fit(other.scores, other.y).map_
    copy = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(copy.map_(rows.scores), est.map_(rows.scores))


@every_many
def test_many_frames(case):
    rows = class_rows(case.reads)
    expected = fitted(case, rows).map_(rows.scores)
    named_columns = {f"c{k}": rows.scores[:, k] for k in range(3)}
    for frame in (
        pd.DataFrame(named_columns),
        pl.DataFrame(named_columns),
        pa.table(named_columns),
        rows.scores.tolist(),
    ):
        np.testing.assert_array_equal(case.make().fit(frame, rows.y).map_(frame), expected)


@every_many
def test_two_columns_agree_with_the_binary_method(case):
    rows = class_rows(case.reads, k=2)
    est = fitted(case, rows)
    p = est.predict_proba(rows.scores)
    assert p.shape == (len(rows.y), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    inner = getattr(est, "calibrator", est)
    alone = clone(inner).fit(rows.scores, rows.y).map_(rows.scores)
    if case.reads != "score" and "isotonic" not in case.name:
        np.testing.assert_allclose(p[:, 1], alone if alone.ndim == 1 else alone[:, 1], atol=1e-9)


def test_two_columns_are_named_by_classes():
    p = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9], [0.4, 0.6]])
    y = ["yes", "no", "yes", "no", "yes"]
    est = ca.TemperatureScaling(classes=["yes", "no"]).fit(p, y)
    assert est.classes_.tolist() == ["yes", "no"]
    assert est.temperature_ < 1
    assert est.predict(p).tolist() == ["yes", "no", "yes", "no", "no"]
    with pytest.raises(ca.errors.InputError, match="2 columns"):
        ca.TemperatureScaling(classes=["a", "b", "c"]).fit(p, y)


def test_one_against_the_rest_of_a_row_of_zeros_is_uniform():
    p = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    made = ca.OneVsRest(ca.IsotonicCalibration()).fit(p, [0, 1, 2]).map_
    np.testing.assert_allclose(made([0.34, 0.33, 0.33]), np.full(3, 1 / 3))


@pytest.mark.parametrize("case", [case for case in BINARY if case.reads == "probability"], ids=lambda case: case.name)
def test_probabilities_next_to_zero_and_one_are_read(case: Binary) -> None:
    """Saturated models give 1e-200 and 0 side by side: the map stays finite, and saves."""
    rng = np.random.default_rng(5)
    z = rng.normal(0, 3, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-40 * z))
    p[:6] = [0.0, 1e-300, 1e-200, 1e-40, 1.0, 1 - 2**-53]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        fitted = case.make().fit(p, y)
    assert Map.from_dict(fitted.map_.to_dict()) == fitted.map_
    assert np.isfinite(fitted.map_(np.array([0.0, 5e-324, 1e-250, 0.5, 1.0]))).all()


def test_of_two_scores_rounding_does_not_choose_the_beta_map():
    """One logarithm fits two scores as well as the other; which is taken does not depend on how rows are given."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.2, 0.7], 200)
        y = rng.random(200) < np.where(p > 0.5, 0.45, 0.2)
        rows = ca.ScoreTable.from_arrays(p, y)
        tables = [rows.distinct, *(ca.ScoreTable.from_arrays(p, y, np.full(200, weight)) for weight in (1.0, 3.0))]
        first = quiet(lambda: ca.BetaCalibration().fit_table(rows))  # noqa: B023
        for table in tables:
            other = quiet(lambda: ca.BetaCalibration().fit_table(table))  # noqa: B023
            np.testing.assert_allclose(other.map_(0.95), first.map_(0.95), rtol=1e-7)
