"""Recursive partitioning: the published algorithm word for word, isotonic regression, and what the tree promises."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels.partition import Rows, exact_weights, grow
from calibrant._kernels.partition_binary import grow_binary
from calibrant.calibrators._recursive_cells import simplex_grid
from calibrant.errors import FitWarning, InputError
from calibrant.maps import AverageMap, CorrectedMap, Map, TreeMap
from catalogue import class_rows


def problem(k, n, seed, *, ties=False, weights=False):
    """Scores, labels that follow them loosely, weights."""
    rng = np.random.default_rng(seed)
    p = np.floor(rng.dirichlet(np.ones(k), n) * 2**20) / 2**20
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)  # rows that sum to 1 exactly are used as they are
    if ties:
        counts = rng.multinomial(6, np.full(k, 1 / k), n)
        p = counts / 6
    y = (rng.random((n, 1)) > (0.6 * p + 0.4 / k).cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return p, y, rng.integers(1, 4, n).astype(float) if weights else np.ones(n)


# ---------------------------------------------------------------- the algorithm, word for word, in fractions


class Plain:
    """The greedy algorithm as it is written, with exact fractions and no lazy step."""

    def __init__(self, p, y, w, points, cycles=False):
        self.p, self.points, self.cycles = p, points, cycles
        self.weight = [
            [Fraction(int(w[t])) if y[t] == k else Fraction(0) for k in range(p.shape[1])] for t in range(len(y))
        ]
        self.k = p.shape[1]
        self.leaves = [(list(range(len(y))), list(range(len(points))))]
        self.recorded, self.gains = [], []
        while self.step():
            pass

    def counts(self, rows):
        return [sum(self.weight[t][k] for t in rows) for k in range(self.k)]

    def value(self, rows):
        counts = self.counts(rows)
        return [one / sum(counts) for one in counts]

    def region(self, scores, gamma):
        return (scores - gamma).argmax(axis=1)

    def parts(self, rows, gamma):
        where = self.region(self.p[rows], gamma)
        return [[t for t, k in zip(rows, where) if k == part] for part in range(self.k)]

    def gain(self, rows, parts):
        whole = self.value(rows)
        return sum(
            sum(self.counts(part)) * sum(abs(a - b) for a, b in zip(self.value(part), whole)) for part in parts if part
        )

    def sound(self, fitted, gammas):
        for gamma in gammas:
            where = self.region(self.p, gamma)
            least = {}
            for i, j in itertools.permutations(range(self.k), 2):
                gaps = [fitted[t][i] - fitted[t][j] for t in range(len(where)) if where[t] == i]
                least[i, j] = min(gaps) if gaps else None
            longest = self.k if self.cycles else 2
            for length in range(2, longest + 1):
                for cycle in itertools.permutations(range(self.k), length):
                    edges = [least[a, b] for a, b in zip(cycle, (*cycle[1:], cycle[0]))]
                    if None not in edges and sum(edges) < 0:
                        return False
        return True

    def step(self):
        options = []
        for place, (rows, inside) in enumerate(self.leaves):
            for c in inside:
                parts = self.parts(rows, self.points[c])
                gain = self.gain(rows, parts)
                if sum(map(bool, parts)) > 1 and gain > 0:
                    options.append((-gain, place, c, parts))
        options.sort(key=lambda one: one[:3])
        for gain, place, c, parts in options:
            after = [rows for other, (rows, _) in enumerate(self.leaves) if other != place] + [
                part for part in parts if part
            ]
            fitted = {t: self.value(rows) for rows in after for t in rows}
            if self.sound(fitted, [*self.recorded, self.points[c]]):
                self.split(place, c, parts, -gain)
                return True
        return False

    def split(self, place, c, parts, gain):
        _, inside = self.leaves[place]
        where = self.region(self.points[inside], self.points[c])
        made = [(part, [one for one, at in zip(inside, where) if at == k]) for k, part in enumerate(parts) if part]
        self.leaves[place : place + 1] = made
        self.recorded.append(self.points[c])
        self.gains.append(gain)


def fitted_values(path, k, p):
    recipe_map = TreeMap(tuple(range(k)), *tree_fields(path))
    return recipe_map.rows(p)


def tree_fields(path):
    from calibrant.calibrators._recursive_trees import Recipe, tree_map

    made = tree_map(path, len(path.splits), Recipe(tuple(range(path.counts.shape[1])), None, False, 0.0, None, 1))
    return made.points, made.children, made.leaves


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize(
    ("k", "n", "ties"), [(2, 12, True), (2, 15, False), (3, 14, False), (3, 18, True), (4, 14, False), (4, 16, True)]
)
def test_the_tree_is_that_of_the_algorithm_word_for_word(k, n, ties, cycles):
    deeper = 0
    for seed in range(12):
        p, y, w = problem(k, n, seed, ties=ties, weights=seed % 2 == 1)
        points = np.unique(p, axis=0) if seed % 3 else np.vstack([np.unique(p, axis=0), simplex_grid(k, 5)])
        plain = Plain(p, y, w, points, cycles)
        path = grow(Rows(p, y, w), points, cycles=cycles)
        assert len(path.splits) == len(plain.recorded)
        deeper += len(path.splits) > 1
        for split, point, gain in zip(path.splits, plain.recorded, plain.gains):
            np.testing.assert_array_equal(split.point, point)
            assert split.gain == pytest.approx(float(gain), rel=1e-12)
        expected = {t: plain.value(rows) for rows, _ in plain.leaves for t in rows}
        values = fitted_values(path, k, p)
        np.testing.assert_allclose(values, [[float(one) for one in expected[t]] for t in range(n)], rtol=1e-14)
    assert deeper >= 2


def test_two_classes_by_blocks_is_the_algorithm_word_for_word():
    for seed in range(40):
        p, y, w = problem(2, 16, seed, ties=seed % 2 == 0, weights=True)
        plain = Plain(p, y, w, np.unique(p, axis=0))
        fitted = ca.RecursivePartitioning(smoothing=0).fit(p, y, w) if 0 < y.sum() < len(y) else None
        if fitted is None:
            continue
        expected = {t: plain.value(rows) for rows, _ in plain.leaves for t in rows}
        np.testing.assert_allclose(
            fitted.predict_proba(p), [[float(v) for v in expected[t]] for t in range(len(y))], rtol=1e-14
        )


# ---------------------------------------------------------------- two classes


def pooled(scores, y, w):
    """Isotonic regression by its min-max formula, in fractions."""
    levels = np.unique(scores)
    hits = [Fraction(int((w * y)[scores == s].sum())) for s in levels]
    totals = [Fraction(int(w[scores == s].sum())) for s in levels]
    means = {(a, b): sum(hits[a : b + 1]) / sum(totals[a : b + 1]) for b in range(len(levels)) for a in range(b + 1)}
    fit = {
        s: max(min(means[a, b] for b in range(at, len(levels))) for a in range(at + 1)) for at, s in enumerate(levels)
    }
    return np.array([float(fit[s]) for s in scores])


def test_two_classes_are_isotonic_regression():
    rng = np.random.default_rng(7)
    done = 0
    while done < 500:
        n = int(rng.integers(2, 30))
        scores = rng.integers(0, rng.integers(2, 12), n) / 16 if done % 2 else rng.random(n)
        y, w = (rng.random(n) < 0.2 + 0.6 * scores).astype(int), rng.integers(1, 5, n).astype(float)
        if y.min() == y.max():
            continue
        done += 1
        fitted = ca.RecursivePartitioning(candidates="points", smoothing=0).fit(scores, y, w)
        np.testing.assert_allclose(fitted.map_(scores), pooled(scores, y, w), rtol=1e-14, atol=1e-300)


def test_two_classes_and_many_rows():
    rng = np.random.default_rng(0)
    p = rng.random(80_000)
    y = (rng.random(80_000) < p**2).astype(int)
    fitted = ca.RecursivePartitioning(smoothing=0).fit(p, y)
    steps = ca.IsotonicCalibration(interpolation="step").fit(p, y)
    np.testing.assert_allclose(fitted.map_(p), steps.map_(p), rtol=1e-14)


def test_two_classes_on_a_grid_are_isotonic_regression_of_the_cells():
    for seed in range(60):
        p, y, w = problem(2, 60, seed, weights=True)
        grid = simplex_grid(2, 9)
        fitted = ca.RecursivePartitioning(candidates=grid, smoothing=0).fit(p, y, w)
        cells = np.searchsorted(np.sort(grid[:, 1]), p[:, 1], side="left").astype(float)
        np.testing.assert_allclose(fitted.map_(p), pooled(cells, y, w), rtol=1e-14, atol=1e-300)


def test_two_classes_split_the_largest_objective_first():
    p, y, w = problem(2, 300, 3)
    path = grow_binary(*np.unique(p[:, 1], return_counts=True)[:1], y[np.argsort(p[:, 1])].astype(float), w)
    for s, split in enumerate(path.splits):
        open_ = {0} | {int(c) for one in path.splits[:s] for c in one.children}
        later = [one.gain for one in path.splits[s:] if one.node in open_]
        assert split.gain >= max(later)


# ---------------------------------------------------------------- any number of classes

coarse_scores_are_meant = pytest.mark.filterwarnings("ignore:The scores take only")

EVERY = [(3, "points", "pair"), (3, "auto", "cycle"), (4, "auto", "pair"), (5, "auto", "cycle"), (2, "auto", "pair")]


@coarse_scores_are_meant
@pytest.mark.parametrize(("k", "candidates", "criterion"), EVERY)
@pytest.mark.parametrize("seed", range(3))
def test_leaf_means_are_mean_labels_and_the_loss_never_rises(k, candidates, criterion, seed):
    p, y, w = problem(k, 150, seed, ties=seed == 2, weights=True)
    fitted = ca.RecursivePartitioning(criterion, 0, candidates).fit(p, y, w)
    values = fitted.predict_proba(p)
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-14)
    for leaf in np.unique(values, axis=0):
        inside = (values == leaf).all(axis=1)
        np.testing.assert_allclose(leaf, np.bincount(y[inside], w[inside], k) / w[inside].sum(), atol=1e-14)
    np.testing.assert_allclose((values * w[:, None]).sum(axis=0), np.bincount(y, w, k), rtol=1e-12)
    curve = fitted.curve_
    assert np.all(np.diff(curve.log_loss) <= 0)
    assert curve.n_leaves[-1] == fitted.n_leaves_ == len(fitted.leaf_values_)
    with np.errstate(divide="ignore"):
        assert curve.log_loss[-1] == pytest.approx(-(w * np.log(values[np.arange(len(y)), y])).sum() / w.sum())


def least_gaps(values, region, k):
    least = np.full((k, k), np.inf)
    for i in range(k):
        inside = values[region == i]
        if len(inside):
            least[i] = (inside[:, [i]] - inside).min(axis=0)
    np.fill_diagonal(least, 0)
    return least


@pytest.mark.parametrize(("k", "candidates", "criterion"), EVERY)
@pytest.mark.parametrize("seed", range(3))
def test_every_recorded_split_keeps_the_criterion_at_every_step(k, candidates, criterion, seed):
    p, y, _ = problem(k, 150, 10 + seed)
    fitted = ca.RecursivePartitioning(criterion, 0, candidates).fit(p, y)
    for step, made in enumerate(fitted.staged_maps()):
        values = made.rows(p)
        for gamma in fitted.splits_[:step]:
            least = least_gaps(values, (p - gamma).argmax(axis=1), k)
            assert np.all(least + least.T >= -1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_with_cycles_every_split_exists_on_the_calibrated_scores(seed):
    p, y, _ = problem(3, 60, seed)
    fitted = ca.RecursivePartitioning("cycle", 0).fit(p, y)
    values = fitted.predict_proba(p)
    for gamma in fitted.splits_:
        region = (p - gamma).argmax(axis=1)
        least = least_gaps(values, region, 3)
        potential = np.zeros(3)
        for _ in range(4):  # shortest paths from a common source: gamma'_i - gamma'_j <= least_ij
            potential = np.minimum(potential, (potential[None, :] + least).min(axis=1))
        lead = values - potential
        chosen = lead[np.arange(len(p)), region]
        assert np.all(chosen >= lead.max(axis=1) - 1e-9)


def test_pair_accepts_splits_that_do_not_survive():
    """The criterion of the experiments compares classes two by two, which is not enough for three."""
    lost = 0
    for seed in range(60):
        p, y, _ = problem(3, 30, seed)
        fitted = ca.RecursivePartitioning("pair", 0, "points").fit(p, y)
        values = fitted.predict_proba(p)
        for gamma in fitted.splits_:
            least = least_gaps(values, (p - gamma).argmax(axis=1), 3)
            lost += min(least[0, 1] + least[1, 2] + least[2, 0], least[0, 2] + least[2, 1] + least[1, 0]) < -1e-9
    assert lost > 0


def test_shifts_of_rows_and_of_everything_change_nothing():
    rng = np.random.default_rng(0)
    for seed in range(10):
        p, y, w = problem(3, 80, seed)
        p = np.round(p * 2**20) / 2**20  # so that shifted differences are exact
        base = grow(Rows(p, y, w), p)
        by_row = grow(Rows(p + rng.integers(-4, 5, (len(p), 1)), y, w), p)
        shift = rng.integers(-4, 5, 3)
        moved = grow(Rows(p + shift, y, w), p + shift)
        for other, offset in ((by_row, 0), (moved, shift)):
            assert len(other.splits) == len(base.splits)
            for a, b in zip(base.splits, other.splits):
                np.testing.assert_array_equal(a.point + offset, b.point)
            np.testing.assert_array_equal(base.counts, other.counts)


def test_most_leaves_gives_the_first_splits():
    rows = class_rows(n=400)
    whole = ca.RecursivePartitioning().fit(rows.scores, rows.y)
    for most in range(1, whole.n_leaves_ + 2):
        part = ca.RecursivePartitioning(max_leaves=most).fit(rows.scores, rows.y)
        assert part.n_leaves_ <= most
        np.testing.assert_array_equal(part.splits_, whole.splits_[: len(part.splits_)])
        assert part.n_leaves_ == whole.curve_.n_leaves[whole.curve_.n_leaves <= most].max()


def test_the_counterexample_to_a_shrinking_volume():
    """Four rows whose volume under the ROC surface rises by calibration: the paper's claim does not hold for K = 3."""
    p = np.array([[0.3, 0.2, 0.5], [0.05, 0.4, 0.55], [0.3, 0.5, 0.2], [0.45, 0.25, 0.3]])
    y = [1, 1, 0, 2]
    for criterion in ("pair", "cycle"):
        fitted = ca.RecursivePartitioning(criterion, 0, "points").fit(p, y)
        np.testing.assert_array_equal(fitted.splits_, [[0.3, 0.5, 0.2]])
        after = fitted.predict_proba(p)
        np.testing.assert_array_equal(after, [[0, 1, 0], [0, 1, 0], [0.5, 0, 0.5], [0.5, 0, 0.5]])
        assert ca.volume_under_roc_surface(y, p) == pytest.approx(0.25)
        assert ca.volume_under_roc_surface(y, after) == pytest.approx(0.5)


