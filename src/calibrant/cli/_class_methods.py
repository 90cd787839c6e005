"""The one table of method names for K classes: what `--method` may be beside `--scores`.

May import `calibrant.errors` and `_methods` beside this file; the class is imported when one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.cli import _methods
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators._base import Calibrator

TABLE = {
    "auto": ("AutoCalibrator", "mixes the candidates that the rows support"),
    "temperature": ("TemperatureScaling", "one temperature, mixed with a little of the uniform distribution"),
    "vector": ("VectorScaling", "a slope and an intercept per class"),
    "matrix": ("MatrixScaling", "a matrix on the logits, for many rows"),
    "dirichlet": ("DirichletCalibration", "a matrix on the log-probabilities"),
    "svs": ("StructuredVectorScaling", "vector with a penalty that knows the number of classes"),
    "sms": ("StructuredMatrixScaling", "matrix likewise"),
}
EACH = "one-versus-rest"
DEFAULT = "auto"

HELP = f"With --scores: {', '.join(TABLE)}, or {EACH}:NAME with a name for two classes"


def make_for_classes(name: str | None, from_logits: bool) -> Calibrator:
    """A calibrator of K classes with its defaults."""
    from calibrant import calibrators

    name = name or DEFAULT
    if name.partition(":")[0] == EACH:
        return _one_versus_rest(name, from_logits)
    if name not in TABLE:
        raise InputError(_unknown(name))
    more = {"mix": True} if name == "temperature" else {}
    made: Calibrator = getattr(calibrators, TABLE[name][0])(from_logits=from_logits, **more)
    return made


def _one_versus_rest(name: str, from_logits: bool) -> Calibrator:
    from calibrant.calibrators import OneVsRest

    inner = name.partition(":")[2]
    able = [method.value for method in _methods.Method]
    if inner not in able:
        said = f"{inner!r} is not one of them" if inner else "it has none"
        raise InputError(
            f"--method {EACH}:NAME needs the name of a method for two classes, and {said}: {', '.join(able)}."
        )
    return OneVsRest(_methods.make(_methods.Method(inner), from_logits))


def _unknown(name: str) -> str:
    known = f"{', '.join(TABLE)}, {EACH}:NAME"
    if name in list(_methods.Method):
        return (
            f"--method {name} is for two classes; for many take {EACH}:{name}, which is one map per class, or one of: "
            f"{known}."
        )
    return f"--method {name!r} is none of those for many classes: {known}."
