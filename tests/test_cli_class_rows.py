"""Rows of K classes on the command line: which row is wrong, rounded probabilities, logits that are none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from calibrant import load_map
from calibrant.cli import _class_large
from cli_runs import run


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ASK = ("--scores", "p_*", "--label", "y")
SVS = ("--method", "svs")
COMMANDS = {
    "fit": ("fit", "{}", *ASK, *SVS, "-o", "new.json"),
    "report": ("report", "{}", *ASK, *SVS),
    "evaluate": ("evaluate", "{}", *ASK),
    "evaluate a map": ("evaluate", "{}", *ASK, "--map", "map.json"),
    "apply": ("apply", "map.json", "{}", "--scores", "p_*", "-o", "out.csv"),
}


def rows(n: int = 60) -> list[list[object]]:
    """Scores of three classes, labels, and a weight that is nothing for two early rows."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), n)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    return [[*row, "abc"[k], float(i not in (3, 4))] for i, (row, k) in enumerate(zip(p.tolist(), y.tolist()))]


def as_csv(name: str, table: list[list[object]]) -> None:
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in table]
    Path(name).write_text("\n".join(["p_a,p_b,p_c,y,w", *lines]) + "\n")


def as_other(name: str, table: list[list[object]]) -> None:
    as_csv("made.csv", table)
    kind = "FORMAT parquet" if name.endswith("parquet") else "FORMAT json"
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.execute(f"COPY (SELECT * FROM read_csv('made.csv')) TO '{name}' ({kind})")


FILES: dict[str, tuple[Callable[[str, list[list[object]]], None], str]] = {
    "in.csv": (as_csv, "data row 31 (line 32)"),
    "in.parquet": (as_other, "row 31"),
    "in.jsonl": (as_other, "row 31"),
}
FAULTS: dict[str, tuple[list[object], str]] = {
    "outside": ([1.5, -0.25, -0.25], "the first that does not is 1.5 in {}."),
    "sum": ([0.5, 0.25, 0.125], "1 row does not: {} sums to 0.875."),
}


