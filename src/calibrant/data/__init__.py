"""Rows in: from arrays, frames and files to the score table, the one statistic everything else is computed from."""

from __future__ import annotations

from calibrant.data._copies import SharedRows, shared_rows
from calibrant.data._score_table import ScoreTable

__all__ = ["ScoreTable", "SharedRows", "shared_rows"]
