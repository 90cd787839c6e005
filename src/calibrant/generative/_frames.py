"""Labelled rows of a frame: arrays of an eager one; of a lazy one what its engine says of them, in one query.

That query groups by the label. It finds the classes, everything that cannot be used, and what statistics are laid out
by: the mean of each feature (the value of a constant one), or its categories, for which each column of text costs one
query more. Rows stay where they are. Dask has no comparison across columns that narwhals could use: its named columns
are computed, and their rows read like those of an eager frame.
May import NumPy, narwhals, `calibrant._checks`, `calibrant.data`, `calibrant.errors`, `_features` and `_rows`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats, plural, shown
from calibrant.data import _lazy
from calibrant.data._columns import column_index, label_apart
from calibrant.data._frames import lazy_frame
from calibrant.data._lazy import is_absent, one_if
from calibrant.errors import ColumnError, InputError, InputTypeError
from calibrant.generative._features import LARGEST, Categories, find_categories
from calibrant.generative._rows import Labelled, distinct_classes, labelled, places_of

if TYPE_CHECKING:
    import narwhals as nw

MOST_TEXTS = 1_000
"""The most categories of text that a query looks up."""


class Names(NamedTuple):
    """Names of the columns that are read."""

    features: tuple[Hashable, ...]
    label: Hashable
    weight: Hashable | None

    @property
    def all(self) -> dict[str, Hashable]:
        """Names by what they are: x0, x1, ..., label, weight."""
        found = {f"x{place}": name for place, name in enumerate(self.features)} | {"label": self.label}
        return found if self.weight is None else found | {"weight": self.weight}

    def remember(self, estimator: Any) -> None:
        """Set what scikit-learn's estimators know of their features."""
        estimator.n_features_in_ = len(self.features)
        if all(isinstance(name, str) for name in self.features):
            estimator.feature_names_in_ = np.array(self.features, dtype=object)


@dataclass(frozen=True)
class LazyRows:
    """Checked rows of a lazy frame, as columns x0, x1, ..., own (index of the class) and weight, all above 0.

    `layout` is the origin of numbers, or the categories, which their columns still hold as they are.
    """

    rows: nw.LazyFrame[Any]
    classes: NDArray[Any]
    layout: Any
    weighted: bool


def is_lazy(frame: Any) -> bool:
    """Whether the rows of a frame stay in its engine."""
    wrapped = lazy_frame(frame)
    return wrapped is not None and not wrapped.implementation.is_dask()


def named_columns(features: Any, label: Hashable, weight: Hashable | None) -> Names:
    """The names, if they are a list without repeats."""
    if isinstance(features, str | bytes) or not hasattr(features, "__iter__"):
        raise InputTypeError(f"features must be a list of the names of columns, not {features!r:.60}.")
    names = tuple(features)
    if not names:
        raise InputError("features is empty: name at least one column.")
    if len(set(names)) < len(names):
        raise InputError(f"features names a column twice: {shown([n for n in set(names) if names.count(n) > 1])}.")
    label_apart(label, [*((name, "features") for name in names), (weight, "weight")])
    for name in names:
        if name == weight and weight is not None:
            raise ColumnError(f"features and weight are the same column, {weight!r}: name two different columns.")
    return Names(names, label, weight)


def read_frame(frame: Any, names: Names, categorical: bool, classes: Any = None) -> Labelled | LazyRows:
    """The named columns of a frame; `classes` None takes those that occur."""
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        wrapped: Any = nw.from_native(frame)
        there = wrapped.collect_schema().names()
    except TypeError as reason:
        raise InputTypeError(
            f"frame must be a dataframe (pandas, Polars, PyArrow, DuckDB, Spark, ...), but it is "
            f"{type(frame).__name__}. For arrays use fit."
        ) from reason
    except NarwhalsError as reason:
        raise ColumnError(f"The columns of the frame cannot be read: {reason}") from reason
    found = {place: there[column_index(there, name, _argument(place))] for place, name in names.all.items()}
    lazy = isinstance(wrapped, nw.LazyFrame)
    if lazy and not wrapped.implementation.is_dask():
        return _lazy_rows(wrapped, names, found, categorical, classes)
    eager = wrapped.select(*found.values())
    eager = eager.collect() if lazy else eager
    X = eager.select(*(found[place] for place in found if place.startswith("x"))).to_native()
    y, weight = (
        eager.get_column(found[place]).to_native() if place in found else None for place in ("label", "weight")
    )
    return labelled(X, y, weight, classes)


