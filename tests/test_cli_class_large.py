"""The command line on files of many classes that are too large for memory: the limit is lowered for it."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from calibrant import load_map
from calibrant.cli import _class_large
from calibrant.data import _class_files
from class_cases import write_classes
from cli_runs import run, write

ASK = ("--scores", "p_*", "--label", "label")
BY_BLOCKS = ("temperature", "vector", "matrix", "dirichlet", "svs", "sms")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte is large, and a block has 70 rows of four classes."""
    monkeypatch.setattr(_class_large, "LARGE", 1000)
    monkeypatch.setattr(_class_files, "BLOCK_CELLS", 280)


def both(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[object, object, str]:
    """The map of all rows at once, that of blocks, and what was said with the latter."""
    assert run("fit", *words, "-o", "once.json").code == 0
    low_limit(monkeypatch)
    done = run("fit", *words, "-o", "blocks.json")
    assert (done.code, done.err) == (0, "")
    return load_map("once.json"), load_map("blocks.json"), done.out


@pytest.mark.parametrize("method", BY_BLOCKS)
def test_blocks_give_the_map_of_all_rows(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p, _ = write_classes()
    once, blocks, said = both(monkeypatch, "in.csv", *ASK, "--method", method)
    assert blocks.classes == once.classes
    np.testing.assert_allclose(blocks(p), once(p), atol=1e-9)
    assert "600 rows of in.csv, 4 classes" in said
    assert "block by block" in said
    assert "Not judged: run evaluate, with --map" in said


def test_weights_gaps_numbers_as_labels_and_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    z, y, w = rng.normal(size=(500, 3)), rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    cells = {f"z{k}": list(map(repr, z[:, k].tolist())) for k in range(3)}
    cells["z1"][7] = ""
    write("in.csv", {**cells, "y": y.tolist(), "w": w.tolist()})
    duckdb.connect().execute("COPY (SELECT * FROM read_csv('in.csv')) TO 'in.parquet'")
    ask = ("--scores", "z*", "--label", "y", "--weight", "w", "--missing", "drop", "--from-logits", "--method", "sms")
    for file in ("in.csv", "in.parquet"):
        with pytest.MonkeyPatch.context() as patch:
            once, blocks, _ = both(patch, file, *ask, "--force")
            said = json.loads(run("fit", file, *ask, "--json", "--force").out)
        np.testing.assert_allclose(blocks(z), once(z), atol=1e-9)
        assert blocks.classes == (0, 1, 2)
        kept = np.arange(500) != 7
        assert (said["rows"], said["dropped"]) == (int(((w > 0) & kept).sum()), 1)
        assert said["class_weights"] == np.bincount(y[kept], w[kept]).tolist()
        assert said["cross_fitted"] is None


def test_what_a_block_cannot_hold_is_named_by_its_row_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes()
    lines = Path("in.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[301].split(",")
    cells[1] = "3.5"
    lines[301] = ",".join(cells)
    Path("in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    low_limit(monkeypatch)
    done = run("fit", "in.csv", *ASK, "--method", "svs")
    assert done.code != 0
    assert "3.5 in data row 301" in " ".join(done.err.split())
    assert not Path("map.json").exists()


def evaluated(*words: str) -> dict[str, object]:
    done = run("evaluate", *words, "--json")
    assert done.code == 0, done.err
    found: dict[str, object] = json.loads(done.out)
    return found


def assert_close(found: object, expected: object, rel: float) -> None:
    """The same keys and, nearly, the same numbers, all the way down."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_close(found[key], value, rel)
    elif isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_close(one, other, rel)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=1e-12)
    else:
        assert found == expected


@pytest.mark.parametrize("with_map", [False, True])
def test_evaluate_in_the_engine_gives_what_it_gives_in_memory(with_map: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes()
    assert run("fit", "in.csv", *ASK, "--method", "svs").code == 0
    words = ("in.csv", *ASK, *(("--map", "map.json") if with_map else ()))
    expected, said = evaluated(*words), run("evaluate", *words).out
    low_limit(monkeypatch)
    assert_close(evaluated(*words), expected, 1e-12)
    assert run("evaluate", *words).out == said


def test_evaluate_with_weights_gaps_and_exact_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    p, y, w = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    p[5], y[5], w[5] = [1.0, 0.0, 0.0], 1, 2
    cells = {f"p{k}": list(map(repr, p[:, k].tolist())) for k in range(3)}
    cells["p1"][7] = ""
    write("in.csv", {**cells, "y": y.tolist(), "w": w.tolist()})
    words = ("in.csv", "--scores", "p*", "--label", "y", "--weight", "w", "--missing", "drop")
    expected = evaluated(*words)
    assert expected["log_loss"] is None
    low_limit(monkeypatch)
    assert_close(evaluated(*words), expected, 1e-12)


def test_evaluate_with_more_distinct_scores_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(n=2000)
    words = ("in.csv", *ASK)
    expected = evaluated(*words)
    low_limit(monkeypatch)
    monkeypatch.setattr(_class_large, "MOST_DISTINCT", 1000)
    done = run("evaluate", *words, "--json")
    assert "not exact" in done.err
    found = json.loads(done.out)
    for name in ("log_loss", "brier_score", "accuracy", "mean_confidence"):
        assert found[name] == pytest.approx(expected[name], rel=0.01)
    assert found["confusion"] == expected["confusion"]


@pytest.mark.parametrize("words", [("fit",), ("fit", "--method", "one-versus-rest:affine"), ("report",)])
def test_what_needs_all_rows_is_refused_where_memory_would_not_do(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_classes()
    low_limit(monkeypatch)
    monkeypatch.setattr(_class_large, "COPIES", 10**12)
    done = run(words[0], "in.csv", *ASK, *words[1:])
    said = " ".join(done.err.split())
    assert done.code != 0
    assert "needs all rows at once" in said
    assert "sample of the rows" in said
    assert "--method temperature" in said


def test_all_rows_at_once_where_memory_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(n=200)
    low_limit(monkeypatch)
    assert run("fit", "in.csv", *ASK, "--method", "one-versus-rest:affine").code == 0
