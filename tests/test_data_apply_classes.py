"""Applying a map of many classes to a file: nothing else in it changes, whatever its size and kind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from calibrant.data import _apply_classes
from calibrant.data._apply import apply_sql
from calibrant.data._apply_classes import apply_rows
from calibrant.errors import ColumnError, InputError, OutputExistsError

COLUMNS, NEW = ("a", "b", "c"), ("x_a", "x_b", "x_c")
KEPT = [
    'id,name,a,"b ",c,"a ""quoted"" name",last',
    '007,"Doe, Jane",0.5,.25,2.5e-1,"say ""hi""",',
    "1.50, padded ,0.25,0.50,0.25,größe,x\ty",
    "1e3,名前,0.125,0.125,0.75,'single',  ",
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def turned(scores: np.ndarray) -> np.ndarray:
    return scores[:, ::-1] / 2


def applied(path: str, out: str, **more: object) -> int:
    return apply_rows(path, out, rows_map=turned, columns=COLUMNS, new_columns=NEW, **more)  # type: ignore[arg-type]


def test_every_other_cell_stays_as_it_is() -> None:
    Path("in.csv").write_text("\n".join(KEPT) + "\n", encoding="utf-8")
    assert applied("in.csv", "out.csv") == 3
    lines = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == KEPT[0].replace('"b "', "b ") + ",x_a,x_b,x_c"
    assert [line.rsplit(",", 3)[0] for line in lines[1:]] == KEPT[1:]
    assert lines[1].rsplit(",", 3)[1:] == ["0.125", "0.125", "0.25"]
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv", "out.csv"]


def test_blocks_keep_the_order_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_apply_classes, "BLOCK_CELLS", 3 * 1000)
    scores = np.random.default_rng(0).random((30_500, 3))
    lines = [f"{k},{a!r},{b!r},{c!r}" for k, (a, b, c) in enumerate(scores.tolist())]
    Path("in.csv").write_text("\n".join(["id,a,b,c", *lines]) + "\n")
    shares: list[float] = []
    assert applied("in.csv", "out.csv", progress=shares.append) == 30_500
    found = np.loadtxt("out.csv", delimiter=",", skiprows=1)
    assert np.array_equal(found[:, 0], np.arange(30_500))
    assert np.array_equal(found[:, 1:4], scores)
    assert np.array_equal(found[:, 4:], turned(scores))
    assert shares == sorted(shares)


def test_parquet_and_compressed_text_and_json_lines() -> None:
    Path("in.csv").write_text("id;a;b;c\n007;0,5;0,25;0,25\n8;0,1;0,2;0,7\n")
    assert applied("in.csv", "out.parquet", separator=";", decimal=",") == 2
    assert applied("in.csv", "out.csv.gz", separator=";", decimal=",") == 2
    text = gzip.decompress(Path("out.csv.gz").read_bytes()).decode()
    assert text.splitlines()[1] == "007;0,5;0,25;0,25;0,125;0,125;0,25"
    lines = ['{"id": "007", "a": 0.5, "b": 0.25, "c": 2.5e-1, "more": {"k": [1, 2]}}', '{"c": 1, "b": 0, "a": 0}']
    Path("in.jsonl").write_text("\n".join(lines) + "\n")
    assert applied("in.jsonl", "out.jsonl") == 2
    made = Path("out.jsonl").read_text().splitlines()
    assert [line.startswith(own[:-1] + ", ") for line, own in zip(made, lines)] == [True, True]
    assert json.loads(made[1])["x_a"] == 0.5


def test_missing_scores_are_refused_or_kept_empty() -> None:
    Path("in.csv").write_text("id,a,b,c\n1,.5,.2,.3\n2,,.5,.5\n\n3,.1,.1,.8\n")
    with pytest.raises(InputError, match=r"1 row of 'in.csv' has a missing cell, the first in data row 2"):
        applied("in.csv", "out.csv")
    assert not Path("out.csv").exists()
    assert applied("in.csv", "out.csv", missing="keep") == 3
    assert Path("out.csv").read_text().splitlines()[2] == "2,,.5,.5,,,"


def test_cells_that_are_no_numbers_say_where_and_errors_of_the_map_are_passed_on() -> None:
    Path("in.csv").write_text("a,b,c\n.5,.2,.3\n.1,high,.3\n")
    with pytest.raises(ColumnError, match="'high' in data row 2"):
        applied("in.csv", "out.csv", missing="keep")

    def refusing(scores: np.ndarray) -> np.ndarray:
        if (scores > 1).any():
            raise InputError("too large in data row 2.")
        return scores

    Path("in.csv").write_text("a,b,c\n.5,.2,.3\n.1,7,.3\n")
    with pytest.raises(InputError, match=r"^too large in data row 2\.$"):
        apply_rows("in.csv", "out.csv", rows_map=refusing, columns=COLUMNS, new_columns=NEW)
    assert not Path("out.csv").exists()


def test_what_is_refused_before_anything_is_written() -> None:
    Path("in.csv").write_text("a,b,c,x_b\n.5,.2,.3,1\n")
    with pytest.raises(ColumnError, match="already has a column 'x_b'"):
        applied("in.csv", "out.csv")
    Path("out.csv").write_text("precious")
    with pytest.raises(OutputExistsError):
        applied("in.csv", "out.csv")
    Path("empty.csv").write_text("")
    with pytest.raises(InputError, match="is empty"):
        applied("empty.csv", "new.csv")
    assert Path("out.csv").read_text() == "precious"
    with pytest.raises(InputError, match="must end in"):
        applied("in.csv", "out.xlsx")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_no_rows_are_a_file_of_no_rows_as_with_sql(ending: str) -> None:
    """A day without rows is no error, whatever the size of the map: long maps go over blocks of rows too."""
    Path("in.csv").write_text("a,b,c\n")
    assert applied("in.csv", f"out.{ending}") == 0
    assert apply_sql("in.csv", f"sql.{ending}", expression_of=str, column="a", new_column="x_a") == 0
    if ending == "csv":
        assert Path("out.csv").read_text() == "a,b,c,x_a,x_b,x_c\n"
        assert Path("sql.csv").read_text() == "a,b,c,x_a\n"
    if ending == "parquet":
        assert pq.read_table("out.parquet").column_names == ["a", "b", "c", *NEW]
