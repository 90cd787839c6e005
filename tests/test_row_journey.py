"""One row from a file to its calibrated probability, step by step, the way DESIGN tells it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant as ca
from calibrant.calibrators._logistic import likelihood_of
from calibrant.data._log_odds import fit_log_odds

ROWS = [(0.1, 0), (0.3, 1), (0.3, 0), (0.6, 0), (0.8, 1), (0.9, 1), (0.95, 1), (0.2, 0)]


@pytest.fixture
def loans(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("id,p,y\n" + "".join(f"{k:03},{p},{y}\n" for k, (p, y) in enumerate(ROWS)))
    return path


def test_every_station_says_the_same(loans, tmp_path):
    table = ca.ScoreTable.from_file(loans, score="p", label="y")
    assert table.n_rows == len(ROWS)
    assert table.distinct.scores.tolist() == sorted({p for p, _ in ROWS})

    fitted = ca.AffineLogit().fit_table(table)
    kernel = likelihood_of(table).fit(fit_log_odds(table))
    assert (fitted.intercept_, fitted.slope_) == tuple(kernel.coefficients)
    by_hand = ca.AffineLogit().fit([p for p, _ in ROWS], [y for _, y in ROWS])
    assert by_hand.map_.slope == pytest.approx(fitted.slope_, abs=1e-12)

    fitted.map_.save(tmp_path / "map.json")
    content = json.loads((tmp_path / "map.json").read_text())
    assert content["kind"] == "affine_logit"
    assert content["parameters"]["slope"] == fitted.slope_

    made = ca.load_map(tmp_path / "map.json")
    z = np.log(0.3) - np.log1p(-0.3)
    expected = 1 / (1 + np.exp(-(fitted.intercept_ + fitted.slope_ * z)))
    assert made(0.3) == pytest.approx(expected, abs=1e-15)
    assert made([0.3, 0.9])[0] == made(0.3) == fitted.predict_proba([0.3])[0, 1]


def test_the_command_line_walks_the_same_way(loans, tmp_path):
    main = pytest.importorskip("calibrant.cli").main
    out, scored = tmp_path / "map.json", tmp_path / "scored.csv"
    run = ["fit", str(loans), "--score", "p", "--label", "y", "--method", "affine", "-o", str(out)]
    assert _ended(main, run) == 0
    by_hand = ca.AffineLogit().fit_table(ca.ScoreTable.from_file(loans, score="p", label="y"))
    assert ca.load_map(out) == by_hand.map_
    assert _ended(main, ["apply", str(out), str(loans), "--score", "p", "-o", str(scored)]) == 0
    lines = scored.read_text().splitlines()
    assert [line.split(",")[:3] for line in lines] == [line.split(",") for line in loans.read_text().splitlines()]
    for (p, _), line in zip(ROWS, lines[1:]):
        assert float(line.split(",")[3]) == pytest.approx(by_hand.map_(p), abs=1e-12)
    assert _ended(main, run) == 2  # the map exists, and is not overwritten


def _ended(main, arguments):
    """The exit code of the command line."""
    import sys

    before, sys.argv = sys.argv, ["calibrant", *arguments]
    try:
        return main() or 0
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv = before
