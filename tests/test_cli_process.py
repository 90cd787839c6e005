"""The command line from the outside: real processes, what they import, how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrant.maps import PlattMap

HEAVY = ("numpy", "scipy", "sklearn", "numba", "duckdb", "narwhals", "pandas", "polars", "matplotlib", "jinja2")
CALIBRANT = (sys.executable, "-m", "calibrant")


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CALIBRANT, *words],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **variables},
        timeout=60,
    )


def imported(folder: Path, *words: str) -> set[str]:
    """The heavy libraries that a command has imported when it ends."""
    program = (
        "import sys\nfrom calibrant.cli import main\ncode = main(sys.argv[1:])\n"
        f"print(','.join(sorted(set({HEAVY!r}) & set(sys.modules))), file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split()[-1].split(",")) if done.stderr.strip() else set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scores and a map that a process of its own fitted."""
    place = tmp_path_factory.mktemp("work")
    rows = "".join(f"{k:03d},{(k % 40 + 1) / 42:.4f},{int(k // 40 * 8 < k % 40)}\n" for k in range(200))
    (place / "scores.csv").write_text("id,p,y\n" + rows)
    done = run(place, "fit", "scores.csv", "--score", "p", "--label", "y")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Map written to map.json" in done.stdout
    return place


@pytest.mark.parametrize(
    "words", [["--help"], ["fit", "--help"], ["apply", "--help"], ["--version"], ["report", "--help"]]
)
def test_help_imports_nothing_heavy(folder: Path, words: list[str]) -> None:
    assert imported(folder, *words) == set()


def test_apply_and_evaluate_do_without_the_heaviest(folder: Path) -> None:
    apply = ["apply", "map.json", "scores.csv", "--score", "p", "-o", "new.csv", "--force"]
    assert imported(folder, *apply) & {"sklearn", "numba", "scipy"} == set()
    evaluate = ["evaluate", "scores.csv", "--score", "p", "--label", "y"]
    assert imported(folder, *evaluate) & {"sklearn", "numba"} == set()


def test_apply_writes_the_file(folder: Path) -> None:
    done = run(folder, "apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv")
    assert (done.returncode, done.stderr) == (0, "")
    lines = (folder / "out.csv").read_text().splitlines()
    assert lines[0] == "id,p,y,calibrated"
    assert lines[8].startswith("007,0.1905,")
    assert len(lines) == 201


def test_wrong_input_leaves_no_traceback(folder: Path) -> None:
    done = run(folder, "evaluate", "scores.csv", "--score", "q", "--label", "y")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: --score 'q' is not a column. The columns are: 'id', 'p', 'y'.\n"


def test_any_encoding_and_no_colour_in_a_pipe(folder: Path) -> None:
    (folder / "größe.csv").write_text((folder / "scores.csv").read_text(), encoding="utf-8")
    words = ("evaluate", "größe.csv", "--score", "p", "--label", "y")
    plain = run(folder, *words, PYTHONIOENCODING="ascii", FORCE_COLOR="", COLUMNS="30")
    assert plain.returncode == 0
    assert plain.stdout.isascii()
    assert "\x1b" not in plain.stdout
    assert "200 rows of größe.csv" in run(folder, *words, PYTHONIOENCODING="utf-8").stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of another kind")
def test_a_reader_that_goes_away_is_quiet(folder: Path) -> None:
    command = [*CALIBRANT, "evaluate", "scores.csv", "--score", "p", "--label", "y"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
def test_an_interruption_is_quiet(folder: Path) -> None:
    words = ["fit", "scores.csv", "--score", "p", "--label", "y", "-o", "never.json"]
    command = [sys.executable, "-X", "importtime", "-m", "calibrant", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "calibrant.cli._methods" in line:  # the command line runs, and scikit-learn is still to be imported
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if not line.startswith("import time:")] == []
    assert not (folder / "never.json").exists()


def test_a_request_to_end_leaves_no_half_written_file(tmp_path: Path) -> None:
    rows = "\n".join(f"{(k % 997 + 1) / 1000},{k % 2}" for k in range(2_000_000))
    (tmp_path / "scores.csv").write_text(f"p,y\n{rows}\n")
    PlattMap((0, 1), 1.0, 0.0).save(tmp_path / "map.json")
    words = [*CALIBRANT, "apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = time.monotonic() + 60
    while not list(tmp_path.glob(".out.csv.*")) and time.monotonic() < begun and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    code = process.wait(60)
    left = {path.name for path in tmp_path.iterdir()} - {"out.csv"}
    assert left == {"scores.csv", "map.json"}
    assert code in (130, 0)  # it may have been done by then
