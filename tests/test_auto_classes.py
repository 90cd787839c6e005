"""The automatic choice for many classes: what it promises, and what may not matter to it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as ca
from calibrant.calibrators import _auto_classes as auto
from calibrant.calibrators._auto_classes import learn_classes, usual_class_candidates
from calibrant.data._arrays import ClassRows
from calibrant.maps import Map
from catalogue import class_rows


def learned(p, y, weights=None, *, from_logits=False, classes=None, seed=0, **options):
    names = tuple(range(p.shape[1])) if classes is None else classes
    rows = ClassRows(p, np.asarray(y, dtype=np.int64), weights, names)
    return learn_classes(rows, from_logits, 5, np.random.default_rng(seed), **options)


def honest_rows(n=2_000, k=4, seed=0, power=1.0):
    """Probabilities that are right at power 1, over-confident above."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, k))
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    q = p**power
    return q / q.sum(axis=1, keepdims=True), y


def test_it_lowers_the_loss_of_over_confident_rows():
    p, y = honest_rows(power=2.5)
    choice = learned(p, y)
    fresh, truth = honest_rows(seed=9, power=2.5)
    assert ca.log_loss(truth, choice.map(fresh)) < ca.log_loss(truth, fresh) - 0.1
    assert choice.best != "Identity"
    assert "%" in choice.reason
    assert "2,000 rows" in choice.reason


def test_it_leaves_honest_rows_nearly_alone():
    p, y = honest_rows()
    choice = learned(p, y)
    fresh, truth = honest_rows(seed=9)
    assert ca.log_loss(truth, choice.map(fresh)) < ca.log_loss(truth, fresh) + 0.003


def test_a_record_for_every_candidate():
    p, y = honest_rows(n=400, power=2.0)
    choice = learned(p, y)
    assert choice.results[0].name == "Identity"
    assert len({one.name for one in choice.results}) == len(choice.results)
    assert sum(one.weight for one in choice.results) == pytest.approx(1)
    assert choice.best == max(choice.results, key=lambda one: one.weight).name
    for one in choice.results:
        assert len(one.folds) == 25
        assert np.mean(one.folds) == pytest.approx(one.log_loss, rel=0.05)
    as_is = choice.results[0]
    moved = p * (1 - 0.1 / 401) + 0.1 / 401 / 4
    assert as_is.log_loss == pytest.approx(ca.log_loss(y, moved), rel=1e-9)
    assert as_is.standard_error == 0


def test_exact_zeros_never_cost_an_infinite_loss():
    rng = np.random.default_rng(2)
    p = np.eye(3)[rng.integers(0, 3, 200)]
    y = np.where(rng.random(200) < 0.9, p.argmax(axis=1), rng.integers(0, 3, 200))
    choice = learned(p, y)
    assert choice.map(np.eye(3)).min() > 0.001
    assert ca.log_loss(y, choice.map(p)) < 0.6


def test_the_order_of_rows_and_of_classes_is_nothing():
    rows = class_rows(n=300, k=4)
    plain = learned(rows.scores, rows.y).map(rows.scores)
    shuffle = np.random.default_rng(3).permutation(300)
    moved = learned(rows.scores[shuffle], rows.y[shuffle]).map(rows.scores)
    assert_allclose(moved, plain, atol=1e-8)
    order = np.array([2, 0, 3, 1])
    turned = learned(rows.scores[:, order], np.argsort(order)[rows.y]).map(rows.scores[:, order])
    assert_allclose(turned, plain[:, order], atol=1e-8)


def test_logits_are_the_probabilities_of_their_softmax():
    logits = class_rows("logit")
    p = class_rows("probability")
    a = learned(logits.scores, logits.y, from_logits=True)
    b = learned(p.scores, p.y)
    assert_allclose(a.map(logits.scores), b.map(p.scores), atol=1e-9)
    shift = np.random.default_rng(0).normal(scale=30, size=(len(p.y), 1))
    assert_allclose(a.map(logits.scores + shift), b.map(p.scores), atol=1e-9)


def test_float32_gives_nearly_the_same():
    rows = class_rows(n=300)
    a, b = learned(rows.scores, rows.y), learned(rows.scores.astype(np.float32), rows.y)
    assert_allclose(a.map(rows.scores), b.map(rows.scores), atol=1e-3)


