"""scikit-learn's own estimator checks, run over every calibrator.

A calibrator takes scores, not features, so a subclass for the test first makes scores of the suite's features: a fixed
projection, squashed to probabilities or given as log-odds. Everything else is the calibrator itself.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

import calibrant as ca
from calibrant.calibrators._base import BinaryCalibrator, Calibrator

MADE: dict[str, type] = {}


def projected(X: np.ndarray, columns: int) -> np.ndarray:
    """The features as that many scores, each a different mixture of all of them.

    Rounded: BLAS gives a row other last digits among other rows, and a step lies exactly at a score.
    """
    mixture = np.cos(np.outer(np.arange(X.shape[1]) + 1, np.arange(columns) + 1))
    return np.round(X @ mixture / X.shape[1], 9)


def on_features(made: Calibrator) -> Calibrator:
    """The calibrator on features: a subclass whose scores are a projection of them."""
    kind, is_binary = type(made), isinstance(made, BinaryCalibrator)
    logits = bool(getattr(made, "from_logits", False))

    def scores_of(self: Any, X: np.ndarray) -> np.ndarray:
        if is_binary:
            z = projected(X, 1)[:, 0]
            return z if logits or self._reads == "score" else 1 / (1 + np.exp(-z))
        z = np.exp(projected(X, len(self.labels_)))
        return z / z.sum(axis=1, keepdims=True)

    class OnFeatures(kind):  # type: ignore[misc, valid-type]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            X, y = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(y)
            columns, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
            labels, codes = np.unique(y, return_inverse=True)
            if len(labels) > 2 and is_binary:
                raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
            if len(labels) < 2:
                raise ValueError("y holds one class only.")
            self.labels_ = labels
            scores = scores_of(self, X)
            super().fit(scores, y if is_binary else codes, sample_weight)
            self.labels_, self.n_features_in_ = labels, columns
            if names is not None:
                self.feature_names_in_ = names
            if not is_binary:
                self.classes_ = labels
            return self

        def predict_proba(self, X: Any) -> Any:
            self._fitted_map()
            return super().predict_proba(scores_of(self, validate_data(self, X, reset=False, dtype=np.float64)))

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = not is_binary
            tags.input_tags.one_d_array = False
            return tags

    name = f"{kind.__name__}{len(MADE)}"
    OnFeatures.__name__ = OnFeatures.__qualname__ = name
    MADE[name] = globals()[name] = OnFeatures  # where pickle looks for it
    return OnFeatures(**made.get_params(deep=False))


CALIBRATORS = [
    ca.PlattScaling(),
    ca.AffineLogit(),
    ca.AffineLogit(from_logits=True),
    ca.QuadraticLogit(),
    ca.BetaCalibration(),
    ca.SplineCalibration(),
    ca.IsotonicCalibration(),
    ca.HistogramBinning(),
    ca.VennAbers(),
    ca.TemperatureScaling(),
    ca.AutoCalibrator(),
    ca.OneVsRest(ca.AffineLogit()),
    ca.VectorScaling(),
    ca.MatrixScaling(),
    ca.DirichletCalibration(),
    ca.StructuredVectorScaling(),
    ca.StructuredMatrixScaling(),
]

NOT_A_CLASSIFIER_OF_FEATURES = "asks for an accuracy on features that scores of a fixed projection cannot reach"
EXCLUDED = {
    "check_classifiers_train": NOT_A_CLASSIFIER_OF_FEATURES,
    "check_classifiers_classes": NOT_A_CLASSIFIER_OF_FEATURES,
}
FOLDS_IN_KIND = "folds are drawn, so weight 2 is a row twice in kind, not to the digit (documented)"
ONLY_HERE = {
    "SplineCalibration": {
        "check_sample_weight_equivalence_on_dense_data": FOLDS_IN_KIND,
    },
    "AutoCalibrator": {
        "check_sample_weight_equivalence_on_dense_data": FOLDS_IN_KIND,
    },
}


def cases() -> list[Any]:
    """Every check of every calibrator, with an id."""
    found = []
    for made in CALIBRATORS:
        estimator = on_features(made)
        for one, check in estimator_checks_generator(estimator, mark=None):
            name = getattr(check, "func", check).__name__
            found.append(pytest.param(one, check, name, id=f"{made!r}-{name}"))
    return found


@pytest.mark.parametrize(("estimator", "check", "name"), cases())
def test_scikit_learn_check(estimator: Any, check: Any, name: str) -> None:
    reason = EXCLUDED.get(name) or ONLY_HERE.get(type(estimator).__mro__[1].__name__, {}).get(name)
    if reason:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("made", CALIBRATORS, ids=repr)
def test_no_class_passes_in_vain(made: Calibrator) -> None:
    estimator = on_features(made)
    names = [getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(estimator, mark=None)]
    excluded = EXCLUDED | ONLY_HERE.get(type(made).__name__, {})
    assert len([name for name in names if name not in excluded]) >= 50


def rows(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    z = rng.normal(size=n)
    return 1 / (1 + np.exp(-2 * z)), (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def test_grid_search_pipeline_and_cross_val_predict_work() -> None:
    p, y = rows()
    search = GridSearchCV(ca.IsotonicCalibration(), {"smoothing": [0.5, 2.0]}, scoring="neg_log_loss", cv=3)
    assert search.fit(p[:, None], y).best_params_["smoothing"] in (0.5, 2.0)
    pipeline = make_pipeline(FunctionTransformer(np.log), ca.PlattScaling()).fit(p[:, None], y)
    assert pipeline.predict_proba(p[:, None]).shape == (len(y), 2)
    out = cross_val_predict(ca.AffineLogit(), p[:, None], y, method="predict_proba", cv=4)
    assert ca.log_loss(y, out[:, 1]) < ca.log_loss(y, p)
