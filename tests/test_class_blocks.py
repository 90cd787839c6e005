"""Fits of K classes over blocks: the map of all rows at once, in the memory of one block."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as ca
from calibrant._kernels import class_blocks
from calibrant.errors import InputError, InputTypeError
from catalogue import class_rows

JOINT = [
    ca.TemperatureScaling,
    ca.VectorScaling,
    ca.MatrixScaling,
    ca.DirichletCalibration,
    ca.StructuredVectorScaling,
    ca.StructuredMatrixScaling,
]
every = pytest.mark.parametrize("make", JOINT)
K = 4


def cut(*arrays, size=97):
    """Blocks of rows, the last one shorter; a function, as for files."""
    n = len(arrays[0])
    return lambda: (tuple(a[first : first + size] for a in arrays) for first in range(0, n, size))


def assert_same_fit(found, expected, scores):
    np.testing.assert_allclose(found.map_(scores), expected.map_(scores), atol=1e-9)
    if hasattr(expected, "objective_"):
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.n_features_in_ == expected.n_features_in_


@every
@pytest.mark.parametrize("reads", ["probability", "logit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_give_the_fit_of_all_rows(make, reads, weighted):
    rows = class_rows(reads, n=1000, k=K)
    given = (rows.scores, rows.y, rows.weight) if weighted else (rows.scores, rows.y)
    options = {"from_logits": reads == "logit"}
    expected = make(**options).fit(*given)
    found = make(**options).fit_blocks(cut(*given), range(K))
    assert_same_fit(found, expected, rows.scores)


@every
def test_many_rows_start_from_a_sample(make, monkeypatch):
    """Rows enough for a sample, of which only some are kept; float32 stays float32."""
    monkeypatch.setattr(class_blocks, "SAMPLED", 2**17)
    rows = class_rows("logit", n=100_000, k=8)
    scores = rows.scores.astype(np.float32)
    expected = make(from_logits=True).fit(scores, rows.y)
    found = make(from_logits=True).fit_blocks(cut(scores, rows.y, size=7_000))
    assert_same_fit(found, expected, scores[:2000])


@pytest.mark.parametrize("make", [ca.MatrixScaling, ca.VectorScaling])
def test_more_parameters_than_a_curvature_has(make):
    """Above 600 parameters conjugate gradients take products with the curvature, one pass each."""
    k = 30 if make is ca.MatrixScaling else 310
    rows = class_rows("logit", n=900, k=k)
    expected = make(from_logits=True).fit(rows.scores, rows.y)
    assert_same_fit(make(from_logits=True).fit_blocks(cut(rows.scores, rows.y)), expected, rows.scores)


def test_text_labels_in_the_order_of_the_columns_and_a_class_without_rows():
    rows = class_rows(n=300, k=K)
    names = ["d", "a", "c", "b"]
    y = np.array(names)[np.where(rows.y == 2, 0, rows.y)]
    expected = ca.StructuredVectorScaling(classes=names).fit(rows.scores, y)
    for found in (
        ca.StructuredVectorScaling().fit_blocks(cut(rows.scores, y), names),
        ca.StructuredVectorScaling(classes=names).fit_blocks(cut(rows.scores, y)),
    ):
        assert_same_fit(found, expected, rows.scores)
        assert found.predict(rows.scores[:3]).tolist() == expected.predict(rows.scores[:3]).tolist()


@every
def test_any_partition_gives_the_same(make):
    """Blocks of one row, of all rows, a list of blocks, and blocks whose weights are all 0."""
    rows = class_rows(n=120, k=3)
    expected = make().fit(rows.scores, rows.y, rows.weight)
    nothing = (rows.scores[:5], rows.y[:5], np.zeros(5))
    for blocks in (
        cut(rows.scores, rows.y, rows.weight, size=1),
        cut(rows.scores, rows.y, rows.weight, size=1000),
        [nothing, *cut(rows.scores, rows.y, rows.weight)(), nothing],
    ):
        assert_same_fit(make().fit_blocks(blocks), expected, rows.scores)


def test_blocks_that_cannot_be_used():
    rows = class_rows(n=30, k=3)
    p, y, w = rows.scores, rows.y, rows.weight
    late = p.copy()
    late[25, 0] = np.nan
    calls = iter([cut(p, y)(), cut(p[:20], y[:20])()])
    for blocks, classes, kind, said in (
        (iter([(p, y)]), None, InputTypeError, "an iterator can be only once"),
        (7, None, InputTypeError, "blocks must be a function"),
        ([p], None, InputTypeError, "must give tuples"),
        ([(p, y, w, w)], None, InputTypeError, "must give tuples"),
        ([], None, InputError, "no row of weight above 0"),
        ([(p, y, 0 * w)], None, InputError, "no row of weight above 0"),
        (cut(late, y, size=10), None, InputError, "block 2 .*1 missing value"),
        ([(p, y), (p[:, :2], y)], None, InputError, "block 1 .*2 columns, but there are 3"),
        ([(p, y), (p, y + 1)], None, InputError, "block 1 .*not among the classes"),
        ([(p, y, w - 1)], None, InputError, "block 0 .*below 0"),
        ([(p, y[:9])], None, InputError, "block 0 .*lengths differ"),
        ([(3 * p, y)], None, InputError, "block 0 .*probabilities"),
        ([(p, y)], ["a", "b"], InputError, "3 columns, but there are 2"),
        ([(p, y)], [5, 6, 7], InputError, "not among the classes"),
        (lambda: next(calls), None, InputError, "30 rows .*first pass and 20 in a later one"),
    ):
        with pytest.raises(kind, match=said):
            ca.VectorScaling().fit_blocks(blocks, classes)
    with pytest.raises(InputError, match="add up the score tables"):
        ca.TemperatureScaling().fit_blocks([(np.full((4, 2), 0.5), [0, 1, 1, 0])])


def test_a_refused_block_leaves_the_fit_as_it_was():
    rows = class_rows(n=60, k=3)
    est = ca.VectorScaling().fit(rows.scores, rows.y)
    before = est.map_
    with pytest.raises(InputError):
        est.fit_blocks([(rows.scores, rows.y + 5)])
    assert est.map_ == before


PEAK = """
import resource, sys
import numpy as np
import calibrant as ca
folder, n_blocks, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def blocks():
    for number in range(n_blocks):
        yield np.load(f"{folder}/z{number}.npy"), np.load(f"{folder}/y{number}.npy")
getattr(ca, name)(from_logits=True).fit_blocks(blocks, range(40))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TemperatureScaling", "StructuredVectorScaling"])
def test_memory_does_not_grow_with_the_blocks(tmp_path, name):
    """16 blocks of 50,000 x 40 float32 (128 MB in all) take what 4 take, but for some megabytes."""
    rng = np.random.default_rng(0)
    for number in range(16):
        y = rng.integers(0, 40, 50_000)
        z = rng.normal(size=(50_000, 40)).astype(np.float32)
        z[np.arange(len(y)), y] += 2
        np.save(tmp_path / f"z{number}.npy", z)
        np.save(tmp_path / f"y{number}.npy", y)
    script = tmp_path / "peak.py"
    script.write_text(PEAK)

    def megabytes(n_blocks):
        command = [sys.executable, str(script), str(tmp_path), str(n_blocks), name]
        return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout)

    few, many = megabytes(5), megabytes(16)
    assert many - few < 30
