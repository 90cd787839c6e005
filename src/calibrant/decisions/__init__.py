"""The operating point: decisions from probabilities and costs, and thresholds under limits.

    _costs       cost matrices: optimal_threshold, bayes_decision
    _curve       every threshold at once: threshold_curve, net_benefit
    _rates       the numbers thresholds are chosen by, with intervals
    _guarantee   limits that hold in the population
    _choose      choose_threshold

May import `calibrant.metrics` and what is below it.
"""

from __future__ import annotations

from calibrant.decisions._choose import LimitCheck, OperatingPoint, choose_threshold
from calibrant.decisions._costs import bayes_decision, optimal_threshold
from calibrant.decisions._curve import ThresholdCurve, net_benefit, threshold_curve

__all__ = [
    "LimitCheck",
    "OperatingPoint",
    "ThresholdCurve",
    "bayes_decision",
    "choose_threshold",
    "net_benefit",
    "optimal_threshold",
    "threshold_curve",
]
