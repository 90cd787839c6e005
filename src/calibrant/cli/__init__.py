"""The command line: `calibrant demo | fit | apply | evaluate | report | threshold | monitor`.

    _run       arguments in, exit code out; every failure becomes one sentence
    _app       the commands, their options and help texts
    _operating the commands `threshold` and `monitor`, likewise
    _options   the options that several commands share
    _methods   the one table of method names
    _reading   from the options to a score table
    _class_*   the same for three or more classes, with --scores: methods, reading, and what each command does
    _console   results to standard output; progress, notes and errors to standard error
    _words     numbers, maps and messages as a person at a terminal would write them
    _fit, _apply, _evaluation, _evaluate, _report, _threshold, _monitor      what each command does

Invariant: control comes back only to here; nothing heavy (NumPy, DuckDB, scikit-learn, Numba) is imported before a
command needs it, so that every `--help` answers at once.
May import every layer below.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        from calibrant.cli._run import run
    except KeyboardInterrupt:
        return 130
    return run(arguments)