# ---------------------------------------------------------------- smoothing, weights, options


def test_smoothing():
    rows = class_rows(n=300)
    raw = ca.RecursivePartitioning(smoothing=0).fit(rows.scores, rows.y)
    e = 1 / 301
    mixed = ca.RecursivePartitioning().fit(rows.scores, rows.y)
    np.testing.assert_allclose(mixed.leaf_values_, (1 - e) * raw.leaf_values_ + e / 3, rtol=1e-14)
    counted = ca.RecursivePartitioning(smoothing=2.5).fit(rows.scores, rows.y)
    leaf = raw.map_.leaf_of(rows.scores)
    size = np.bincount(leaf)[:, None]
    np.testing.assert_allclose(counted.leaf_values_, (raw.leaf_values_ * size + 2.5) / (size + 7.5), rtol=1e-12)


def test_weights_that_are_no_whole_numbers_add_up_exactly():
    rng = np.random.default_rng(0)
    w = exact_weights(rng.random(1000) * 1e-3)
    sums = {float(np.sum(w[rng.permutation(1000)])) for _ in range(20)} | {sum(map(Fraction, w)).__float__()}
    assert len(sums) == 1
    np.testing.assert_array_equal(exact_weights(np.array([1.0, 2.0, 7.0])), [1, 2, 7])
    rows = class_rows(n=200)
    a = ca.RecursivePartitioning().fit(rows.scores, rows.y, rows.weight)
    b = ca.RecursivePartitioning(smoothing=0).fit(rows.scores, rows.y, rows.weight / 3)
    np.testing.assert_array_equal(a.splits_, b.splits_)


