"""What every estimator shares, whatever it learns: the error before `fit`, and forgetting an earlier fit.

May import scikit-learn's exceptions and `calibrant.errors`.
"""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from calibrant.errors import NotFittedError


class NotFitted(NotFittedError, SklearnNotFittedError):  # type: ignore[misc]
    """An estimator that is used before `fit`; scikit-learn's error too."""


def forget(estimator: Any) -> None:
    """Drop everything that an earlier fit learned."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)
