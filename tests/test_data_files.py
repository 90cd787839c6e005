"""Files of scores: every dialect gives the same columns, and what cannot be read says what to do."""

import datetime
import gzip
import json
import random

import duckdb
import numpy as np
import pytest

from calibrant.data._files import read_binary, read_many
from calibrant.errors import ColumnError, InputError, InputTypeError

PLAIN = "score,label\n0.25,0\n0.5,1\n0.75,1\n"
SCORES, LABELS = [0.25, 0.5, 0.75], [0, 1, 1]


def write(folder, content, name="rows.csv"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, **options):
    return read_binary(path, **{"score": "score", "label": "label", **options})


def is_plain(columns):
    assert columns.scores.dtype == np.float64
    assert columns.labels.dtype == np.uint8
    assert columns.scores.tolist() == SCORES
    assert columns.labels.tolist() == LABELS
    assert columns.weights is None
    return True


# ---------------------------------------------------------------- dialects

DIALECTS = {
    "plain": PLAIN,
    "no line end at the end": PLAIN.rstrip(),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "old Mac line ends": PLAIN.replace("\n", "\r"),
    "mixed line ends": "score,label\r\n0.25,0\n0.5,1\r\n0.75,1\n",
    "three kinds of line ends": "score,label\r\n0.25,0\n0.5,1\r0.75,1\n",
    "byte order mark and quoted names": b"\xef\xbb\xbf" + b'"score","label"\r\n"0.25","0"\r\n"0.5","1"\n"0.75","1"\n',
    "UTF-16": PLAIN.encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "UTF-16 without a mark": PLAIN.encode("utf-16-le"),
    "UTF-32": PLAIN.encode("utf-32"),
    "gzip": gzip.compress(PLAIN.encode()),
    "semicolons": PLAIN.replace(",", ";"),
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "semicolons announced": "sep=;\n" + PLAIN.replace(",", ";"),
    "blank lines": "\n\n" + PLAIN.replace("\n", "\n\n"),
    "lines of blanks": PLAIN + "   \n",
    "rows that are empty throughout": PLAIN + ",\n , \n",
    "separator at the end": PLAIN.replace("\n", ",\n"),
    "blanks around names and cells": " score , label \n 0.25, 0\n0.5 ,1 \n0.75,\t1\n",
    "other columns, a name of two lines": 'name,"la\nst",score,label\n"a,b",x,0.25,0\n"l1\nl2",,0.5,1\n"q""",,0.75,1\n',
    "Windows-1252": "name,score,label\nJos\xe9,0.25,0\n\u20ac,0.5,1\nx,0.75,1\n".encode("cp1252"),
    "signs and exponents": "score,label\n+2.5E-1,0.0\n5.E-1,1.0\n.75,1e0\n",
    "true and false": "score,label\n0.25,false\n0.5,TRUE\n0.75,True\n",
    "minus one and one": "score,label\n0.25,-1\n0.5,1\n0.75,+1.0\n",
    "one and two": "score,label\n0.25,1\n0.5,2\n0.75,2\n",
}


@pytest.mark.parametrize("content", DIALECTS.values(), ids=DIALECTS.keys())
def test_every_dialect_gives_the_same_rows(tmp_path, content):
    assert is_plain(read(write(tmp_path, content)))


@pytest.mark.parametrize("name", ["rows.tsv", "rows.txt", "rows", "rows.dat", "rows.CSV", "rows.csv.gz"])
def test_the_name_of_a_text_file_does_not_matter(tmp_path, name):
    assert is_plain(read(write(tmp_path, gzip.compress(PLAIN.encode()) if name.endswith("gz") else PLAIN, name)))


def test_late_bytes_of_another_encoding(tmp_path):
    """The first 256 KiB are UTF-8, a later cell is not."""
    rows = "".join(f"x,{i / 50000!r},{i % 2}\n" for i in range(50000))
    columns = read(write(tmp_path, ("name,score,label\n" + rows).encode() + b"\xe9,0.5,1\n"))
    assert len(columns.scores) == 50001


@pytest.mark.parametrize("separator", ["tab", "\\t", "\t"])
def test_the_separator_by_name(tmp_path, separator):
    assert is_plain(read(write(tmp_path, PLAIN.replace(",", "\t")), separator=separator))


def test_european_numbers(tmp_path):
    path = write(tmp_path, "score;label\n0,25;0\n0,5;1\n0,75;1,0\n")
    assert is_plain(read(path, separator=";", decimal=","))
    assert is_plain(read(path, decimal=","))
    with pytest.raises(ColumnError, match=r"holds '0,25' in data row 1 \(line 2\).*separator=';', decimal=','"):
        read(path)
    assert is_plain(read(write(tmp_path, 'score,label\n"0,25",0\n"0,5",1\n"0,75",1\n'), decimal=","))