def test_corrections_compare_a_leaf_with_what_the_target_expects_there():
    rows = class_rows(n=300)
    tree = ca.RecursivePartitioning(smoothing=0).fit(rows.scores, rows.y)
    q = ca.TemperatureScaling(mix=True).fit(rows.scores, rows.y).predict_proba(rows.scores)
    leaf = tree.map_.leaf_of(rows.scores)
    factor = np.empty(q.shape)
    for one in np.unique(leaf):
        inside = leaf == one
        n, counts, expected = inside.sum(), np.bincount(rows.y[inside], minlength=3), q[inside].sum(axis=0)
        factor[inside] = (counts + 10 * expected / n) / (expected + 10 * expected / n)
    for share in (0.0, 0.3, 1.0):
        est = ca.RecursivePartitioning(toward="temperature", shrinkage=share).fit(rows.scores, rows.y)
        corrected = q * factor ** (1 - share)
        np.testing.assert_allclose(
            est.predict_proba(rows.scores), corrected / corrected.sum(axis=1, keepdims=True), rtol=1e-9
        )
        assert est.shrinkage_ == share
        assert est.choice_ is None


@pytest.mark.parametrize("toward", ["identity", "temperature", "structured"])
@pytest.mark.parametrize("k", [2, 3])
def test_cross_validation_takes_the_least_loss(toward, k):
    rows = class_rows(n=250, k=k)
    est = ca.RecursivePartitioning(toward=toward, max_leaves="cv", n_trees=2).fit(rows.scores, rows.y)
    choice = est.choice_
    assert choice.log_loss.shape == (len(choice.n_leaves), len(choice.shrinkage))
    assert est.shrinkage_ == choice.best[1]
    assert est.n_leaves_ <= choice.best[0]
    assert (
        choice.log_loss.min()
        == choice.log_loss[
            list(choice.n_leaves).index(choice.best[0]), np.argmin(np.abs(choice.shrinkage - est.shrinkage_))
        ]
    )
    again = ca.RecursivePartitioning(toward=toward, max_leaves="cv", n_trees=2).fit(rows.scores, rows.y)
    assert again.map_ == est.map_


