"""`calibrant export`: every language, to a file and to standard output, and what is refused."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import onnxruntime
import pytest

from calibrant import load_map
from class_cases import write_classes
from cli_runs import ASK, run, write_scores


@pytest.fixture(autouse=True)
def _a_map_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_scores()
    assert run("fit", "scores.csv", *ASK).code == 0


def test_sql_to_standard_output_is_nothing_but_sql() -> None:
    done = run("export", "map.json", "--to", "sql", "--score", "p")
    assert (done.code, done.err) == (0, "")
    found = duckdb.execute(f"SELECT {done.out} FROM (SELECT 0.3::DOUBLE AS p)").fetchall()[0]
    assert found == (pytest.approx(load_map("map.json")(0.3), abs=1e-14),)
    assert "::float8" in run("export", "map.json", "--to", "sql", "--dialect", "postgres").out


def test_python_to_a_file() -> None:
    assert run("export", "map.json", "--to", "python", "-o", "honest.py").out == "Map written to honest.py.\n"
    space: dict[str, object] = {}
    exec(Path("honest.py").read_text(), space)
    assert space["calibrate"](0.3) == pytest.approx(load_map("map.json")(0.3), abs=1e-14)  # type: ignore[operator]
    again = run("export", "map.json", "--to", "python", "-o", "honest.py")
    assert again.code == 2
    assert "exists" in again.err
    assert run("export", "map.json", "--to", "python", "-o", "honest.py", "--force").code == 0


def test_onnx_to_a_file() -> None:
    assert run("export", "map.json", "--to", "onnx", "-o", "map.onnx").code == 0
    session = onnxruntime.InferenceSession("map.onnx", providers=["CPUExecutionProvider"])
    p = np.array([0.1, 0.9])
    np.testing.assert_allclose(session.run(None, {"score": p})[0], load_map("map.json")(p), atol=1e-14)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "onnx"), "name the file to write with --output"),
        (("--to", "python", "--dialect", "spark"), "and --dialect belong to --to sql"),
        (("--to", "cobol"), "--to"),
        (("--to", "sql", "--scores", "a,b"), "this one has two: give --score"),
        (("--to", "python", "--table", "t"), "belong to --to sql"),
        ((), "--to"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], said: str) -> None:
    done = run("export", "map.json", *words)
    assert done.code == 2
    assert said in done.err


# ---------------------------------------------------------------- many classes


def test_many_classes_as_a_query_and_as_python() -> None:
    p, _ = write_classes()
    assert run("fit", "in.csv", "--scores", "p_*", "--label", "label", "--method", "sms", "-o", "many.json").code == 0
    expected = load_map("many.json")(p)
    for columns in ("p_*", "p_cat,p_dog,p_fox,p_owl"):
        done = run(
            "export", "many.json", "--to", "sql", "--scores", columns, "--table", "'in.csv'", "--keep", "id,label"
        )
        assert (done.code, done.err) == (0, "")
        found = duckdb.execute(f"{done.out} ORDER BY id").fetchall()
        np.testing.assert_allclose(np.array([row[2:] for row in found]), expected, atol=1e-12)
    space: dict[str, object] = {}
    exec(run("export", "many.json", "--to", "python").out, space)
    np.testing.assert_allclose(space["calibrate"](p[0].tolist()), expected[0], atol=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name their columns with --scores, in the order 'cat', 'dog', 'fox', 'owl'"),
        (("--score", "p"), "name their columns with --scores"),
        (("--scores", "p_cat,p_dog"), "columns must name a column for each of the 4 classes"),
    ],
)
def test_what_is_refused_for_many_classes(words: tuple[str, ...], said: str) -> None:
    write_classes(n=100)
    run("fit", "in.csv", "--scores", "p_*", "--label", "label", "--method", "svs", "-o", "many.json")
    done = run("export", "many.json", "--to", "sql", *words)
    assert done.code == 2
    assert said in " ".join(done.err.split())