def _argument(place: str) -> str:
    return place if place in ("label", "weight") else "features"


def _lazy_rows(
    wrapped: nw.LazyFrame[Any], names: Names, found: dict[str, str], categorical: bool, classes: Any
) -> LazyRows:
    import narwhals as nw

    rows, text = _columns(wrapped, names, found, categorical)
    each = _looked_at(rows, names, text, categorical)
    _refuse_gaps(each, names, categorical)
    _refuse_infinite(each, names)
    _refuse_weights(each, names)
    kept = each.numbers["kept"] > 0
    labels, values = _lazy.usable_labels(each.labels, kept)
    occur, codes = distinct_classes(labels, f"label column {names.label!r}")
    known = occur if classes is None else np.asarray(classes)
    codes = places_of(occur, known)[codes]
    if names.weight is not None:
        rows = rows.filter(nw.col("weight") > 0)
    columns = [f"x{place}" for place in range(len(names.features))]
    layout = _categories(rows, names, text, each, kept) if categorical else _origin(each, names, kept)
    coded = rows.select(*columns, "weight", own=_coded(values, codes.tolist()))
    return LazyRows(coded, known, layout, names.weight is not None)


def _columns(
    wrapped: nw.LazyFrame[Any], names: Names, found: dict[str, str], categorical: bool
) -> tuple[nw.LazyFrame[Any], set[str]]:
    """The named columns by what they are, numbers as doubles, and those that hold text."""
    import narwhals as nw

    schema, text = wrapped.collect_schema(), set()
    for place, name in found.items():
        kind = schema[name]
        if categorical and place.startswith("x") and kind in (nw.String, nw.Categorical, nw.Enum):
            text.add(place)
        elif place != "label" and not (kind.is_numeric() or kind == nw.Boolean):
            advice = "Convert it first" if categorical or place == "weight" else ADVICE
            raise _lazy.no_numbers(names.all[place], kind, advice)
    return _lazy.as_named(wrapped, found, text), text


ADVICE = "Encode it first, or use CategoricalNaiveBayes when all features are categories"

# ---------------------------------------------------------------- one look at all rows


class _Look(NamedTuple):
    """A line for each distinct label: the labels, and numbers by their names."""

    labels: Any
    numbers: dict[str, Floats]


def _looked_at(rows: nw.LazyFrame[Any], names: Names, text: set[str], categorical: bool) -> _Look:
    """Rows and weight of each label; of each column its gaps, and of each number its range and sum."""
    import narwhals as nw

    weight = nw.col("weight")
    bad = is_absent("weight") | (weight < 0) | (weight > LARGEST)
    flags = {"gap weight": one_if(is_absent("weight")), "bad weight": one_if(bad), "kept": one_if(weight > 0)}
    asked = {name: flag.sum() for name, flag in flags.items()} | {"rows": nw.len(), "total": weight.sum()}
    for place in (f"x{j}" for j in range(len(names.features))):
        x = nw.col(place)
        asked[f"gap {place}"] = one_if(x.is_null() if place in text else is_absent(place)).sum()
        if place not in text:
            used = nw.when(weight > 0).then(x)
            asked[f"infinite {place}"] = one_if(x.abs() > _lazy.FINITE).sum()
            asked |= {f"parts {place}": one_if(x % 1.0 != 0.0).sum()} if categorical else {}
            asked |= {f"low {place}": used.min(), f"high {place}": used.max(), f"sum {place}": used.sum()}
    added = rows.group_by("label").agg(**asked).head(_lazy.MOST_LABELS + 1).collect()
    _lazy.refuse_many_labels(len(added), names.label)
    if not len(added):
        raise InputError("The frame has no rows.")
    numbers = {name: np.array(added.get_column(name).to_list(), dtype=np.float64) for name in asked}
    return _Look(added.get_column("label"), numbers)


