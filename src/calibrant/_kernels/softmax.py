"""Softmax and floored logarithms, of rows (n, K) and of columns (K, m).

`softmax(L)_k = exp(L_k) / sum_j exp(L_j)`, invariant to a constant added to a row. Maps work on columns, in blocks that
fit the cache: sums over few classes are several times faster along the first axis. May import NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS = 2**16
"""Cells of a block of columns."""
LOG_FLOOR = float(np.log(np.float64(np.finfo(np.float32).tiny)))

HALF_OF_LARGEST = float(np.finfo(np.float64).max) / 2


def softmax(logits: Floats) -> Floats:
    """Row-wise softmax of (n, K) logits, without overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted: Floats = logits - logits.max(axis=1, keepdims=True)
        np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def log_floored(p: Floats) -> Floats:
    """Log p with a floor at the log of the smallest normal float32."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LOG_FLOOR)


def log_softmax(logits: Floats) -> Floats:
    """Row-wise log of the softmax."""
    shifted: Floats = logits - logits.max(axis=1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def log1p_floored(p: Floats) -> Floats:
    """log(1 - p) with a floor at the log of the smallest normal float32."""
    with np.errstate(divide="ignore"):
        result: Floats = np.maximum(np.log1p(-p), LOG_FLOOR)
    return result


def in_columns(rows: Floats, work: Callable[[Floats], Floats]) -> Floats:
    """`work(columns)` of copies (K, m) of blocks of the rows, which it may write to, as rows again."""
    out = np.empty(rows.shape)
    width = max(16, CELLS // rows.shape[1])
    for first in range(0, len(rows), width):
        block = np.array(rows[first : first + width].T, dtype=np.float64, order="C")
        out[first : first + width] = work(block).T
    return out


def softmax_columns(logits: Floats) -> Floats:
    """The softmax of every column, in place."""
    with np.errstate(over="ignore", invalid="ignore"):
        top = logits.max(axis=0)
        if not np.isfinite(top).all():  # infinity less infinity is no number
            np.clip(logits, -HALF_OF_LARGEST, HALF_OF_LARGEST, out=logits)
            top = logits.max(axis=0)
        logits -= top
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def scaled_columns(scores: Floats, from_logits: bool, beta: float) -> Floats:
    """`beta L`, in place: L the logits, or the floored log of probabilities, less the greatest of the column."""
    if not from_logits:
        with np.errstate(divide="ignore"):
            np.log(scores, out=scores)
        np.maximum(scores, LOG_FLOOR, out=scores)
    with np.errstate(over="ignore"):
        scores -= scores.max(axis=0)
        scores *= beta
    return scores
