"""The rows of each group, in their order, without sorting.

May import: NumPy, `_compiled`.
"""

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels._compiled import MANY, compiled

Places = NDArray[np.int64]


def places_of_groups(codes: Places, n_groups: int) -> list[Places]:
    """Ascending places of the rows of each group; codes are 0 to `n_groups` - 1."""
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    if len(codes) < MANY:
        order = np.argsort(codes, kind="stable")
    else:
        order = np.empty(len(codes), dtype=np.int64)
        _deal(np.ascontiguousarray(codes), np.concatenate(([0], ends[:-1])), order)
    return np.split(order, ends[:-1])


@compiled("II*I*")
def _deal(codes: Places, heads: Places, order: Places) -> None:
    for i in range(len(codes)):
        at = heads[codes[i]]
        order[at] = i
        heads[codes[i]] = at + 1
