"""The operating point of the report: its numbers are those of the library, before, after and at another prevalence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant as ca
from calibrant.cli import main
from calibrant.errors import InputError
from streams import batch


@pytest.fixture(scope="module")
def table():
    return batch(np.random.default_rng(0), 4000, "slope 0.8")


@pytest.fixture(scope="module")
def report(table):
    return ca.build_report(table, false_positive=1, false_negative=12, new_prevalence=0.02)


def test_costs_make_the_threshold(report):
    shown = report.operating
    assert shown.threshold == ca.optimal_threshold(false_positive=1, false_negative=12)
    assert shown.costs_given
    assert shown.side == "after"
    assert shown.tp + shown.fp + shown.fn + shown.tn == pytest.approx(4000)
    assert shown.cost == pytest.approx((shown.fp + 12 * shown.fn) / 4000)
    assert shown.cost_low < shown.cost < shown.cost_high
    assert shown.regret >= 0


def test_before_is_the_given_table(report, table):
    curve = ca.threshold_curve(table, false_positive=1, false_negative=12)
    assert report.operating.cost_before == pytest.approx(curve.cost[curve.at(1 / 13)] / 4000)
    drawn = report.operating.curves[0]
    assert drawn.side == "before"
    for k in (0, 50, 200):
        assert drawn.costs[k] == pytest.approx(curve.cost[curve.at(drawn.thresholds[k])] / 4000)


def test_another_prevalence_moves_the_threshold(report, table):
    shown = report.operating
    assert [row.prevalence for row in shown.prevalences if row.asked] == [0.02]
    own = next(row for row in shown.prevalences if row.prevalence == table.prevalence)
    assert own.cost == pytest.approx(shown.cost)
    assert own.threshold == pytest.approx(shown.threshold)
    for row in shown.prevalences:
        assert ca.adjust_prior(row.threshold, table.prevalence, row.prevalence) == pytest.approx(shown.threshold)
        assert row.cost <= row.cost_unmoved + 0.02
    thresholds = [row.threshold for row in shown.prevalences]
    assert thresholds == sorted(thresholds, reverse=True)


def test_without_costs_everybody_and_nobody_cost_the_same(table):
    shown = ca.build_report(table).operating
    assert not shown.costs_given
    assert shown.always == pytest.approx(shown.never, rel=0.05)
    assert "No costs were given" in ca.build_report(table).html()


def test_page_and_json_hold_it(report):
    page = report.html()
    assert "Where to act: from 7.7" in page
    assert page.count('id="cost-title"') == 1
    said = json.loads(report.to_json())["operating"]
    assert said["false_negative"] == 12
    assert len(said["curves"]) == 2


def test_costs_that_decide_nothing_leave_it_out(table):
    assert ca.build_report(table, false_positive=0, false_negative=1).operating is None
    assert 'id="operating"' not in ca.build_report(table, false_positive=0, false_negative=1).html()
    with pytest.raises(InputError, match="reward both errors"):
        ca.build_report(table, false_positive=-1, false_negative=-1)
    with pytest.raises(InputError, match="new_prevalence"):
        ca.build_report(table, new_prevalence=1.0)


def test_command_line(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(f"{p:.9f},{int(y)}" for p, y in zip(table.scores, table.positives))
    (tmp_path / "scores.csv").write_text("p,y\n" + lines + "\n")
    words = ["report", "scores.csv", "--score", "p", "--label", "y", "--json"]
    assert main([*words, "--false-positive", "1", "--false-negative", "12", "--prevalence", "0.02"]) == 0
    said = json.loads(capsys.readouterr().out)["operating"]
    assert said["threshold"] == pytest.approx(1 / 13)
    assert any(row["asked"] for row in said["prevalences"])
