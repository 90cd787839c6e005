"""Rows of K classes as blocks of logits or log-probabilities, the classes along the first axis.

Logits (or log p with its floor) less the greatest of their row; or `log((1 - mix) softmax(beta L) + mix / K)` of them,
which for beta 1 and mix 0 is the log-softmax. The rows stay as they are given, float32 or float64; a block (K, m) is
float64 and small enough for the cache. Few rows are turned into blocks once and held, many are turned again in every
pass, so that nothing of the size of the input is made. `ClassStream` has the same face for rows that come in pieces,
pass after pass, and are never held together. May import NumPy and the kernels beside this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import side_by_side
from calibrant._kernels.softmax import LOG_FLOOR, Floats

Result = TypeVar("Result")

CELLS = 2**16
"""Cells of a block."""
HELD = 2**21
"""Up to this many cells all blocks are held."""
SPREAD = 2**17
"""From this many cells on, the blocks are shared by two threads."""
SAMPLED = 2**23
"""A sample of a stream has as many cells at most."""

Piece = tuple[NDArray[Any], NDArray[np.int64], Floats | None]
"""Scores (n, K), indices of the classes and weights, checked."""
Work = Callable[["ClassBlocks", int, int], tuple[Any, ...]]
"""What is added up: some part's rows `first` to `last`."""


