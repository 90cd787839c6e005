"""ROC geometry: the hull is isotonic regression, the surface is what rules reach, volumes against others."""

from __future__ import annotations

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import DataWarning, InputError, MissingDependencyError, NotFittedError
from calibrant.metrics import _roc_surface_points as points
from calibrant.view import LeafCurve

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def binary_sets(count, seed=3):
    """Random sets with ties and weights."""
    rng = np.random.default_rng(seed)
    while count:
        n = int(rng.integers(2, 60))
        scores = rng.integers(0, rng.integers(2, 20), n) / 20 if count % 2 else rng.random(n)
        y, w = (rng.random(n) < 0.2 + 0.6 * scores).astype(int), rng.integers(1, 4, n).astype(float)
        if y.min() < y.max():
            count -= 1
            yield scores, y, w


def upper_hull(fpr, tpr):
    """Corners of the upper hull of points from left to right, by turning."""
    kept: list[tuple[float, float]] = []
    for point in sorted(zip(fpr.tolist(), tpr.tolist())):
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            if (bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax) < -1e-12:
                break
            kept.pop()
        kept.append(point)
    return np.array(kept)


# ---------------------------------------------------------------- two classes


def test_the_convex_hull_is_that_of_the_roc_curve():
    for scores, y, w in binary_sets(300):
        curve = ca.roc_curve(y, scores, sample_weight=w)
        hull = ca.roc_convex_hull(y, scores, sample_weight=w)
        expected = upper_hull(curve.false_positive_rate, curve.true_positive_rate)
        expected = expected[expected[:, 0].argsort(kind="stable")]
        corners = np.column_stack([hull.false_positive_rate, hull.true_positive_rate])
        outer = corners if corners[0, 1] == expected[0, 1] else corners[1:]
        np.testing.assert_allclose(outer, expected, atol=1e-12)
        for threshold, fpr in zip(hull.thresholds, hull.false_positive_rate):
            assert fpr == pytest.approx(w[(scores >= threshold) & (y == 0)].sum() / w[y == 0].sum())


def test_the_roc_curve_of_the_isotonic_fit_is_the_convex_hull():
    for scores, y, w in binary_sets(500):
        fitted = ca.RecursivePartitioning(smoothing=0).fit(scores, y, w)
        after = ca.roc_curve(y, fitted.map_(scores), sample_weight=w)
        hull = ca.roc_convex_hull(y, scores, sample_weight=w)
        np.testing.assert_allclose(after.false_positive_rate, hull.false_positive_rate, atol=1e-12)
        np.testing.assert_allclose(after.true_positive_rate, hull.true_positive_rate, atol=1e-12)


def test_area_after_is_the_area_under_the_hull_before():
    for scores, y, w in binary_sets(200):
        after = ca.RecursivePartitioning(smoothing=0).fit(scores, y, w).map_(scores)
        hull = ca.volume_under_roc_surface(y, scores, sample_weight=w)
        area = ca.roc_auc(y, after, sample_weight=w)
        assert hull == pytest.approx(area, abs=1e-12)
        assert hull >= ca.roc_auc(y, scores, sample_weight=w) - 1e-12
        assert ca.volume_under_roc_surface(y, after, sample_weight=w) == pytest.approx(hull, abs=1e-12)


# ---------------------------------------------------------------- more classes