def test_weights_count_as_repeats_in_kind():
    # Copies fall into different folds, where one row of weight 2 falls into one: the weights of the mixture differ.
    rows = class_rows(n=600)
    repeats = rows.weight.astype(int)
    present = rows.at(rows.weight > 0)
    a = learned(present.scores, present.y, present.weight)
    many = rows.at(np.repeat(np.arange(600), repeats))
    b = learned(many.scores, many.y)
    fresh = class_rows(n=2_000, seed=5)
    losses = [ca.log_loss(fresh.y, choice.map(fresh.scores)) for choice in (a, b)]
    assert losses[0] == pytest.approx(losses[1], abs=0.03)


def test_the_map_is_a_file(tmp_path):
    p, y = honest_rows(n=300, power=2.0)
    choice = learned(p, y, classes=("b", "a", "d", "c"))
    assert Map.from_dict(choice.map.to_dict()) == choice.map
    choice.map.save(tmp_path / "map.json")
    np.testing.assert_array_equal(ca.load_map(tmp_path / "map.json")(p), choice.map(p))
    assert choice.map.classes == ("b", "a", "d", "c")


@pytest.mark.parametrize(("n", "expected"), [(1, 1.0), (2, None), (7, None), (25, None)])
def test_few_rows(n, expected):
    p, y = honest_rows(n=n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = learned(p, y)
    assert np.isfinite(choice.map(p)).all()
    assert_allclose(choice.map(p).sum(axis=1), 1)
    if expected:
        assert choice.results[0].weight == expected
    else:
        assert "Rows are few" in choice.reason


def test_a_class_without_rows_keeps_its_column():
    p, y = honest_rows(n=400, power=2.0)
    kept = y != 2
    q = learned(p[kept], y[kept]).map(p)
    assert q.shape == p.shape
    assert 0 < q[:, 2].mean() < p[:, 2].mean()


def test_rows_of_one_class_only():
    p, _ = honest_rows(n=100)
    q = learned(p, np.zeros(100)).map(p)
    assert np.isfinite(q).all()
    assert q[:, 0].mean() > 0.8


def test_candidates_by_rows_and_classes():
    names = [
        [one.name for one in usual_class_candidates(n, k)] for n, k in ((20, 5), (500, 5), (5_000, 60), (1e5, 900))
    ]
    assert names[0] == ["TemperatureScaling"]
    assert "StructuredMatrixScaling" in names[1]
    assert "OneVsRest(IsotonicCalibration)" in names[1]
    assert "StructuredMatrixScaling" not in names[2]
    assert "StructuredVectorScaling" in names[2]
    assert names[3] == ["TemperatureScaling", "StructuredVectorScaling"]


def test_own_candidates():
    p, y = honest_rows(n=300, power=2.0)
    choice = learned(p, y, candidates=[ca.DirichletCalibration(), ca.OneVsRest(ca.BetaCalibration())])
    assert [one.name for one in choice.results] == ["Identity", "DirichletCalibration", "OneVsRest(BetaCalibration)"]


def test_many_rows_are_judged_on_some_of_them(monkeypatch):
    p, y = honest_rows(n=3_000, power=2.0)
    whole = learned(p, y)
    monkeypatch.setattr(auto, "MOST_CELLS", 4 * 800)
    some = learned(p, y)
    assert some.best != "Identity"
    assert_allclose(some.map(p), whole.map(p), atol=0.05)


def test_the_reason_says_which_loss_it_quotes() -> None:
    """The scores as they are with a trace of the uniform distribution: a certain and wrong row is not infinite."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 600)
    y = np.array([rng.choice(3, p=row) for row in p])
    p[0] = np.eye(3)[(y[0] + 1) % 3]
    fitted = ca.AutoCalibrator().fit(p, y)
    share = 0.1 / 601
    loss = ca.log_loss(y, (1 - share) * p + share / 3)
    assert fitted.results_[0].log_loss == pytest.approx(loss)
    assert f"with {share:.1g} of the uniform distribution mixed in" in fitted.reason_
    assert f"{loss:.4f}" in fitted.reason_
