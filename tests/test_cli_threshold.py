"""`calibrant threshold`, and `--prevalence` on `apply`: what is printed, what is JSON, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant as ca
from calibrant.cli import main
from streams import batch


@pytest.fixture
def scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = batch(np.random.default_rng(0), 3000)
    lines = [f"{p:.9f},{int(y)}" for p, y in zip(table.scores, table.positives)]
    (tmp_path / "scores.csv").write_text("p,y\n" + "\n".join(lines) + "\n")
    return ca.ScoreTable.from_file("scores.csv", score="p", label="y")


def run(*words):
    return main(["threshold", "scores.csv", "--score", "p", "--label", "y", *words])


def read_json(capsys, *words):
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_costs(scores, capsys):
    assert run("--false-positive", "1", "--false-negative", "20") == 0
    out = capsys.readouterr().out
    found = ca.choose_threshold(scores, false_positive=1, false_negative=20)
    assert f"Act when the probability is at least {found.threshold!r}." in out
    assert f"{found.tp:,.0f}" in out
    assert f"{found.regret:.4f}" in out or "no other threshold costs less" in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Were"))


def test_json_is_the_library(scores, capsys):
    words = ("--at-most", "false-positive-rate=0.05", "--at-most", "alerts=100", "--expected-rows", "1000")
    said = read_json(capsys, *words)
    limits = {"false_positive_rate": 0.05, "alerts": 100}
    found = ca.choose_threshold(scores, objective="recall", at_most=limits, expected_rows=1000)
    assert said["threshold"] == said["score_threshold"] == found.threshold
    assert (said["value"], said["low"], said["high"]) == (found.value, found.low, found.high)
    assert [limit["name"] for limit in said["limits"]] == list(limits)
    assert said["rates"]["precision"]["value"] == found.rates["precision"].value
    assert not said["never_act"]


def test_a_guarantee_says_so(scores, capsys):
    assert run("--at-least", "precision=0.5", "--guarantee", "0.1") == 0
    assert "With a chance of 90 % at least, the limits hold for all such rows" in capsys.readouterr().out
    assert read_json(capsys, "--at-least", "precision=0.5", "--guarantee", "0.1")["guarantee"] == 0.1


def test_never_acting_is_said(scores, capsys):
    assert run("--at-most", "alerts=0") == 0
    assert "Never act: no threshold that acts meets the limits." in capsys.readouterr().out
    said = read_json(capsys, "--at-most", "alerts=0")
    assert said["never_act"]
    assert said["threshold"] is None
    assert run("--false-positive", "1", "--false-negative", "1", "--true-positive", "5") == 0
    assert "Never act: that costs least." in capsys.readouterr().out


def test_another_prevalence(scores, capsys):
    said = read_json(capsys, "--false-positive", "1", "--false-negative", "20", "--prevalence", "0.02")
    assert said["threshold"] == pytest.approx(ca.adjust_prior(said["score_threshold"], scores.prevalence, 0.02))
    assert said["tp"] + said["fn"] == pytest.approx(0.02 * 3000)
    curve = ca.threshold_curve(scores)
    at = curve.at(said["score_threshold"])
    assert said["rates"]["recall"]["value"] == pytest.approx(curve.recall[at])
    assert said["rates"]["false_positive_rate"]["value"] == pytest.approx(curve.false_positive_rate[at])
    assert run("--false-positive", "1", "--false-negative", "20", "--prevalence", "0.02") == 0
    assert "as the file gives it" in capsys.readouterr().out


def test_through_a_map(scores, capsys):
    ca.AffineLogit().fit_table(scores).map_.save("map.json")
    said = read_json(capsys, "--map", "map.json", "--false-positive", "1", "--false-negative", "20")
    mapped = scores.with_scores(ca.load_map("map.json")(scores.scores))
    assert said["threshold"] == ca.choose_threshold(mapped, false_positive=1, false_negative=20).threshold


@pytest.mark.parametrize(
    "words, said",
    [
        (("--at-least", "precision"), "NAME=NUMBER"),
        (("--at-least", "precision=high"), "NAME=NUMBER"),
        (("--at-least", "speed=0.9"), "speed"),
        (("--false-positive", "1"), "cost: --false-positive and --false-negative."),
        (("--at-least", "recall=2"), "--at-least: the bound of recall"),
        (("--at-most", "alerts=5", "--guarantee", "7"), "--guarantee must be"),
        (("--prevalence", "1.5"), "--prevalence must be a share"),
        (("--objective", "profit"), "--objective"),
        (("--guarantee", "0.1"), "no limit"),
    ],
)
def test_what_is_wrong_is_one_sentence(scores, capsys, words, said):
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_apply_at_another_prevalence(scores, capsys):
    ca.AffineLogit().fit_table(scores).map_.save("map.json")
    words = ["apply", "map.json", "scores.csv", "--score", "p", "-o", "moved.csv"]
    assert main([*words, "--prevalence", "0.02", "--fitted-prevalence", "0.1"]) == 0
    moved = np.genfromtxt("moved.csv", delimiter=",", names=True)
    record = ca.shift_map(ca.load_map("map.json"), 0.1, 0.02)
    assert np.allclose(moved["calibrated"], record(scores.scores), atol=1e-12)
    assert main([*words[:-1], "other.csv", "--prevalence", "0.02"]) == 2
    assert "belong together" in capsys.readouterr().err


def test_the_threshold_that_is_printed_acts_on_the_rows_that_are_counted(tmp_path, monkeypatch, capsys):
    """Twelve digits round half of all thresholds up, which leaves the rows out that are exactly there."""
    monkeypatch.chdir(tmp_path)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.random(50)
        y = (rng.random(50) < p).astype(int)
        (tmp_path / "scores.csv").write_text("p,y\n" + "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y)))
        assert run("--at-least", "recall=0.8") == 0
        out = capsys.readouterr().out
        printed = float(out.split("at least ")[1].split()[0].rstrip("."))
        acted = [int(word) for line in ("events", "other rows") for word in out.split(f"\n{line}")[1].split()[:1]]
        assert acted == [int(((p >= printed) & (y == kind)).sum()) for kind in (1, 0)]


def test_margins_have_no_honest_threshold(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    y = (rng.random(200) < 1 / (1 + np.exp(-z))).astype(int)
    (tmp_path / "scores.csv").write_text("p,y\n" + "".join(f"{a!r},{b}\n" for a, b in zip(z.tolist(), y)))
    assert run("--false-positive", "1", "--false-negative", "9") == 0
    out = capsys.readouterr().out
    assert "Act when the score is at least -" in out
    assert "honest" not in out
    found = ca.choose_threshold(y, z, false_positive=1, false_negative=9)
    assert (found.cost_threshold, found.regret) == (None, None)
    assert run("--false-positive", "1", "--false-negative", "9", "--prevalence", "0.1") == 2
    error = capsys.readouterr().err
    assert "`calibrant fit` and `calibrant apply`" in error
    assert "--from-logits" not in error
