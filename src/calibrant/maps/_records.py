"""One frozen record per kind of map, each with its formula.

May import NumPy, the kernels, `calibrant.data._log_odds` and `calibrant.maps._base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._checks import Floats
from calibrant._kernels import isotonic, likelihood, softmax
from calibrant._kernels.blocks import by_block
from calibrant.data._log_odds import class_log_odds
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, ClassMap, Map, flag, number, parts, vector
from calibrant.maps._fields import refuse_reversed

FARTHEST = 88.0
"""Beyond any log-odds, whose logarithms have a floor at -87.34."""


def read_log_odds(scores: Floats, from_logits: bool, lowest: float, highest: float) -> Floats:
    """The scores themselves, or the log-odds of probabilities, moved to the nearer end where they are beyond it."""
    return scores if from_logits else np.clip(likelihood.log_odds(scores), lowest, highest)


@dataclass(frozen=True, eq=False)
class IdentityMap(BinaryMap):
    """`p -> (1 - mix) p + mix / 2`: probabilities as they are, or moved a little off 0 and 1."""

    kind: ClassVar[str] = "identity"
    mix: float = number(0, 1, default=0.0)
    from_logits: bool = flag(default=False)

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def _apply(self, scores: Floats) -> Floats:
        p = likelihood.expit(scores) if self.from_logits else scores
        return p.copy() if self.mix == 0 else (1 - self.mix) * p + self.mix / 2


@dataclass(frozen=True, eq=False)
class PlattMap(BinaryMap):
    """`score -> expit(intercept + slope * score)`."""

    kind: ClassVar[str] = "platt"
    slope: float = number()
    intercept: float = number()

    @property
    def reads(self) -> str:
        return "score"

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return likelihood.expit(self.intercept + self.slope * scores)


@dataclass(frozen=True, eq=False)
class AffineLogitMap(BinaryMap):
    """`p -> expit(intercept + slope * z)`, z the log-odds of p in [lowest, highest] (or the score, `from_logits`)."""

    kind: ClassVar[str] = "affine_logit"
    slope: float = number()
    intercept: float = number()
    from_logits: bool = flag(default=False)
    lowest: float = number(default=-FARTHEST)
    highest: float = number(default=FARTHEST)

    def _validate(self) -> None:
        super()._validate()
        refuse_reversed(lowest=self.lowest, highest=self.highest)

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        z = read_log_odds(scores, self.from_logits, self.lowest, self.highest)
        with np.errstate(over="ignore"):
            return likelihood.expit(self.intercept + self.slope * z)


@dataclass(frozen=True, eq=False)
class StepMap(BinaryMap):
    """A step function: `values[k]`, k the number of thresholds that are at most the score."""

    kind: ClassVar[str] = "steps"
    thresholds: Floats = vector(rising=True)
    values: Floats = vector(0, 1)

    def _validate(self) -> None:
        super()._validate()
        if len(self.values) != len(self.thresholds) + 1:
            raise InputError("there must be one value more than thresholds.")

    @property
    def reads(self) -> str:
        return "score"

    def _apply(self, scores: Floats) -> Floats:
        return isotonic.apply_steps(scores, self.thresholds, self.values)

    @property
    def of_probabilities(self) -> StepMap:
        """The steps between 0 and 1: a score a little beyond them is taken for 0 or 1."""
        first, last = np.searchsorted(self.thresholds, [0.0, 1.0], side="right").tolist()
        return StepMap(self.classes, self.thresholds[first:last], self.values[first : last + 1])


@dataclass(frozen=True, eq=False)
class LineMap(BinaryMap):
    """Straight lines between the points (knot, value), constant outside them."""

    kind: ClassVar[str] = "lines"
    knots: Floats = vector(rising=True)
    values: Floats = vector(0, 1)

    def _validate(self) -> None:
        super()._validate()
        if len(self.values) != len(self.knots) or len(self.knots) == 0:
            raise InputError("there must be a value for every knot.")

    @property
    def reads(self) -> str:
        return "score"

    def _apply(self, scores: Floats) -> Floats:
        return isotonic.apply_lines(scores, self.knots, self.values)


def _same_reads(maps: tuple[Map, ...]) -> str:
    """What all parts read; a part that reads any score goes with the others."""
    kinds = {part.reads for part in maps} - {"score"}
    if len(kinds) > 1:
        raise InputError("the parts must read the same kind of score.")
    return next(iter(kinds), "score")


@dataclass(frozen=True, eq=False)
class MixtureMap(BinaryMap):
    """The weighted average of the probabilities of several maps of the same score."""

    kind: ClassVar[str] = "mixture"
    weights: Floats = vector(0, 1)
    maps: tuple[BinaryMap, ...] = parts()

    def _validate(self) -> None:
        super()._validate()
        if len(self.weights) != len(self.maps) or abs(float(self.weights.sum()) - 1) > 1e-9:
            raise InputError("there must be a weight for every map, and the weights must sum to 1.")
        if any(not isinstance(part, BinaryMap) for part in self.maps):
            raise InputError("every part must be a map of two classes.")
        if any(part.classes != self.classes for part in self.maps):
            raise InputError("every part must have the classes of the mixture.")
        _same_reads(self.maps)

    @property
    def reads(self) -> str:
        return _same_reads(self.maps)

    def _apply(self, scores: Floats) -> Floats:
        total = np.zeros(len(scores))
        for weight, part in zip(self.weights, self.maps):
            total += weight * part._apply(scores)
        return np.clip(total, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class TemperatureMap(Map):
    """`L -> (1 - mix) softmax(beta L) + mix / K`; for two classes of the log-odds, `expit(beta z)`."""

    kind: ClassVar[str] = "temperature"
    beta: float = number(0)
    mix: float = number(0, 1, default=0.0)
    from_logits: bool = flag(default=False)
    lowest: float = number(default=-FARTHEST)
    highest: float = number(default=FARTHEST)

    def _validate(self) -> None:
        super()._validate()
        refuse_reversed(lowest=self.lowest, highest=self.highest)

    @property
    def reads(self) -> str:
        return "logit" if self.from_logits else "probability"

    def __call__(self, scores: Any) -> Any:
        """Calibrated probabilities: (n,) for two classes, (n, K) otherwise."""
        face = _BinaryTemperature if len(self.classes) == 2 else _ClassTemperature
        return face(self.classes, self)(scores)


@dataclass(frozen=True, eq=False)
class _BinaryTemperature(BinaryMap):
    """Temperature on the log-odds of two classes."""

    record: TemperatureMap

    @property
    def reads(self) -> str:
        return self.record.reads

    @by_block
    def _apply(self, scores: Floats) -> Floats:
        z = read_log_odds(scores, self.record.from_logits, self.record.lowest, self.record.highest)
        with np.errstate(over="ignore"):
            q = likelihood.expit(self.record.beta * z)
        return q if self.record.mix == 0 else (1 - self.record.mix) * q + self.record.mix / 2


@dataclass(frozen=True, eq=False)
class _ClassTemperature(ClassMap):
    """Temperature on the logits of K classes."""

    record: TemperatureMap

    @property
    def reads(self) -> str:
        return self.record.reads

    def _apply_rows(self, scores: Floats) -> Floats:
        record = self.record

        def work(columns: Floats) -> Floats:
            q = softmax.softmax_columns(softmax.scaled_columns(columns, record.from_logits, record.beta))
            return q if record.mix == 0 else (1 - record.mix) * q + record.mix / len(q)

        return softmax.in_columns(scores, work)


@dataclass(frozen=True, eq=False)
class OneVsRestMap(ClassMap):
    """One binary map per class, divided by the row sum; a row of zeros becomes uniform."""

    kind: ClassVar[str] = "one_vs_rest"
    maps: tuple[BinaryMap, ...] = parts()

    def _validate(self) -> None:
        if len(self.maps) != len(self.classes):
            raise InputError("there must be a map for every class.")
        if any(isinstance(part, ClassMap) or len(part.classes) != 2 for part in self.maps):
            raise InputError("every part must be a map of two classes.")
        _same_reads(self.maps)

    @property
    def reads(self) -> str:
        return _same_reads(self.maps)

    def _apply_rows(self, scores: Floats) -> Floats:
        if self.reads == "logit":
            scores = class_log_odds(scores)
        columns = [part(np.ascontiguousarray(scores[:, k])) for k, part in enumerate(self.maps)]
        p = np.column_stack(columns)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
