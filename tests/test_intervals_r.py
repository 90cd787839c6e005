"""Agreement with R: isoreg, glm, pROC's DeLong, binom.test, and the two tests written out; see r/evidence.R."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

import calibrant as ca
from calibrant._kernels.intervals import binomial_limits

FOLDER = Path(__file__).parent / "r"
R = json.loads((FOLDER / "evidence.json").read_text(encoding="utf-8"))
Y, A, B = runpy.run_path(str(FOLDER / "rows.py"))["rows"]()


def close(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-15)


@pytest.mark.parametrize("score", ["brier", "log"])
def test_decomposition_is_that_of_isoreg(score):
    parts = ca.score_decomposition(Y, A, score=score)
    close([parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty], R[score])


def test_auc_interval_is_delong_of_proc():
    found = ca.estimate(ca.roc_auc, Y, A)
    close([found.low, found.value, found.high], R["delong"])
    close((found.width / 2 / ndtri(0.975)) ** 2, R["delong_variance"][0])


def test_paired_auc_is_delong_of_proc():
    found = ca.compare(ca.roc_auc, Y, A, B)
    value, z = R["delong_paired"]
    close([found.value, found.value / (found.width / 2) * ndtri(0.975)], [value, z])


def test_hosmer_lemeshow():
    statistic, elsewhere, fitted = R["hosmer_lemeshow"]
    found = ca.calibration_test(Y, A, kind="hosmer-lemeshow")
    close([found.statistic, found.p_value], [statistic, elsewhere])
    close(ca.calibration_test(Y, A, kind="hosmer-lemeshow", fitted=True).p_value, fitted)


def test_spiegelhalter():
    found = ca.calibration_test(Y, A)
    close([found.statistic, found.p_value], R["spiegelhalter"])


def test_line_is_that_of_glm():
    line = ca.calibration_slope_intercept(Y, A)
    close([line.slope, line.intercept, line.intercept_at_slope_one], R["line"])
    # The sandwich need not agree with glm, whose errors trust the line; here they are within a tenth.
    found = ca.estimate(ca.calibration_slope_intercept, Y, A)
    errors = np.array([found.slope.width, found.intercept.width]) / 2 / ndtri(0.975)
    np.testing.assert_allclose(errors, R["line_errors"], rtol=0.1)


def test_cox_is_the_likelihood_ratio_of_glm():
    found = ca.calibration_test(Y, A, kind="cox")
    close([found.statistic, found.p_value], R["cox"])


def test_binomial_limits_are_those_of_binom_test():
    low, high = binomial_limits(np.array([0.0, 3, 12, 57]), np.array([12.0, 40, 12, 200]), 0.95)
    close(np.column_stack([low, high]).ravel(), R["binomial"])