def tried(rows, k, n=60_000, seed=0):
    """Points of very many split points, near the rows and everywhere."""
    rng = np.random.default_rng(seed)
    gammas = rng.normal(size=(n, k)) * 0.7
    gammas[::2] = (
        rows.scores[rng.integers(0, len(rows.scores), (n + 1) // 2)] + rng.normal(size=((n + 1) // 2, k)) * 0.03
    )
    return {tuple(one) for one in np.round(points.points_at(rows, gammas).rates, 9)}


@pytest.mark.parametrize(("k", "n"), [(2, 9), (3, 9), (3, 25), (4, 7)])
@pytest.mark.parametrize("ties", [False, True])
def test_all_points_of_the_surface_are_listed_and_no_others(k, n, ties):
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.ones(k), n) if not ties else rng.multinomial(5, np.full(k, 1 / k), n) / 5
    y = np.arange(n) % k
    surface = ca.roc_surface(y, p)
    assert surface.exact
    listed = {tuple(one) for one in np.round(surface.rates, 9)}
    assert tried(points.distinct_rows(p, y, np.ones(n)), k) <= listed
    again = ca.roc_surface(y, p, surface.gammas)
    np.testing.assert_allclose(again.rates, surface.rates, atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_cells_and_vertices_give_the_same_points(ties):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(3), 9) if not ties else rng.multinomial(6, np.full(3, 1 / 3), 9) / 6
        rows = points.distinct_rows(p, np.arange(9) % 3, rng.integers(1, 4, 9).astype(float))
        a, b = points._all_cells(rows), points._all_vertices(rows)
        np.testing.assert_allclose(a.rates, b.rates, atol=1e-12)


def test_a_tree_of_classes_is_spanned_by_every_code():
    trees = {
        frozenset(frozenset(edge) for edge in points._tree_edges(code, 4))
        for code in itertools.product(range(4), repeat=2)
    }
    assert len(trees) == 16
    assert all(len(tree) == 3 for tree in trees)


def test_chance_and_perfection():
    for k, chance in ((2, 1 / 2), (3, 1 / 6), (4, 1 / 24)):
        y = np.arange(12) % k
        assert ca.volume_under_roc_surface(y, np.full((12, k), 1 / k)) == pytest.approx(chance)
        assert ca.volume_under_roc_surface(y, np.eye(k)[y]) == pytest.approx(1)


def test_the_volume_does_not_see_shifts_nor_repeats():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 40), np.arange(40) % 3
    base = ca.volume_under_roc_surface(y, p)
    w = rng.integers(1, 4, 40)
    assert ca.volume_under_roc_surface(y, 5 * p + [0, 3, -2]) == pytest.approx(base)
    repeated = ca.volume_under_roc_surface(np.repeat(y, w), np.repeat(p, w, axis=0))
    assert ca.volume_under_roc_surface(y, p, sample_weight=w) == pytest.approx(repeated)
    order = [2, 0, 1]
    assert ca.volume_under_roc_surface(np.argsort(order)[y], p[:, order]) == pytest.approx(base)


def test_the_counterexample_of_four_rows():
    """Golden: computed once by hand in exact fractions; calibration doubles the volume."""
    p = np.array([[0.3, 0.2, 0.5], [0.05, 0.4, 0.55], [0.3, 0.5, 0.2], [0.45, 0.25, 0.3]])
    assert ca.volume_under_roc_surface([1, 1, 0, 2], p) == pytest.approx(0.25, abs=1e-12)
    after = np.array([[0, 1, 0], [0, 1, 0], [0.5, 0, 0.5], [0.5, 0, 0.5]])
    assert ca.volume_under_roc_surface([1, 1, 0, 2], after) == pytest.approx(0.5, abs=1e-12)


def test_a_sample_is_a_lower_bound_and_says_so(monkeypatch):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(120, 3))
    p, y = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), (z + rng.normal(size=z.shape)).argmax(axis=1)
    exact = ca.volume_under_roc_surface(y, p)
    monkeypatch.setattr(points, "MOST_CELLS", 1000)
    with pytest.warns(DataWarning, match="lower bound"):
        lower = ca.volume_under_roc_surface(y, p)
    assert exact - 0.02 < lower <= exact + 1e-12
    assert not ca.roc_surface(y, p).exact


