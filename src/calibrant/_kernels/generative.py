"""Generative classifiers in arrays: joint tables of categories, weighted moments, floored densities, residuals.

n rows, d features, K classes. Row weights are (n, K), may be negative, and are laid out class by class (Fortran order),
so that a class is one contiguous column. May import NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger]

PROBABILITY_FLOOR = 1e-10
VARIANCE_FLOOR = 1e-6
"""Of the pooled variance of the feature."""
JOINT_CELLS = 2**13
"""Most cells of a joint table: its columns stay in the second-level cache."""


def by_class(n: int, n_classes: int) -> Floats:
    """Zeros of shape (n, K) whose columns are contiguous."""
    return np.zeros((n_classes, n)).T


def one_hot(labels: NDArray[np.intp], n_classes: int, weights: Floats | None = None) -> Floats:
    """The weight of each row in the column of its class, (n, K)."""
    result = by_class(len(labels), n_classes)
    result[np.arange(len(labels)), labels] = 1.0 if weights is None else weights
    return result


def over_classes(operation: np.ufunc, array: Floats) -> Floats:
    """`operation` over the classes of each row, (n,): column by column, as the layout has it."""
    result = array[:, 0].copy()
    for k in range(1, array.shape[1]):
        operation(result, array[:, k], out=result)
    return result


# ---------------------------------------------------------------- the residuals of a block


class Judged(NamedTuple):
    """Sums over a block: weighted error, soft error and log loss, and the residuals `w (Y - H)`."""

    error: float
    soft_error: float
    log_loss: float
    residuals: Floats


def judge(log_joint: Floats, labels: NDArray[np.intp], weights: Floats | None) -> Judged:
    """Errors and residuals of `H = softmax(log_joint)`; the array is used up.

    `error` counts rows whose first most probable class is wrong; `soft_error` adds `1 - H_iy`.
    """
    rows = np.arange(len(labels))
    log_joint -= over_classes(np.maximum, log_joint)[:, None]
    own = log_joint[rows, labels]
    wrong = _wrong(log_joint, own, labels)
    np.exp(log_joint, out=log_joint)
    total = over_classes(np.add, log_joint)
    loss = np.log(total) - own
    np.divide(log_joint, -total[:, None], out=log_joint)
    # 1 - h of the own class: the sum of the others, which keeps its digits when h is close to 1.
    log_joint[rows, labels] = 0.0
    soft = -over_classes(np.add, log_joint)
    log_joint[rows, labels] = soft
    if weights is None:
        return Judged(float(np.count_nonzero(wrong)), float(soft.sum()), float(loss.sum()), log_joint)
    log_joint *= weights[:, None]
    return Judged(float(weights @ wrong), float(weights @ soft), float(weights @ loss), log_joint)


def _wrong(shifted: Floats, own: Floats, labels: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the first class at the top is not the row's own."""
    wrong = own < 0
    tied = np.flatnonzero(over_classes(np.add, (shifted == 0).astype(np.int8)) > 1)
    wrong[tied] = shifted[tied].argmax(axis=1) != labels[tied]
    return wrong


def softmax_rows(log_joint: Floats, log: bool) -> Floats:
    """Probabilities of the rows, (n, K), or their logarithms; the array is used up."""
    log_joint -= over_classes(np.maximum, log_joint)[:, None]
    if log:
        log_joint -= np.log(over_classes(np.add, np.exp(log_joint)))[:, None]
        return log_joint
    np.exp(log_joint, out=log_joint)
    log_joint /= over_classes(np.add, log_joint)[:, None]
    return log_joint


# ---------------------------------------------------------------- categories


class JointCodes(NamedTuple):
    """Rows as indices into a few joint tables.

    Features are joined into groups of at most `JOINT_CELLS` cells, so that a pass looks up and adds up a group at a
    time instead of a feature at a time.
    """

    codes: tuple[Codes, ...]
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        return len(self.codes[0])


def group_features(sizes: Sequence[int], limit: int = JOINT_CELLS) -> tuple[tuple[int, ...], ...]:
    """Features in groups whose joint table has at most `limit` cells (or one feature), smallest tables first."""
    groups: list[tuple[int, ...]] = []
    cells = limit + 1
    for feature in sorted(range(len(sizes)), key=lambda j: sizes[j]):
        cells *= sizes[feature]
        if cells > limit:
            groups.append((feature,))
            cells = sizes[feature]
        else:
            groups[-1] += (feature,)
    return tuple(groups)


