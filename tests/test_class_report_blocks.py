"""The report of classes of rows that come block by block: that of the same rows in memory, with the same folds."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant._kernels import softmax
from calibrant._parameters import generator
from calibrant.calibrators._class_cross_fit import dealt, folds_of, refit, without_signs
from calibrant.cli import _class_large, _class_methods
from calibrant.data import _class_files
from calibrant.data._arrays import ClassRows
from calibrant.view import _class_blocks, _class_report
from calibrant.view._class_map_card import class_map_card
from calibrant.view._class_report import ClassReport, made_report
from calibrant.view._class_sums import sums_of_rows
from calibrant.view._report import Method, noting
from class_cases import rows_of_classes, write_classes
from cli_runs import run, write
from test_cli_class_large import assert_close

ASK = ("--scores", "p_*", "--label", "label")
NAMES = ("cat", "dog", "fox", "owl")


@pytest.fixture(autouse=True)
def _small_blocks_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte is large, and a block has 70 rows of four classes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_class_large, "LARGE", 1000)
    monkeypatch.setattr(_class_files, "BLOCK_CELLS", 280)


def in_memory(rows: ClassRows, method: str, from_logits: bool = False, file: str = "in.csv") -> ClassReport:
    """The report of rows in memory, fitted and judged by `fit`, with the folds that blocks are given."""
    calibrator = _class_methods.make_for_classes(method, from_logits)
    folds = folds_of(np.bincount(rows.labels), rows.scores.size, 5)
    after = None
    if folds >= 2:
        key = int(generator(0).integers(2**62))
        ((_, fold),) = dealt([(rows.scores, rows.labels, None)], len(rows.classes), folds, key)
        after = np.empty(rows.scores.shape)
        for number in range(folds):
            held = np.flatnonzero(fold == number)
            with without_signs():
                made = refit(calibrator, rows, np.flatnonzero(fold != number))
            after[held] = made.map_(rows.scores[held])
    given = rows._replace(scores=softmax.softmax(rows.scores)) if from_logits else rows
    fitted, notes = noting(lambda: refit(calibrator, rows))
    card = class_map_card(calibrator, fitted, rows.classes, _class_report.ASKED, notes)
    how = Method(folds or None, "0", calibrant.__version__, date.today().isoformat())
    scale: Any = "logits" if from_logits else "probability"
    return made_report(sums_of_rows(given, after), card, how, scale, f"Calibration of {file}", file)


def by_blocks(*words: str, note: str = "") -> dict[str, Any]:
    done = run("report", *words, "--json")
    assert done.code == 0
    assert note in done.err if note else done.err == ""
    found: dict[str, Any] = json.loads(done.out)
    return found


def assert_same_report(found: dict[str, Any], expected: ClassReport) -> None:
    assert_close(found, json.loads(expected.to_json()), 1e-9)


@pytest.mark.parametrize("method", ["temperature", "vector", "matrix", "dirichlet", "svs", "sms"])
def test_the_report_of_blocks_is_that_of_the_rows(method: str) -> None:
    p, y = write_classes()
    rows = ClassRows(p / p.sum(axis=1, keepdims=True), y, None, NAMES)
    expected = in_memory(rows, method)
    assert expected.after is not None
    assert_same_report(by_blocks("in.csv", *ASK, "--method", method), expected)


def test_weights_gaps_logits_and_a_class_without_rows() -> None:
    rng = np.random.default_rng(1)
    z, y, w = rng.normal(size=(500, 5)), rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    z[np.arange(500), y] += 1
    cells = {f"z{k}": list(map(repr, z[:, k].tolist())) for k in range(5)}
    cells["z1"][7] = ""
    write("in.csv", {**cells, "y": y.tolist(), "w": w.tolist()})
    kept = (np.arange(500) != 7) & (w > 0)
    expected = in_memory(ClassRows(z[kept], y[kept], w[kept].astype(float), tuple(range(5))), "svs", from_logits=True)
    assert expected.data.without_rows == ("4",)
    ask = ("--scores", "z*", "--label", "y", "--weight", "w", "--missing", "drop", "--from-logits", "--method", "svs")
    assert_same_report(by_blocks("in.csv", *ask), expected)


def three_columns(p: np.ndarray, y: np.ndarray) -> tuple[str, ...]:
    write("in.csv", {**{f"p{k}": list(map(repr, p[:, k].tolist())) for k in range(3)}, "y": y.tolist()})
    return ("in.csv", "--scores", "p*", "--label", "y", "--method", "temperature")


def test_what_had_probability_0_is_judged_by_the_brier_score() -> None:
    p, y = rows_of_classes(400, 3, sharpness=1.0)
    p[[5, 390]] = np.eye(3)[(y[[5, 390]] + 1) % 3]
    expected = in_memory(ClassRows(p / p.sum(axis=1, keepdims=True), y, None, (0, 1, 2)), "temperature")
    found = by_blocks(*three_columns(p, y), note="In 2 of 400 rows the class that came has the probability 0")
    assert_same_report(found, expected)
    assert found["gain"]["measure"] == "Brier score"
    assert "(2 rows)" in found["before"]["log_loss"]["reason"]


def test_too_few_rows_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_class_large, "LARGE", 10)
    p, y = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]), np.array([0, 1, 1])
    expected = in_memory(ClassRows(p / p.sum(axis=1, keepdims=True), y, None, (0, 1, 2)), "temperature")
    found = by_blocks(*three_columns(p, y))
    assert_same_report(found, expected)
    assert found["after"] is None
    assert found["headline"]["verdict"] == "not-cross-fitted"


def test_the_page_is_the_same_and_the_terminal_says_so() -> None:
    p, y = write_classes()
    done = run("report", "in.csv", *ASK, "--method", "svs", "-o", "page.html")
    assert (done.code, done.err) == (0, "")
    assert "600 rows of in.csv, 4 classes" in done.out
    assert "Page written to page.html." in done.out
    assert "calibrant fit in.csv" in " ".join(done.out.split())
    expected = in_memory(ClassRows(p / p.sum(axis=1, keepdims=True), y, None, NAMES), "svs")
    assert Path("page.html").read_text(encoding="utf-8") == expected.html()


def test_more_distinct_probabilities_than_are_kept_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(n=2000)
    words = ("in.csv", *ASK, "--method", "svs")
    exact = by_blocks(*words)
    monkeypatch.setattr(_class_blocks, "MOST_DISTINCT", 1000)
    found = by_blocks(*words)
    limits = {sentence["code"]: sentence["text"] for sentence in found["headline"]["limits"]}
    assert "to 1,000 cells at most" in limits["cells"]
    assert "cells" not in {sentence["code"] for sentence in exact["headline"]["limits"]}
    for side in ("before", "after"):
        assert_close(found[side]["log_loss"], exact[side]["log_loss"], 1e-12)
        assert_close(found[side]["brier"], exact[side]["brier"], 1e-12)
        assert found[side]["accuracy"] == pytest.approx(exact[side]["accuracy"], rel=1e-12)
        assert found[side]["mean_confidence"] == pytest.approx(exact[side]["mean_confidence"], rel=1e-12)
        error = exact[side]["top_error"]
        within = 0.1 * (error["high"] - error["low"])
        assert found[side]["top_error"]["value"] == pytest.approx(error["value"], abs=within)
    assert_close(found["gain"], exact["gain"], 1e-12)
    assert found["decisions"]["matrix"] == exact["decisions"]["matrix"]


def test_a_cell_that_is_no_probability_is_named_by_its_row() -> None:
    write_classes()
    lines = Path("in.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[301].split(",")
    cells[1] = "3.5"
    lines[301] = ",".join(cells)
    Path("in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run("report", "in.csv", *ASK, "--method", "svs", "-o", "page.html")
    assert done.code != 0
    assert "3.5 in data row 301" in " ".join(done.err.split())
    assert not Path("page.html").exists()


# ---------------------------------------------------------------- folds


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_are_even_in_every_class_however_the_rows_are_cut(n_folds: int) -> None:
    labels = np.random.default_rng(0).choice(4, 5000, p=[0.9, 0.09, 0.009, 0.001])

    def folds(size: int, key: int = 7) -> np.ndarray:
        cuts = ((None, labels[first : first + size], None) for first in range(0, len(labels), size))
        return np.concatenate([fold for _, fold in dealt(cuts, 4, n_folds, key)])

    whole = folds(len(labels))
    assert np.array_equal(whole, folds(1))
    assert np.array_equal(whole, folds(333))
    assert not np.array_equal(whole, folds(333, key=8))
    counts = np.array([np.bincount(whole[labels == k], minlength=n_folds) for k in range(4)])
    assert (np.ptp(counts, axis=1) <= 1).all()


def test_folds_do_not_follow_the_order_of_the_rows() -> None:
    """Of a class in the order of the file, the even places are in either fold: binomial, 4 standard errors."""
    n = 20_000
    ((_, fold),) = dealt([(None, np.zeros(n, dtype=np.int64), None)], 1, 2, 3)
    first = fold[::2]
    assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(n / 2)
    assert abs((first[1:] == first[:-1]).mean() - 0.5) < 4 * 0.5 / np.sqrt(n / 2)
