"""Pooling against the min-max formula in exact fractions, look-ups against binary search and exact lines."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from calibrant._kernels import isotonic, lookup
from calibrant._kernels._compiled import MANY, SPREAD

FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: sum(pair) > 0), min_size=1, max_size=14
)


def min_max(positives, weights):
    """Value at i: the greatest over starts a <= i of the least over ends b >= i of the mean of a..b."""
    hits, totals = [Fraction(0)], [Fraction(0)]
    for p, w in zip(positives, weights):
        hits.append(hits[-1] + Fraction(p))
        totals.append(totals[-1] + Fraction(w))
    n = len(weights)

    def mean(a, b):
        return (hits[b + 1] - hits[a]) / (totals[b + 1] - totals[a])

    return [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


def spread(blocks):
    return np.repeat(blocks.values, blocks.ends - blocks.starts + 1)


def assert_blocks(blocks, n):
    assert blocks.starts.dtype == blocks.ends.dtype == np.int64
    assert blocks.starts[0] == 0
    assert blocks.ends[-1] == n - 1
    assert_array_equal(blocks.starts[1:], blocks.ends[:-1] + 1)
    assert np.all(np.diff(blocks.values) > 0)


@settings(max_examples=200, deadline=None)
@given(COUNTS)
def test_pooling_is_the_min_max_formula(pairs):
    positives, negatives = np.array(pairs, dtype=float).T.copy()
    blocks = isotonic.pool_adjacent(positives, positives + negatives)
    exact = min_max(positives, positives + negatives)
    assert_blocks(blocks, len(pairs))
    assert_array_equal(spread(blocks), [float(value) for value in exact])
    assert len(blocks.values) == len(set(exact))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_weights_of_any_size(scale):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, 40) * scale
    positives = weights * rng.integers(0, 2, 40)
    exact = pytest.approx([float(value) for value in min_max(positives, weights)], rel=1e-13)
    assert spread(isotonic.pool_adjacent(positives, weights)) == exact
    assert spread(isotonic.pool_counts(positives, weights - positives)) == exact


def test_many_weights_of_any_size():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, MANY + 1).astype(float)
    positives = weights * rng.integers(0, 2, MANY + 1)
    expected = isotonic.pool_adjacent(positives, weights)
    for scale in (2.0**-900, 2.0**900):
        for ours, same in zip(isotonic.pool_counts(positives * scale, (weights - positives) * scale), expected):
            assert_array_equal(ours, same)


def test_equal_means_pool():
    blocks = isotonic.pool_adjacent(np.array([1.0, 2.0, 5.0, 10.0]), np.array([3.0, 6.0, 7.0, 14.0]))
    assert_array_equal(blocks.starts, [0, 2])
    assert_array_equal(blocks.values, [1 / 3, 5 / 7])


def test_means_that_round_to_one_float_are_one_block():
    totals = np.array([2.0**52 + 1, 2.0**52 + 3])
    blocks = isotonic.pool_adjacent(totals - 1, totals)
    assert_blocks(blocks, 2)


@pytest.mark.parametrize("shape", ["rising", "flat", "falling", "sawtooth", "rare", "weights"])
@pytest.mark.parametrize("n", [MANY + 9, SPREAD + 1])
def test_compiled_halves_pool_like_the_plain_loop(shape, n):
    rng = np.random.default_rng(1)
    u = np.linspace(0, 1, n)
    chance = {"rising": u, "flat": 0.3, "falling": 1 - u, "sawtooth": (20 * u) % 1, "rare": u / 100, "weights": u}
    positives = (rng.random(n) < chance[shape]).astype(float)
    weights = np.ones(n)
    if shape == "weights":
        weights = rng.integers(1, 9, n).astype(float)
        positives *= weights
    plain = one_by_one(positives, weights)
    join = isotonic._join_weights(positives, weights)
    for pooled in (isotonic._pool_few(positives, weights), isotonic._pool_many(n, join)):
        for ours, same in zip(pooled, plain):
            assert_array_equal(ours, same)
    blocks = isotonic.pool_adjacent(positives, weights)
    assert_blocks(blocks, n)
    for ours, same in zip(isotonic.pool_counts(positives, weights - positives), blocks):
        assert_array_equal(ours, same)
    if shape != "weights":
        for ours, same in zip(isotonic.pool_rows(positives.astype(np.uint8)), blocks):
            assert_array_equal(ours, same)


def one_by_one(positives, weights):
    """The stack of the loop that pools every row as it comes."""
    n = len(weights)
    ends, hits, totals = [0] * n, [0.0] * n, [0.0] * n
    count = isotonic._pool.function(positives.tolist(), weights.tolist(), ends, hits, totals)
    return ends[:count], hits[:count], totals[:count]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=40))
def test_rows_pool_like_counts(labels):
    labels = np.array(labels, dtype=np.uint8)
    expected = isotonic.pool_adjacent(labels.astype(float), np.ones(len(labels)))
    room = np.empty(len(labels), dtype=np.int64), np.empty(len(labels)), np.empty(len(labels))
    joined = int(isotonic._join_labels(labels, *room))
    assert_array_equal(np.add.reduceat(labels, np.append(0, room[0][: joined - 1] + 1)), room[1][:joined])
    assert_array_equal(np.diff(room[0][:joined], prepend=-1), room[2][:joined])
    assert set(expected.ends) <= set(room[0][:joined])
    for ours, same in zip(isotonic.pool_rows(labels), expected):
        assert_array_equal(ours, same)


def test_distinct_means_stay_apart_in_many_blocks():
    n = SPREAD + 5
    blocks = isotonic.pool_adjacent(np.arange(n) / n, np.ones(n))
    assert_array_equal(blocks.values, np.arange(n) / n)


def nasty_thresholds(kind):
    rng = np.random.default_rng(5)
    one = np.float64(0.1)
    neighbours = [one]
    for _ in range(40):
        neighbours.append(np.nextafter(neighbours[-1], 2))
    return {
        "none": np.array([]),
        "one": np.array([0.3]),
        "neighbours": np.array(neighbours),
        "denormals": np.arange(-30, 30) * 5e-324,
        "all of the range": np.sort(rng.normal(size=200)) * 5e307,
        "two ends": np.array([-1.7e308, 1.7e308]),
        "clustered": np.sort(np.concatenate((rng.random(500) * 1e-9, [1.0, 5.0]))),
        "uniform": np.sort(rng.random(3000)),
        "wide": np.sort(rng.normal(size=300) * 10.0 ** rng.uniform(-300, 300, 300)),
    }[kind]


def probes(thresholds):
    """The thresholds, both neighbours of each, and numbers from everywhere."""
    rng = np.random.default_rng(6)
    around = [thresholds, np.nextafter(thresholds, np.inf), np.nextafter(thresholds, -np.inf)]
    low, high = (thresholds[0], thresholds[-1]) if len(thresholds) else (0.0, 1.0)
    near = low + rng.random(MANY) * min(high - low, 1e308)
    anywhere = rng.normal(size=3000) * 10.0 ** rng.uniform(-320, 307, 3000)
    return np.concatenate((*around, near, anywhere, [np.inf, -np.inf, 0.0, -0.0, 1.79e308, -1.79e308, 5e-324]))


NASTY = ["none", "one", "neighbours", "denormals", "all of the range", "two ends", "clustered", "uniform", "wide"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", NASTY)
def test_steps_are_found_as_by_binary_search(kind):
    thresholds = nasty_thresholds(kind)
    with np.errstate(all="ignore"):
        x = probes(thresholds)
    values = np.arange(len(thresholds) + 1) / 7
    expected = values[np.searchsorted(thresholds, x, side="right")]
    assert len(x) >= MANY
    assert_array_equal(isotonic.apply_steps(x, thresholds, values), expected)
    assert_array_equal(isotonic.apply_steps(x[:1000], thresholds, values), expected[:1000])
    x.flags.writeable = False
    assert_array_equal(isotonic.apply_steps(x[::2], thresholds, values), expected[::2])


def test_steps_on_two_threads():
    rng = np.random.default_rng(7)
    x, thresholds = rng.random(SPREAD + 77), np.sort(rng.random(900))
    values = rng.random(901)
    assert_array_equal(isotonic.apply_steps(x, thresholds, values), values[np.searchsorted(thresholds, x, "right")])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [kind for kind in NASTY if kind != "none"])
def test_lines_are_exact_at_knots_and_rise(kind):
    knots = nasty_thresholds(kind)
    with np.errstate(all="ignore"):
        x = np.sort(probes(knots))
    values = np.sort(np.random.default_rng(8).random(len(knots)))
    result = isotonic.apply_lines(x, knots, values)
    assert np.all(np.diff(result) >= 0)
    assert_array_equal(isotonic.apply_lines(knots, knots, values), values)
    assert np.all(result[x <= knots[0]] == values[0])
    assert np.all(result[x >= knots[-1]] == values[-1])
    assert_array_equal(isotonic.apply_lines(x[:500], knots, values), result[:500])


@settings(max_examples=200, deadline=None)
@given(FINITE, FINITE, st.floats(0, 1), st.floats(0, 1), FINITE)
def test_a_line_is_a_line(a, b, low, high, x):
    a, b = sorted((a + 0.0, b + 0.0))
    if a == b:
        return
    share = (min(max(Fraction(x), Fraction(a)), Fraction(b)) - Fraction(a)) / (Fraction(b) - Fraction(a))
    exact = float(Fraction(low) + share * (Fraction(high) - Fraction(low)))
    found = isotonic.apply_lines(np.array([x]), np.array([a, b]), np.array([low, high]))[0]
    assert found == pytest.approx(exact, abs=4e-16)


@settings(max_examples=300, deadline=None)
@given(FINITE, FINITE)
def test_switch_points_lie_half_way_and_never_at_the_lower_score(a, b):
    a, b = sorted((a + 0.0, b + 0.0))
    if a == b:
        return
    t = isotonic.switch_points(np.array([a]), np.array([b]))[0]
    assert a < t <= b
    unit = max(math.ulp(a), math.ulp(b))
    assert abs(Fraction(t) - (Fraction(a) + Fraction(b)) / 2) <= unit


def test_switch_points_of_neighbours_are_the_upper_score():
    a = np.array([0.1, 1.0, 0.0, -5e-324, -1.0])
    b = np.nextafter(a, np.inf)
    assert_array_equal(isotonic.switch_points(a, b), b)


@settings(max_examples=200, deadline=None)
@given(COUNTS, st.lists(st.integers(0, 14), max_size=6), st.integers(0, 6))
def test_any_partition_of_the_scores_gives_the_same_steps(pairs, cuts, fold):
    positives, negatives = np.array(pairs, dtype=float).T.copy()
    weights, scores = positives + negatives, np.linspace(-1, 1, len(pairs))
    ends = sorted({0, len(pairs), *(cut for cut in cuts if cut < len(pairs))})
    parts = [isotonic.pool_part(scores[a:b], positives[a:b], weights[a:b]) for a, b in pairwise(ends)]
    whole = isotonic.pool_part(scores, positives, weights)
    nested = [isotonic.pool_parts(some) for some in (parts[:fold], parts[fold:]) if some]
    for found in (isotonic.pool_parts(parts), isotonic.pool_parts(nested)):
        for name in whole._fields:
            assert_array_equal(getattr(found, name), getattr(whole, name))
    blocks = isotonic.pool_adjacent(positives, weights)
    assert_array_equal(whole.positives / whole.weights, blocks.values)


def test_a_large_fit_in_parts():
    rng = np.random.default_rng(0)
    n, parts = 200_000, 7
    scores = np.sort(rng.random(n))
    positives, weights = (rng.random(n) < scores).astype(float), np.ones(n)
    ends = np.sort(rng.choice(n, parts - 1, replace=False))
    pieces = zip(*(np.split(column, ends) for column in (scores, positives, weights)))
    found = isotonic.pool_parts([isotonic.pool_part(*piece) for piece in pieces])
    whole = isotonic.pool_adjacent(positives, weights)
    assert_array_equal(found.positives / found.weights, whole.values)
    assert_array_equal(found.lowest, scores[whole.starts])
    assert_array_equal(found.highest, scores[whole.ends])


@pytest.mark.parametrize("n", [5, MANY + 1, SPREAD + 1])
@pytest.mark.parametrize("kind", ["none", "one", "random", "all", "uneven", "tiny"])
def test_places_are_those_of_a_binary_search(n, kind):
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    if kind == "uneven":  # nearly all in one cell, and clusters within it
        x = np.where(rng.random(n) < 0.5, x, 3 + 1e-9 * x)
        x[0] = 1e12
    if kind == "tiny":  # so near to each other that cells per unit overflow
        x = rng.permutation(n) * 5e-324
    thresholds = {"none": x[:0], "one": x[:1], "random": np.sort(x[: n // 2])}.get(kind, np.sort(x))
    count = lookup.counter(thresholds, n)
    assert_array_equal(count(x), np.searchsorted(thresholds, x, side="right"))
    beyond = np.array([-1e300, 1e300, *thresholds[:1], *thresholds[-1:]])
    assert_array_equal(count(beyond), np.searchsorted(thresholds, beyond, side="right"))
