"""`apply` on files: one more column, every other cell to the character, all or nothing."""

import csv
import gzip
import io
import json
import os
import random

import duckdb
import pytest

from calibrant.data._apply import apply_sql
from calibrant.errors import ColumnError, InputError, OutputExistsError


def twice(number):
    return f"2 * {number}"


def apply(folder, content, name="rows.csv", out="out.csv", **options):
    path = folder / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = {"column": "score", "new_column": "new", "expression_of": twice, **options}
    return apply_sql(path, folder / out, **options)


def text_of(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


def rows_of(path, delimiter=","):
    return list(csv.reader(io.StringIO(text_of(path), newline=""), delimiter=delimiter))


def test_every_other_cell_stays_as_it_was(tmp_path):
    content = 'id,score,"a ""b"""\r\n007, 0.50,"x, y"\r\n1e3,+5.E-1,\n" pad ",.5,""\n"l1\nl2",1,NULL\n#5,1,2024-01-01\n'
    assert apply(tmp_path, content) == 5
    assert text_of(tmp_path / "out.csv") == (
        'id,score,"a ""b""",new\n007, 0.50,"x, y",1.0\n1e3,+5.E-1,,1.0\n pad ,.5,"",1.0\n'
        '"l1\nl2",1,NULL,2.0\n"#5",1,2024-01-01,2.0\n'
    )


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.txt", "out.csv.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_random_cells_stay_as_they_were(tmp_path, separator, out):
    draw = random.Random(separator)
    letters = "ab0. ,;|\t\"'\n\r\\\u00e9\u20ac#{}-"
    cells = ["".join(draw.choice(letters) for _ in range(draw.randint(0, 6))) for _ in range(1800)]
    rows = [["key", "a,b", "", "a,b", "score"]]
    rows += [[str(place), *cells[3 * place : 3 * place + 3], repr(draw.random())] for place in range(600)]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    assert apply(tmp_path, buffer.getvalue(), out=out) == 600
    got = rows_of(tmp_path / out, "\t" if out == "out.tsv" else separator)
    assert [row[:-1] for row in got] == rows
    assert [float(row[-1]) for row in got[1:]] == [2 * float(row[-1]) for row in rows[1:]]


def test_rows_keep_their_order_and_numbers_come_back_exactly(tmp_path):
    draw = random.Random(1)
    scores = [draw.random() * 10 ** draw.randint(-300, 300) for _ in range(200_000)]
    assert apply(tmp_path, "score\n" + "".join(f"{score!r}\n" for score in scores)) == len(scores)
    got = rows_of(tmp_path / "out.csv")
    assert [row[0] for row in got[1:]] == [repr(score) for score in scores]
    assert [float(row[1]) for row in got[1:]] == [2 * score for score in scores]


def test_european_files_stay_european(tmp_path):
    apply(tmp_path, "name;score\nx;0,25\n", decimal=",")
    assert text_of(tmp_path / "out.csv") == "name;score;new\nx;0,25;0,5\n"


def test_without_a_header(tmp_path):
    assert apply(tmp_path, "x,0.25\ny,0.5\n", header=False, column="column_2") == 2
    assert text_of(tmp_path / "out.csv") == "x,0.25,0.5\ny,0.5,1.0\n"


def test_rows_that_are_empty_throughout_are_left_out(tmp_path):
    assert apply(tmp_path, "name,score\nx,0.25\n\n,\n , \ny,0.5\n") == 2
    assert text_of(tmp_path / "out.csv") == "name,score,new\nx,0.25,0.5\ny,0.5,1.0\n"


def test_other_encodings_become_utf8(tmp_path):
    apply(tmp_path, "name;score\r\nJos\xe9;0.5\r\n".encode("cp1252"))
    assert text_of(tmp_path / "out.csv") == "name;score;new\nJos\xe9;0.5;1.0\n"


def test_missing_scores(tmp_path):
    content = "name,score\nx,0.5\ny,NA\nz,\n"
    with pytest.raises(
        InputError, match=r"2 rows of .* first in data row 2 \(line 3\).*missing=\"keep\" \(--missing keep\)"
    ):
        apply(tmp_path, content)
    assert sorted(os.listdir(tmp_path)) == ["rows.csv"]
    step = "CASE WHEN {} < 0.1 THEN 0 ELSE 1 END"
    assert apply(tmp_path, content, missing="keep", expression_of=step.format) == 3
    assert text_of(tmp_path / "out.csv") == "name,score,new\nx,0.5,1.0\ny,NA,\nz,,\n"
    with pytest.raises(InputError, match='missing must be "error" or "keep"'):
        apply(tmp_path, content, missing="drop", out="b.csv")


@pytest.mark.parametrize("cell", ["abc", "inf"])
def test_cells_that_are_no_numbers(tmp_path, cell):
    with pytest.raises(InputError, match=rf"holds '{cell}' in data row 2 \(line 3\)"):
        apply(tmp_path, f"name,score\nx,0.5\ny,{cell}\n", missing="keep")
    assert sorted(os.listdir(tmp_path)) == ["rows.csv"]


def test_outputs_are_not_overwritten_by_accident(tmp_path):
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(OutputExistsError, match="--force"):
        apply(tmp_path, "score\n0.5\n")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert apply(tmp_path, "score\n0.5\n", force=True) == 1
    assert apply(tmp_path, None, name="out.csv", new_column="again", force=True) == 1
    assert text_of(tmp_path / "out.csv") == "score,new,again\n0.5,1.0,1.0\n"


def test_names_that_are_taken_or_not_there(tmp_path):
    with pytest.raises(ColumnError, match="already has a column 'Score'"):
        apply(tmp_path, "score\n0.5\n", new_column="Score")
    with pytest.raises(ColumnError, match="score='p' is not a column"):
        apply(tmp_path, "score\n0.5\n", column="p")
    with pytest.raises(InputError, match=r"must end in \.csv"):
        apply(tmp_path, "score\n0.5\n", out="out.xlsx")
    with pytest.raises(ColumnError, match="more than one column called 'a'"):
        apply(tmp_path, "a,A,score\n1,2,0.5\n", out="out.parquet")


@pytest.mark.parametrize("name", ["it's", 'a"b', "n\nl", "'; DROP TABLE x; --", "\u00fc", "$.x", "/a~b"])
def test_names_stand_for_themselves(tmp_path, name):
    lines = json.dumps({name: 0.25, "x": [1.50, None], name + "2": "007"}) + "\n"
    assert apply(tmp_path, lines, "a.jsonl", "b.jsonl", column=name, new_column=name + "!") == 1
    got = text_of(tmp_path / "b.jsonl")
    assert got.startswith(lines.rstrip()[:-1])
    assert json.loads(got)[name + "!"] == 0.5
    assert apply(tmp_path, None, "b.jsonl", "c.parquet", column=name, new_column="n") == 1
    assert apply(tmp_path, None, "c.parquet", "d ' [1].csv", column=name, new_column="m") == 1
    assert rows_of(tmp_path / "d ' [1].csv")[0] == [name, "x", name + "2", name + "!", "n", "m"]


def test_lines_of_json_stay_as_they_are(tmp_path):
    lines = ['{"score": 0.50, "b":1e2,"s":"\\u00e9 }"}', ' {"s":[1.0, {"a":null}]}  ', "", "{ }", '{"score":"0.25"}']
    assert apply(tmp_path, "\n".join(lines), "a.jsonl", "b.jsonl.gz", missing="keep") == 4
    assert text_of(tmp_path / "b.jsonl.gz").splitlines() == [
        '{"score": 0.50, "b":1e2,"s":"\\u00e9 }", "new": 1.0}',
        '{"s":[1.0, {"a":null}], "new": null}',
        '{"new": null}',
        '{"score":"0.25", "new": 0.5}',
    ]


def test_parquet_keeps_its_types(tmp_path):
    engine = duckdb.connect()
    select = "SELECT 0.25::FLOAT AS score, DATE '2024-01-01' AS d, [1, 2] AS l, 7::UTINYINT AS u"
    engine.execute(f"COPY ({select}) TO '{tmp_path}/a.parquet'")
    assert apply(tmp_path, None, "a.parquet", "b.parquet") == 1
    described = engine.execute(f"DESCRIBE SELECT * FROM '{tmp_path}/b.parquet'").fetchall()
    assert [row[:2] for row in described] == [
        ("score", "FLOAT"), ("d", "DATE"), ("l", "INTEGER[]"), ("u", "UTINYINT"), ("new", "DOUBLE")
    ]  # fmt: skip
    assert engine.execute(f"SELECT new FROM '{tmp_path}/b.parquet'").fetchone() == (0.5,)


def test_text_to_parquet_and_json_stays_text(tmp_path):
    apply(tmp_path, "id,score\n007,0.25\n", out="out.parquet")
    assert duckdb.connect().execute(f"SELECT * FROM '{tmp_path}/out.parquet'").fetchall() == [("007", "0.25", 0.5)]
    apply(tmp_path, None, out="out.jsonl")
    assert json.loads(text_of(tmp_path / "out.jsonl")) == {"id": "007", "score": "0.25", "new": 0.5}


def test_a_folder_becomes_one_file(tmp_path):
    (tmp_path / "parts").mkdir()
    for part in (2, 1):
        (tmp_path / "parts" / f"{part}.csv").write_text(f"score\n0.{part}\n")
    assert apply(tmp_path, None, "parts") == 2
    assert text_of(tmp_path / "out.csv") == "score,new\n0.1,0.2\n0.2,0.4\n"
