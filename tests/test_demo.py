"""The demo: the same over-confident scores every time, a page, and a page that is not its own left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibrant import calibration_slope_intercept
from calibrant.cli import main
from calibrant.data._demo import demo_scores


def test_the_scores_are_over_confident_and_the_same_every_time() -> None:
    first, second = demo_scores(), demo_scores()
    assert np.array_equal(first.scores, second.scores)
    assert len(first.scores) == len(first.labels) == 1797
    assert first.labels.sum() == 174
    assert calibration_slope_intercept(first.labels, first.scores).slope < 0.5


def test_the_demo_runs_twice_and_keeps_what_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "Over-confident" in said
    assert "calibrant report scores.csv --score p --label y" in said
    page = Path("calibrant-demo.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert main(["demo"]) == 0
    Path("mine.html").write_text("mine")
    assert main(["demo", "-o", "mine.html"]) == 2
    assert "exists and was left as it is" in capsys.readouterr().err
    assert Path("mine.html").read_text() == "mine"
    assert main(["demo", "-o", "mine.html", "--force"]) == 0
