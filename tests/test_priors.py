"""Another prevalence: Bayes' rule, maps that carry it, the new prior with intervals, plausibility of label shift."""

from __future__ import annotations

import tracemalloc

import duckdb
import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels.blocks import BLOCK
from calibrant.errors import InputError, InputTypeError
from calibrant.maps import (
    AffineLogitMap,
    BetaMap,
    ClassPriorShiftMap,
    IdentityMap,
    LineMap,
    Map,
    MixtureMap,
    PlattMap,
    PriorShiftMap,
    QuadraticLogitMap,
    SplineMap,
    StepMap,
    TemperatureMap,
    VectorScalingMap,
)

PAIR = (0, 1)


def shifted_rows(rng, n, prior, train=0.3, separation=1.5):
    """Rows at another prior, with the probabilities that are right at the old one."""
    y = rng.random(n) < prior
    x = rng.normal(np.where(y, separation, 0.0), 1.0)
    z = np.log(train / (1 - train)) + separation * x - separation**2 / 2
    return y, 1 / (1 + np.exp(-z))


# ---------------------------------------------------------------- Bayes' rule


def test_binary_is_bayes_rule():
    p = np.linspace(0, 1, 101)
    moved = ca.adjust_prior(p, 0.2, 0.05)
    odds = (p[1:-1] / (1 - p[1:-1])) * (0.05 / 0.95) / (0.2 / 0.8)
    assert np.allclose(moved[1:-1], odds / (1 + odds), rtol=1e-14)
    assert moved[0] == 0
    assert moved[-1] == 1
    assert np.all(np.diff(moved) > 0)


def test_there_and_back():
    p = np.random.default_rng(0).random(1000)
    back = ca.adjust_prior(ca.adjust_prior(p, 0.3, 0.02), 0.02, 0.3)
    assert np.allclose(back, p, rtol=1e-12)
    assert np.array_equal(ca.adjust_prior(p, 0.3, 0.3), p / (p + (1 - p)))


def test_classes_agree_with_the_binary_rule():
    p = np.random.default_rng(0).random(50)
    rows = np.column_stack([1 - p, p])
    both = ca.adjust_prior(rows, [0.8, 0.2], [0.95, 0.05])
    assert np.allclose(both[:, 1], ca.adjust_prior(p, 0.2, 0.05), rtol=1e-13)
    assert np.allclose(both.sum(axis=1), 1, atol=1e-15)


