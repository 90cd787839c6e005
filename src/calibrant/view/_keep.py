"""The lines of Python that make the map of a page again, from the rows.

Invariant: executed with `scores`, `labels` and `weights` they give the map that the page shows.
May import NumPy, `calibrant._checks`, `calibrant.data` and `calibrant.errors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import _checks
from calibrant.data import ScoreTable
from calibrant.errors import CalibrantError


def lines_to_keep(calibrator: Any, table: ScoreTable) -> str:
    """The lines for two classes: `fit` where it takes the same event by itself, else a table that names it."""
    made = " ".join(repr(calibrator).split())
    weights = ", weights" if table.total_weight != table.n_rows else ""
    saved = 'fitted.map_.save("map.json")'
    if _taken_by_fit(calibrator, table.classes) == table.classes:
        return f"fitted = {made}.fit(scores, labels{weights})\n{saved}"
    return (
        f"table = ScoreTable.from_arrays(\n    scores, labels{weights}, pos_label={table.classes[1]!r}\n)\n"
        f"fitted = {made}.fit_table(table)\n{saved}"
    )


def _taken_by_fit(calibrator: Any, classes: tuple[Any, Any]) -> tuple[Any, Any] | None:
    """The pair (negative, positive) that `fit` makes of these labels; None where it refuses them."""
    kinds = {type(label) for label in classes}
    labels = np.array(classes, dtype=None if len(kinds) == 1 else object)
    try:
        return _checks.binary_labels(labels, None, calibrator._coding(labels))[1]
    except CalibrantError:
        return None
