"""Pictures of the operating point: what is drawn are the numbers of the library."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import InputError
from streams import batch

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

COSTS = {"false_positive": 1, "false_negative": 8}
KINDS = ("cost", "roc", "precision-recall", "net-benefit")


@pytest.fixture(scope="module")
def table():
    return batch(np.random.default_rng(0), 20_000)


@pytest.fixture(autouse=True)
def _closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def mark_of(display):
    line = next(line for line in display.ax_.get_lines() if line.get_marker() == "D")
    return float(line.get_xdata()[0]), float(line.get_ydata()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_point_is_the_chosen_one_and_on_the_curve(table, kind):
    display = ca.ThresholdDisplay.from_predictions(table, kind=kind, name="model", **COSTS)
    point = ca.choose_threshold(table, **COSTS)
    x, y = mark_of(display)
    rates = {name: rate.value for name, rate in point.rates.items()}
    want = {
        "cost": (point.threshold, point.value),
        "roc": (rates["false_positive_rate"], rates["recall"]),
        "precision-recall": (rates["recall"], rates["precision"]),
        "net-benefit": (point.threshold, ca.net_benefit(table, thresholds=point.threshold)),
    }[kind]
    assert (x, y) == pytest.approx(want)
    curve = np.column_stack([display.line_.get_xdata(), display.line_.get_ydata()])
    assert np.abs(curve - (x, y)).sum(axis=1).min() < 0.01
    assert len(curve) < 5000
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "model" in texts
    assert any(text.startswith("Chosen: act from") for text in texts)


def test_cost_curve_holds_up_to_each_threshold():
    display = ca.ThresholdDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.6], **COSTS)
    x, y = np.asarray(display.line_.get_xdata()), np.asarray(display.line_.get_ydata())
    for at, want in ((0.1, 2 / 4), (0.3, 1 / 4), (0.5, 9 / 4), (0.7, 8 / 4), (0.95, 16 / 4)):
        assert y[np.searchsorted(x, at)] == pytest.approx(want)


def test_without_costs_and_without_a_goal(table):
    assert ca.ThresholdDisplay.from_predictions(table).point is None
    limited = ca.ThresholdDisplay.from_predictions(table, at_most={"alert_rate": 0.1})
    assert limited.kind == "roc"
    assert limited.point.rates["alert_rate"].value <= 0.1
    with pytest.raises(InputError, match="needs costs"):
        ca.ThresholdDisplay.from_predictions(table, kind="cost")
    with pytest.raises(InputError, match="kind must be"):
        ca.ThresholdDisplay.from_predictions(table, kind="lift")


def test_never_acting_can_be_drawn(table):
    for kind in KINDS:
        display = ca.ThresholdDisplay.from_predictions(
            table, kind=kind, at_most={"alerts": 0}, objective="recall", **COSTS
        )
        assert not display.point.feasible


def test_from_an_estimator():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    display = ca.ThresholdDisplay.from_estimator(model, X, y, kind="roc")
    assert display.name == "LogisticRegression"
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert display.plot(ax).ax_ is ax
