"""Arguments in, exit code out: 0 done, 2 the user's input is wrong, 1 our fault.

Invariant: a failure is one sentence on standard error, never a traceback (unless `--debug` asks for it); Ctrl-C and a
reader that has gone away are no failures and say nothing.
May import Typer, `calibrant.errors` and the modules of this folder that import nothing heavy.
"""

from __future__ import annotations

import errno
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer

from calibrant.cli import _console
from calibrant.cli._words import for_command_line
from calibrant.errors import CalibrantError, CalibrantWarning

DONE, FAULT, WRONG_INPUT, INTERRUPTED, READER_GONE = 0, 1, 2, 130, 141


UsageError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The root of Typer's own errors, wherever the installed version keeps it."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _console.prepare()
    _end_cleanly()
    try:
        with warnings.catch_warnings():
            _show_own_warnings(debug)
            code = _invoke([word for word in given if word != "--debug"])
            sys.stdout.flush()
            return code
    except BaseException as failure:
        if debug and not isinstance(failure, SystemExit | KeyboardInterrupt):
            traceback.print_exc()
        return _code_of(failure)


def _end_cleanly() -> None:
    """Take a request to end (SIGTERM) as an interruption, so that what was begun is cleaned up."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    with suppress(ValueError):  # only the main thread may set it
        signal.signal(signal.SIGTERM, end)


def _invoke(words: list[str]) -> int:
    from calibrant.cli._app import app

    returned = app(words, prog_name="calibrant", standalone_mode=False)
    return returned if isinstance(returned, int) else DONE


def _show_own_warnings(debug: bool) -> None:
    """Each warning of calibrant once, as one line; those of other libraries only with `--debug`."""
    seen: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = for_command_line(str(message))
        if text not in seen:
            seen.add(text)
            _console.note(text if issubclass(category, CalibrantWarning) else f"{category.__name__}: {text}")

    warnings.simplefilter("always" if debug else "ignore")
    warnings.simplefilter("always", CalibrantWarning)
    warnings.showwarning = show


def _code_of(failure: BaseException) -> int:
    """Say what went wrong, where there is something to say; the exit code."""
    if isinstance(failure, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(failure, BrokenPipeError) or getattr(failure, "errno", None) == errno.EPIPE:
        _console.silence()
        return READER_GONE
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else FAULT
    if isinstance(failure, CalibrantError):
        _console.error(for_command_line(str(failure)))
        return WRONG_INPUT
    if isinstance(failure, UsageError):
        _console.error(_usage(failure))
        return WRONG_INPUT
    if isinstance(failure, OSError) and failure.strerror:
        place = f" ({failure.filename})" if failure.filename else ""
        _console.error(f"{failure.strerror}{place}.")
        return WRONG_INPUT
    if isinstance(failure, MemoryError):
        _console.error("The memory is full. Fewer rows, or a machine with more memory, will do.")
        return FAULT
    what = " ".join(f"{type(failure).__name__}: {failure}".split())
    _console.error(f"This is a fault of calibrant, not of your input ({what}). Run it again with --debug for details.")
    return FAULT


def _usage(failure: Any) -> str:
    """What Typer has to say about the arguments, and where to look."""
    context = getattr(failure, "ctx", None)
    where = f" Try '{context.command_path} --help'." if context is not None else ""
    said = for_command_line(str(failure.format_message()))
    return said + ("" if said.endswith((".", "?")) else ".") + where