def test_what_cannot_be_measured():
    p = np.full((6, 5), 0.2)
    with pytest.raises(InputError, match="at most 4 classes, but there are 5"):
        ca.volume_under_roc_surface([0, 1, 2, 3, 4, 0], p)
    with pytest.raises(InputError, match="with gammas"):
        ca.roc_surface([0, 1, 2, 3, 4, 0], p)
    assert ca.roc_surface([0, 1, 2, 3, 4, 0], p, np.zeros((2, 5))).rates.shape == (2, 5)
    with pytest.raises(InputError, match="no row of class 2"):
        ca.volume_under_roc_surface([0, 1, 0], np.full((3, 3), 1 / 3))
    with pytest.raises(InputError, match="gammas must be finite and of shape"):
        ca.roc_surface([0, 1, 2], np.eye(3), [[1, 2]])
    with pytest.raises(InputError, match="needs rows of both classes"):
        ca.roc_convex_hull([1, 1], [0.2, 0.3], pos_label=1)


# ---------------------------------------------------------------- pictures


@pytest.fixture
def three():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 150)
    return p, (rng.random((150, 1)) > p.cumsum(axis=1)).sum(axis=1)


def test_the_picture_is_the_map(three):
    p, y = three
    fitted = ca.RecursivePartitioning().fit(p, y)
    display = ca.SimplexDisplay.from_estimator(fitted, p, y)
    image = display.picture(60)
    assert image.shape == (52, 60, 4)
    assert image[-1, 0, 3] == 0 == image[-1, -1, 3]
    assert image[0, 30, 3] == 1
    colours = np.unique(np.round(image[image[..., 3] == 1][:, :3], 6), axis=0)
    assert fitted.n_leaves_ <= len(colours) <= 2 * fitted.n_leaves_  # leaves, and their dark edges
    assert [text.get_text() for text in display.ax_.texts] == ["class 0", "class 1", "class 2"]
    assert sum(len(dots.get_offsets()) for dots in display.ax_.collections) == 150


def test_the_surfaces_are_drawn_with_their_volumes(three):
    p, y = three
    after = ca.RecursivePartitioning().fit(p, y).predict_proba(p)
    display = ca.RocSurfaceDisplay.from_predictions(y, {"before": p, "after": after})
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    expected = [
        f"{name}: volume {ca.volume_under_roc_surface(y, q):.3f}" for name, q in (("before", p), ("after", after))
    ]
    assert texts == expected
    facets = display.surfaces["after"].upper_facets()
    assert facets.shape[1:] == (3, 3)


def test_loss_and_volume_by_leaves(three):
    p, y = three
    fitted = ca.RecursivePartitioning(smoothing=1.0).fit(p[:100], y[:100])
    rows = {"calibration rows": (p[:100], y[:100]), "others": (p[100:], y[100:])}
    display = ca.PartitionCurveDisplay.from_estimator(fitted, rows)
    np.testing.assert_array_equal(display.n_leaves, fitted.curve_.n_leaves)
    last = display.curves["others"].log_loss[-1]
    assert last == pytest.approx(ca.log_loss(y[100:], fitted.predict_proba(p[100:])))
    assert display.curves["others"].volume[0] == pytest.approx(1 / 6)
    assert display.curves["others"].log_loss_before == pytest.approx(ca.log_loss(y[100:], p[100:]))
    assert display.best("others") in fitted.curve_.n_leaves
    assert len(display.axes_) == 2
    assert len(ca.PartitionCurveDisplay.from_estimator(fitted, rows, volume=False).axes_) == 1


def test_pictures_that_cannot_be_drawn(three, monkeypatch):
    p, y = three
    with pytest.raises(NotFittedError, match="call fit"):
        ca.SimplexDisplay.from_estimator(ca.RecursivePartitioning())
    with pytest.raises(InputError, match="three classes, but this one has 2"):
        ca.SimplexDisplay(ca.RecursivePartitioning().fit(p[:, 0], y > 0).map_)
    with pytest.raises(InputError, match="go together"):
        ca.SimplexDisplay(ca.RecursivePartitioning().fit(p, y).map_, p)
    with pytest.raises(InputError, match="'a' has 2"):
        ca.RocSurfaceDisplay({"a": ca.roc_surface(y > 0, p[:, 0])})
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = ca.PartitionCurveDisplay([1], {"a": LeafCurve(np.array([1.0]), None, 1.0, None)})
    with pytest.raises(MissingDependencyError, match=r"calibrant\[plot\]"):
        display.plot()
