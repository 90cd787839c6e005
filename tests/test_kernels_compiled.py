"""How kernels are compiled: lazily, once, cached where that is possible and working where it is not."""

import subprocess
import sys

import numpy as np
import pytest

from calibrant._kernels import _compiled


def total(x, unused):
    value = 0.0
    for i in range(len(x)):
        value += x[i]
    return value


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_small_work_does_not_load_numba():
    out = run(
        "import sys, numpy as np\n"
        "from calibrant._kernels import areas, bins, isotonic, likelihood, newton, ranking\n"
        "x = np.linspace(0, 1, 1000); y = (np.arange(1000) % 3 == 0).astype(np.uint8)\n"
        "table = ranking.distinct_rows(x, y, None)\n"
        "blocks = isotonic.pool_rows(table.labels)\n"
        "isotonic.apply_steps(x, blocks.values, np.append(blocks.values, 1.0))\n"
        "areas.auc_of_rows(table.labels)\n"
        "bins.uniform_bin_sums_rows(x, y, None, np.linspace(0, 1, 11))\n"
        "likelihood.neg_log_likelihood(x[1:-1], y[1:-1], None)\n"
        "newton.fit_logistic((x,), y, None, targets=(0.1, 0.9))\n"
        "print('numba' in sys.modules, 'sklearn' in sys.modules)\n"
    )
    assert out.split() == ["False", "False"]


def test_read_only_and_writable_arrays_use_one_signature():
    kernel = _compiled.compiled("FF*")(total)
    x = np.arange(5.0)
    y = x.copy()
    y.flags.writeable = False
    assert kernel(x, x) == kernel(y, x) == 10.0
    assert len(kernel._machine_code.signatures) == 1


def test_without_a_folder_for_the_cache_kernels_still_compile(monkeypatch):
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    kernel = _compiled.compiled("Ff")(total)
    assert kernel(np.arange(4.0), 1.0) == 6.0
    assert type(kernel._machine_code._cache).__name__ == "NullCache"


@pytest.mark.parametrize("cores", [1, 2])
def test_halves_cover_the_whole_in_order(monkeypatch, cores):
    monkeypatch.setattr(_compiled, "_cores", lambda: cores)
    size = _compiled.SPREAD + 1
    parts = _compiled.in_two(lambda first, last: list(range(first, last)), size)
    assert len(parts) == 2
    assert [i for part in parts for i in part] == list(range(size))
    assert _compiled.in_two(lambda first, last: (first, last), 10) == [(0, 10)]


def test_an_error_in_the_other_half_is_raised():
    def work(first, last):
        if first:
            raise ValueError("second half")

    with pytest.raises(ValueError, match="second half"):
        _compiled.in_two(work, _compiled.SPREAD)
