"""`calibrant evaluate --fitted-on`: rows that the map was fitted on are named, in words and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calibrant.data import _files
from cli_runs import Done, run

N = 400


def write(path: Path, rows: slice, digits: int | None = None) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(N) if digits is None else np.round(rng.random(N), digits)
    pl.DataFrame({"p": p, "y": (rng.random(N) < p).astype(int)})[rows].write_csv(path)


def write_classes(path: Path, rows: slice) -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], N)
    data = {f"p_{k}": p[:, k] for k in range(3)} | {"y": rng.integers(0, 3, N)}
    pl.DataFrame(data)[rows].write_csv(path)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(done: Done) -> str:
    """All that was printed, as one line."""
    return " ".join((done.out + done.err).split())


TWO = ["--score", "p", "--label", "y"]
MANY = ["--scores", "p_*", "--label", "y"]


@pytest.mark.parametrize(("make", "columns"), [(write, TWO), (write_classes, MANY)], ids=["two", "many"])
def test_rows_of_both_files_are_counted(make, columns) -> None:
    make(Path("fit.csv"), slice(0, 300))
    make(Path("test.csv"), slice(250, 400))
    make(Path("other.csv"), slice(300, 400))
    assert run("fit", "fit.csv", *columns, "-o", "map.json").code == 0
    done = run("evaluate", "test.csv", *columns, "--map", "map.json", "--fitted-on", "fit.csv")
    assert done.code == 0
    assert "50 of 150 rows have the scores and label of a row of fit.csv: the map was fitted on them" in said(done)
    done = run("evaluate", "other.csv", *columns, "--map", "map.json", "--fitted-on", "fit.csv")
    assert "None of 100 rows has the scores and label of a row of fit.csv." in said(done)
    found = json.loads(run("evaluate", "test.csv", *columns, "--fitted-on", "fit.csv", "--json").out)["fitted_on"]
    assert found == {"file": "fit.csv", "rows_in_both": 50, "telling": True}
    assert json.loads(run("evaluate", "test.csv", *columns, "--json").out)["fitted_on"] is None


def test_rounded_scores_may_be_equal_by_chance() -> None:
    write(Path("fit.csv"), slice(0, 300), digits=2)
    write(Path("test.csv"), slice(300, 400), digits=2)
    done = run("evaluate", "test.csv", *TWO, "--fitted-on", "fit.csv")
    assert "with so few different values they may be other rows" in said(done)


def test_files_whose_rows_are_not_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write(Path("fit.csv"), slice(0, 300))
    monkeypatch.setattr(_files, "MOST_ROWS", 100)
    done = run("evaluate", "fit.csv", *TWO, "--fitted-on", "fit.csv")
    assert done.code == 2
    assert "compares rows one by one" in said(done)