def test_shapes_of_priors_and_probabilities():
    assert isinstance(ca.adjust_prior(0.4, 0.5, 0.1), float)
    assert ca.adjust_prior([[0.3, 0.7]], 0.5, 0.1).shape == (1,)
    assert ca.adjust_prior([0.3, 0.7], [0.5, 0.5], [0.9, 0.1]).shape == (2,)
    many = ca.adjust_prior([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
    assert np.allclose(many, [0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ca.adjust_prior([0.5], 0, 0.1), "strictly between 0 and 1"),
        (lambda: ca.adjust_prior([0.5], 1.0, 0.1), "train_prior"),
        (lambda: ca.adjust_prior([0.5], 0.5, 1.2), "new_prior"),
        (lambda: ca.adjust_prior([0.5], 0.5, np.nan), "new_prior"),
        (lambda: ca.adjust_prior([0.5, 1.0], 0.5, 0.0), "certainty"),
        (lambda: ca.adjust_prior([50.0], 0.5, 0.1), "percentages"),
        (lambda: ca.adjust_prior([[0.2, 0.3, 0.5]], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]), "class 2"),
        (lambda: ca.adjust_prior([[0.2, 0.3, 0.5]], [0.5, 0.5], [0.3, 0.7]), "3 columns"),
        (lambda: ca.adjust_prior([[0.2, 0.3, 0.5]], [0.5, 0.4, 0.2], [0.3, 0.3, 0.4]), "sum to 1"),
        (lambda: ca.adjust_prior([[1.0, 0.0, 0.0]], [0.5, 0.4, 0.1], [0.0, 0.5, 0.5]), "Row 0"),
        (lambda: ca.undo_sampling([0.5]), "Give one of"),
        (lambda: ca.undo_sampling([0.5], 0.5, scale_pos_weight=2.0), "Give one of"),
        (lambda: ca.undo_sampling([0.5], 1.5), "negative_rate"),
        (lambda: ca.undo_sampling([0.5], scale_pos_weight=0), "scale_pos_weight"),
    ],
)
def test_errors_are_for_people(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_undo_sampling_finds_the_old_odds():
    p = np.random.default_rng(0).random(20)
    thinned = p / (p + 0.1 * (1 - p))
    assert np.allclose(ca.undo_sampling(thinned, 0.1), p, rtol=1e-13)
    assert np.allclose(ca.undo_sampling(thinned, scale_pos_weight=10), p, rtol=1e-13)


# ---------------------------------------------------------------- maps


MAPS = [
    PlattMap(PAIR, 1.5, -0.5),
    AffineLogitMap(PAIR, 0.8, 0.2),
    AffineLogitMap(PAIR, 0.8, 0.2, True),
    IdentityMap(PAIR),
    IdentityMap(PAIR, 0.01),
    IdentityMap(PAIR, 0.0, True),
    TemperatureMap(PAIR, 0.6),
    TemperatureMap(PAIR, 0.6, 0.02),
    StepMap(PAIR, [0.2, 0.6], [0.0, 0.3, 1.0]),
    LineMap(PAIR, [0.1, 0.5, 0.9], [0.0, 0.4, 1.0]),
    MixtureMap(PAIR, [0.4, 0.6], (AffineLogitMap(PAIR, 0.5, 0.1), IdentityMap(PAIR))),
    BetaMap(PAIR, 0.7, 1.2, 0.1),
    QuadraticLogitMap(PAIR, 0.1, 0.9, 0.05, -3.0, 3.0),
    SplineMap(PAIR, [-2.0, 0.0, 2.0], [-1.5, 0.2, 1.8], [0.0, 0.1, 0.0]),
]


@pytest.mark.parametrize("part", MAPS, ids=lambda part: part.kind)
@pytest.mark.parametrize("priors", [(0.5, 0.01), (0.02, 0.3), (0.4, 0.4)])
def test_map_with_a_shift_is_one_map(part, priors, tmp_path):
    record = ca.shift_map(part, *priors)
    scores = np.concatenate([[0.0, 1.0, 1e-12], np.random.default_rng(3).random(200)])
    assert np.allclose(record(scores), ca.adjust_prior(part(scores), *priors), rtol=1e-12, atol=0)
    assert Map.from_dict(record.to_dict()) == record
    record.save(tmp_path / "map.json")
    assert ca.load_map(tmp_path / "map.json") == record
    assert record.reads == part.reads


@pytest.mark.parametrize("part", [part for part in MAPS if part.kind not in ("beta", "quadratic_logit", "spline")])
def test_sql_agrees_with_python(part):
    scores = np.concatenate([[0.0, 1.0, 1e-300, 1e-12], np.random.default_rng(3).random(100)])
    for record in (ca.shift_map(part, 0.5, 0.01), ca.shift_map(ca.shift_map(part, 0.5, 0.01), 0.01, 0.2)):
        with duckdb.connect(config={"threads": 1}) as engine:
            engine.execute("CREATE TABLE t AS SELECT unnest(?::DOUBLE[]) AS s", [scores.tolist()])
            got = [row[0] for row in engine.execute(f"SELECT {record.to_sql('s')} FROM t").fetchall()]
        assert np.allclose(got, record(scores), rtol=0, atol=1e-12)
        assert got[0] == pytest.approx(record(0.0), rel=1e-12, abs=1e-30)


def test_map_of_many_classes():
    part = VectorScalingMap(("a", "b", "c"), [1.0, 0.8, 1.2], [0.0, 0.1, -0.1])
    record = ca.shift_map(part, [0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    assert isinstance(record, ClassPriorShiftMap)
    assert np.allclose(record(rows), ca.adjust_prior(part(rows), [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]), rtol=1e-12)
    assert Map.from_dict(record.to_dict()) == record


def test_damaged_shifts_are_refused():
    with pytest.raises(InputError, match="strictly between"):
        PriorShiftMap(PAIR, 0.0, 0.5, (IdentityMap(PAIR),))
    with pytest.raises(InputError, match="one map"):
        PriorShiftMap(PAIR, 0.1, 0.5, (IdentityMap(PAIR), IdentityMap(PAIR)))
    with pytest.raises(InputError, match="classes"):
        PriorShiftMap(PAIR, 0.1, 0.5, (IdentityMap(("no", "yes")),))
    with pytest.raises(InputTypeError, match="map_"):
        ca.shift_map("map.json", 0.1, 0.5)


# ---------------------------------------------------------------- the new prior


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.7])
def test_em_is_the_maximum_on_a_grid(prior):
    _, p = shifted_rows(np.random.default_rng(1), 500, prior)
    found = ca.estimate_prior(p, 0.3)
    grid = np.linspace(0, 1, 20001)[1:-1]
    values = np.array([np.log(g / 0.3 * p + (1 - g) / 0.7 * (1 - p)).sum() for g in grid])
    assert found.prior == pytest.approx(grid[values.argmax()], abs=1e-4)
    inside = grid[values >= values.max() - 1.9207]
    assert found.low == pytest.approx(inside[0], abs=1e-4)
    assert found.high == pytest.approx(inside[-1], abs=1e-4)


def test_em_on_the_border():
    found = ca.estimate_prior([0.9, 0.8, 0.95], 0.5)
    assert (found.prior, found.high) == (1.0, 1.0)
    assert 0 < found.low < 1
    assert ca.estimate_prior([0.01, 0.02], 0.5).prior == 0.0


@pytest.mark.parametrize("method", ["em", "bbse"])
@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_intervals_cover(method, prior):
    rng = np.random.default_rng(5)
    reference = shifted_rows(rng, 2000, 0.3)
    held, errors = 0, []
    for _ in range(200):
        if method == "bbse":
            reference = shifted_rows(rng, 2000, 0.3)
        found = ca.estimate_prior(shifted_rows(rng, 800, prior)[1], 0.3, method=method, reference=reference)
        held += found.low <= prior <= found.high
        errors.append(found.prior - prior)
    assert held >= 180
    assert abs(np.mean(errors)) < 0.01


def test_bbse_needs_no_calibration():
    rng = np.random.default_rng(2)
    y, p = shifted_rows(rng, 20000, 0.3)
    _, new = shifted_rows(rng, 20000, 0.1)
    found = ca.estimate_prior(np.sqrt(new), 0.3, method="bbse", reference=(y, np.sqrt(p)))
    assert found.low <= 0.1 <= found.high
    assert abs(ca.estimate_prior(np.sqrt(new), 0.3).prior - 0.1) > 0.05


def classes_at(rng, n, shares, train):
    y = rng.choice(3, n, p=shares)
    x = rng.normal(0, 1, (n, 3)) + 1.5 * np.eye(3)[y]
    logits = 1.5 * x + np.log(train)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return y, p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [1e8, 1e14, 1e20])
