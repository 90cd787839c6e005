"""`calibrant evaluate --fitted-on`: rows to be judged that the map was fitted on, by their scores and labels.

May import NumPy, `calibrant.data`, `calibrant.errors` and `_console` beside this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import plural
from calibrant.cli import _console
from calibrant.data import SharedRows, shared_rows
from calibrant.errors import InputError


def rows_in_both(fitted: tuple[Any, Any], judged: tuple[Any, Any], path: Path) -> SharedRows:
    """The rows of two files, as (scores, labels), that are the same."""
    return shared_rows(_side_by_side(*fitted, path), _side_by_side(*judged, path))


def _side_by_side(scores: NDArray[Any], labels: NDArray[Any] | None, path: Path) -> NDArray[Any]:
    if labels is None:
        raise too_large(path)
    return np.column_stack([scores, labels])


def too_large(path: Path) -> InputError:
    """Why rows cannot be compared."""
    return InputError(
        f"--fitted-on {path} compares rows one by one, but one of the files is too large for its rows to be kept. "
        f"Compare parts of them, or leave --fitted-on out."
    )


def tell_rows_in_both(found: SharedRows, path: Path) -> None:
    """Say it as a note where it matters, else as a line of the results."""
    of = f"of {plural(found.test_rows, 'row')}"
    if not found.shared:
        _console.show(f"None {of} has the scores and label of a row of {path}.")
        return
    verb = "has" if found.shared == 1 else "have"
    text = (
        f"{found.shared:,} {of} {verb} the scores and label of a row of {path}; {found._expected} would by coincidence"
    )
    better = "The map was fitted on them and looks better here than it is"
    if not found.telling:
        rest = "not enough to call them the same rows. Scores with more digits, or an id of the rows, would tell."
        _console.show(f"{text}: {rest}")
    elif found._hardly_any_by_chance:
        _console.note(f"{text}. {better}. Leave them out.")
    else:
        _console.note(
            f"{text}, so about {found.copies:,} are the same rows. {better}. Find them by an id, or by scores with "
            f"more digits, and leave those out."
        )


def as_dict(found: SharedRows | None, path: Path | None) -> dict[str, Any] | None:
    """The content for programs."""
    if found is None:
        return None
    return {
        "file": str(path),
        "rows_in_both": found.shared,
        "by_chance": round(found.by_chance, 1),
        "copies": found.copies,
        "telling": found.telling,
    }