def test_european_numbers_between_commas(tmp_path):
    with pytest.raises(InputError, match=r"Line 2 of .* has 3 cells where the first line has 2 .*decimal=','"):
        read(write(tmp_path, "score,label\n0,25,0\n0,5,1\n"))


def test_without_a_header(tmp_path):
    path = write(tmp_path, "0.25,0\n0.5,1\n0.75,1\n")
    assert is_plain(read(path, header=False, score="column_1", label="column_2"))
    with pytest.raises(ColumnError, match=r"score='score' is not a column.*'0.25', '0'.*header=False"):
        read(path)


def test_columns_by_blanks_are_named_as_such(tmp_path):
    path = write(tmp_path, "score label\n0.25 0\n0.5 1\n0.75 1\n")
    with pytest.raises(ColumnError, match="separated by blanks"):
        read(path)
    assert is_plain(read(path, separator=" "))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson", "rows.json", "rows"])
def test_json_lines(tmp_path, name):
    first, second = '{"score": 0.25, "label": 0, "x": {"a": 1}}', '{"label": 1, "score": "0.5"}'
    lines = f'{first}\n\n{second}\n{{"score": 75e-2, "label": 1.0}}\n'
    assert is_plain(read(write(tmp_path, lines, name)))
    assert is_plain(read(write(tmp_path, b"\xef\xbb\xbf" + lines.encode(), name)))


def test_json_lines_with_text_and_nulls(tmp_path):
    path = write(
        tmp_path,
        '{"p": 0.5, "y": "no"}\n{"p": null, "y": "yes"}\n{"y": "yes"}\n{"p": 0.75, "y": "yes"}\n',
        "a.jsonl.gz",
    )
    path.write_bytes(gzip.compress(path.read_bytes()))
    columns = read(path, score="p", label="y", pos_label="yes", missing="drop")
    assert (columns.scores.tolist(), columns.labels.tolist(), columns.dropped) == ([0.5, 0.75], [0, 1], 2)
    with pytest.raises(InputError, match=r"2 rows of .* have a missing cell, the first in row 2;"):
        read(path, score="p", label="y", pos_label="yes")


# ---------------------------------------------------------------- Parquet


