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
    assert (
        "50 of 150 rows have the scores and label of a row of fit.csv; hardly any would by coincidence. The map was "
        "fitted on them and looks better here than it is. Leave them out."
    ) in said(done)
    done = run("evaluate", "other.csv", *columns, "--map", "map.json", "--fitted-on", "fit.csv")
    assert "None of 100 rows has the scores and label of a row of fit.csv." in said(done)
    found = json.loads(run("evaluate", "test.csv", *columns, "--fitted-on", "fit.csv", "--json").out)["fitted_on"]
    assert found == {"file": "fit.csv", "rows_in_both": 50, "by_chance": 0.0, "copies": 50, "telling": True}
    assert json.loads(run("evaluate", "test.csv", *columns, "--json").out)["fitted_on"] is None


def write_rounded(path: Path, rows: slice, decimals: int = 5) -> None:
    rng = np.random.default_rng(2)
    p = 1 / (1 + np.exp(-rng.normal(-1.5, 1.5, 13_000)))
    data = {"p": np.round(p, decimals), "y": (rng.random(13_000) < p).astype(int)}
    pl.DataFrame(data)[rows].write_csv(path)


def write_rounded_classes(path: Path, rows: slice) -> None:
    rng = np.random.default_rng(2)
    p = np.round(rng.dirichlet([0.1, 0.1, 0.1], 13_000), 4)
    p[:, 2] = np.round(1 - p[:, 0] - p[:, 1], 4)
    data = {f"p_{k}": np.abs(p[:, k]) for k in range(3)}
    pl.DataFrame(data | {"y": p.argmax(axis=1)})[rows].write_csv(path)


@pytest.mark.parametrize(
    ("make", "columns"), [(write_rounded, TWO), (write_rounded_classes, MANY)], ids=["two", "many"]
)
def test_coincidences_are_told_from_copies(make, columns) -> None:
    """Other customers with scores of few digits, and the same with half of the fitted ones among them."""
    make(Path("fit.csv"), slice(0, 10_000))
    make(Path("test.csv"), slice(10_000, 13_000))
    make(Path("half.csv"), slice(8_500, 11_500))
    told = said(run("evaluate", "test.csv", *columns, "--fitted-on", "fit.csv"))
    found = json.loads(run("evaluate", "test.csv", *columns, "--fitted-on", "fit.csv", "--json").out)["fitted_on"]
    assert found["rows_in_both"] > 200
    assert abs(found["by_chance"] - found["rows_in_both"]) < 0.2 * found["rows_in_both"]
    assert (found["telling"], found["copies"]) == (False, 0)
    chance = f"about {found['by_chance']:,.0f} would by coincidence: not enough to call them the same rows."
    assert f"{found['rows_in_both']:,} of 3,000 rows have the scores and label of a row of fit.csv; {chance}" in told
    assert "eave" not in told.split("coincidence")[1].split("id of the rows")[0]
    told = said(run("evaluate", "half.csv", *columns, "--fitted-on", "fit.csv"))
    found = json.loads(run("evaluate", "half.csv", *columns, "--fitted-on", "fit.csv", "--json").out)["fitted_on"]
    assert found["telling"]
    assert abs(found["copies"] - 1500) < 100
    assert f"so about {found['copies']:,} are the same rows" in told


def test_files_whose_rows_are_not_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write(Path("fit.csv"), slice(0, 300))
    monkeypatch.setattr(_files, "MOST_ROWS", 100)
    done = run("evaluate", "fit.csv", *TWO, "--fitted-on", "fit.csv")
    assert done.code == 2
    assert "compares rows one by one" in said(done)


def test_files_whose_labels_differ_are_not_compared() -> None:
    write(Path("test.csv"), slice(None))
    pl.read_csv("test.csv").with_columns(pl.col("y") + 1).write_csv("fitted.csv")
    done = run("evaluate", "test.csv", *TWO, "--fitted-on", "fitted.csv")
    assert done.code != 0
    assert "has the labels 1 and 2, and the rows to be judged have 0 and 1" in said(done)
