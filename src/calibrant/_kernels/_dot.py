"""Inner products that stay on one thread.

From about 10,000 numbers on, the usual BLAS shares an inner product between threads and waits for all of them: little
is gained where the cores are free, and a thousand times is lost where another process has one. Pieces are shorter.

May import: NumPy.
"""

import numpy as np
from numpy.typing import NDArray

SHORT = 2**13


def dot(a: NDArray[np.float64] | NDArray[np.uint8], b: NDArray[np.float64]) -> float:
    """Sum of a b."""
    size = len(a)
    if size <= SHORT:
        return float(np.dot(a, b))
    return sum(float(np.dot(a[i : i + SHORT], b[i : i + SHORT])) for i in range(0, size, SHORT))


def weight_of(code: int, labels: NDArray[np.uint8], weights: NDArray[np.float64] | None) -> float:
    """Weight of the rows whose label is 0 or 1; each counts once where there are no weights."""
    if weights is None:
        hits = np.count_nonzero(labels)
        return float(hits if code else len(labels) - hits)
    blocks = (slice(i, i + SHORT) for i in range(0, len(labels), SHORT))
    return float(sum(float(weights[at] @ (labels[at] == code).astype(np.float64)) for at in blocks))
