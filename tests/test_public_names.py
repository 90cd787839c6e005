"""The public face: every name exists, explains itself, shows an example, and costs nothing before it is used."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as ca

STUB = Path(ca.__file__).with_suffix(".pyi")
HEAVY = ("sklearn", "scipy", "numba", "pandas", "polars", "matplotlib", "duckdb", "narwhals", "pyarrow", "typer")


def stub_names():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = [alias.asname or alias.name for node in nodes for alias in node.names]
    return [name for name in imported if name not in ("errors", "generative")]


every_name = pytest.mark.parametrize("name", stub_names())


def after_import(code, *needles):
    """Modules that are loaded after some code in a fresh process, out of those asked for."""
    script = f"{code}\nimport sys\nprint(*[name for name in {needles!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_names_are_in_dir_and_in_all():
    assert set(stub_names()) <= set(ca.__all__)
    assert set(stub_names()) <= set(dir(ca))
    assert ca.__version__
    with pytest.raises(AttributeError):
        ca.no_such_name  # noqa: B018


@every_name
def test_docstring_is_numpydoc(name):
    item = getattr(ca, name)
    text = inspect.getdoc(item) or ""
    first, *rest = text.splitlines()
    assert first.endswith((".", "?")), f"{name}: the first line is no sentence"
    assert not rest or rest[0] == "", f"{name}: the summary takes more than one line"
    assert ">>> " in text, f"{name} has no example"
    if inspect.isclass(item):
        parameters = [parameter for parameter in inspect.signature(item.__init__).parameters if parameter != "self"]
        needed = ["Attributes"] + (["Parameters"] if parameters else [])
    else:
        needed = ["Parameters", "Returns"]
    for section in needed:
        assert f"{section}\n{'-' * len(section)}" in text, f"{name} lacks the section {section}"


@every_name
def test_public_methods_explain_themselves(name):
    item = getattr(ca, name)
    for key, member in vars(item).items() if inspect.isclass(item) else ():
        if not key.startswith("_") and callable(getattr(item, key)):
            assert inspect.getdoc(getattr(item, key)), f"{name}.{key} has no docstring"
            assert member is not None


@every_name
def test_signatures_are_typed(name):
    item = getattr(ca, name)
    signature = inspect.signature(item.__init__ if inspect.isclass(item) else item)
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "args", "kwargs"):
            assert parameter.annotation is not inspect.Parameter.empty, f"{name}: {parameter.name} has no type"


def test_import_is_light():
    assert after_import("import calibrant", *HEAVY) == []


def test_applying_a_map_is_light(tmp_path):
    ca.PlattScaling().fit([-2.0, -1.0, 1.0, 2.0, 0.5], [0, 0, 1, 1, 0]).map_.save(tmp_path / "map.json")
    code = f"import calibrant; calibrant.load_map({str(tmp_path / 'map.json')!r})([0.3, 0.4])"
    assert after_import(code, *(name for name in HEAVY if name != "scipy")) == []


def test_a_table_and_a_measure_are_light():
    code = "import calibrant; calibrant.brier_score(calibrant.ScoreTable.from_arrays([0.1, 0.9], [0, 1]))"
    assert after_import(code, "sklearn", "numba", "pandas", "polars", "matplotlib", "duckdb") == []