def test_one_standard_error_shrinks_at_least_as_much():
    for seed in range(4):
        rows = class_rows(n=250, seed=seed)
        least = ca.RecursivePartitioning(toward="temperature").fit(rows.scores, rows.y)
        careful = ca.RecursivePartitioning(toward="temperature", shrinkage="cv-1se").fit(rows.scores, rows.y)
        choice = careful.choice_
        np.testing.assert_array_equal(choice.log_loss, least.choice_.log_loss)
        assert careful.shrinkage_ >= least.shrinkage_
        at = int(np.argmin(np.abs(choice.shrinkage - careful.shrinkage_)))
        assert choice.log_loss[0, at] <= choice.log_loss.min() + choice.standard_error[0, at]


def test_averages_are_means_of_trees():
    rows = class_rows(n=200)
    est = ca.RecursivePartitioning(n_trees=4).fit(rows.scores, rows.y)
    assert isinstance(est.map_, AverageMap)
    np.testing.assert_allclose(
        est.predict_proba(rows.scores), np.mean([one(rows.scores) for one in est.map_.maps], axis=0)
    )
    assert len({one.leaves.tobytes() for one in est.map_.maps}) == 4


def test_automatic_candidates():
    rows = class_rows(n=200)
    assert ca.RecursivePartitioning().fit(rows.scores, rows.y).n_candidates_ == 200 + 51 * 52 // 2
    five = class_rows(n=200, k=5)
    assert ca.RecursivePartitioning().fit(five.scores, five.y).n_candidates_ == 200 + 800
    assert ca.RecursivePartitioning().fit(rows.scores[:, 0], rows.y > 0).n_candidates_ == 200


