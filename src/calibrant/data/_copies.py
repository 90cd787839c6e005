"""Rows that are copies of others: in a calibration and a test set, or across the folds of one set.

A row becomes one 64-bit number, the wrapped sum over its columns of `mix(value + seed) - mix(seed)` with a seed for
each place, so that arrays, frames and sparse matrices (a zero adds nothing) cost one pass. Invariant: equal rows get
equal numbers, whatever the numeric type; a missing value equals a missing value; two different rows get the same
number with a chance of 2^-64.
May import NumPy, the column reader of `calibrant.data`, `_coincidence` beside this file and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._checks import plural, shown
from calibrant.data._coincidence import chance_of_a_twin, clearly_more, copies_among
from calibrant.data._frames import column_array, frame_columns
from calibrant.errors import InputError

Numbers = NDArray[np.uint64]

BLOCK = 2**16
TOLD_APART, FEWEST_DIFFERENT = 0.95, 0.2
LONG_TEXT, DIGITS, MANY_DIGITS = 20, 6, 9
SOME_ROWS, SOME_COLUMNS = 1_000, 20
HARDLY_ANY = 0.05
"""The part of the shared rows that may be coincidences where all of them may be left out."""


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows of a test set that are also in the calibration set.

    Attributes
    ----------
    pairs : ndarray of shape (shared, 2)
        A test row and the first calibration row that equals it, counting from 0, in the order of the test rows.
    test_rows, calibration_rows : int
        Rows of the two sets.
    telling : bool
        Whether clearly more rows are equal than coincidence explains, so that there are copies among them.
    by_chance : float
        About how many test rows would equal a calibration row by coincidence, as rows of few digits or of few discrete
        columns do.
    """

    pairs: NDArray[np.intp]
    test_rows: int
    calibration_rows: int
    telling: bool
    by_chance: float

    @property
    def shared(self) -> int:
        """Test rows that are also calibration rows."""
        return len(self.pairs)

    @property
    def copies(self) -> int:
        """About how many of them are copies; 0 where it is not telling."""
        return copies_among(self.shared, self.by_chance / self.test_rows, self.test_rows) if self.telling else 0

    @property
    def _hardly_any_by_chance(self) -> bool:
        """Whether nearly all shared rows are copies, so that they may be left out of the test."""
        return self.telling and self.by_chance <= HARDLY_ANY * self.shared

    @property
    def _expected(self) -> str:
        """How many would be equal by coincidence, in words."""
        return f"about {self.by_chance:,.0f}" if self.by_chance >= 0.5 else "hardly any"

    def __str__(self) -> str:
        """The finding in a sentence or two, with the next step."""
        if not self.shared:
            return f"None of {plural(self.test_rows, 'test row')} is also a calibration row."
        test, calibration = self.pairs[0]
        verb = "is also a calibration row" if self.shared == 1 else "are also calibration rows"
        text = (
            f"{self.shared:,} of {plural(self.test_rows, 'test row')} {verb} (first: test row {test} = calibration "
            f"row {calibration}, counting from 0)"
        )
        chance = f"{self._expected} would be by coincidence"
        if not self.telling:
            return f"{text}; {chance}: not enough to call them copies. More columns or digits, or an id, would tell."
        better = "A map looks better than it is on rows that it was fitted on"
        if self._hardly_any_by_chance:
            return f"{text}; {chance}. {better}: leave them out of the test."
        return (
            f"{text}; {chance}, so about {self.copies:,} are copies. {better}: find the copies by an id, or by more "
            f"columns or digits, and leave those out of the test."
        )