def join(columns: Sequence[NDArray[np.intp]], sizes: Sequence[int]) -> JointCodes:
    """Joint codes of the rows; `sizes` is the number of cells of each feature."""
    groups = group_features(sizes)
    codes: list[Codes] = []
    for group in groups:
        joint = columns[group[0]]
        for feature in group[1:]:
            joint = joint * sizes[feature] + columns[feature]
        cells = int(np.prod([sizes[feature] for feature in group], dtype=np.int64))
        codes.append(joint.astype(np.uint16 if cells <= 2**16 else np.uint32))
    return JointCodes(tuple(codes), groups, tuple(sizes))


def look_up(rows: JointCodes, tables: Sequence[Floats], start: Floats) -> Floats:
    """`start_k + sum_j tables_j[x_ij, k]`, (n, K); a table has shape (cells of the feature, K)."""
    result = by_class(rows.n_rows, len(start))
    result += start
    for codes, group in zip(rows.codes, rows.groups):
        places = codes.astype(np.intp)
        for k in range(len(start)):
            joint = np.zeros(1)
            for feature in group:
                joint = np.add.outer(joint, tables[feature][:, k]).ravel()
            result[:, k] += joint.take(places)
    return result


def add_up(rows: JointCodes, weights: Floats) -> tuple[Floats, ...]:
    """Weight of each cell of each feature in each class: arrays of shape (cells, K)."""
    n_classes = weights.shape[1]
    cells = [np.zeros((size, n_classes)) for size in rows.sizes]
    for codes, group in zip(rows.codes, rows.groups):
        places = codes.astype(np.intp)
        shape = tuple(rows.sizes[feature] for feature in group)
        for k in range(n_classes):
            joint = np.bincount(places, weights[:, k], int(np.prod(shape, dtype=np.int64))).reshape(shape)
            for axis, feature in enumerate(group):
                others = tuple(other for other in range(len(group)) if other != axis)
                cells[feature][:, k] = joint.sum(axis=others)
    return tuple(cells)


# ---------------------------------------------------------------- moments


class Pooled(NamedTuple):
    """Mean, variance and inverse scale of each feature over all classes; the scale of a constant is left out (0)."""

    mean: Floats
    variance: Floats
    inverse: Floats


def pooled(total: float, sums: Floats, squares: Floats, origin: Floats) -> Pooled:
    """Of the sums and the sums of squares about the origin; variance within rounding of 0 counts as 0."""
    mean = sums / total
    variance = np.maximum(squares / total - mean**2, 0.0)
    variance[variance <= (16 * np.finfo(float).eps * np.abs(origin)) ** 2] = 0.0
    inverse = np.zeros_like(variance)
    np.divide(1.0, np.sqrt(variance), out=inverse, where=variance > 0)
    return Pooled(mean, variance, inverse)


def full_squares(centred: Floats, weights: Floats) -> Floats:
    """`sum_i w_ik x_i x_i'` for each class, (K, d, d)."""
    return np.stack([(centred * weights[:, k, None]).T @ centred for k in range(weights.shape[1])])


class Directions(NamedTuple):
    """Covariances `diag(1/scale) V diag(values) V' diag(1/scale)` with floored eigenvalues."""

    values: Floats
    vectors: Floats
    floored: NDArray[np.intp]


def directions(covariances: Floats, inverse: Floats) -> Directions:
    """Eigenvalues and vectors of the covariances (K, d, d) in units of the pooled scale, floored at 1e-6.

    A constant feature, whose inverse scale is 0, counts as one of unit variance: it never touches the floor.
    """
    scaled = covariances * np.multiply.outer(inverse, inverse)
    constant = np.flatnonzero(inverse == 0)
    scaled[:, constant, constant] = 1.0
    values, vectors = np.linalg.eigh(scaled)
    floored = np.count_nonzero(values < VARIANCE_FLOOR, axis=1)
    return Directions(np.maximum(values, VARIANCE_FLOOR), vectors, floored)


def log_densities(centred: Floats, means: Floats, whitening: Floats) -> Floats:
    """`-|(x - mean_k) whitening_k|^2 / 2`, (n, K); whitening is (K, d, d), or (K, d) when it is diagonal."""
    result = by_class(len(centred), len(means))
    for k, (mean, matrix) in enumerate(zip(means, whitening)):
        white = centred - mean
        white = white * matrix if matrix.ndim == 1 else white @ matrix
        result[:, k] = -0.5 * np.einsum("ij,ij->i", white, white)
    return result