def test_the_bbse_interval_shrinks_with_the_root_of_the_weights(weight):
    rng = np.random.default_rng(3)
    p, new = rng.beta(1, 3, 400), rng.beta(1.3, 3, 400)
    y = rng.random(400) < p

    def half_width(w):
        table = ca.ScoreTable.from_arrays(p, y, np.full(400, w))
        found = ca.estimate_prior(new, 0.25, method="bbse", reference=table, sample_weight=np.full(400, w))
        return (found.high - found.low) / 2 * np.sqrt(w)

    assert half_width(weight) == pytest.approx(half_width(1e6), rel=1e-2 if weight > 1e14 else 1e-5)


@pytest.mark.parametrize("method", ["em", "bbse"])
def test_many_classes(method):
    rng = np.random.default_rng(0)
    train, new = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    held = np.zeros(3)
    for _ in range(60):
        reference = classes_at(rng, 1500, train, train) if method == "bbse" else None
        found = ca.estimate_prior(classes_at(rng, 800, new, train)[1], train, method=method, reference=reference)
        held += (found.low <= new) & (new <= found.high)
        assert found.prior.sum() == pytest.approx(1)
    assert held.min() >= 52


def test_many_classes_agree_with_the_iteration():
    rng = np.random.default_rng(3)
    train = np.array([0.2, 0.3, 0.5])
    _, p = classes_at(rng, 400, [0.6, 0.3, 0.1], train)
    prior = train.copy()
    for _ in range(3000):
        moved = ca.adjust_prior(p, train, prior)
        prior = moved.mean(axis=0)
    assert np.allclose(ca.estimate_prior(p, train).prior, prior, atol=1e-6)
    gone = ca.estimate_prior(p[p[:, 2] < 0.05], train)
    assert gone.prior[2] == 0


