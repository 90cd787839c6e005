"""The frozen record of Venn-Abers: two step functions, p0 and p1, and what they merge to.

May import NumPy, the kernels, `calibrant._checks`, `calibrant.data._arrays`, `calibrant.maps._base`, `_records` and
`calibrant.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels import isotonic
from calibrant.data._arrays import array_of
from calibrant.errors import InputError
from calibrant.maps._base import BinaryMap, vector
from calibrant.maps._records import StepMap


@dataclass(frozen=True, eq=False)
class VennAbersMap(BinaryMap):
    """`score -> p1 / (1 - p0 + p1)`; entry k of `lower` (p0) and `upper` (p1), k the thresholds at most the score."""

    kind: ClassVar[str] = "venn_abers"
    thresholds: Floats = vector(rising=True)
    lower: Floats = vector(0, 1)
    upper: Floats = vector(0, 1)

    def _validate(self) -> None:
        super()._validate()
        if not len(self.lower) == len(self.upper) == len(self.thresholds) + 1:
            raise InputError("there must be one value more than thresholds.")
        if np.any(self.lower > self.upper):
            raise InputError("the lower values must not exceed the upper ones.")

    @property
    def reads(self) -> str:
        return "score"

    @property
    def merged(self) -> Floats:
        """The merged probability of each step."""
        return self.upper / (1 - self.lower + self.upper)

    @property
    def as_steps(self) -> StepMap:
        """The merged probabilities as a step function."""
        return StepMap(self.classes, self.thresholds, self.merged)

    def _apply(self, scores: Floats) -> Floats:
        return isotonic.apply_steps(scores, self.thresholds, self.merged)

    def interval(self, scores: Any) -> Floats:
        """The pair (p0, p1) of each score, shape (n, 2)."""
        checked = _checks.binary_scores(array_of(scores, "scores"), "scores", reads=self.reads)
        return np.column_stack(
            [isotonic.apply_steps(checked, self.thresholds, values) for values in (self.lower, self.upper)]
        )
