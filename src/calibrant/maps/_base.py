"""The frozen map: a record with a kind, the labels of its classes and its parameters.

Invariant: `from_dict(map.to_dict()) == map`, and the JSON bytes are stable. A field is declared by `number`, `flag`,
`vector`, `matrix` or `parts`, which says how it is written, read back and checked.
May import NumPy, the kernels, `calibrant._checks`, `calibrant.data._arrays` and `calibrant.errors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats, Label
from calibrant.data._arrays import array_of, named_in_order
from calibrant.errors import InputError, MapFileError
from calibrant.maps._fields import checked_classes, checked_numbers
from calibrant.maps._fields import flag as flag
from calibrant.maps._fields import matrix as matrix
from calibrant.maps._fields import number as number
from calibrant.maps._fields import parts as parts
from calibrant.maps._fields import vector as vector

if TYPE_CHECKING:
    import narwhals as nw

FORMAT = "calibrant map"
VERSION = 1


# ---------------------------------------------------------------- the record


@dataclass(frozen=True, eq=False)
class Map(ABC):
    """A frozen map from scores to probabilities.

    Attributes
    ----------
    classes : tuple
        The labels, in the order of the probabilities; for two classes (negative, positive).
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Map]]] = {}

    classes: tuple[Label | None, ...]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            Map.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", checked_classes(self.classes))
        for item in self._items():
            value = _checked_value(f"{self.kind}.{item.name}", item.metadata, getattr(self, item.name))
            object.__setattr__(self, item.name, value)
        self._validate()

    @property
    @abstractmethod
    def reads(self) -> str:
        """What the map is given: "score" (any real number), "probability" or "logit"."""

    @abstractmethod
    def __call__(self, scores: Any) -> Any:
        """Calibrated probabilities of scores."""

    def _validate(self) -> None:
        """Refuse fields that do not fit together; each field alone has been checked."""
        return

    # ------------------------------------------------------------ JSON

    def to_dict(self) -> dict[str, Any]:
        """The map as plain Python values, ready for JSON."""
        return {"format": FORMAT, "version": VERSION, **self._body()}

    def _body(self) -> dict[str, Any]:
        parameters = {item.name: _written(item.metadata["form"], getattr(self, item.name)) for item in self._items()}
        return {"kind": self.kind, "classes": list(self.classes), "parameters": parameters}

    @classmethod
    def _items(cls) -> list[Any]:
        return [item for item in fields(cls) if "form" in item.metadata]

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Map:
        """The map that `to_dict` wrote; anything unknown or damaged is refused.

        Raises
        ------
        MapFileError
            Another format or version, an unknown kind or field, a missing or impossible value.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise MapFileError(f'This is not a calibrant map: the field "format" must be "{FORMAT}".')
        if type(content.get("version")) is not int or content["version"] != VERSION:
            raise MapFileError(
                f"The map has version {content.get('version')!r}, but this calibrant reads version {VERSION}. Update "
                f"calibrant, or fit the map again."
            )
        _no_strangers(content, {"format", "version", "kind", "classes", "parameters"}, "the map")
        return _read_body({key: content[key] for key in content if key not in ("format", "version")})

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the map as JSON; a file that exists is kept unless `force` is true."""
        from calibrant.maps._files import save_map

        save_map(self, path, force=force)

    def to_sql(
        self,
        column: str | Sequence[str],
        dialect: Literal["duckdb", "postgres", "spark", "sqlite"] = "duckdb",
        *,
        table: str = "scores",
        keep: Sequence[str] = (),
    ) -> str:
        """The map as SQL: an expression of a column for two classes, a query for K.

        Parameters
        ----------
        column : str, or list of K str
            Name of the column with the scores; of K classes their columns, in the order of `classes`. Quoted here.
        dialect : {"duckdb", "postgres", "spark", "sqlite"}
            The engine that will run it.
        table : str
            K classes: what stands after FROM, as it is (a table, a query in brackets).
        keep : list of str
            K classes: further columns that the query gives, for example a key. The new ones are `calibrated_` and the
            class; a row that the map would refuse has NULL there.
        """
        if len(self.classes) == 2 or isinstance(column, str):
            from calibrant.maps._sql import sql_expression

            return sql_expression(self, cast(str, column), dialect)
        from calibrant.maps._class_sql import class_query

        return class_query(self, column, dialect, table, keep)

    def apply_frame(self, frame: Any, columns: str | Sequence[str], *, prefix: str = "calibrated") -> Any:
        """The frame with the probabilities as new columns: any frame, a lazy one in its engine.

        Parameters
        ----------
        frame : frame
            pandas, Polars (eager and lazy), PyArrow, DuckDB, Spark, Dask.
        columns : str, or list of K str
            The column of the scores of two classes; of K classes the columns, in the order of `classes`.
        prefix : str
            Two classes: the name of the new column. K classes: the new columns are called this, `_` and the class. A
            row that the map would refuse has null there.

        Notes
        -----
        Eager frames, and the parts of a Dask frame, go through the map itself, at the cost of a call. The others get
        expressions: see `to_expr`.

        Raises
        ------
        InputError
            A list of columns for a map that reads one, or one column for a map that reads K.

        Examples
        --------
        >>> import polars as pl
        >>> from calibrant.maps import AffineLogitMap, TemperatureMap
        >>> frame = pl.LazyFrame({"p_a": [0.6], "p_b": [0.3], "p_c": [0.1]})
        >>> record = TemperatureMap(("a", "b", "c"), beta=0.5)
        >>> record.apply_frame(frame, ["p_a", "p_b", "p_c"]).collect()["calibrated_a"].round(4).to_list()
        [0.4727]
        >>> AffineLogitMap(("no", "yes"), 0.5, 0.0).apply_frame(frame, "p_a").collect()["calibrated"].round(4).to_list()
        [0.5505]
        """
        from calibrant.maps._frames import frame_with_map

        return frame_with_map(self, frame, columns, prefix)

    def to_expr(self, column: str) -> nw.Expr:
        """The map of two classes as a narwhals expression of a column, for frames of every library, eager or lazy.

        `apply_frame(frame, "p")` is shorter where the column is all that is wanted. The expression goes into
        `with_columns` of narwhals, not into that of Polars or another library, which knows no narwhals:
        `nw.from_native(frame).with_columns(q=record.to_expr("p")).to_native()`, after `import narwhals as nw`.

        A score that the map would refuse gives null. Steps are a balanced tree of conditions: DuckDB and Spark take
        O(log steps) a row, eager frames and Dask O(steps).

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> from calibrant import AffineLogit
        >>> record = AffineLogit().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).map_
        >>> frame = pl.DataFrame({"p": [0.5]})
        >>> nw.from_native(frame).with_columns(q=record.to_expr("p")).to_native()["q"].round(6).to_list()
        [0.5]
        """
        from calibrant.maps._expression import column_expression

        return column_expression(self, column)

    def to_python(self, name: str = "calibrate") -> str:
        """The map as the text of a Python function, which needs the standard library only.

        Two classes: of one score, the probability. K classes: of a list of K scores, the list of K probabilities.

        Examples
        --------
        >>> from calibrant.maps import PlattMap
        >>> print(PlattMap(("no", "yes"), slope=2.0, intercept=-1.0).to_python())
        # Calibrated probability of the class 'yes' (and not 'no'): a map 'platt' of calibrant.
        <BLANKLINE>
        import math
        <BLANKLINE>
        <BLANKLINE>
        def calibrate(score):
            x = float(score)
            if not -1.7976931348623157e+308 <= x <= 1.7976931348623157e+308:
                raise ValueError(f"score must be a finite number, but it is {score!r}.")
            return 1.0 / (1.0 + math.exp(0.0 - min(max(-1.0 + (2.0 * x), -700.0), 700.0)))
        <BLANKLINE>
        """
        from calibrant.maps._python import python_source

        return python_source(self, name)

    def to_onnx(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the map as an ONNX file in float64; a file that exists is kept unless `force` is true.

        Two classes: input `score` (n,), output `probability` (n,). K classes: input `scores` (n, K), output
        `probabilities` (n, K). A score that the map would refuse gives NaN.

        Raises
        ------
        MissingDependencyError
            onnx is not installed.
        """
        from calibrant.maps._onnx import save_onnx

        save_onnx(self, path, force=force)

    # ------------------------------------------------------------ comparing

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = [np.array_equal(getattr(self, item.name), getattr(other, item.name)) for item in self._items()]
        return self.classes == cast(Self, other).classes and all(same)

    def __hash__(self) -> int:
        return hash((self.kind, self.classes))


def _written(form: str, value: Any) -> Any:
    if form == "parts":
        return [part._body() for part in value]
    if form in ("vector", "matrix"):
        return value.tolist()
    return bool(value) if form == "flag" else float(value)


def _no_strangers(content: Mapping[str, Any], known: set[str], what: str) -> None:
    strangers = sorted(map(str, set(content) - known))
    missing = sorted(known - set(content))
    if strangers:
        raise MapFileError(f"{what} has unknown fields: {', '.join(strangers)}. It may come from another version.")
    if missing:
        raise MapFileError(
            f"{what} lacks the fields: {', '.join(missing)}. The file may be damaged; fit the map again."
        )


def _read_body(body: Any) -> Map:
    if not isinstance(body, Mapping):
        raise MapFileError(f"A map must be an object with kind, classes and parameters, not {body!r}.")
    _no_strangers(body, {"kind", "classes", "parameters"}, "the map")
    kind = Map.kinds.get(body["kind"]) if isinstance(body["kind"], str) else None
    if kind is None:
        raise MapFileError(f"The kind of map {body['kind']!r} is unknown; known are {', '.join(sorted(Map.kinds))}.")
    items = {item.name: item for item in kind._items()}
    parameters = body["parameters"]
    if not isinstance(parameters, Mapping):
        raise MapFileError(f"The parameters of the map {kind.kind!r} must be an object, not {parameters!r}.")
    _no_strangers(parameters, set(items), f"the map {kind.kind!r}")
    values = {name: _read_value(f"{kind.kind}.{name}", items[name].metadata, parameters[name]) for name in items}
    try:
        return kind(body["classes"], **values)
    except InputError as error:
        raise MapFileError(f"The map {kind.kind!r} is damaged: {error}") from None


def _read_value(name: str, limits: Mapping[str, Any], value: Any) -> Any:
    """A value of a file: maps out of their objects, anything else as it is."""
    if limits["form"] != "parts":
        return value
    if isinstance(value, list) and value:
        return tuple(_read_body(part) for part in value)
    raise MapFileError(f"{name} must be a list of maps, not {value!r}.")


# ---------------------------------------------------------------- checks of a record


def _checked_value(name: str, limits: Mapping[str, Any], value: Any) -> Any:
    form = limits["form"]
    if form == "flag":
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise InputError(f"{name} must be true or false, not {value!r}.")
    if form == "parts":
        listed = tuple(value)
        if listed and all(isinstance(part, Map) for part in listed):
            return listed
        raise InputError(f"{name} must be a list of maps, not {value!r}.")
    return checked_numbers(name, limits, value)


# ---------------------------------------------------------------- the two families


@dataclass(frozen=True, eq=False)
class BinaryMap(Map):
    """A map of two classes: a score in, the probability of the positive class out."""

    def _validate(self) -> None:
        if len(self.classes) != 2:
            raise InputError(f"a map of this kind has two classes, not {len(self.classes)}.")

    @abstractmethod
    def _apply(self, scores: Floats) -> Floats:
        """Probabilities of checked scores."""

    def __call__(self, scores: Any) -> Any:
        """Probability of the positive class.

        Parameters
        ----------
        scores : float, or array-like of shape (n,), (n, 1) or (n, 2)
            One score or many; the second of two columns is the positive class.

        Returns
        -------
        float or ndarray of shape (n,)
            In [0, 1].
        """
        array = array_of(scores, "scores")
        named_in_order(scores, self.classes, "scores", fitted=True)
        if array.ndim == 0:
            return float(self._apply(_checks.binary_scores(array.reshape(1), "scores", reads=self.reads))[0])
        return self._apply(_checks.binary_scores(array, "scores", reads=self.reads))


@dataclass(frozen=True, eq=False)
class ClassMap(Map):
    """A map of K classes: a row of scores in, a row of probabilities out."""

    @abstractmethod
    def _apply_rows(self, scores: Floats) -> Floats:
        """Probabilities (n, K) of checked scores (n, K)."""

    def __call__(self, scores: Any) -> Floats:
        """Probabilities of all classes.

        Parameters
        ----------
        scores : array-like of shape (n, K), or (K,) for one row

        Returns
        -------
        ndarray of shape (n, K), or (K,)
            Rows sum to 1.
        """
        array = array_of(scores, "scores")
        rows = _checks.class_scores(array[None, :] if array.ndim == 1 else array, "scores", reads=self.reads)
        if rows.shape[1] != len(self.classes):
            raise InputError(
                f"scores has {rows.shape[1]} columns, but the map was fitted on {len(self.classes)} classes: "
                f"{_checks.shown(self.classes, 12)}."
            )
        named_in_order(scores, self.classes, "scores", fitted=True)
        probabilities = self._apply_rows(rows)
        return probabilities[0] if array.ndim == 1 else probabilities