@pytest.mark.parametrize("blocks", [False, True], ids=["at once", "by blocks"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_row_is_named_once_as_it_stands_in_the_file(
    command: str, file: str, fault: str, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, where = FILES[file]
    as_csv("good.csv", rows())
    assert run("fit", "good.csv", *ASK, *SVS).code == 0
    table = rows()
    table[30][:3], message = FAULTS[fault]
    write(file, table)
    if blocks:
        monkeypatch.setattr(_class_large, "LARGE", 1)
    done = run(*(word.format(file) for word in COMMANDS[command]))
    assert (done.code, done.out) == (2, "")
    assert message.format(where) in done.err
    assert re.findall(r"\brow \d+", done.err) == ["row 31"]
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("blocks", [False, True], ids=["at once", "by blocks"])
@pytest.mark.parametrize("file", FILES)
def test_rows_that_are_left_out_are_counted_too(file: str, blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    write, where = FILES[file]
    table = rows()
    table[30][:3] = [0.5, 0.25, 0.125]
    table[7][0] = table[9][3] = None
    write(file, table)
    if blocks:
        monkeypatch.setattr(_class_large, "LARGE", 1)
    done = run("fit", file, *ASK, *SVS, "--missing", "drop", "--weight", "w")
    assert done.code == 2
    assert f"not: {where} sums to 0.875" in done.err


def test_logits_too_far_apart_are_named_by_their_row() -> None:
    table = rows()
    table[30][:3] = [1.7e308, 0.0, -1.7e308]
    as_csv("in.csv", table)
    done = run("fit", "in.csv", *ASK, *SVS, "--from-logits")
    assert done.code == 2
    assert "The logits in data row 31 (line 32) are too far apart" in done.err


# ---------------------------------------------------------------- rounded probabilities


def rounded(places: int) -> np.ndarray:
    table = rows(300)
    for row in table:
        row[:3] = [round(cell, places) for cell in row[:3]]  # type: ignore[call-overload]
    as_csv("rounded.csv", table)
    p = np.array([row[:3] for row in table], dtype=float)
    divided = p / p.sum(axis=1, keepdims=True)
    as_csv("divided.csv", [[*map(repr, own), *row[3:]] for own, row in zip(divided.tolist(), table)])
    assert np.abs(p.sum(axis=1) - 1).max() > 1e-4
    return divided


def numbers_of(content: Any) -> Iterator[float]:
    """Every number of a JSON answer, in its order."""
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from numbers_of(part)
    elif isinstance(content, int | float):
        yield float(content)


@pytest.mark.parametrize("blocks", [False, True], ids=["at once", "by blocks"])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_rounded_probabilities_are_divided_by_their_sum(
    places: int, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = rounded(places)
    if blocks:
        monkeypatch.setattr(_class_large, "LARGE", 1)
    refused = run("fit", "rounded.csv", *ASK, *SVS)
    assert refused.code == 2
    assert "if the probabilities were rounded, --normalize divides each row by its sum" in refused.err
    fitted = run("fit", "rounded.csv", *ASK, *SVS, "--normalize")
    assert fitted.code == 0, fitted.err
    assert "calibrant apply map.json new.csv --scores 'p_*' --normalize -o" in fitted.out
    assert run("fit", "divided.csv", *ASK, *SVS, "-o", "other.json").code == 0
    np.testing.assert_allclose(load_map("map.json")(p), load_map("other.json")(p), atol=1e-9)
    for words in (("evaluate",), ("evaluate", "--map", "map.json"), ("report", *SVS)):
        said = [
            json.loads(run(words[0], file, *ASK, *words[1:], *more, "--json").out)
            for file, more in (("rounded.csv", ["--normalize"]), ("divided.csv", []))
        ]
        found, expected = (list(numbers_of(one)) for one in said)
        assert len(expected) > 20
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert run("apply", "map.json", "rounded.csv", "--scores", "p_*", "--normalize", "-o", "out.csv").code == 0
    made = [line.split(",") for line in Path("out.csv").read_text().splitlines()[1:]]
    np.testing.assert_allclose(np.array([line[-3:] for line in made], dtype=float), load_map("map.json")(p), atol=1e-12)
    assert [",".join(line[:5]) for line in made] == Path("rounded.csv").read_text().splitlines()[1:]


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_normalize_does_not_hide_columns_left_out(words: tuple[str, ...]) -> None:
    as_csv("good.csv", rows())
    run("fit", "good.csv", *ASK, *SVS)
    table = rows()
    table[30][:3] = [0.25, 0.25, 0.125]
    as_csv("in.csv", table)
    done = run(*(word.format("in.csv") for word in words), "--normalize")
    assert done.code == 2
    assert "data row 31 (line 32) sums to 0.625, which rounding does not explain" in done.err


def test_normalize_is_for_columns_of_probabilities() -> None:
    as_csv("in.csv", rows())
    assert "--normalize divides" in run("fit", "in.csv", "--score", "p_a", "--label", "y", "--normalize").err
    assert "leave one of them out" in run("fit", "in.csv", *ASK, "--from-logits", "--normalize").err
    assert run("fit", "in.csv", *ASK, *SVS, "--from-logits").code == 0
    for words in (COMMANDS["apply"], COMMANDS["evaluate a map"]):
        assert "this map reads logits" in run(*(word.format("in.csv") for word in words), "--normalize").err


# ---------------------------------------------------------------- probabilities read as logits


@pytest.mark.parametrize("blocks", [False, True], ids=["at once", "by blocks"])
@pytest.mark.parametrize("method", [(), SVS], ids=["auto", "svs"])
def test_a_report_of_probabilities_read_as_logits_says_so(
    method: tuple[str, ...], blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_csv("in.csv", rows(300))
    if blocks:
        monkeypatch.setattr(_class_large, "LARGE", 1)
    sign = "they are read as logits: leave --from-logits out"
    for command in ("report", "fit"):
        done = run(command, "in.csv", *ASK, *method, "--from-logits")
        assert done.code == 0
        assert done.err.count(sign) == 1
    table = rows(300)
    for row in table:
        row[:3] = np.log(np.array(row[:3], dtype=float)).tolist()
    as_csv("in.csv", table)
    for command in ("report", "fit"):
        assert sign not in run(command, "in.csv", *ASK, *method, "--from-logits", "--force").err
