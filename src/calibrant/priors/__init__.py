"""Another prevalence: probabilities moved to it, the new prevalence estimated, and whether that makes sense.

    _shift       Bayes' rule: adjust_prior, undo_sampling, shift_map
    _estimate    the new prior from unlabelled probabilities: EM and BBSE
    _plausible   do these scores look like the old ones with other class shares?
    _target      the unlabelled rows, and the labelled reference they are compared with

May import `calibrant.maps`, `calibrant.data`, `calibrant._checks`, the kernels and `calibrant.errors`.
"""

from __future__ import annotations

from calibrant.priors._estimate import PriorEstimate, estimate_prior
from calibrant.priors._plausible import LabelShiftTest, label_shift_test
from calibrant.priors._shift import adjust_prior, shift_map, undo_sampling

__all__ = [
    "LabelShiftTest",
    "PriorEstimate",
    "adjust_prior",
    "estimate_prior",
    "label_shift_test",
    "shift_map",
    "undo_sampling",
]
