"""Labelled rows through the gate, and their cutting into blocks.

Invariant: labels are indices of the classes, weights are positive, features stay in the type they came in.
May import NumPy, the kernels, `calibrant.data`, `calibrant._checks`, `calibrant.errors` and `_features`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels.generative import one_hot
from calibrant.data._arrays import aligned, array_of
from calibrant.errors import InputError
from calibrant.generative._features import matrix

BLOCK_NUMBERS = 2**20
"""A block has about this many numbers, features and classes together: 8 MB for each array of its size."""


def block_rows(n_features: int, n_classes: int) -> int:
    """Rows of a block, when nothing else was asked for."""
    return max(256, BLOCK_NUMBERS // (n_features + 4 * n_classes))


def blocks_of(n_rows: int, size: int) -> Iterator[slice]:
    """Slices that cut the rows into blocks."""
    return (slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size))


@dataclass(frozen=True, eq=False)
class Labelled:
    """Checked rows: features as given, labels as indices of the classes, weights; rows of weight 0 are left out."""

    features: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Floats | None
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def weights_of(self, part: slice) -> Floats:
        """One-hot weights of some rows, (n, K)."""
        weights = None if self.weights is None else self.weights[part]
        return one_hot(self.codes[part], len(self.classes), weights)

    def take(self, chosen: NDArray[Any]) -> Labelled:
        """Some of the rows, by index or mask."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, features=self.features[chosen], codes=self.codes[chosen], weights=weights)


def labelled(X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Labelled:
    """Rows, labels and weights through the gate; `classes` None takes those that occur."""
    features = matrix(X)
    aligned(X=X, y=y, sample_weight=sample_weight)
    labels = array_of(y, "y")
    _checks.same_length(X=features, y=np.atleast_1d(labels))
    weights = None if sample_weight is None else array_of(sample_weight, "sample_weight")
    weights = _checks.weights(weights, len(features), "X")
    found, codes = distinct_classes(labels, "y")
    if weights is not None and not weights.all():
        kept = weights > 0
        features, codes, weights = features[kept], codes[kept], weights[kept]
        present = np.unique(codes)
        found, codes = found[present], np.searchsorted(present, codes)
    if classes is None:
        return Labelled(features, codes, weights, found)
    known = np.asarray(classes)
    return Labelled(features, places_of(found, known)[codes], weights, known)


def distinct_classes(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels that occur, sorted, and the index of each row's label."""
    found, codes = _checks.distinct_labels(labels, name)
    _not_continuous(found)
    return found, codes


def _not_continuous(found: NDArray[Any]) -> None:
    if found.dtype.kind == "f" and np.any(found != np.floor(found)):
        value = found[found != np.floor(found)][0]
        raise InputError(
            f"Unknown label type: continuous. y must hold classes, but it holds {value:.6g}: cut it into classes first."
        )


def places_of(found: NDArray[Any], known: NDArray[Any]) -> NDArray[np.intp]:
    """The index of each label that occurs among the known classes."""
    index = {value: place for place, value in enumerate(known.tolist())}
    if known.ndim != 1 or len(index) < len(known):
        raise InputError(f"classes must be a list that names each class once, but it is {_checks.shown(known, 12)}.")
    strange = [value for value in found.tolist() if value not in index]
    if strange:
        raise InputError(f"y holds {_checks.shown(strange)}, which is not among the classes {_checks.shown(known)}.")
    return np.array([index[value] for value in found.tolist()], dtype=np.intp)


def several_classes(classes: Sequence[Any] | NDArray[Any], owner: str) -> None:
    """Refuse a single class."""
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only ({_checks.shown(classes)}), but {owner} needs at least two classes. Add rows of "
            f"another class."
        )