def test_thinned_candidates_say_to_how_many(monkeypatch):
    monkeypatch.setattr("calibrant.calibrators._recursive_cells.WORK", 1e6)
    rows = class_rows(n=700)
    with pytest.warns(FitWarning, match="of 700 distinct rows, 500 are tried"):
        assert ca.RecursivePartitioning().fit(rows.scores, rows.y).n_candidates_ == 500 + 1326


def test_grid():
    grid = simplex_grid(4, 6)
    assert len(grid) == 84 == len(np.unique(grid, axis=0))
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    np.testing.assert_array_equal(grid[:2], [[0, 0, 0, 1], [0, 0, 1 / 6, 5 / 6]])


def test_bad_candidates_and_too_many_classes():
    rows = class_rows(n=50)
    for bad in ([[1, 2]], [1, 2, 3], [[0.1, np.nan, 0.2]], np.zeros((2, 2, 3))):
        with pytest.raises(InputError, match="candidates must be finite split points of shape"):
            ca.RecursivePartitioning(candidates=bad).fit(rows.scores, rows.y)
    with pytest.raises(InputError, match="63 columns, but RecursivePartitioning takes 62"):
        ca.RecursivePartitioning().fit(np.full((4, 63), 1 / 63), [0, 1, 2, 3])


# ---------------------------------------------------------------- the map


