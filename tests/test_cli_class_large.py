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
    duckdb.sql("COPY (SELECT * FROM read_csv('in.csv')) TO 'in.parquet'")
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
    assert ("--method temperature" in said) == (words[0] == "fit")


def test_all_rows_at_once_where_memory_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(n=200)
    low_limit(monkeypatch)
    assert run("fit", "in.csv", *ASK, "--method", "one-versus-rest:affine").code == 0
