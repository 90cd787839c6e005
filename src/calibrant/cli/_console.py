"""Where words go: results to standard output; progress, notes and errors to standard error.

Invariant: what is written to a pipe or a file holds no colour, no bar and no line break that the width of a terminal
would make; a character that the encoding of the output lacks never ends a command.
May import Rich, when there is something to show.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[float], None]
PIPE_WIDTH = 80
TABLE_WIDTH = 64


def prepare() -> None:
    """Make the outputs able to show any text."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def silence() -> None:
    """Send what is still to be written nowhere: its reader has gone."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or error, as they are now."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Plain(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def show(*things: Any) -> None:
    """Print results; text is wrapped at words for a terminal and left whole for a pipe."""
    out = console()
    for thing in things:
        if isinstance(thing, str) and not out.is_terminal:
            out.print(thing, soft_wrap=True)
        elif isinstance(thing, str):
            out.print(thing)
        else:  # a table is never cut: where it is wider than the terminal, that folds its lines
            wide = console()
            wide.width = max(out.width, TABLE_WIDTH)
            wide.print(thing, crop=False)


def width() -> int:
    """Characters in a line of standard output."""
    return console().width


def show_list(items: Sequence[str]) -> None:
    """Print sentences as a list; in a terminal, wrapped with their lines indented."""
    out = console()
    if not out.is_terminal:
        show(*(f"- {item}" for item in items))
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    for item in items:
        grid.add_row("-", item)
    out.print(grid)


def show_raw(text: str) -> None:
    """Print text for programs, exactly as it is."""
    print(text)


def error(text: str) -> None:
    """One sentence about what is wrong."""
    _say("Error: ", "bold red", text)


def note(text: str) -> None:
    """One sentence that should be read."""
    _say("Note: ", "yellow", text)


def _say(head: str, style: str, text: str) -> None:
    from rich.text import Text

    out = console(stderr=True)
    with suppress(BrokenPipeError):
        out.print(Text(head, style=style) + Text(text, style="not bold"), soft_wrap=not out.is_terminal)


@contextmanager
def working(what: str) -> Iterator[Progress | None]:
    """A bar on standard error while the block runs, and what moves it; None where nobody looks."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), TimeElapsedColumn())
    with Bar(*columns, console=out, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda share: bar.update(task, total=1.0, completed=share)