def test_a_tree_walks_as_it_is_told():
    tree = TreeMap(
        ("a", "b", "c"), [0.3, 0.3, 0.4, 0.5, 0.3, 0.2], [1, 2, 3, 4, -1, 5], np.eye(3)[[0, 1, 2, 0]] * 0.7 + 0.1
    )
    rows = [[0.2, 0.6, 0.2], [0.9, 0.05, 0.05], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2], [0.4, 0.35, 0.25]]
    assert tree.leaf_of(np.array(rows)).tolist() == [0, 2, 1, 2, 3]  # the last one finds no child of its class
    same = Map.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert same == tree
    alone = TreeMap((0, 1, 2), [], [], [[0.2, 0.3, 0.5]])
    np.testing.assert_array_equal(alone([[1.0, 0, 0], [0, 0, 1]]), [[0.2, 0.3, 0.5]] * 2)
    assert Map.from_dict(json.loads(json.dumps(alone.to_dict()))) == alone


@pytest.mark.parametrize(
    ("points", "children", "leaves"),
    [
        ([0.5, 0.5], [1], [[0.5, 0.5]]),
        ([0.5, 0.5], [1, 1], [[0.5, 0.5]]),
        ([0.5, 0.5], [0, 1], [[0.5, 0.5]]),
        ([0.5, 0.5], [1, 2], [[0.5, 0.6], [1, 0]]),
        ([0.5, 0.5], [1, 2], [[0.5, 0.5, 0], [1, 0, 0]]),
        ([0.5, 0.5, 0.4, 0.6], [2, 3, 1, 4], [[0.5, 0.5]] * 3),
        ([], [], [[0.5, 0.5]] * 2),
    ],
)
def test_damaged_trees_are_refused(points, children, leaves):
    with pytest.raises(InputError):
        TreeMap((0, 1), points, children, leaves)


def test_two_classes_as_steps():
    p, y, _ = problem(2, 200, 1)
    made = ca.RecursivePartitioning().fit(p, y).map_
    x = np.unique(np.concatenate([p[:, 1], np.nextafter(p[:, 1], 1), np.linspace(0, 1, 501)]))
    np.testing.assert_array_equal(made(x), made.rows(np.column_stack([1 - x, x]))[:, 1])
    assert "CASE" in made.to_sql("score")


def test_parts_must_fit_together():
    tree = TreeMap((0, 1), [], [], [[0.4, 0.6]])
    other = TreeMap((0, 2), [], [], [[0.4, 0.6]])
    with pytest.raises(InputError, match="classes of the whole"):
        AverageMap((0, 1), (tree, other))
    with pytest.raises(InputError, match="a map to correct"):
        CorrectedMap((0, 1), 0.5, (tree,))


# ---------------------------------------------------------------- use


def test_shrinkage_beats_both_the_tree_and_the_target():
    """Scores that are bent in a way a temperature cannot undo: the tree sees the bend, the target the fine order."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(6000, 3))
    truth = np.exp(np.where(z > 0, 0.2 * z, 3.0 * z))
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((6000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)

    def loss(est):
        return ca.log_loss(y[2000:], est.fit(p[:2000], y[:2000]).predict_proba(p[2000:]))

    shrunk = loss(ca.RecursivePartitioning(toward="temperature", n_trees=3))
    assert shrunk < loss(ca.RecursivePartitioning(smoothing=1.0))
    assert shrunk < loss(ca.TemperatureScaling())
    assert shrunk < ca.log_loss(y[2000:], p[2000:])


@pytest.mark.parametrize("k", [2, 3])
def test_float32_probabilities_are_read_as_the_numbers_they_are(k: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), 300).astype(np.float32)
    y = np.array([rng.choice(k, p=row / row.sum()) for row in p.astype(float)])
    maps = [ca.RecursivePartitioning(n_trees=3).fit(p.astype(kind), y).map_ for kind in (np.float32, np.float64)]
    assert maps[0] == maps[1]