class ClassBlocks:
    """Rows (n, K) of scores with labels and weights, read as blocks of logits, or `after` a temperature."""

    def __init__(
        self,
        scores: NDArray[Any],
        labels: NDArray[np.int64],
        weights: Floats | None,
        from_logits: bool,
        form: tuple[float, float] | None = None,
        hold: bool = True,
    ) -> None:
        self.scores, self.labels, self.weights = scores, labels, weights
        self.from_logits, self.form = from_logits, form
        self.size, self.n_classes = int(scores.shape[0]), int(scores.shape[1])
        self.total = float(self.size) if weights is None else float(weights.sum())
        self.width = max(16, CELLS // self.n_classes)
        self._held = self._made(0, self.size) if hold and scores.size <= HELD else None

    def after(self, beta: float, mix: float) -> ClassBlocks:
        """Log-probabilities of the same rows, after a temperature and a mixture with the uniform distribution."""
        made = ClassBlocks.__new__(ClassBlocks)
        made.__dict__.update(self.__dict__)
        made.form = (beta, mix)
        made._held = None if self._held is None else tempered(self._held.copy(), beta, mix)
        return made

    def thinned(self, every: int) -> ClassBlocks:
        """Every so-manieth row."""
        weights = None if self.weights is None else self.weights[::every]
        return ClassBlocks(self.scores[::every], self.labels[::every], weights, self.from_logits, self.form)

    @property
    def held(self) -> bool:
        """Whether all blocks are in memory."""
        return self._held is not None

    def block(self, first: int, last: int) -> Floats:
        """Some rows, shape (K, m); not to be written to."""
        return self._made(first, last) if self._held is None else self._held[:, first:last]

    def weight(self, first: int, last: int) -> Floats | None:
        """Weights of some rows; None when all are 1."""
        return None if self.weights is None else self.weights[first:last]

    def members(self, first: int, last: int) -> Floats:
        """The weight of each row in the line of its class, 0 elsewhere, shape (K, m)."""
        out = np.zeros((self.n_classes, last - first))
        out[self.labels[first:last], np.arange(last - first)] = (
            1.0 if self.weights is None else self.weights[first:last]
        )
        return out

    def sample_size(self, every: int) -> int:
        """Rows that `thinned` keeps."""
        return self.size // every

    def sums(self, work: Work) -> tuple[Any, ...]:
        """The results of `work(self, first, last)` over all blocks, added up part by part."""
        starts = range(0, self.size, self.width)
        if self.scores.size < SPREAD or len(starts) < 2:
            return self._some(work, starts)
        one, other = side_by_side([partial(self._some, work, starts[0::2]), partial(self._some, work, starts[1::2])])
        return tuple(a + b for a, b in zip(one, other))

    def least(self, work: Callable[[Floats], float]) -> float:
        """The least result of `work(block)` over all blocks."""
        return min(
            work(self.block(first, min(first + self.width, self.size))) for first in range(0, self.size, self.width)
        )

    def _some(self, work: Work, starts: range) -> tuple[Any, ...]:
        found = work(self, starts[0], min(starts[0] + self.width, self.size))
        for first in starts[1:]:
            found = tuple(a + b for a, b in zip(found, work(self, first, min(first + self.width, self.size))))
        return found

    def _made(self, first: int, last: int) -> Floats:
        logs = np.array(self.scores[first:last].T, dtype=np.float64, order="C")
        if not self.from_logits:
            with np.errstate(divide="ignore"):
                np.log(logs, out=logs)
            np.maximum(logs, LOG_FLOOR, out=logs)
        logs -= logs.max(axis=0)
        return logs if self.form is None else tempered(logs, *self.form)


class ClassStream:
    """Rows of K classes that come in pieces: `pieces()` gives the same ones in every pass."""

    held = False

    def __init__(
        self, pieces: Callable[[], Iterator[Piece]], shape: tuple[int, int], total: float, from_logits: bool
    ) -> None:
        self.pieces, self.total, self.from_logits = pieces, total, from_logits
        self.size, self.n_classes = shape
        self.form: tuple[float, float] | None = None

    def after(self, beta: float, mix: float) -> ClassStream:
        """Log-probabilities of the same rows, after a temperature and a mixture with the uniform distribution."""
        made = ClassStream(self.pieces, (self.size, self.n_classes), self.total, self.from_logits)
        made.form = (beta, mix)
        return made

    def sample_size(self, every: int) -> int:
        """Rows that `thinned` keeps, about."""
        return self.size // self._stride(every)

    def thinned(self, every: int) -> ClassBlocks:
        """Every so-manieth row, and fewer where those would be too many to hold."""
        stride, seen, kept = self._stride(every), 0, []
        for scores, labels, weights in self.pieces():
            some = slice(-seen % stride, None, stride)
            kept.append((scores[some].copy(), labels[some], None if weights is None else weights[some]))
            seen += len(labels)
        scores, labels = (np.concatenate([piece[place] for piece in kept]) for place in (0, 1))
        weighted = any(weights is not None for _, _, weights in kept)
        parts = [np.ones(len(own)) if weights is None else weights for _, own, weights in kept]
        return ClassBlocks(scores, labels, np.concatenate(parts) if weighted else None, self.from_logits, self.form)

    def _stride(self, every: int) -> int:
        return max(every, -(-self.size * self.n_classes // SAMPLED))

    def sums(self, work: Work) -> tuple[Any, ...]:
        """The results of `work(piece, first, last)` over all blocks of all pieces, added up part by part."""
        parts = (part.sums(work) for part in self._parts())
        found = next(parts)
        for more in parts:
            found = tuple(a + b for a, b in zip(found, more))
        return found

    def least(self, work: Callable[[Floats], float]) -> float:
        """The least result of `work(block)` over all blocks of all pieces."""
        return min(part.least(work) for part in self._parts())

    def _parts(self) -> Iterator[ClassBlocks]:
        for scores, labels, weights in self.pieces():
            yield ClassBlocks(scores, labels, weights, self.from_logits, self.form, hold=False)


Rows = ClassBlocks | ClassStream


def tempered(logs: Floats, beta: float, mix: float) -> Floats:
    """`log((1 - mix) softmax(beta L) + mix / K)` of columns whose greatest value is 0, in place."""
    logs *= beta
    q = np.exp(logs)
    total = q.sum(axis=0)
    if mix == 0.0:
        logs -= np.log(total)
        return logs
    q *= (1 - mix) / total
    q += mix / len(q)
    return np.log(q, out=logs)
