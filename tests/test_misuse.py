"""Misuse is named, with the next step; ordinary scores give no warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import DataWarning
from catalogue import BINARY, Binary


def rows(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident probabilities and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return 1 / (1 + np.exp(-2 * z)), (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


@pytest.mark.parametrize(
    "calibrator",
    [ca.AffineLogit(), ca.IsotonicCalibration(), ca.VennAbers(), ca.SplineCalibration(), ca.AutoCalibrator()],
)
def test_ordinary_scores_give_no_warning(calibrator: ca.AffineLogit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrator.fit(*rows())


def test_a_flipped_label_is_named() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="label may be flipped"):
        ca.AffineLogit().fit(p, 1 - y)


def test_training_scores_are_suspected() -> None:
    p, y = rows()
    with pytest.warns(DataWarning, match="trained on these rows"):
        ca.VennAbers().fit(np.where(y == 1, 0.6, 0.1) + 0.3 * p, y)


def test_top_label_confidence_is_recognised() -> None:
    p, y = rows()
    confidence, right = np.maximum(p, 1 - p), ((p > 0.5) == y).astype(int)
    with pytest.warns(DataWarning, match="confidence of the most likely class"):
        ca.AffineLogit().fit(confidence, right)


def scores_for(case: Binary, p: np.ndarray) -> np.ndarray:
    """The probabilities, or their log-odds for a method that reads those."""
    return np.log(p / (1 - p)) if case.reads == "logit" else p


def said(fit: Any) -> list[str]:
    """The texts of all warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("n", [1500, 30_000], ids=["as they are", "after a sample"])
@pytest.mark.parametrize("case", BINARY, ids=lambda case: case.name)
def test_every_method_names_rounded_clipped_and_decided_scores(case: Binary, n: int) -> None:
    p, y = rows(n)
    assert not any("share the" in text or "values" in text for text in said(lambda: case.make().fit(p, y)))
    grid = np.round(p, 1) if case.reads != "logit" else np.round(np.log(p / (1 - p)))[:, None] / 2
    values = len(np.unique(grid))
    rounded = said(lambda: case.make().fit(grid, y))
    assert any(f"take only {values} different values in {n:,} rows" in text for text in rounded)
    clipped = np.minimum(scores_for(case, p), scores_for(case, np.array([0.8]))[0])
    pile, held = np.mean(clipped == clipped.max()), np.mean(clipped[y == 0] == clipped.max())
    found = [text for text in said(lambda: case.make().fit(clipped, y)) if "share the highest score" in text]
    assert any(f"{pile:.0%} of the rows" in text and f"{held:.0%} of the negatives" in text for text in found)
    decided = (p > 0.5).astype(float)
    assert any("look like decisions" in text for text in said(lambda: case.make().fit(decided, y)))


def test_what_is_said_of_a_sample_is_exact_for_all_rows() -> None:
    """The end of a pile that the sample cannot count: the numbers are those of a table sorted in full."""
    p, y = rows(50_000)
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    p = np.maximum(p, np.quantile(p, 0.1234))
    low = p == p.min()
    share, held = weights[low].sum() / weights.sum(), weights[low & (y == 1)].sum() / weights[y == 1].sum()
    found = said(lambda: ca.AffineLogit().fit(p, y, weights))
    assert found == said(lambda: ca.IsotonicCalibration().fit(p, y, weights))
    assert f"{share:.0%} of the rows share the lowest score" in found[0]
    assert f"{held:.0%} of the positives" in found[0]


def test_honest_discrete_scores_are_left_alone() -> None:
    """Leaves, points, counts and ends of one class are no misuse."""
    p, y = rows(20_000)
    leaves = np.array([0.0317, 0.1234, 0.2871, 0.51, 0.7713, 0.9017])[np.digitize(p, [0.1, 0.2, 0.4, 0.6, 0.8])]
    points = np.round(10 * p)
    pure = np.where(p > 0.95, 1.0, p)
    for scores, labels in ((leaves, y), (points, y), (pure, np.where(p > 0.95, 1, y))):
        assert said(lambda scores=scores, labels=labels: ca.PlattScaling().fit(scores, labels)) == []
    tenths = ca.ScoreTable.from_counts(np.arange(1, 10) / 10, np.arange(100, 1000, 100), np.arange(900, 0, -100))
    assert said(lambda: ca.AffineLogit().fit_table(tenths)) == []


def test_a_table_of_rows_is_looked_at_as_rows_are() -> None:
    p, y = rows()
    table = ca.ScoreTable.from_arrays(np.round(p, 1), y)
    with pytest.warns(DataWarning, match="take only 11 different values in 4,000 rows, all multiples of 1/10"):
        ca.AffineLogit().fit_table(table)


