"""The report names the shape of the distortion and draws what a straight line leaves."""

from __future__ import annotations

import json

import numpy as np

import calibrant as ca


def rows(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(-0.3, 1.5, n)
    return (rng.random(n) < 1 / (1 + np.exp(-(z**3) / 4))).astype(int), z


def test_the_verdict_and_the_residuals_are_those_of_the_diagnosis() -> None:
    y, z = rows()
    p = 1 / (1 + np.exp(-z))
    report, found = ca.build_report(y, p), ca.shape_diagnosis(y, p)
    assert report.shape.verdict == found.verdict == "S-shaped"
    assert report.shape.p_value == found.p_value
    left = [row.left for row in report.shape.residuals]
    np.testing.assert_allclose(left, found.observed - found.predicted)
    assert all(row.low < row.left < row.high for row in report.shape.residuals)


def test_the_page_and_the_json_hold_it() -> None:
    y, z = rows()
    report = ca.build_report(y, 1 / (1 + np.exp(-z)))
    page = report.html()
    assert "The shape of the distortion: S-shaped" in page
    assert page.count('id="shape-title"') == 1
    assert json.loads(report.to_json())["shape"]["verdict"] == "S-shaped"


def test_margins_have_a_shape_and_separable_scores_have_none() -> None:
    y, z = rows()
    assert ca.build_report(y, 5 * z).shape.verdict == "S-shaped"
    report = ca.build_report([0] * 20 + [1] * 20, [0.2] * 20 + [0.8] * 20)
    assert report.shape is None
    assert "The shape of the distortion" not in report.html()
