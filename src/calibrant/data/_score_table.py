"""The score table: scores, and for each the weight of positives and of negatives.

Every binary calibrator and measure is a function of this table, so tables add: the table of two sets of rows together
is the sum of their tables. Rows are kept as they came (one entry per row) until someone asks for `distinct`, which
sorts them once and adds up equal scores.
May import NumPy, the kernels, `calibrant._checks` and the readers of this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np

from calibrant import _checks
from calibrant._checks import Bytes, Classes, Floats, Label
from calibrant._kernels import areas, merging, ranking
from calibrant._kernels._dot import weight_of
from calibrant.data._arrays import BinaryRows, joint_classes, read_binary_rows, read_counts
from calibrant.data._columns import MAX_DISTINCT, Columns, SummedColumns
from calibrant.errors import InputTypeError

ByRow = Callable[[Floats, Bytes, Floats | None], Any]
ByCount = Callable[[Floats, Floats, Floats], Any]


class ScoreTable:
    """Scores with the weight of positives and of negatives at each.

    Build one with `from_arrays`, `from_counts`, `from_frame` or `from_file`; add two with `+`.

    Attributes
    ----------
    scores, positives, negatives : ndarray of float64, shape (m,)
        A score, and the weight of positive and of negative rows that have it.
    rows, squared_weights : ndarray of float64, shape (m,)
        How many rows have the score, and the sum of their squared weights (for intervals).
    classes : tuple
        The labels coded as negative and positive.
    n_rows : int
        Number of rows with weight above zero.
    total_weight : float
        Sum of the weights, N; the number of rows when there are none.
    prevalence : float
        Share of positive weight, in [0, 1].
    distinct : ScoreTable
        The same table with ascending distinct scores. Cost: one sort, O(n log n), done once.

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> table = ScoreTable.from_arrays([0.2, 0.8, 0.8], [0, 1, 0])
    >>> table.distinct.scores, table.distinct.positives
    (array([0.2, 0.8]), array([0., 1.]))
    >>> (table + table).n_rows
    6
    """

    def __init__(self) -> None:
        raise InputTypeError("Use ScoreTable.from_arrays, from_counts, from_frame or from_file.")

    classes: Classes
    scores: Floats
    _labels: Bytes | None
    _weights: Floats | None
    _ascending: bool
    _in_order: bool  # whether entries are rows in the order in which they came, as a column of groups has them

    @classmethod
    def from_arrays(cls, scores: Any, y: Any, sample_weight: Any = None, pos_label: Label | None = None) -> ScoreTable:
        """Table of rows: scores of the positive class, labels, and weights (frequencies).

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            NumPy, pandas, Polars, PyArrow, torch or lists; the second of two columns is the positive class.
        y : array-like of shape (n,)
            Two different labels; the greater number is positive, text needs `pos_label`.
        sample_weight : array-like of shape (n,), optional
            How often each row counts; not negative.
        pos_label : label, optional
            The label of the event.

        Raises
        ------
        InputError
            Missing or infinite values, lengths that differ, labels that are not two classes, negative weights.

        Examples
        --------
        >>> from calibrant import ScoreTable
        >>> ScoreTable.from_arrays([0.1, 0.9], ["no", "yes"], pos_label="yes").prevalence
        0.5
        """
        return cls._of_rows(read_binary_rows(scores, y, sample_weight, pos_label).copied())

    @classmethod
    def from_counts(cls, scores: Any, positives: Any, negatives: Any) -> ScoreTable:
        """Table of aggregates: how many positives and negatives each score has (k successes of n).

        Examples
        --------
        >>> from calibrant import ScoreTable
        >>> ScoreTable.from_counts([0.1, 0.5], [2, 5], [8, 5]).n_rows
        20
        """
        scores, positives, negatives = read_counts(scores, positives, negatives)
        return cls._of_counts(scores + 0.0, positives, negatives, None, None, (0, 1))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str,
        label: str,
        weight: str | None = None,
        pos_label: Label | None = None,
        missing: Literal["error", "drop"] = "error",
        max_distinct: int = MAX_DISTINCT,
    ) -> ScoreTable:
        """Table of two or three columns of a frame: pandas, Polars (eager and lazy), PyArrow, DuckDB, Spark, Dask.

        A lazy frame is added up by score in its engine, and only the table comes back: three queries, and memory for
        the distinct scores. Beyond `max_distinct` of them, which a sample foresees, cells are added up instead, of
        equal width h in log-odds (outside [0, 1]: in sign(x) log(1 + |x|)), each with its mean score, and a warning
        says so: log loss changes by at most h, the Brier score by at most h / 2.

        Parameters
        ----------
        frame : frame
            Any frame that narwhals reads; a lazy one is computed for the named columns only.
        score, label, weight : str
            Names of the columns.
        pos_label : label, optional
            The label of the event; text labels need it.
        missing : {"error", "drop"}
            What to do with rows in which one of the named columns is missing.
        max_distinct : int
            The most distinct scores that a lazy frame may bring back before they are put into cells.

        Examples
        --------
        >>> import pandas as pd
        >>> from calibrant import ScoreTable
        >>> frame = pd.DataFrame({"p": [0.1, 0.9], "y": [0, 1]})
        >>> ScoreTable.from_frame(frame, score="p", label="y").n_rows
        2
        """
        from calibrant.data._cells import check_most
        from calibrant.data._frames import read_frame
        from calibrant.data._grouped import read_lazy

        check_most("from_frame", max_distinct)
        names = {"score": score, "label": label, "weight": weight}
        sums = read_lazy(frame, names, pos_label=pos_label, missing=missing, max_distinct=max_distinct)
        if sums is not None:
            return cls._of_counts(*sums)
        columns = read_frame(frame, score=score, label=label, weight=weight, pos_label=pos_label, missing=missing)
        return cls._of_columns(columns)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        score: str,
        label: str,
        weight: str | None = None,
        pos_label: Label | None = None,
        missing: Literal["error", "drop"] = "error",
        separator: str | None = None,
        decimal: str | None = None,
        header: bool = True,
        max_distinct: int = MAX_DISTINCT,
    ) -> ScoreTable:
        """Table of two or three columns of a file: csv, tsv, txt, Parquet, JSON lines; any of the texts gzipped.

        Beyond 20,000,000 rows they are added up by score while they are read, so memory does not grow with the rows.

        Parameters
        ----------
        path : path
            The file, a folder of parts, or a glob.
        score, label, weight : str
            Names of the columns; `column_1`, `column_2`, ... with `header=False`.
        pos_label : label, optional
            The label of the event; text labels need it.
        missing : {"error", "drop"}
            What to do with rows in which one of the named columns is missing.
        separator, decimal : str, optional
            For csv; `separator=";", decimal=","` reads European files.
        header : bool
            Whether the first line of a csv holds the names.
        max_distinct : int
            For files of more than 20,000,000 rows: as in `from_frame`.

        Raises
        ------
        ColumnError
            A column that is not there (the message lists those that are) or does not hold numbers.
        """
        from calibrant.data._cells import MORE, check_most
        from calibrant.data._files import read_binary
        from calibrant.data._summed_files import Limits

        check_most("from_file", max_distinct)
        columns: dict[str, Any] = {"score": score, "label": label, "weight": weight, "pos_label": pos_label}
        written: dict[str, Any] = {"separator": separator, "decimal": decimal, "header": header}
        limits = Limits(max_distinct, MORE)
        return cls._of_columns(read_binary(path, **columns, missing=missing, **written, limits=limits))

    @classmethod
    def _of_columns(cls, columns: Columns | SummedColumns) -> ScoreTable:
        if isinstance(columns, SummedColumns):
            return cls._of_counts(*columns.sums)
        scores = _checks.finite(columns.scores, "score")
        weights = _checks.weights(columns.weights, len(scores))
        classes: Any = columns.classes
        return cls._of_rows(BinaryRows(scores + 0.0, columns.labels, weights, classes).present())

    @classmethod
    def _of_rows(cls, rows: BinaryRows, ascending: bool = False, in_order: bool = True) -> ScoreTable:
        """The table of checked rows; nothing is copied."""
        table = cls.__new__(cls)
        table.scores, table._labels, table._weights, table.classes = rows
        table._ascending, table._in_order = ascending, in_order
        return table

    @classmethod
    def _of_counts(
        cls,
        scores: Floats,
        positives: Floats,
        negatives: Floats,
        rows: Floats | None,
        squared_weights: Floats | None,
        classes: Classes,
        ascending: bool = False,
    ) -> ScoreTable:
        """The table of checked sums; nothing is copied. None: every row counts once."""
        table = cls.__new__(cls)
        table.scores, table._labels, table._weights, table.classes = scores, None, None, classes
        table.positives, table.negatives = positives, negatives
        if rows is not None and squared_weights is not None:
            table.rows, table.squared_weights = rows, squared_weights
        table._ascending, table._in_order = ascending, False
        return table

    @cached_property
    def positives(self) -> Floats:
        """Weight of the positive rows at each score."""
        assert self._labels is not None
        return self._labels.astype(np.float64) if self._weights is None else self._labels * self._weights

    @cached_property
    def negatives(self) -> Floats:
        """Weight of the negative rows at each score."""
        assert self._labels is not None
        other = 1 - self._labels
        return other.astype(np.float64) if self._weights is None else other * self._weights

    @cached_property
    def rows(self) -> Floats:
        """Number of rows (with weight above zero) at each score."""
        return self.weight if self._weights is None else (self._weights > 0).astype(np.float64)

    @cached_property
    def squared_weights(self) -> Floats:
        """Sum of the squared weights at each score."""
        return self.weight if self._weights is None else self._weights**2

    @property
    def weight(self) -> Floats:
        """Weight of all rows at each score."""
        if self._labels is None:
            return self.positives + self.negatives
        return np.ones(len(self.scores)) if self._weights is None else self._weights

    @cached_property
    def n_rows(self) -> int:
        """Number of rows with weight above zero."""
        return len(self.scores) if self._labels is not None and self._weights is None else round(float(self.rows.sum()))

    @cached_property
    def total_positives(self) -> float:
        """Weight of all positive rows."""
        return float(self.positives.sum()) if self._labels is None else weight_of(1, self._labels, self._weights)

    @cached_property
    def total_negatives(self) -> float:
        """Weight of all negative rows."""
        return float(self.negatives.sum()) if self._labels is None else weight_of(0, self._labels, self._weights)

    @property
    def total_weight(self) -> float:
        """Sum of the weights, N."""
        return self.total_positives + self.total_negatives

    @property
    def prevalence(self) -> float:
        """Share of positive weight."""
        return self.total_positives / self.total_weight

    @property
    def distinct(self) -> ScoreTable:
        """The same table with ascending distinct scores, without scores of weight zero."""
        return self if self._ascending else self._sorted  # a table that kept itself would not be freed at its last use

    @property
    def _is_sorted(self) -> bool:
        """Whether `distinct` costs nothing."""
        return self._ascending or "_sorted" in vars(self)

    @cached_property
    def _sorted(self) -> ScoreTable:
        if self._labels is None:
            return self._of_distinct(ranking.distinct_counts(*self._columns), self.classes)
        return self._of_distinct(ranking.distinct_rows(self.scores, self._labels, self._weights), self.classes)

    @classmethod
    def _of_distinct(cls, found: ranking.Distinct | ranking.Ordered, classes: Classes) -> ScoreTable:
        if isinstance(found, ranking.Distinct):
            return cls._of_counts(*found, classes, ascending=True)
        return cls._of_rows(BinaryRows(*found, None, classes), ascending=True, in_order=False)

    @property
    def _columns(self) -> Any:
        """What is kept: `Ordered` of rows, `Distinct` of sums, without the last two where each row counts once."""
        if self._labels is not None:
            return ranking.Ordered(self.scores, self._labels)
        squares = (vars(self).get("rows"), vars(self).get("squared_weights"))
        return ranking.Distinct(self.scores, self.positives, self.negatives, *squares)

    @property
    def _sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.positives, self.negatives, self.rows, self.squared_weights

    @cached_property
    def _auc(self) -> float:
        """Area under the ROC curve, kept: a fit and the look for misuse both need it."""
        table = self.distinct
        if table._labels is not None:
            return areas.auc_of_rows(table._labels)
        return areas.auc(table.positives, table.negatives)

    def reduce(self, by_row: ByRow, by_count: ByCount) -> Any:
        """The value of a kernel on this table: on its rows while they are rows, else on its sums."""
        if self._labels is not None:
            return by_row(self.scores, self._labels, self._weights)
        return by_count(self.scores, self.positives, self.negatives)

    def with_scores(self, scores: Floats) -> ScoreTable:
        """The same rows with other scores, for example calibrated ones (already checked, same length)."""
        if self._labels is not None:
            return self._of_rows(BinaryRows(scores, self._labels, self._weights, self.classes), in_order=self._in_order)
        return ScoreTable._of_counts(*ranking.Distinct(scores, *self._columns[1:]), self.classes)

    def _at(self, places: Any) -> ScoreTable:
        """The table of some of the entries."""
        if self._labels is not None:
            weights = None if self._weights is None else self._weights[places]
            kept = BinaryRows(self.scores[places], self._labels[places], weights, self.classes)
            return self._of_rows(kept, in_order=self._in_order)
        columns: Any = [None if column is None else column[places] for column in self._columns]
        return ScoreTable._of_counts(*ranking.Distinct(*columns), self.classes)

    def __add__(self, other: object) -> ScoreTable:
        """The table of both sets of rows together."""
        if not isinstance(other, ScoreTable):
            return NotImplemented
        classes = joint_classes(self.classes, other.classes)
        if self._ascending and other._ascending and merging.pays(len(self), len(other)):
            return self._of_distinct(merging.merge(self._columns, other._columns), classes)
        scores = np.concatenate([self.scores, other.scores])
        if self._labels is not None and other._labels is not None and self._in_order and other._in_order:
            labels = np.concatenate([self._labels, other._labels])
            weighted = self._weights is not None or other._weights is not None
            weights = np.concatenate([self.weight, other.weight]) if weighted else None
            return ScoreTable._of_rows(BinaryRows(scores, labels, weights, classes))
        positives, negatives, rows, squares = (np.concatenate(pair) for pair in zip(self._sums, other._sums))
        return ScoreTable._of_counts(scores, positives, negatives, rows, squares, classes)

    def __radd__(self, other: object) -> ScoreTable:
        """`sum(tables)`, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        distinct = f", {len(self.distinct):,} distinct scores" if self._is_sorted else ""
        weight = "" if self.total_weight == self.n_rows else f", total weight {self.total_weight:,.6g}"
        return (
            f"ScoreTable({_checks.plural(self.n_rows, 'row')}{distinct}{weight}, prevalence {self.prevalence:.4g}, "
            f"classes {self.classes})"
        )
