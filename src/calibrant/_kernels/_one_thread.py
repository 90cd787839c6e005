"""Matrix products on one thread each, while the work around them is shared by threads of our own.

A BLAS that starts threads inside threads, or beside other processes, waits for busy cores: products that take a
millisecond were seen to take a second. May import threadpoolctl, only inside the functions below.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

_lock = Lock()
_limits: list[Any] = []
"""One entry per caller inside: the limit in force, then None."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread; the last of several callers to leave gives its threads back."""
    with _lock:
        _limits.append(None if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
            _limits.pop()


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
