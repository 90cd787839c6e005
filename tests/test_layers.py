"""The shape of the code: imports point down, each outside library has one door, files and functions stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "calibrant"
FILES = sorted(SOURCE.rglob("*.py"))

# From the bottom up; names on one line do not know each other.
LAYERS = [
    ("errors", "_kernels"),
    ("_numbers",),
    ("_labels",),
    ("_checks", "_parameters", "_fitting"),
    ("data",),
    ("maps",),
    ("priors",),
    ("metrics",),
    ("calibrators", "generative"),
    ("decisions",),
    ("monitoring",),
    ("view",),
    ("cli",),
    ("__main__",),
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}

# Where an outside library may be named; anywhere for those that are not here.
DOORS = {
    "narwhals": (
        "data/_class_frames.py",
        "data/_frames.py",
        "data/_grouped.py",
        "data/_lazy.py",
        "generative/_frame_passes.py",
        "generative/_frames.py",
        "maps/_base.py",
        "maps/_expression.py",
        "maps/_frames.py",
    ),
    "duckdb": ("data/_engine.py",),
    "numba": ("_kernels/_compiled.py",),
    "threadpoolctl": ("_kernels/",),
    "scipy": ("_kernels/", "metrics/", "generative/"),
    "sklearn": ("calibrators/", "generative/", "_fitting.py", "data/_demo.py", "view/_report.py"),
    "matplotlib": (
        "view/_axes.py",
        "view/_displays.py",
        "view/_risk_based.py",
        "view/_roc_surface_display.py",
        "view/_threshold_display.py",
    ),
    "altair": ("view/",),
    "vl_convert": ("view/",),
    "jinja2": ("view/_html.py",),
    "typer": ("cli",),
    "rich": ("cli",),
    "onnx": ("maps/_onnx.py",),
    "lazy_loader": ("__init__.py",),
    "pandas": (),
    "polars": (),
    "pyarrow": (),
    "pyspark": (),
    "torch": (),
    "requests": (),
}


def name_of(path):
    return path.relative_to(SOURCE).as_posix()


def layer_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """Dotted names that a file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} uses a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


every_file = pytest.mark.parametrize("path", FILES, ids=name_of)


@every_file
def test_imports_point_down(path):
    own = layer_of(path)
    if own == "__init__":
        return
    for found in imports(path):
        parts = found.split(".")
        if parts[0] != "calibrant" or len(parts) == 1:
            continue
        other = parts[1]
        if other == own or (own == "__main__" and other == "cli") or other == "__version__":
            continue
        assert other in HEIGHT, f"{name_of(path)} imports {found}, which is in no layer"
        assert HEIGHT[other] < HEIGHT[own], f"{name_of(path)} imports {found}, which is not below it"


@every_file
def test_outside_libraries_have_one_door(path):
    for found in imports(path):
        library = found.split(".")[0]
        doors = DOORS.get(library)
        if doors is not None:
            assert name_of(path).startswith(doors or "-"), f"{name_of(path)} imports {library}; its door is {doors}"


@every_file
def test_modules_open_with_what_they_are(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{name_of(path)} has no docstring"


@every_file
def test_files_and_functions_stay_short(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400, f"{name_of(path)} has more than 400 lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno - body[0].lineno + 1) if body else 0
            assert length <= 40, f"{name_of(path)}: {node.name} has {length} lines"


def test_every_layer_is_known():
    found = {layer_of(path) for path in FILES} - {"__init__"}
    assert found <= set(HEIGHT), found - set(HEIGHT)


def test_import_contract():
    pytest.importorskip("importlinter")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