def _refuse_gaps(each: _Look, names: Names, categorical: bool) -> None:
    absent = [value is None or value != value for value in each.labels.to_list()]
    gaps = {place: each.numbers.get(f"gap {place}", each.numbers["rows"] * absent) for place in names.all}
    counts = {place: int(gap.sum()) for place, gap in gaps.items()}
    if any(counts.values()):
        advice = "Give them a category of their own" if categorical else "Fill them"
        raise InputError(
            f"The frame has missing values (null or NaN); missing by column: {_lazy.by_column(counts, names.all)}. "
            f"{advice}, or filter those rows out first."
        )


def _refuse_infinite(each: _Look, names: Names) -> None:
    for j, name in enumerate(names.features):
        count = int(each.numbers.get(f"infinite x{j}", np.zeros(1)).sum())
        if count:
            raise InputError(f"column {name!r} holds {plural(count, 'infinite value')}. Replace or remove them first.")


def _refuse_weights(each: _Look, names: Names) -> None:
    count = int(each.numbers["bad weight"].sum())
    if count:
        raise InputError(
            f"column {names.weight!r} holds {plural(count, 'weight')} below 0 or infinite. Weights count how often a "
            f"row was seen."
        )
    _checks.weight_total(float(each.numbers["total"].sum()), float(each.numbers["kept"].sum()))


def _range(each: _Look, place: str, kept: NDArray[np.bool_]) -> tuple[float, float]:
    return float(each.numbers[f"low {place}"][kept].min()), float(each.numbers[f"high {place}"][kept].max())


def _origin(each: _Look, names: Names, kept: NDArray[np.bool_]) -> Floats:
    """The mean of each feature; of a constant one its value, so that its squares are exact zeros."""
    origin = []
    for j, name in enumerate(names.features):
        low, high = _range(each, f"x{j}", kept)
        if max(-low, high) > LARGEST:
            raise InputError(
                f"column {name!r} holds numbers beyond 1e100, whose squares overflow. Divide it by a constant first."
            )
        mean = each.numbers[f"sum x{j}"][kept].sum() / each.numbers["kept"].sum()
        origin.append(low if low == high else mean)
    return np.array(origin)


# ---------------------------------------------------------------- categories and classes


def _categories(
    rows: nw.LazyFrame[Any], names: Names, text: set[str], each: _Look, kept: NDArray[np.bool_]
) -> Categories:
    found = []
    for j, name in enumerate(names.features):
        place = f"x{j}"
        if place in text:
            found.append(_texts(rows, place, name))
            continue
        parts = int(each.numbers[f"parts {place}"].sum())
        if parts:
            raise InputError(
                f"column {name!r} holds {plural(parts, 'number')} that are not whole: cut it into bins first, or use "
                f"GaussianNaiveBayes."
            )
        ends = np.clip(_range(each, place, kept), -(2.0**62), 2.0**62)
        found.append(find_categories(ends.astype(np.int64), f"column {name!r}"))
    return tuple(found)


def _texts(rows: nw.LazyFrame[Any], place: str, name: Hashable) -> NDArray[Any]:
    found = _lazy.distinct(rows, place, MOST_TEXTS + 1).to_list()
    if len(found) > MOST_TEXTS:
        raise InputError(
            f"column {name!r} holds more than {MOST_TEXTS:,} different texts, too many to look up in a query: join "
            f"rare ones, number them from 0, or read the rows in blocks with RiskBasedCalibration.fit_blocks."
        )
    return np.unique(np.array(found, dtype=np.str_))


def _coded(values: Sequence[Any], codes: Sequence[int]) -> nw.Expr:
    """The index of the class of each row."""
    import narwhals as nw

    terms = [nw.when(nw.col("label") == value).then(nw.lit(code)) for value, code in zip(values, codes)]
    return nw.coalesce(*terms)
