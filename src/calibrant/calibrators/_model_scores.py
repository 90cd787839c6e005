"""The scores of a scikit-learn classifier, in the order of the classes that are calibrated.

Invariant: the scores of a row depend on that row alone.
May import scikit-learn, NumPy, `calibrant._checks` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant._checks import Floats
from calibrant.errors import DataWarning, InputError


def model_scores(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Scores in the order of `classes`: (n,) for two classes, (n, K) otherwise.

    A class that the model does not know gets probability 0, or a margin of 1 below the lowest of its row.

    Raises
    ------
    InputError
        A model without scores, or with scores that are none of its classes.
    """
    is_probability = hasattr(model, "predict_proba")
    if not is_probability and not hasattr(model, "decision_function"):
        raise InputError(f"{type(model).__name__} has neither predict_proba nor decision_function.")
    raw = np.asarray(model.predict_proba(X) if is_probability else model.decision_function(X), dtype=np.float64)
    seen = np.asarray(model.classes_)
    _one_score_a_class(raw, seen, model, is_probability)
    if len(classes) == 2 and len(seen) == 2:
        return raw[:, 1] if raw.ndim == 2 else raw
    if raw.ndim == 1:  # a model of two classes among more
        raw = np.column_stack([-raw, raw])
    full = np.zeros((len(raw), len(classes)))
    if not is_probability:
        full += raw.min(axis=1, keepdims=True) - 1
    full[:, np.searchsorted(classes, seen)] = raw
    return full[:, 1] if len(classes) == 2 else full


def _one_score_a_class(raw: Floats, seen: NDArray[Any], model: Any, is_probability: bool) -> None:
    """Refuse margins of pairs of classes, and outputs of any other shape."""
    paired = not is_probability and len(seen) > 2 and "ovo" in _settings(model, "decision_function_shape")
    if raw.ndim == 1 and len(seen) == 2 and not is_probability:
        return
    if paired or raw.ndim != 2 or raw.shape[1] != len(seen):
        name = "predict_proba" if is_probability else "decision_function"
        columns = raw.shape[1] if raw.ndim == 2 else 1
        raise InputError(
            f"{name} of {type(model).__name__} gives {columns} scores a row, which are not those of its {len(seen)} "
            f"classes. A classifier of pairs of classes (SVC) needs decision_function_shape='ovr'."
        )


def _settings(model: Any, name: str) -> list[Any]:
    """What a parameter is set to, in the model or in what it is made of."""
    made_of = getattr(model, "estimator", model) if type(model).__name__ == "FrozenEstimator" else model
    given = made_of.get_params() if hasattr(made_of, "get_params") else {}
    return [value for key, value in given.items() if key.split("__")[-1] == name]


def check_frozen_classes(model: Any, classes: NDArray[Any]) -> None:
    """Refuse a frozen model of other classes than those of the labels: scores and labels are matched by name."""
    check_is_fitted(model)
    known, given = np.asarray(model.classes_).tolist(), classes.tolist()
    strange = [name for name in known if name not in given]
    if strange:
        raise InputError(
            f"The frozen estimator knows the classes {', '.join(map(repr, known))}, but y holds "
            f"{', '.join(map(repr, given))}. Give rows of every class that it knows, with the labels that it was "
            f"fitted to."
        )
    unknown = [name for name in given if name not in known]
    if unknown:
        warnings.warn(
            f"The frozen estimator does not know {', '.join(map(repr, unknown))}, which y holds: their score is the "
            f"lowest in every row, so the map can only learn how often they come. Fit the estimator to rows of all "
            f"classes.",
            DataWarning,
            stacklevel=6,
        )
