"""Softmax and floored logarithms.

`softmax(L)_k = exp(L_k) / sum_j exp(L_j)`, invariant to a constant added to a row. May import NumPy only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOG_FLOOR = float(np.log(np.float64(np.finfo(np.float32).tiny)))


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
