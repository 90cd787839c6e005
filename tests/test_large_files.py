"""Files of more rows than are kept: the same table, added up in the engine, and cells within their bound."""

from __future__ import annotations

import numpy as np
import polars as pl
import polars.testing
import pytest
from typer.testing import CliRunner

import calibrant as ca
from calibrant.cli import _apply
from calibrant.cli._app import app
from calibrant.data import _files, _summed_files
from calibrant.data._files import read_binary
from calibrant.errors import DataWarning, InputError
from calibrant.metrics._groups import split_table
from catalogue import BINARY, MEASURES, binary_rows, named
from cells import assert_within_bounds, wide

COLUMNS = ("scores", "positives", "negatives", "rows", "squared_weights")


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch):
    monkeypatch.setattr(_files, "MOST_ROWS", 0)


def written(folder, data, kind):
    frame, path = pl.DataFrame(data), folder / f"rows.{kind}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[kind](path)
    return path


def assert_same(table, expected):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(table.distinct, name), getattr(expected.distinct, name))
    assert table.classes == expected.classes


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of the same rows, from a large file and from arrays, by what the scores are."""
    found = {}
    for reads in ("probability", "score", "logit"):
        rows = binary_rows(reads)
        scores = rows.scores.copy()
        scores[:4] = [0.0, -0.0, -0.0, 0.0]
        data = {"p": scores, "y": rows.y.astype(int), "w": rows.weight.astype(float)}
        path = written(tmp_path_factory.mktemp(reads), data, "parquet")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_files, "MOST_ROWS", 0)
            table = ca.ScoreTable.from_file(path, score="p", label="y", weight="w")
        found[reads] = ca.ScoreTable.from_arrays(scores, rows.y, rows.weight), table
    return found


@pytest.mark.parametrize("case", **named(BINARY))
def test_every_calibrator(case, tables):
    expected, table = tables[case.reads]
    a, b = (case.make().fit_table(one).map_(expected.distinct.scores) for one in (expected, table))
    np.testing.assert_allclose(a, b, atol=case.tolerance)


@pytest.mark.parametrize("case", **named(MEASURES))
def test_every_measure(case, tables):
    a, b = (case.values(case.call(one)) for one in tables["probability"])
    np.testing.assert_allclose(a, b, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_kind_of_file(tmp_path, kind, weight):
    rng = np.random.default_rng(0)
    p, w = np.round(rng.random(500), 2), rng.integers(0, 4, 500)
    y = np.where(rng.random(500) < p, "yes", "no")
    path = written(tmp_path, {"p": p, "y": y, "w": w}, kind)
    table = ca.ScoreTable.from_file(path, score="p", label="y", weight=weight, pos_label="yes")
    assert_same(table, ca.ScoreTable.from_arrays(p, y, None if weight is None else w, pos_label="yes"))
    assert len(table) <= 101


def test_what_is_wrong_is_said_as_for_small_files(tmp_path):
    path = written(tmp_path, {"p": [0.1, None, 0.3], "y": [0, 1, 1], "w": [0.0] * 3}, "csv")
    with pytest.raises(InputError, match=r"row|line"):
        ca.ScoreTable.from_file(path, score="p", label="y")
    assert ca.ScoreTable.from_file(path, score="p", label="y", missing="drop").n_rows == 2
    with pytest.raises(InputError, match="zero in every row"):
        ca.ScoreTable.from_file(path, score="p", label="y", weight="w", missing="drop")


# ---------------------------------------------------------------- too many distinct scores


@pytest.mark.parametrize("kind", ["probability", "score", "tiny", "huge"])
@pytest.mark.parametrize("surely", [0.0, 1e9], ids=["at once", "after a try"])
def test_cells_keep_their_bound(tmp_path, monkeypatch, kind, surely):
    monkeypatch.setattr(_summed_files, "SURELY_MORE", surely)
    scores, y = wide(kind)
    path = written(tmp_path, {"p": scores, "y": y}, "parquet")
    with pytest.warns(DataWarning, match=r"more than 500 distinct scores.*not exact.*larger max_distinct") as caught:
        table = ca.ScoreTable.from_file(path, score="p", label="y", max_distinct=500)
    assert_within_bounds(table, scores, y, caught, kind)


@pytest.mark.parametrize("most", [0, -1, 9, 2.5, True, "x", None])
def test_a_limit_without_room_is_refused(tmp_path, most):
    path = written(tmp_path, {"p": [0.1, 0.2, 0.3], "y": [0, 1, 0], "q": [0.9, 0.8, 0.7]}, "parquet")
    for read in (
        lambda: ca.ScoreTable.from_file(path, score="p", label="y", max_distinct=most),
        lambda: ca.ScoreTable.from_frame(pl.scan_parquet(path), score="p", label="y", max_distinct=most),
        lambda: ca.top_label_table(pl.scan_parquet(path), scores=["q", "p"], label="y", max_distinct=most),
        lambda: ca.class_tables(pl.scan_parquet(path), scores=["q", "p"], label="y", max_distinct=most),
    ):
        with pytest.raises(InputError, match="max_distinct must be"):
            read()


def test_a_cell_next_to_one_does_not_become_one(tmp_path):
    """Its mean would round to 1, where an event that did not happen costs an infinite log loss."""
    scores = np.concatenate([np.full(1000, 1 - 2**-53), np.linspace(0.1, 0.9, 1000)])
    y = np.tile([0, 1], 1000)
    path = written(tmp_path, {"p": scores, "y": y}, "parquet")
    with pytest.warns(DataWarning, match="not exact"):
        table = ca.ScoreTable.from_file(path, score="p", label="y", max_distinct=100)
    assert np.isfinite(ca.log_loss(table))


# ---------------------------------------------------------------- the command line


def large(folder, n=6000):
    rng = np.random.default_rng(1)
    p = np.round(rng.beta(2, 5, n), 3)
    y = (rng.random(n) < p**1.3).astype(int)
    return written(folder, {"p": p, "y": y, "w": rng.integers(0, 3, n), "g": rng.choice(["a", "b"], n)}, "parquet")


def test_groups_are_added_up_apart(tmp_path):
    path = large(tmp_path)
    found = read_binary(path, score="p", label="y", weight="w", group="g")
    tables = split_table(ca.ScoreTable._of_columns(found), found.groups.astype(str))
    frame = pl.read_parquet(path)
    for name, table in tables.items():
        own = frame.filter(pl.col("g") == name)
        assert_same(table, ca.ScoreTable.from_arrays(own["p"], own["y"], own["w"]))


def test_cells_of_groups_share_the_limit(tmp_path):
    scores, y = wide("probability")
    path = written(tmp_path, {"p": scores, "y": y, "g": np.tile(["a", "b", "c", "d"], 1000)}, "parquet")
    limits = _summed_files.Limits(400, "")
    with pytest.warns(DataWarning, match="not exact"):
        found = read_binary(path, score="p", label="y", group="g", limits=limits)
    assert len(found.sums.scores) <= 400
    assert set(found.groups) == {"a", "b", "c", "d"}


def test_too_many_groups_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_summed_files, "MOST_GROUPS", 10)
    path = written(tmp_path, {"p": np.linspace(0, 1, 50), "y": np.tile([0, 1], 25), "g": range(50)}, "parquet")
    with pytest.raises(InputError, match="different values in a file of many rows"):
        read_binary(path, score="p", label="y", group="g")


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "--json", "--group", "g", "--weight", "w"],
        ["evaluate", "--json"],
        ["report", "--json", "--group", "g"],
        ["fit", "--method", "isotonic", "--json"],
        ["threshold", "--false-negative", "5", "--false-positive", "1", "--json"],
    ],
    ids=lambda command: " ".join(command),
)
def test_a_command_says_the_same(tmp_path, monkeypatch, command):
    path = large(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = [command[0], str(path), "--score", "p", "--label", "y", *command[1:]]
    said = []
    for most in (0, 10**6):
        monkeypatch.setattr(_files, "MOST_ROWS", most)
        done = CliRunner().invoke(app, words + (["--force", "-o", "map.json"] if command[0] == "fit" else []))
        assert done.exit_code == 0, done.output
        said.append(done.stdout)
    assert_alike(*said)


def assert_alike(a, b):
    """The same text, but for the last digits of numbers."""
    import re

    number = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
    assert number.sub("#", a) == number.sub("#", b)
    x, y = (np.array([float(found) for found in number.findall(text)]) for text in (a, b))
    np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_apply_by_blocks_writes_what_apply_by_sql_writes(tmp_path, monkeypatch, kind, missing):
    scores, y = wide("probability")
    ca.IsotonicCalibration().fit(scores, y).map_.save(tmp_path / "map.json")
    gap = [None] if missing == "keep" else []
    path = written(tmp_path, {"a": ["x", "y"] * 5, "p": [*scores[: 10 - len(gap)], *gap]}, kind)
    texts = []
    for limit in (0, 10**9):
        monkeypatch.setattr(_apply, "LONG", limit)
        out = tmp_path / f"out{limit}.{kind}"
        words = ["apply", str(tmp_path / "map.json"), str(path), "--score", "p", "--missing", missing, "-o", str(out)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        texts.append(pl.read_parquet(out) if kind == "parquet" else out.read_text())
    if kind == "parquet":
        pl.testing.assert_frame_equal(*texts, abs_tol=1e-12)
    else:
        assert_alike(*texts)


def test_apply_by_blocks_says_which_row_is_no_probability(tmp_path, monkeypatch):
    monkeypatch.setattr(_apply, "LONG", 0)
    record = ca.AffineLogit().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]).map_
    record.save(tmp_path / "line.json")
    path = written(tmp_path, {"p": [0.1, 0.5, 1.5]}, "csv")
    words = ["apply", str(tmp_path / "line.json"), str(path), "--score", "p", "-o", str(tmp_path / "out.csv")]
    done = CliRunner().invoke(app, words)
    assert "holds '1.5' in data row 3 (line 4)" in str(done.exception)
    assert not (tmp_path / "out.csv").exists()
