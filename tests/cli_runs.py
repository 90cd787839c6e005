"""Runs of the command line in this process, and the files they read; shared by the tests of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibrant import ScoreTable
from calibrant.cli import main


class Done(NamedTuple):
    """The exit code, and what was written to standard output and error."""

    code: int
    out: str
    err: str


def run(*words: str) -> Done:
    """Run the command line in the current folder."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    return Done(code, out.getvalue(), err.getvalue())


def scores(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident probabilities and what happened."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 1.5, n)
    return 1 / (1 + np.exp(-2 * z)), (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def write(path: str, columns: dict[str, Sequence[object]], separator: str = ",") -> None:
    lines = [separator.join(columns), *(separator.join(map(str, row)) for row in zip(*columns.values()))]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_scores(path: str = "scores.csv") -> ScoreTable:
    p, y = scores()
    write(path, {"p": p.tolist(), "y": y.tolist()})
    return ScoreTable.from_arrays(p, y)


ASK = ("--score", "p", "--label", "y")
