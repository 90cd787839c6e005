"""Evidence on the command line: intervals, the verdict, and groups, for people and for programs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import calibrant as ca
from calibrant.cli import main

ASK = ("--score", "p", "--label", "y")


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    group = rng.choice(["north", "south", ""], n, p=[0.6, 0.398, 0.002])
    shift = np.where(group == "south", 0.8, 0.0)
    return 1 / (1 + np.exp(-z)), (rng.uniform(size=n) < 1 / (1 + np.exp(-z - shift))).astype(int), group


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p, y, group = rows()
    with open("s.csv", "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["p", "y", "region", "w"])
        writer.writerows(zip(p.tolist(), y.tolist(), group, (np.arange(len(p)) % 2).tolist()))
    return "s.csv"


def run(capsys, *arguments):
    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_evaluate_shows_intervals_and_a_verdict(file, capsys):
    code, out, _ = run(capsys, "evaluate", file, *ASK, "--margin", "0.04")
    assert code == 0
    assert "95 % intervals" in out
    assert "Miscalibrated beyond the margin of 0.04" in out
    assert "AUC" in out


def test_evaluate_by_group_agrees_with_the_library(file, capsys):
    code, out, _ = run(capsys, "evaluate", file, *ASK, "--group", "region", "--json")
    assert code == 0
    found = json.loads(out)["evidence"]
    p, y, group = rows()
    expected = ca.calibration_by_group(y, p, group, margin=found["margin"])
    assert [line["group"] for line in found["groups"]] == [str(line.group) for line in expected.groups]
    assert found["groups"][0]["group"] == "south"
    assert found["groups"][0]["verdict"] == "beyond margin"
    assert found["groups"][-1]["verdict"] == "too small to judge"
    error = expected.groups[0].calibration_error
    assert found["groups"][0]["calibration_error"]["low"] == pytest.approx(error.low, rel=1e-9)
    assert found["intervals"]["roc_auc"]["low"] == pytest.approx(ca.estimate(ca.roc_auc, y, p).low, rel=1e-9)


def test_groups_of_weighted_rows(file, capsys):
    code, out, _ = run(capsys, "evaluate", file, *ASK, "--group", "region", "--weight", "w", "--json")
    assert code == 0
    assert sum(line["rows"] for line in json.loads(out)["evidence"]["groups"]) == 1500


def test_groups_are_told_and_unknown_columns_named(file, capsys):
    _, out, _ = run(capsys, "evaluate", file, *ASK, "--group", "region")
    assert "beyond margin" in out
    assert "(none)" in out
    code, _, error = run(capsys, "evaluate", file, *ASK, "--group", "nope")
    assert code == 2
    assert "'region'" in error


def test_the_page_has_the_groups(file, capsys):
    code, _, _ = run(capsys, "report", file, *ASK, "--group", "region", "--margin", "0.04", "-o", "page.html")
    assert code == 0
    with open("page.html", encoding="utf-8") as page:
        text = page.read()
    assert "Group by group" in text
    assert "south" in text
    code, out, _ = run(capsys, "report", file, *ASK, "--group", "region", "--json")
    assert json.loads(out)["groups"]["lines"][0]["group"] == "south"


def test_scores_that_are_no_probabilities_have_no_groups():
    p, y, group = rows(500)
    assert ca.build_report(y, 5 * p - 1, groups=group).groups is None
    logits = np.log(p) - np.log1p(-p)
    by_logits = ca.build_report(y, logits, calibrator=ca.AffineLogit(from_logits=True), groups=group)
    by_p = ca.build_report(y, p, groups=group)
    assert by_logits.groups.lines[0].rows == by_p.groups.lines[0].rows
    assert by_logits.groups.lines[0].calibration_error.low == pytest.approx(
        by_p.groups.lines[0].calibration_error.low, rel=1e-6
    )