def test_the_other_event_is_chosen_as_the_warning_says() -> None:
    """What fit calls the event of text labels, and the way to the other one."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    labels = np.where(rng.random(400) < p, "ja", "nein")
    way = r"fit takes the greater label as the event .* fit_table\(ScoreTable.from_arrays\(scores, y, pos_label=...\)\)"
    with pytest.warns(DataWarning, match=way):
        assert ca.AffineLogit().fit(p, labels).map_.classes == ("nein", "ja")[::-1]
    found = ca.AffineLogit()
    assert said(lambda: found.fit_table(ca.ScoreTable.from_arrays(p, labels, pos_label="ja"))) == []
    assert found.map_.classes == ("nein", "ja")
    assert found.slope_ > 0


def test_a_score_without_signal_is_not_called_flipped_outright() -> None:
    p, y = rows()
    chance = np.random.default_rng(0).permutation(p)
    assert 0.48 < ca.roc_auc(y, chance) < 0.5
    with pytest.warns(DataWarning, match="near one half it may be chance"):
        ca.AffineLogit().fit(chance, y)


def test_out_of_fold_scores_are_not_suspected_of_training() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 3)) + 8 * y[:, None]
    texts = said(lambda: ca.CalibratedClassifier(LogisticRegression(), ca.AffineLogit()).fit(X, y))
    assert not any("trained on these rows" in text for text in texts)


def test_too_few_rows_for_isotonic_are_named() -> None:
    p, y = rows(300)
    with pytest.warns(DataWarning, match="300 rows; under about 1,000 it overfits"):
        ca.IsotonicCalibration().fit(p, y)


def test_logits_given_as_probabilities_are_refused_with_the_option() -> None:
    p, y = rows()
    with pytest.raises(ValueError, match="from_logits=True"):
        ca.AffineLogit().fit(np.log(p / (1 - p)), y)


def test_training_rows_of_a_frozen_model_are_recognised() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.frozen import FrozenEstimator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = (X[:, 0] + 1.5 * rng.normal(size=1200) > 0).astype(int)
    frozen = FrozenEstimator(RandomForestClassifier(50, random_state=0).fit(X[:600], y[:600]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ca.CalibratedClassifier(frozen, ca.AffineLogit()).fit(X[:600], y[:600])
    assert any("they look like its training rows" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ca.CalibratedClassifier(frozen, ca.AffineLogit()).fit(X[600:], y[600:])


@pytest.mark.parametrize("calibrator", [ca.AffineLogit, ca.PlattScaling, ca.BetaCalibration])
def test_clipped_scores_of_a_rare_event_are_named(calibrator) -> None:
    """A sample of the rows may hold no event at all."""
    rng = np.random.default_rng(0)
    z = rng.normal(-8, 1.5, 400_000)
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)
    assert 100 < y.sum() < 600
    p = np.maximum(1 / (1 + np.exp(-z)), np.quantile(1 / (1 + np.exp(-z)), 0.5))
    with pytest.warns(DataWarning, match="of the rows share the lowest score"):
        calibrator().fit(p, y)


@pytest.mark.parametrize("n", [1500, 30_000], ids=["as they are", "after a sample"])
@pytest.mark.parametrize("kind", [ca.AffineLogit, ca.TemperatureScaling, ca.SplineCalibration, ca.AutoCalibrator])
def test_probabilities_given_as_logits_are_named(kind: Any, n: int) -> None:
    p, y = rows(n)
    with pytest.warns(DataWarning, match="are read as logits: leave from_logits=True out"):
        kind(from_logits=True).fit(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(from_logits=True).fit(np.log(p / (1 - p)), y)


@pytest.mark.parametrize(
    "kind",
    [
        *(ca.TemperatureScaling, ca.VectorScaling, ca.StructuredMatrixScaling, ca.AutoCalibrator),
        lambda **given: ca.OneVsRest(ca.AffineLogit(**given)),
    ],
)
def test_rows_of_probabilities_given_as_logits_are_named(kind: Any) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 2000)
    y = (rng.random((2000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    with pytest.warns(DataWarning, match="are read as logits: leave from_logits=True out"):
        kind(from_logits=True).fit(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(from_logits=True).fit(np.log(p), y)


@pytest.mark.parametrize("make", [ca.TemperatureScaling, ca.VectorScaling, ca.DirichletCalibration])
def test_a_class_that_came_with_probability_0_is_named(make):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    votes = rng.multinomial(20, np.full(4, 0.25), size=400) + 20 * np.eye(4, dtype=int)[y]
    votes[:3, :] = 0
    votes[np.arange(3), (y[:3] + 1) % 4] = 40
    with pytest.warns(DataWarning, match=r"In 3 of 400 rows the class that came has the probability 0"):
        make().fit(votes / votes.sum(axis=1, keepdims=True), y)
    make().fit((votes + 1) / (votes.sum(axis=1, keepdims=True) + 4), y)


@pytest.mark.parametrize("kind", [ca.TemperatureScaling, ca.VectorScaling, ca.StructuredMatrixScaling])
def test_blocks_of_probabilities_given_as_logits_are_named_once(kind: Any) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 2000)
    y = (rng.random((2000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    with pytest.warns(DataWarning, match="are read as logits: leave from_logits=True out") as said:
        kind(from_logits=True).fit_blocks([(p[:1500], y[:1500]), (p[1500:], y[1500:])])
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(from_logits=True).fit_blocks([(p[:1500], y[:1500]), (np.log(p[1500:]), y[1500:])])
