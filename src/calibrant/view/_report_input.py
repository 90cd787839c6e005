"""What a report is given: arguments, how the scores are read, and the calibrator that suits them.

May import NumPy, `calibrant.calibrators`, `calibrant.data` and the checks.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant._checks import PROBABILITY_TOLERANCE
from calibrant._parameters import Flag, Seed, check_parameters
from calibrant._parameters import Number as NumberRule
from calibrant.calibrators import AffineLogit, PlattScaling
from calibrant.calibrators._base import BinaryCalibrator
from calibrant.data import ScoreTable
from calibrant.errors import InputError, InputTypeError

ReadAs = Literal["probability", "log-odds", "score"]


def check_arguments(n_folds: Any, from_logits: Any, random_state: Any, **texts: Any) -> None:
    """Check what every report is given."""
    rules = {"n_folds": NumberRule(2, whole=True), "from_logits": Flag(), "random_state": Seed()}
    given = {"n_folds": n_folds, "from_logits": from_logits, "random_state": random_state}
    check_parameters("build_report", given, rules)
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InputTypeError(f"build_report: {name} must be text, but it is {text!r}.")


def binary_calibrator(calibrator: Any, labels: Any, from_logits: bool) -> Any:
    """The calibrator of two classes that was asked for, if any."""
    if labels is not None:
        raise InputError("build_report: labels names the columns of three or more classes; two have pos_label.")
    if calibrator is None:
        return AffineLogit(from_logits=True) if from_logits else None
    if not isinstance(calibrator, BinaryCalibrator):
        raise InputTypeError(
            f"build_report: calibrator must be a calibrator of two classes, such as AffineLogit(), but it is "
            f"{calibrator!r}."
        )
    return calibrator


def read_scores(distinct: ScoreTable, reads: str) -> tuple[ScoreTable, ReadAs]:
    """The distinct table and how its scores are read: as log-odds when the calibrator says so, else by their range."""
    if reads == "logit":
        return distinct, "log-odds"
    low, high = distinct.scores[0], distinct.scores[-1]
    if low < -PROBABILITY_TOLERANCE or high > 1 + PROBABILITY_TOLERANCE:
        return distinct, "score"
    if low < 0 or high > 1:
        return distinct.with_scores(np.clip(distinct.scores, 0.0, 1.0)).distinct, "probability"
    return distinct, "probability"


def choose(calibrator: BinaryCalibrator | None, read_as: ReadAs) -> tuple[BinaryCalibrator, str]:
    """The calibrator, and why it is that one."""
    if calibrator is not None:
        if calibrator._reads == "probability" and read_as == "score":
            raise InputError(
                f"{type(calibrator).__name__} reads probabilities, but the scores lie outside [0, 1]. Give "
                f"from_logits=True to it if they are log-odds, or use PlattScaling for scores on any scale."
            )
        return calibrator, "It was asked for."
    if read_as == "probability":
        return AffineLogit(), (
            "All scores lie in [0,\u00a01], so they were read as probabilities, and a straight line on their "
            "log-odds is the simplest map that can mend over-confidence and a wrong base rate without learning noise."
        )
    return PlattScaling(), (
        "Some scores lie outside [0,\u00a01], so they are no probabilities, and a sigmoid of the score is the simplest "
        "map that makes them so."
    )


def seed_text(seed: Any) -> str:
    """What the page says of the seed."""
    if seed is None:
        return "none: the folds differ from run to run"
    return str(int(seed)) if isinstance(seed, int | np.integer) else "a generator"
