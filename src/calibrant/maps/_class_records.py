"""Frozen records of the maps of K classes that work on all columns at once.

L is the log-softmax of the logits, or of log p with its floor. The matrix methods may start from a temperature and a
mixture with the uniform distribution: `L <- log((1 - mix) softmax(beta L) + mix / K)`.
May import NumPy, the kernels and `calibrant.maps._base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._checks import LARGEST, Floats
from calibrant._kernels import softmax
from calibrant._kernels._one_thread import one_blas_thread
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, ClassMap, Map, flag, matrix, number, parts, vector


@dataclass(frozen=True, eq=False)
class ClassIdentityMap(ClassMap):
    """`p -> (1 - mix) p + mix / K`: probabilities as they are, or moved a little off 0 and 1."""

    kind: ClassVar[str] = "class_identity"
    mix: float = number(0, 1, default=0.0)
    from_logits: bool = flag(default=False)

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _apply_rows(self, scores: Floats) -> Floats:
        p = softmax.softmax(scores) if self.from_logits else scores
        return p.copy() if self.mix == 0 else (1 - self.mix) * p + self.mix / p.shape[1]


def _log_columns(scores: Floats, from_logits: bool, beta: float, mix: float) -> Floats:
    """Log-probabilities (K, m) of columns of scores, after the temperature and the mixture."""
    logs = softmax.scaled_columns(scores, from_logits, beta)
    np.maximum(logs, -LARGEST, out=logs)
    q = np.exp(logs)
    total = q.sum(axis=0)
    if mix == 0:
        logs -= np.log(total)
        return logs
    q *= (1 - mix) / total
    q += mix / len(q)
    with np.errstate(divide="ignore"):
        np.log(q, out=q)
    return np.maximum(q, -LARGEST, out=q)


def _product(weights: Floats, logs: Floats, intercepts: Floats) -> Floats:
    """`weights @ logs + intercepts`; where the product overflows, an infinity of the right sign and never NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        made: Floats = weights @ logs
        if not np.isfinite(made).all():
            size, depth = np.abs(weights).max(), np.abs(logs).max()
            made = (weights / size) @ (logs / depth) * size * depth
        made += intercepts[:, None]
    return made


@dataclass(frozen=True, eq=False)
class VectorScalingMap(ClassMap):
    """`L -> softmax(L * weights + intercepts)`, L after the temperature and the mixture."""

    kind: ClassVar[str] = "vector_scaling"
    weights: Floats = vector()
    intercepts: Floats = vector()
    beta: float = number(0, default=1.0)
    mix: float = number(0, 1, default=0.0)
    from_logits: bool = flag(default=False)

    def _validate(self) -> None:
        if not len(self.weights) == len(self.intercepts) == len(self.classes):
            raise InputError("there must be a weight and an intercept for every class.")

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _apply_rows(self, scores: Floats) -> Floats:
        def work(columns: Floats) -> Floats:
            logs = _log_columns(columns, self.from_logits, self.beta, self.mix)
            with np.errstate(over="ignore"):
                logs *= self.weights[:, None]
                logs += self.intercepts[:, None]
            return softmax.softmax_columns(logs)

        return softmax.in_columns(scores, work)


@dataclass(frozen=True, eq=False)
class MatrixScalingMap(ClassMap):
    """`L -> softmax(L weights' + intercepts)`, L after the temperature and the mixture.

    A row of `weights` makes the logit of one class.
    """

    kind: ClassVar[str] = "matrix_scaling"
    weights: Floats = matrix()
    intercepts: Floats = vector()
    beta: float = number(0, default=1.0)
    mix: float = number(0, 1, default=0.0)
    from_logits: bool = flag(default=False)

    def _validate(self) -> None:
        k = len(self.classes)
        if self.weights.shape != (k, k) or len(self.intercepts) != k:
            raise InputError("there must be a row of weights and an intercept for every class.")

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _apply_rows(self, scores: Floats) -> Floats:
        def work(columns: Floats) -> Floats:
            logs = _log_columns(columns, self.from_logits, self.beta, self.mix)
            return softmax.softmax_columns(_product(self.weights, logs, self.intercepts))

        with one_blas_thread():
            return softmax.in_columns(scores, work)


@dataclass(frozen=True, eq=False)
class LogMixtureMap(ClassMap):
    """`softmax(sum_c weight_c log q_c)`: several maps of the same probabilities, averaged in log-probability.

    Map c reads `(1 - mix_c) p + mix_c / K`, which keeps exact zeros from it.
    """

    kind: ClassVar[str] = "log_mixture"
    weights: Floats = vector(0, 1)
    mixes: Floats = vector(0, 1)
    maps: tuple[Map, ...] = parts()
    from_logits: bool = flag(default=False)

    def _validate(self) -> None:
        if len(self.weights) != len(self.maps) or abs(float(self.weights.sum()) - 1) > 1e-9:
            raise InputError("there must be a weight for every map, and the weights must sum to 1.")
        if len(self.mixes) != len(self.maps):
            raise InputError("there must be a mix for every map.")
        if any(part.classes != self.classes for part in self.maps):
            raise InputError("every part must have the classes of the mixture.")
        if any(part.reads == "logit" or isinstance(part, BinaryMap) for part in self.maps):
            raise InputError("every part must be a map of K classes that reads probabilities.")

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _apply_rows(self, scores: Floats) -> Floats:
        p = softmax.softmax(scores) if self.from_logits else scores
        total = np.zeros(p.shape)
        for weight, mix, part in zip(self.weights, self.mixes, self.maps):
            total += weight * softmax.log_floored(part((1 - mix) * p + mix / p.shape[1]))
        return softmax.softmax(total)