def parquet(folder, select, name="rows.parquet"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.connect().execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("kind", ["INT", "DOUBLE", "FLOAT", "BOOLEAN", "VARCHAR", "DECIMAL(4,2)", "UTINYINT"])
def test_labels_of_every_type_in_parquet(tmp_path, kind):
    rows = "(VALUES (0.25, 0), (0.5, 1), (0.75, 1)) t(s, y)"
    path = parquet(tmp_path, f"SELECT CAST(s AS FLOAT) AS score, CAST(y AS {kind}) AS label FROM {rows}")
    assert is_plain(read(path))


def test_missing_and_not_numbers_in_parquet(tmp_path):
    rows = "SELECT * FROM (VALUES (0.25::DOUBLE, 'a'), ('nan', 'b'), (NULL, 'b'), (0.5, 'b')) t(score, label)"
    path = parquet(tmp_path, rows)
    columns = read(path, pos_label="b", missing="drop")
    assert (columns.scores.tolist(), columns.labels.tolist(), columns.dropped) == ([0.25, 0.5], [0, 1], 2)
    with pytest.raises(InputError, match=r"2 rows of .* the first in row 2; missing by column: 'score' 2"):
        read(path, pos_label="b")


def test_dates_are_not_scores(tmp_path):
    path = parquet(tmp_path, f"SELECT DATE '{datetime.date(2024, 1, 1)}' AS score, 1 AS label")
    with pytest.raises(ColumnError, match="score='score' holds DATE, not numbers"):
        read(path)


def test_damaged_files(tmp_path):
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read(write(tmp_path, b"PAR1 and nothing", "a.parquet"))
    with pytest.raises(InputError, match="cannot be read as JSON lines: Malformed JSON"):
        read(write(tmp_path, '{"score": 1}\n{"score":\n', "a.jsonl"))
    with pytest.raises(InputError, match="not a whole gzip file"):
        read(write(tmp_path, gzip.compress(random.Random(0).randbytes(9000))[:500], "a.csv.gz"))
    with pytest.raises(InputError, match="workbook"):
        read(write(tmp_path, b"PK\x03\x04rest", "a.xlsx"))
    with pytest.raises(InputError, match="not a text file"):
        read(write(tmp_path, b"\x80\x04\x95\x00\x00\x01\x02", "a.csv"))
    with pytest.raises(InputError, match=r"Line 3 of .* has 1 cell where the first line has 2 .*Complete the line"):
        read(write(tmp_path, "score,label\n0.5,1\n0.5\n"))
    with pytest.raises(InputError, match=r"Line 3 of .* has a quote that does not end"):
        read(write(tmp_path, 'score,label\n0.5,1\n0.5,"1\n0.6,0\n'))


# ---------------------------------------------------------------- where files are


@pytest.mark.parametrize(
    "name", ["it's.csv", 'a"b.csv', "n\nl.csv", "\u00fcber [1].csv", "a*.csv", "what?.csv", "{x}.csv", "%41.csv"]
)
def test_names_of_files_stand_for_themselves(tmp_path, name):
    for decoy in ("\u00fcber 1.csv", "ab.csv", "whatx.csv"):
        write(tmp_path, "score,label\n9,1\n", decoy)
    assert is_plain(read(write(tmp_path, PLAIN, name)))


@pytest.mark.parametrize("name", ["it's", 'a"b', "n\nl", "'; DROP TABLE x; --", "\u00fc", "a,b", "$.x", "/a~b"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_names_of_columns_stand_for_themselves(tmp_path, name, kind):
    quoted = name.replace('"', '""')
    if kind == "csv":
        path = write(tmp_path, f'"{quoted}",label\n0.25,0\n0.5,1\n0.75,1\n')
    elif kind == "jsonl":
        path = write(
            tmp_path, "".join(json.dumps({name: s, "label": y}) + "\n" for s, y in zip(SCORES, LABELS)), "a.jsonl"
        )
    else:
        path = parquet(
            tmp_path, f'SELECT s AS "{quoted}", y AS label FROM (VALUES (0.25, 0), (0.5, 1), (0.75, 1)) t(s, y)'
        )
    assert is_plain(read(path, score=name))


@pytest.mark.parametrize("place", ["parts", "parts/*.csv", "parts/**/b*.csv"])
def test_folders_and_globs_are_read_in_the_order_of_names(tmp_path, place):
    write(tmp_path, "score,label\n0.5,1\n0.75,1\n", "parts/b2.csv")
    write(tmp_path, "score,label\n0.25,0\n", "parts/b1.csv")
    write(tmp_path, "", "parts/_SUCCESS")
    write(tmp_path, "", "parts/.hidden.csv")
    assert is_plain(read(f"{tmp_path}/{place}"))


def test_parts_of_parquet_and_of_other_encodings(tmp_path):
    parquet(tmp_path, "SELECT 0.25 AS score, 0 AS label", "a/1.parquet")
    parquet(tmp_path, "SELECT * FROM (VALUES (0.5, 1), (0.75, 1)) t(score, label)", "a/sub/2.parquet")
    assert is_plain(read(tmp_path / "a"))
    write(tmp_path, gzip.compress(b"score,label\n0.25,0\n"), "b/1.csv.gz")
    write(tmp_path, "score,label\r\n0.5,1\r\n0.75,1\r\n".encode("utf-16"), "b/2.csv")
    assert is_plain(read(tmp_path / "b"))


def test_parts_that_differ(tmp_path):
    write(tmp_path, PLAIN, "a/1.csv")
    write(tmp_path, PLAIN.replace("label", "other"), "a/2.csv")
    with pytest.raises(
        InputError, match=r"The parts of .* differ: .*1.csv' has the columns score, label, .*score, other"
    ):
        read(tmp_path / "a")
    parquet(tmp_path, "SELECT 0.25 AS score, 0 AS label", "a/3.parquet")
    with pytest.raises(InputError, match="different kinds: parquet, text"):
        read(tmp_path / "a")


def test_files_that_are_not_there(tmp_path):
    write(tmp_path, PLAIN, "scores.csv")
    with pytest.raises(InputError, match=r"score.csv' does not exist. Did you mean '.*scores.csv'"):
        read(tmp_path / "score.csv")
    with pytest.raises(InputError, match="There is no folder"):
        read(tmp_path / "nowhere" / "x.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"The folder .* holds no csv"):
        read(tmp_path / "empty")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
def test_empty_files(tmp_path, name):
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        path = write(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
        with pytest.raises(InputError, match=r"a\.[a-z.]*' is empty"):
            read(path)


def test_a_header_only(tmp_path):
    with pytest.raises(InputError, match="has a header but no rows"):
        read(write(tmp_path, "score,label\n"))


# ---------------------------------------------------------------- columns


def test_unknown_and_repeated_columns(tmp_path):
    with pytest.raises(
        ColumnError, match=r"label='lable' is not a column. The columns are: 'score', 'label'. Did you mean 'label'"
    ):
        read(write(tmp_path, PLAIN), label="lable")
    with pytest.raises(ColumnError, match=r"score='score' names 2 columns \(numbers 1, 3\)"):
        read(write(tmp_path, "score,label,score\n0.5,1,0.5\n"))
    with pytest.raises(ColumnError, match="Only one column was found"):
        read(write(tmp_path, "score:label\n0.5:1\n"))
    assert is_plain(read(write(tmp_path, "score,label,label2,x,x\n0.25,0,,,\n0.5,1,,,\n0.75,1,,,\n")))


def test_a_label_column_that_is_none(tmp_path):
    rows = "".join(f"0.5,{number}\n" for number in range(20_000))
    with pytest.raises(ColumnError, match="more than 10,000 different values"):
        read(write(tmp_path, "score,label\n" + rows))
    with pytest.raises(InputError, match="two classes, but it holds 3 different values"):
        read(write(tmp_path, "score,label\n0.1,0\n0.2,1\n0.3,2\n"))


def test_text_labels_need_pos_label(tmp_path):
    path = write(tmp_path, "score,label\n0.25,bad\n0.5, good\n0.75,good \n")
    with pytest.raises(InputError, match=r"text \('bad', 'good'\).*pos_label"):
        read(path)
    columns = read(path, pos_label="good")
    assert is_plain(columns)
    assert columns.classes == ("bad", "good")
    with pytest.raises(InputError, match="pos_label is 'best', but y holds 'bad', 'good'"):
        read(path, pos_label="best")


def test_pos_label_as_text_where_labels_are_numbers(tmp_path):
    columns = read(write(tmp_path, PLAIN), pos_label="0")
    assert (columns.labels.tolist(), columns.classes) == ([1, 0, 0], (1, 0))
    columns = read(write(tmp_path, PLAIN.replace(",1", ",true").replace(",0\n", ",false\n")), pos_label="true")
    assert (columns.labels.tolist(), columns.classes) == (LABELS, (False, True))


def test_a_marker_of_missing_cells_can_be_a_class(tmp_path):
    path = write(tmp_path, "score,label\n0.25,EU\n0.5,NA\n0.75,NA\n")
    assert is_plain(read(path, pos_label="NA"))
    with pytest.raises(InputError, match=r"2 rows .* missing by column: 'label' 2"):
        read(path, pos_label="EU")


# ---------------------------------------------------------------- cells


def test_missing_cells_are_counted_and_dropped_on_demand(tmp_path):
    marks = ["", "NA", "N/A", "nan", "NaN", "null", "NULL", "None", "?", " ", "."]
    rows = "".join(f"{mark},1\n" for mark in marks) + "0.5,\n,\n0.75,1\n"
    path = write(tmp_path, "score,label\n0.25,0\n\n" + rows)
    with pytest.raises(
        InputError, match=r"12 rows .* first in data row 2 \(line 4\); .*'score' 11, 'label' 1.*--missing drop"
    ):
        read(path)
    columns = read(path, missing="drop")
    assert (columns.scores.tolist(), columns.labels.tolist(), columns.dropped) == ([0.25, 0.75], [0, 1], 12)
    with pytest.raises(InputError, match="no row without a missing value"):
        read(write(tmp_path, "score,label\nNA,1\n0.5,\n"), missing="drop")
    with pytest.raises(InputError, match='missing must be "error" or "drop"'):
        read(path, missing="ignore")


def test_the_line_counts_breaks_inside_cells(tmp_path):
    path = write(tmp_path, 'x,score,label\n"a\nb",0.5,0\n\n"c\nd",x,1\n')
    with pytest.raises(ColumnError, match=r"holds 'x' in data row 2 \(line 6\), which is not a number"):
        read(path)


@pytest.mark.parametrize(
    "cell, said",
    [
        ("abc", "holds 'abc' in data row 2 .*, which is not a number.* count as missing"),
        ("0.5x", "not a number"),
        ("12%", "percentage"),
        ('"1.234,5"', "thousands"),
        ("inf", "must be finite"),
        ("1e999", "must be finite"),
    ],
)
@pytest.mark.parametrize("missing", ["error", "drop"])
def test_cells_that_are_no_numbers_are_never_dropped(tmp_path, cell, said, missing):
    path = write(tmp_path, f"score,label\n0.25,0\n{cell},1\n0.75,1\n{cell},0\n")
    with pytest.raises(InputError, match=f"{said}.*") as caught:
        read(path, missing=missing)
    assert "(2 cells in all)" in str(caught.value)


def test_weights(tmp_path):
    columns = read(write(tmp_path, "score,label,w\n0.25,0,2\n0.5,1,0.5\n0.75,1,0\n"), weight="w")
    assert columns.weights.tolist() == [2, 0.5, 0]
    with pytest.raises(InputError, match=r"holds '-1' in data row 2 \(line 3\), but a weight cannot be negative"):
        read(write(tmp_path, "score,label,w\n0.25,0,2\n-0.5,1,-1\n"), weight="w")
    with pytest.raises(InputError, match="missing by column: 'w' 1"):
        read(write(tmp_path, "score,label,w\n0.25,0,2\n0.5,1,\n"), weight="w")
    assert read(write(tmp_path, "score,label,w\n0.25,0,2\n0.5,1,\n"), weight="w", missing="drop").dropped == 1


def test_text_becomes_the_double_that_float_gives(tmp_path):
    draw = random.Random(0)
    texts = [f"{draw.randint(1, 9)}.{draw.randrange(10**17):017d}e{draw.randint(-320, 300)}" for _ in range(30_000)]
    texts += ["0." + "".join(draw.choice("0123456789") for _ in range(draw.randint(1, 30))) for _ in range(30_000)]
    texts += [repr(draw.random()) for _ in range(40_000)] + ["5e-324", "2.4e-324", "1.7976931348623157e308", "-0.0"]
    path = write(tmp_path, "score,label\n" + "".join(f"{text},{place % 2}\n" for place, text in enumerate(texts)))
    columns = read(path)
    assert np.array_equal(columns.scores, np.array([float(text) for text in texts]))
    assert np.array_equal(columns.labels, np.arange(len(texts)) % 2)


def test_decimal_points_are_no_numbers_where_commas_are(tmp_path):
    with pytest.raises(ColumnError, match=r"holds '0.5' .*, which is not a number. It has a decimal point"):
        read(write(tmp_path, "score;label\n0,25;0\n0.5;1\n"), decimal=",")
    with pytest.raises(ColumnError, match="U\\+00A0"):
        read(write(tmp_path, "score,label\n\u00a00.5,1\n"))
    with pytest.raises(ColumnError, match="separated by blanks"):
        read(write(tmp_path, "score label\n0,25 0\n0,5 1\n"))


def test_bad_options(tmp_path):
    with pytest.raises(InputTypeError, match="path must be the name of a file, but it is int"):
        read(5)
    path = write(tmp_path, PLAIN)
    with pytest.raises(InputError, match="separator must be one character"):
        read(path, separator="ab")
    with pytest.raises(InputError, match=r"decimal must be '\.' or ','"):
        read(path, decimal=";")


def test_progress_is_told(tmp_path):
    rows = "".join(f"{i / 1e6},{i % 2}\n" for i in range(300_000))
    path, seen = write(tmp_path, gzip.compress(("score,label\n" + rows).encode(), 1), "a.csv.gz"), []
    assert len(read(path, progress=seen.append).scores) == 300_000
    assert seen == sorted(seen)
    assert all(0 <= share <= 1 for share in seen)


# ---------------------------------------------------------------- K classes


def test_many_classes(tmp_path):
    path = write(tmp_path, "a,b,c,y\n0.2,0.3,0.5,2\n0.6,0.3,0.1,0\n0.1,,0.1,1\n")
    columns = read_many(path, scores=["a", "b", "c"], label="y", missing="drop")
    assert columns.scores.tolist() == [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    assert (columns.labels.tolist(), columns.classes, columns.dropped) == ([2, 0], (0, 1, 2), 1)
    assert columns.labels.dtype == np.int64
    with pytest.raises(InputError, match="missing by column: 'b' 1"):
        read_many(path, scores=["a", "b", "c"], label="y")
    with pytest.raises(InputError, match="at least two"):
        read_many(path, scores=["a"], label="y")


def test_many_classes_by_name(tmp_path):
    path = write(tmp_path, "cat,dog,y\n0.2,0.8,dog\n0.6,0.4,cat\n")
    assert read_many(path, scores=["cat", "dog"], label="y").labels.tolist() == [1, 0]
    columns = read_many(path, scores=["cat", "dog"], label="y", classes=["dog", "cat"])
    assert (columns.labels.tolist(), columns.classes) == ([0, 1], ("dog", "cat"))
    with pytest.raises(InputError, match=r"holds? 'cat', which is not among the classes"):
        read_many(path, scores=["cat", "dog"], label="y", classes=["dog", "cow"])
