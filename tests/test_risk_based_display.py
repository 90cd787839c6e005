"""The display of risk-based calibration: what it draws, not how it looks."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest

from calibrant import RiskBasedDisplay
from calibrant.errors import InputError, MissingDependencyError, NotFittedError
from calibrant.generative import GaussianNaiveBayes, RiskBasedCalibration
from generative_cases import rows

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture
def model():
    return RiskBasedCalibration(GaussianNaiveBayes(), max_iter=10).fit(*rows(False))


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def curves(axes):
    return {line.get_label(): line for line in axes.lines}


def test_three_panels_show_the_history(model):
    display = RiskBasedDisplay.from_estimator(model)
    for axes, name in zip(display.axes_, ("error", "soft_error", "log_loss"), strict=True):
        drawn = curves(axes)["Risk-based calibration"].get_ydata()
        np.testing.assert_array_equal(drawn, getattr(model.history_, name))
        assert curves(axes)["Restored iterate"].get_xdata() == [model.best_iter_]
    assert display.reach is None


def test_a_baseline_of_each_kind(model):
    slow = RiskBasedCalibration(GaussianNaiveBayes(), learning_rate=0.01, max_iter=10).fit(*rows(False)).history_
    for baseline in (slow, slow.error, float(slow.error[-1])):
        display = RiskBasedDisplay(model.history_, baseline=baseline, baseline_name="Slow").plot()
        assert "Slow" in curves(display.axes_[0])
        assert display.reach == int(np.argmax(model.history_.error <= slow.error[-1]))
        assert "reach" in display.axes_[0].get_title(loc="right")
    assert "Slow" in curves(RiskBasedDisplay(model.history_, baseline=slow, baseline_name="Slow").plot().axes_[2])
    assert "never" in RiskBasedDisplay(model.history_, baseline=0.0).plot().axes_[0].get_title(loc="right")


def test_held_out_rows_are_drawn():
    model = RiskBasedCalibration(GaussianNaiveBayes(), max_iter=10, early_stopping=True).fit(*rows(False))
    lines = curves(RiskBasedDisplay.from_estimator(model).axes_[2])
    np.testing.assert_array_equal(lines["Held-out rows"].get_ydata(), model.history_.validation_log_loss)


def test_other_rows_and_predictions(model):
    X, y = rows(False, seed=9)
    by_rows = RiskBasedDisplay.from_estimator(model, X, y).history
    by_stages = RiskBasedDisplay.from_predictions(y, model.staged_predict_proba(X)).history
    np.testing.assert_array_equal(by_rows.error, by_stages.error)
    assert by_rows.error[0] == pytest.approx((next(model.staged_predict_proba(X)).argmax(axis=1) != y).mean())


def test_given_axes(model):
    _, one = plt.subplots()
    assert len(RiskBasedDisplay.from_estimator(model, ax=one).axes_) == 3
    _, three = plt.subplots(3, 1)
    assert list(RiskBasedDisplay.from_estimator(model, ax=three).axes_) == list(three)
    with pytest.raises(InputError, match="one axes, or three"):
        RiskBasedDisplay.from_estimator(model, ax=three[:2])


def test_what_is_missing_is_said(model, monkeypatch):
    with pytest.raises(NotFittedError, match="history_"):
        RiskBasedDisplay.from_estimator(GaussianNaiveBayes())
    with pytest.raises(InputError, match="go together"):
        RiskBasedDisplay.from_estimator(model, [[0.0]])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[plot\]"):
        RiskBasedDisplay(model.history_).plot()
