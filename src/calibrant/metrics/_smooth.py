"""The calibration error without bins: residuals smoothed by a Gaussian whose width is the error itself.

May import NumPy, the kernels and the measures beside this file.
"""

from __future__ import annotations

from typing import Any

from calibrant._checks import Floats, Label
from calibrant._kernels import heat
from calibrant.metrics._inputs import binary_input


def smooth_calibration_error(
    y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Label | None = None
) -> float:
    """Calibration error without bins: smoothed residuals, smoothed as widely as they are large; lower is better.

    It moves continuously with the probabilities and needs no choice of bins. It is not debiased: chance keeps it above
    0, by about one over the root of the number of rows. For an interval use `calibration_error`.

    Parameters
    ----------
    y_true : array-like of shape (n,), or ScoreTable
        Labels; or a table alone.
    y_prob : array-like of shape (n,) or (n, 2)
        Probabilities of the positive class.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    pos_label : label, optional
        The positive class; text labels need it.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    `smECE_s = integral over t in [0, 1] of |mean of (y - p) K_s(t, p)|`, K_s the Gaussian of deviation s reflected at 0
    and 1; the value is the s with `smECE_s = s`. Accurate to about 1e-6 of itself. Cost: one pass and some 40 cosine
    transforms of a few thousand numbers. Source: Blasiok, Nakkiran (2023), Smooth ECE, definitions 2 to 4.

    Examples
    --------
    >>> from calibrant import smooth_calibration_error
    >>> round(smooth_calibration_error([0, 1, 1, 1] * 50, [0.5] * 200), 3)
    0.25
    """
    table = binary_input(y_true, y_prob, sample_weight, pos_label, what="smooth_calibration_error")
    total = table.total_weight

    def residuals(at: slice) -> tuple[Floats, Floats]:
        part = table._at(at)
        return part.scores, (part.positives - part.weight * part.scores) / total

    return heat.fixed_point(len(table), residuals)