def test_weights_count_rows():
    _, p = shifted_rows(np.random.default_rng(1), 100, 0.5)
    weights = np.random.default_rng(2).integers(1, 4, 100)
    counted, repeated = ca.estimate_prior(p, 0.3, sample_weight=weights), ca.estimate_prior(np.repeat(p, weights), 0.3)
    assert counted.prior == pytest.approx(repeated.prior, abs=1e-9)
    assert counted.low == pytest.approx(repeated.low, abs=1e-9)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"method": "mean"}, "method must be"),
        ({"method": "bbse"}, "needs reference"),
        ({"method": "bbse", "reference": ([0, 0], [0.1, 0.2])}, "no row of class 1"),
        ({"method": "bbse", "reference": ([0, 1], [0.2, 0.2])}, "cannot tell"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_estimates_that_cannot_be_had(options, words):
    with pytest.raises(InputError, match=words):
        ca.estimate_prior([0.1, 0.5], 0.3, **options)


# ---------------------------------------------------------------- is it label shift?


def test_plausibility_keeps_its_level():
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(300):
        reference = shifted_rows(rng, 3000, 0.3)
        p_values.append(ca.label_shift_test(shifted_rows(rng, 1000, 0.12)[1], reference).p_value)
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.085
    assert np.mean(np.array(p_values) < 0.5) == pytest.approx(0.5, abs=0.09)


def test_another_shape_is_not_plausible():
    rng = np.random.default_rng(4)
    reference = shifted_rows(rng, 5000, 0.3)
    found = ca.label_shift_test(shifted_rows(rng, 5000, 0.3, separation=1.2)[1], reference)
    assert not found.plausible
    assert found.p_value < 1e-3


def test_plausibility_of_many_classes():
    rng = np.random.default_rng(0)
    train = np.array([0.2, 0.3, 0.5])
    reference = classes_at(rng, 4000, train, train)
    fine = [ca.label_shift_test(classes_at(rng, 1500, [0.6, 0.3, 0.1], train)[1], reference) for _ in range(40)]
    assert sum(found.plausible for found in fine) >= 33
    assert np.allclose(fine[0].prior, [0.6, 0.3, 0.1], atol=0.1)
    flat = classes_at(rng, 3000, train, train)[1] ** 0.5
    assert not ca.label_shift_test(flat / flat.sum(axis=1, keepdims=True), reference).plausible


def test_too_few_values_to_test():
    with pytest.raises(InputError, match="too few different values"):
        ca.label_shift_test([0.2, 0.4] * 50, ([0, 1] * 50, [0.2, 0.4] * 50))


def test_the_order_of_the_rows_is_nothing_to_the_label_shift_test():
    """One direction of the covariance is empty by nature; what rounding leaves there must not be taken for evidence."""
    rng = np.random.default_rng(5)
    p = 1 / (1 + np.exp(-rng.normal(-1, 1.5, 4000)))
    reference = ca.ScoreTable.from_arrays(p, (rng.random(4000) < p).astype(int))
    for _ in range(60):
        weight = 10.0 ** rng.uniform(-3, 9, 1000)
        found = ca.label_shift_test(p[:1000], reference, sample_weight=weight)
        other = ca.label_shift_test(p[999::-1], reference, sample_weight=weight[::-1])
        assert other.statistic == pytest.approx(found.statistic, rel=1e-6)


@pytest.mark.parametrize("n", [300, 2 * BLOCK + 77])
def test_rows_counts_and_weights_of_one_are_one_sample(n):
    rng = np.random.default_rng(n)
    p = rng.beta(1, 4, n)
    y = (rng.random(n) < p).astype(int)
    new = np.concatenate([p[y == 1], p[y == 0][::3]])
    references = [(y, p), ca.ScoreTable.from_counts(p, y, 1 - y), ca.ScoreTable.from_arrays(p, y, np.ones(n))]
    for weight in (None, np.ones(len(new))):
        for reference in references:
            test = ca.label_shift_test(new, reference, sample_weight=weight)
            bbse = ca.estimate_prior(new, 0.2, method="bbse", reference=reference, sample_weight=weight)
            if weight is None and reference is references[0]:
                first = (test.statistic, test.p_value, test.prior, bbse.prior, bbse.low, bbse.high)
            assert (test.statistic, test.p_value, test.prior, bbse.prior, bbse.low, bbse.high) == pytest.approx(
                first, rel=1e-9
            )
    assert bbse.low < y.sum() / len(new) < bbse.high
    plain, weighted = (ca.estimate_prior(new, 0.2, sample_weight=weight) for weight in (None, np.full(len(new), 1.0)))
    assert (weighted.prior, weighted.low, weighted.high) == pytest.approx(
        (plain.prior, plain.low, plain.high), rel=1e-9
    )


def test_new_rows_are_read_block_by_block():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 4, 400_000)
    reference = ca.ScoreTable.from_arrays(p, rng.random(len(p)) < p).distinct
    for bytes_a_row, call in (
        (0, lambda: ca.label_shift_test(p, reference)),
        (0, lambda: ca.estimate_prior(p, 0.2, method="bbse", reference=reference)),
        (16, lambda: ca.estimate_prior(p, 0.2)),
    ):
        call()
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= bytes_a_row * len(p) + 12 * 8 * BLOCK
