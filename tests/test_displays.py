"""The reliability diagram: its records, what is on the axes, and colours that hold on any background."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as ca

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def sample(n=800, seed=0, centre=0.0):
    rng = np.random.default_rng(seed)
    z = centre + 1.5 * rng.normal(size=n)
    return (rng.uniform(size=n) < expit(z)).astype(int), expit(z)


def draw(*given, **options):
    return ca.ReliabilityDisplay.from_predictions(*given, n_resamples=40, **options)


def test_records_are_what_is_drawn():
    y, p = sample()
    shown = draw(y, p, name="model")
    np.testing.assert_array_equal(shown.line_.get_xdata(), shown.prob_pred)
    np.testing.assert_array_equal(shown.line_.get_ydata(), shown.prob_true)
    assert shown.calibration_error == ca.calibration_error(y, p)
    assert shown.discrimination == ca.estimate(ca.roc_auc, y, p)
    assert shown.counts.weights.sum() == len(y)
    assert shown.figure_ is shown.ax_.figure
    assert shown.histogram_.get_xlabel() == "Predicted probability (event: 1)"


def test_discrimination_stands_beside_calibration():
    y, p = sample()
    assert "AUC" in draw(y, p).legend
    rng = np.random.default_rng(0)
    useless = draw(rng.integers(0, 2, 400), rng.normal(0.5, 0.01, 400))
    assert "may rank by chance" in useless.legend


@pytest.mark.parametrize("strategy", ["isotonic", "uniform", "quantile"])
@pytest.mark.parametrize("scale", ["probability", "log-odds"])
@pytest.mark.parametrize("band", ["confidence", "consistency"])
def test_every_kind_is_drawn_and_saved(strategy, scale, band, tmp_path):
    y, p = sample(centre=-3.0)
    shown = draw(y, p, strategy=strategy, scale=scale, band=band)
    shown.figure_.savefig(tmp_path / "diagram.png")
    assert shown.ax_.get_xscale() == {"probability": "linear", "log-odds": "logit"}[scale]
    low, high = shown.ax_.get_xlim()
    assert (low, high) == shown.ax_.get_ylim() == shown.histogram_.get_xlim()


def test_several_models_differ_by_colour_and_dash():
    first = draw(*sample(), name="a")
    others = [draw(*sample(seed=k), name=str(k), ax=first.ax_) for k in (1, 2)]
    lines = [shown.line_ for shown in (first, *others)]
    assert len({line.get_color() for line in lines}) == 3
    assert len({str(line.get_linestyle()) for line in lines}) == 3
    assert len([line for line in first.ax_.get_lines() if line.get_label() == "Calibrated"]) == 1
    assert len(first.ax_.child_axes) == 1
    assert len(first.ax_.get_legend().get_texts()) == 4


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lines_are_readable_on_the_background(style):
    with plt.style.context(style):
        first = draw(*sample())
        lines = [first.line_, *(draw(*sample(seed=k), ax=first.ax_).line_ for k in range(1, 5))]
        ground = luminance(first.ax_.get_facecolor())
    for line in lines:
        bright, dim = sorted((luminance(line.get_color()), ground), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3, line.get_color()


def test_as_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(rng.uniform(size=600) < expit(X.sum(axis=1)), "yes", "no")
    model = LogisticRegression().fit(X, y)
    _, ax = plt.subplots()
    shown = ca.ReliabilityDisplay.from_estimator(model, X, y, n_bins=5, strategy="uniform", ax=ax, n_resamples=20)
    assert shown.ax_ is ax
    assert shown.name == "LogisticRegression"
    assert shown.event == "yes"
    other = ca.ReliabilityDisplay.from_estimator(
        GaussianNB().fit(X, y), X, y, pos_label="no", n_resamples=20, ref_line=False
    )
    assert other.event == "no"
    assert "Calibrated" not in [line.get_label() for line in other.ax_.get_lines()]
    red = draw(*sample(), color="red", linewidth=3)
    assert red.line_.get_color() == "red"
    again = red.plot(name="later", histogram=False)
    assert again is red
    assert again.histogram_ is None
    assert again.legend.startswith("later")


def test_refusals():
    y, p = sample(60)
    with pytest.raises(ca.errors.InputError, match="scale must be one of"):
        draw(y, p, scale="logit")
    with pytest.raises(ca.errors.InputError, match="only the negative class"):
        draw(np.zeros(60), p)
    with pytest.raises(ca.errors.InputError, match="with predict_proba"):
        ca.ReliabilityDisplay.from_estimator(object(), p, y)
    three = GaussianNB().fit(np.arange(9.0)[:, None], np.arange(9) % 3)
    with pytest.raises(ca.errors.InputError, match="Draw one class against the rest"):
        ca.ReliabilityDisplay.from_estimator(three, np.arange(9.0)[:, None], np.arange(9) % 3)