def shared_rows(calibration: Any, test: Any) -> SharedRows:
    """Test rows that are also calibration rows, on which a map looks better than it is.

    Rows are compared value by value: give the features, or scores and labels side by side. Whole numbers, floats and
    flags are compared as numbers, text as text; a missing value equals a missing value.

    Parameters
    ----------
    calibration, test : array-like of shape (n,) or (n, p), sparse matrix or frame
        The rows that a map is fitted on, and those that it is judged on. Frames of pandas, Polars or PyArrow are
        matched by the names of their columns, anything else by position.

    Returns
    -------
    SharedRows
        `shared`, `pairs`, `by_chance`, `telling`, `copies`; its text is a sentence.

    Raises
    ------
    InputError
        The two have different columns.

    Notes
    -----
    `by_chance` comes of the share of the calibration rows that equal another calibration row (raised where the test
    rows are more alike), so copies within the calibration set are taken for coincidences. `telling` is True when the
    rows shared are more than that by four standard errors, by a fifth of it, and by one test row in 500. The errors do
    not count where no calibration row has a twin and rows are unmistakable: two halves of their columns each tell 95%
    of them apart, or one column does whose numbers have more than nine digits, or its texts more than 20 letters.
    Cost: one pass over both sets and a sort of their rows, O(np + n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import shared_rows
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = shared_rows(X[:60], X[50:])
    >>> found.shared, found.telling
    (10, True)
    >>> print(shared_rows(X[:60], X[60:]))
    None of 40 test rows is also a calibration row.
    """
    names = _names(calibration), _names(test)
    first, second = _hashed(calibration, None), _hashed(test, names[0] if _same_names(*names) else None)
    if first.width != second.width:
        raise InputError(
            f"calibration has {plural(first.width, 'column')}, but test has {second.width}: give the same columns."
        )
    values, places = np.unique(first.whole, return_index=True)
    at = np.minimum(np.searchsorted(values, second.whole), max(len(values) - 1, 0))
    found = np.flatnonzero(values[at] == second.whole) if len(values) else np.zeros(0, dtype=np.intp)
    pairs = np.column_stack([found, places[at[found]]]).astype(np.intp)
    sizes = len(second.whole), len(first.whole)
    chance = chance_of_a_twin(first.whole, second.whole)
    telling = clearly_more(len(found), chance, *sizes, first.unmistakable())
    return SharedRows(pairs, *sizes, telling, chance.value * sizes[0])


def hashes_of_copies(X: Any, least: float) -> Numbers | None:
    """The numbers of the rows when more than this share are copies and not equal by chance; None otherwise.

    None too for what is neither an array, nor a sparse matrix, nor a frame: the estimator may know what it is.
    """
    try:
        hashed = _hashed(X, None)
    except (TypeError, ValueError, OverflowError):
        return None
    copies = len(hashed.whole) - len(np.unique(hashed.whole))
    return hashed.whole if copies > least * len(hashed.whole) and hashed.telling() else None


# ---------------------------------------------------------------- rows as numbers


class _Hashed(NamedTuple):
    """The numbers of the rows by their even and by their odd columns, and values of some columns at some rows."""

    even: Numbers
    odd: Numbers
    width: int
    some: Sequence[NDArray[Any]]

    @property
    def whole(self) -> Numbers:
        return self.even + self.odd

    def telling(self) -> bool:
        """Whether equal rows are copies: rows are told apart by half of what they hold."""
        halves, different = self._told_apart()
        if different < FEWEST_DIFFERENT * len(self.even):
            return False
        if self.width > 1:
            return max(halves) >= TOLD_APART * different
        return _mostly_long(self.some, DIGITS)

    def unmistakable(self) -> bool:
        """Whether two different rows are never equal: each half tells them apart, or one column of long values does."""
        halves, different = self._told_apart()
        return min(halves) >= TOLD_APART * different > 0 or _mostly_long(self.some, MANY_DIGITS)

    def _told_apart(self) -> tuple[list[int], int]:
        """Different rows by their even and by their odd columns alone, and by all of them."""
        _, first = np.unique(self.whole, return_index=True)
        return [len(np.unique(side[first])) for side in (self.even, self.odd)], len(first)


def _mostly_long(columns: Sequence[NDArray[Any]], digits: int) -> bool:
    """Whether half of the different values of a column are long."""
    shares = ([_is_long(value, digits) for value in set(column.tolist())] for column in columns)
    return any(found and np.mean(found) >= 0.5 for found in shares)


def _is_long(value: Any, digits: int) -> bool:
    if isinstance(value, str):
        return len(value) > LONG_TEXT
    return isinstance(value, float) and value == value and float(f"{value:.{digits}g}") != value


def _hashed(rows: Any, order: Sequence[Any] | None) -> _Hashed:
    rows = getattr(rows, "to_native", lambda: rows)()
    if hasattr(rows, "tocsr"):
        return _of_sparse(rows.tocsr())
    parts = frame_columns(rows)
    if parts is not None:
        if order is not None:
            own = _names(rows) or []
            parts = [parts[own.index(name)] for name in order]
        return _of_columns([column_array(part, "rows") for part in parts])
    array = column_array(rows, "rows")
    if array.ndim not in (1, 2):
        raise InputError(f"Rows must have shape (n,) or (n, p), but the shape is {array.shape}.")
    if array.ndim == 1 or array.dtype.kind not in "fiub":
        return _of_columns([array] if array.ndim == 1 else list(array.T))
    return _of_matrix(array)


def _of_columns(columns: Sequence[NDArray[Any]]) -> _Hashed:
    n = len(columns[0]) if columns else 0
    sums = [np.zeros(n, dtype=np.uint64) for _ in range(2)]
    seeds = _seeds(len(columns))
    for place, column in enumerate(columns):
        sums[place % 2] += _entries(column, seeds[place : place + 1])
    return _Hashed(sums[0], sums[1], len(columns), [_some(column) for column in columns[:SOME_COLUMNS]])


def _of_matrix(array: NDArray[Any]) -> _Hashed:
    """A matrix of numbers, some rows at a time."""
    n, width = array.shape
    seeds, sums = _seeds(width), [np.zeros(n, dtype=np.uint64) for _ in range(2)]
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, n, step):
        entries = _entries(array[start : start + step], seeds)
        for side in range(2):
            sums[side][start : start + step] = entries[:, side::2].sum(axis=1, dtype=np.uint64)
    return _Hashed(sums[0], sums[1], width, list(_some(array[:, :SOME_COLUMNS]).T))


def _some(rows: NDArray[Any]) -> NDArray[Any]:
    return rows[:: len(rows) // SOME_ROWS + 1]


def _of_sparse(matrix: Any) -> _Hashed:
    """A sparse matrix: what it does not hold is zero, which adds nothing."""
    matrix = matrix.copy()
    matrix.sum_duplicates()
    entries, sums = _entries(matrix.data, _seeds(matrix.shape[1])[matrix.indices]), []
    for side in range(2):
        kept = np.where(matrix.indices % 2 == side, entries, np.uint64(0))
        running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(kept, dtype=np.uint64)])
        sums.append(running[matrix.indptr[1:]] - running[matrix.indptr[:-1]])
    return _Hashed(sums[0], sums[1], matrix.shape[1], [])


def _entries(values: NDArray[Any], seeds: Numbers) -> Numbers:
    """What values add to the numbers of their rows."""
    return np.asarray(_mixed(_bits(values) + seeds) - _mixed(seeds))


def _bits(values: NDArray[Any]) -> Numbers:
    """One 64-bit number per value."""
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64) + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        return np.ascontiguousarray(numbers).view(np.uint64)
    if values.dtype.kind in "mM":
        return np.ascontiguousarray(values).astype(np.int64).view(np.uint64)
    return np.fromiter(map(hash, values.tolist()), dtype=np.int64, count=len(values)).view(np.uint64)


def _seeds(width: int) -> Numbers:
    return _mixed(np.arange(1, width + 1, dtype=np.uint64))


def _mixed(bits: Numbers) -> Numbers:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every bit depends on every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


# ---------------------------------------------------------------- names


def _names(rows: Any) -> list[Any] | None:
    """The names of a frame's columns; None for anything else."""
    rows = getattr(rows, "to_native", lambda: rows)()
    if frame_columns(rows) is None:
        return None
    return list(rows.column_names if hasattr(rows, "column_names") else rows.columns)


def _same_names(first: list[Any] | None, second: list[Any] | None) -> bool:
    """Whether two frames are to be matched by name; names that differ are refused."""
    if first is None or second is None or len(set(first)) < len(first):
        return False
    if set(first) != set(second):
        strange = [name for name in second if name not in first] + [name for name in first if name not in second]
        raise InputError(
            f"calibration and test have different columns: {shown(strange, 12)}. Give the same columns of both."
        )
    return True
